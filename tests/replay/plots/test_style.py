import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.text import Text

from replay.plots import style
from replay.plots.arranging import arrange


@pytest.mark.parametrize("heights", [[0.5] * 9, [0.0, 0.01, 1.0], [1.0, 0.99, 0.98], [np.nan, 0.2]])
def test_end_labels_keep_their_distance_and_their_order(heights):
    figure, (ax,) = style.subplots()
    ax.set_ylim(0, 1)
    style.label_ends(ax, "light", [(h, f"line {k}", "#0072B2", "") for k, h in enumerate(heights)])
    figure.draw_without_rendering()
    boxes = {text.get_text(): Text.get_window_extent(text) for text in ax.texts}
    order = np.argsort(np.nan_to_num(heights, nan=-1), kind="stable")
    for low, high in itertools.pairwise(order):
        assert boxes[f"line {high}"].y0 >= boxes[f"line {low}"].y0 + 1.2 * style.TEXT_SIZE


def test_forged_names_neither_stop_a_layout_nor_draw_control_characters():
    figure, (ax,) = style.subplots()
    ax.set_title("x" * 100_000)
    ax.set_xlabel("red\x1b[31m\u202ename $x_{$")
    figure.draw_without_rendering()
    assert ax.get_title() == "x" * 1000 + " ..."
    assert ax.get_xlabel() == "red\\x1b[31m\\u202ename $x_{$"


@given(
    words=st.lists(
        st.sampled_from(["N = 16", "95 %", "R² = 0.98", "a", "longer", "± 1"]), min_size=1
    ),
    width=st.integers(12, 40),
)
def test_a_name_and_its_value_stay_on_one_line(words, width):
    lines = style.broken(" ".join(words), width)
    assert " ".join(lines) == " ".join(words)
    assert all(len(line) <= width for line in lines)
    for line in lines:
        assert line.split()[-1] not in ("=", "±")
        assert line.split()[0] not in ("=", "%")


@pytest.mark.parametrize("names", [["a", "b"], ["K = 2"] * 4, ["a long name of a thing"] * 5])
def test_a_legend_has_as_many_columns_as_have_room_and_the_words_stand_above_it(names):
    figure, (ax,) = style.subplots(width=4.5)
    names = [f"{name} {k}" for k, name in enumerate(names)]
    entries = [(name, "#0072B2") for name in names]
    style.draw_heading(ax, "light", "Title", "What is drawn", legend=entries)
    arrange(figure)
    legend = ax.get_legend().get_window_extent()
    box = ax.get_window_extent()
    assert legend.x1 <= box.x1 + 2
    places = {
        each.get_text(): (-round(each.get_window_extent().y0), each.get_window_extent().x0)
        for each in ax.get_legend().get_texts()
    }
    assert sorted(names, key=places.__getitem__) == names  # in lines, as one reads
    assert len({row for row, _ in places.values()}) < len(names)
    [words] = [each for each in ax.texts if each.get_text() == "What is drawn"]
    assert Text.get_window_extent(words).y0 >= legend.y1 - 1


@pytest.mark.parametrize("columns", [1, 4])
def test_no_title_is_wider_than_its_axes(columns):
    figure, axes = style.subplots(1, columns)
    for ax in axes:
        style.draw_heading(
            ax, "light", r"MMMM WWWW word_problems by qwen2.5-coder-1.5b $\x$", "drawn"
        )
    arrange(figure)
    renderer = FigureCanvasAgg(figure).get_renderer()
    for ax in axes:
        [title] = [each for each in ax.findobj(Text) if "MMMM" in each.get_text()]
        assert title.get_window_extent(renderer).width <= ax.get_window_extent(renderer).width + 1


@pytest.mark.parametrize(
    ("text", "lines"),
    [
        ("temperature_of_the_second_model", ["temperature_of_", "the_second_model"]),
        ("mean best fitness", ["mean best", "fitness"]),
        ("incompressibilities", ["incompressibilities"]),
        ("a\nb", ["a", "b"]),
        ("fifteen_letter_:\nundecided", ["fifteen_letter_:", "undecided"]),
        ("", [""]),
    ],
)
def test_long_names_are_wrapped_after_blanks_and_punctuation(text, lines):
    assert style.wrapped(text, 16).split("\n") == lines
