"""Figures for a paper: size, texts, and colours as colour-blind readers and copiers see them."""

import itertools
import re
import zlib

import numpy as np
import pandas as pd
import pytest
from looks import complaints
from matplotlib.colors import to_rgb
from matplotlib.text import Text
from synthetic_runs import as_frame, sweep_runs

from replay import plots
from replay.plots.medium import LEAST_SIZE, PALETTE, PRINT_PALETTE
from replay.plots.policies import EFFECTS
from replay.plots.style import look
from replay.statistics.intervals import curve_band

SEEN = {
    "usual": np.eye(3),
    "protanopia": [[0.152286, 1.052583, -0.204868], [0.114503, 0.786281, 0.099216],
                   [-0.003882, -0.048116, 1.051998]],
    "deuteranopia": [[0.367322, 0.860646, -0.227968], [0.280085, 0.672501, 0.047413],
                     [-0.011820, 0.042940, 0.968881]],
    "tritanopia": [[1.255528, -0.076749, -0.178779], [-0.078411, 0.930809, 0.147602],
                   [0.004733, 0.691367, 0.303900]],
}  # fmt: skip
"""How linear red, green, blue is seen: Machado, Oliveira and Fernandes (2009), complete."""


def lab(colours, seen=SEEN["usual"]):
    """CIE L*a*b* of colours (n, 3) as somebody sees them."""
    rgb = np.array([to_rgb(colour) for colour in colours])
    linear = np.where(rgb <= 0.04045, rgb / 12.92, ((rgb + 0.055) / 1.055) ** 2.4)
    to_xyz = np.array(
        [[0.4125, 0.3576, 0.1804], [0.2127, 0.7152, 0.0722], [0.0193, 0.1192, 0.9503]]
    )
    xyz = np.clip(linear @ np.transpose(seen), 0, 1) @ to_xyz.T / to_xyz.sum(axis=1)
    f = np.where(xyz > 0.008856, np.cbrt(xyz), 7.787 * xyz + 16 / 116)
    return np.stack([116 * f[:, 1] - 16, 500 * (f[:, 0] - f[:, 1]), 200 * (f[:, 1] - f[:, 2])], 1)


def least_difference(points):
    return min(np.linalg.norm(a - b) for a, b in itertools.combinations(points, 2))


def six_groups():
    rng = np.random.default_rng(0)
    fitness = rng.uniform(0, 0.05, (24, 9)).cumsum(axis=1)
    return as_frame(fitness, children=4, seeds=range(24)).assign(
        group=lambda frame: "group " + (frame["seed"] % 6).astype(str)
    )


@pytest.fixture(scope="module")
def figure():
    return plots.paper(plots.trajectories, six_groups(), by="group")


def line_colours(figure):
    wide = [line for line in figure.axes[0].lines if line.get_linewidth() > 2]
    return list(dict.fromkeys(line.get_color() for line in wide))


@pytest.mark.parametrize("seen", SEEN)
def test_colour_blind_readers_tell_the_lines_apart(figure, seen) -> None:
    colours = line_colours(figure)
    assert len(colours) == 6
    assert least_difference(lab(colours, SEEN[seen])) > 20


def test_the_lines_differ_in_greyscale(figure) -> None:
    grey = lab(line_colours(figure))[:, :1]
    assert least_difference(grey) > 10
    assert least_difference(lab(PALETTE)[:, :1]) < 10  # those of the screen would not
    assert grey.max() < 80  # and all are seen on white


def test_colours_of_the_screen_come_back(figure) -> None:
    assert set(line_colours(figure)) == set(PRINT_PALETTE)
    assert [look(k)[0] for k in range(6)] == list(PALETTE)


@pytest.mark.parametrize(("columns", "width"), [(1, 3.3), (2, 6.9)])
def test_it_has_the_width_of_its_columns_and_legible_texts(columns, width) -> None:
    made = plots.paper(plots.trajectories, six_groups(), by="group", columns=columns)
    assert made.get_figwidth() == width
    sizes = {t.get_fontsize() for t in made.findobj(Text) if t.get_text() and t.get_visible()}
    assert min(sizes) >= LEAST_SIZE
    assert max(sizes) <= 10
    box = made.get_tightbbox()
    assert box.width <= width + 0.02


def effects():
    table = pd.DataFrame(itertools.product(["ucb1", "successive_halving"], EFFECTS))
    return table.set_axis(["policy", "effect"], axis=1).assign(value=0.1, low=0.08, high=0.13, n=25)


def curves():
    parts = []
    for k, policy in enumerate(["random", "ucb1", "successive_halving"]):
        steps = np.random.default_rng(k).uniform(0, 0.02, (20, 50))
        band = curve_band(steps.cumsum(axis=1), statistic="mean", first=1)
        parts.append(band.assign(policy=policy, round=band.index))
    return pd.concat(parts)


def configurations():
    frame = sweep_runs()
    frame.attrs["fields"] = ["model", "temperature", "children", "top_p"]
    return frame


@pytest.mark.parametrize("columns", [1, 2])
@pytest.mark.parametrize(("draw", "table"), [
    (plots.trajectories, six_groups().assign(children=lambda frame: frame["seed"] % 6)),
    (plots.policy_curves, curves()),
    (plots.pool_vs_allocation, effects()),
    (plots.parallel_coordinates, configurations()),
    (plots.cost_and_fitness, sweep_runs()),
])  # fmt: skip
def test_texts_neither_overlap_nor_are_cropped_at_print_size(draw, table, columns) -> None:
    assert not complaints(plots.paper(draw, table, columns=columns))


def test_a_caption_stands_there_only_if_asked(figure) -> None:
    assert figure.axes[0].get_title(loc="left") == ""
    made = plots.paper(plots.trajectories, six_groups(), by="group", caption=True)
    assert made.axes[0].get_title(loc="left").startswith("Best so far")


def test_the_text_of_a_pdf_is_text(tmp_path) -> None:
    path = tmp_path / "runs.pdf"
    plots.paper(plots.trajectories, six_groups(), by="group", path=path)
    data = path.read_bytes()
    assert b"/Type3" not in data
    assert b"/FontFile2" in data
    streams = re.findall(rb"stream\r?\n(.*?)\r?\nendstream", data, re.DOTALL)
    pages = b" ".join(zlib.decompress(part) for part in streams if part[:1] == b"x")
    pages = pages.replace(b"\0", b"")  # of two bytes for a letter
    pieces = re.findall(rb"\[([^]]*)\]\s+TJ", pages) + re.findall(rb"(\([^)]*\)) Tj", pages)
    words = {b"".join(re.findall(rb"\(([^)]*)\)", piece)) for piece in pieces}
    assert {b"generation", b"group 3"} <= words


def test_other_numbers_of_columns_are_refused() -> None:
    with pytest.raises(ValueError, match="columns to be 1 or 2, got 3"):
        plots.paper(plots.trajectories, six_groups(), columns=3)


def test_a_chart_of_ones_own_is_printed_and_what_was_drawn_already_is_refused(tmp_path):
    def mine(data, *, title="mine"):
        line = plots.marks.Line(x=[1, 2], y=data)
        axes = {"x": plots.panel.Axis(label="x"), "y": plots.panel.Axis(label="y")}
        return plots.Chart(panels=[plots.panel.Panel(title=title, marks=[line], **axes)])

    figure = plots.paper(mine, [1.0, 3.0], path=tmp_path / "mine.pdf", title="mine")
    assert (tmp_path / "mine.pdf").exists()
    assert [axes.get_xlabel() for axes in figure.axes] == ["x"]
    with pytest.raises(TypeError, match=r"paper: expected the function of a figure.*type Chart"):
        plots.paper(mine([1.0, 3.0]))
    with pytest.raises(TypeError, match=r"paper: expected the function of a figure to make.*float"):
        plots.paper(lambda data: 1.0, [1.0])


@pytest.mark.parametrize("name", ["mine.doc", "mine"])
def test_a_chart_says_all_the_names_that_its_files_may_have(name, tmp_path):
    with pytest.raises(ValueError, match=rf"\.png, \.svg, \.pdf or \.html, got '.*{name}'"):
        plots.Chart(panels=[], message="nothing").save(tmp_path / name)
