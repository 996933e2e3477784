"""Charts on paper: panels in rows, axes whose texts have room, legends and bars."""

import itertools

import numpy as np
import pytest
from matplotlib.colors import to_rgba
from matplotlib.text import Text

from replay import plots
from replay.plots.chart import Chart
from replay.plots.marks import RAMP, Bars, End, Line, Points, Rule
from replay.plots.panel import Axis, ColorBar, Panel
from replay.plots.pen import HEAD
from replay.plots.style import THEMES

UNIT = Axis(domain=(0.0, 1.0))
LINE = Line(x=[0.0, 1.0], y=[0.0, 1.0])


def panel(*marks, x=UNIT, y=UNIT, **how):
    return Panel(title="made", x=x, y=y, marks=marks or (LINE,), **how)


def drawn(*marks, **how):
    return Chart(panels=[panel(*marks, **how)]).draw()


def ticks(axis):
    return list(zip(axis.get_majorticklocs(), texts(axis), strict=True))


def texts(axis):
    return [text.get_text() for text in axis.get_ticklabels()]


def test_only_one_panel_fits_on_given_axes_and_none_is_a_sentence():
    with pytest.raises(ValueError, match="one panel, got 2; its method figure draws all"):
        Chart(panels=[panel(), panel()]).draw()
    ax = Chart(message="There is nothing.").draw()
    assert [text.get_text() for text in ax.texts] == ["There is nothing."]
    assert not ax.axison


def test_the_sentence_of_a_figure_is_wrapped_and_as_wide_as_asked():
    figure = Chart(message="nothing to see here " * 9).figure(width=5)
    assert figure.get_figwidth() == 5
    [text] = figure.axes[0].texts
    assert max(map(len, text.get_text().splitlines())) <= 80


@pytest.mark.parametrize(
    ("count", "columns", "rows"), [(1, 1, [1]), (3, 2, [2, 1]), (2, 5, [2]), (3, 1, [1, 1, 1])]
)
def test_panels_stand_row_by_row(count, columns, rows):
    figure = Chart(panels=[panel() for _ in range(count)], columns=columns).figure()
    figure.draw_without_rendering()
    tops = [round(ax.get_position().y1, 3) for ax in figure.axes]
    assert [tops.count(top) for top in dict.fromkeys(tops)] == rows
    assert sorted(tops, reverse=True) == tops
    assert figure.axes[0].get_position().x0 == min(ax.get_position().x0 for ax in figure.axes)


def test_a_row_is_as_high_as_its_highest_panel_and_a_figure_as_wide_as_it_needs():
    panels = [panel(height=100.0), panel(height=300.0), panel(height=200.0)]
    figure = Chart(panels=panels, columns=2).figure()
    assert figure.get_figheight() == pytest.approx(3.0 + HEAD + 2.0 + HEAD)
    assert figure.get_figwidth() == 9.0
    upper, _, lower = (ax.get_position().height for ax in figure.axes)
    assert upper > lower
    assert Chart(panels=panels, columns=3).figure().get_figwidth() == 12.0
    assert Chart(panels=panels, columns=9).figure().get_figwidth() == 12.0
    narrow = [panel(width=400.0), panel(width=400.0)]
    assert [Chart(panels=narrow, columns=n).figure().get_figwidth() for n in (1, 2)] == [4.0, 9.0]
    assert Chart(panels=panels, columns=3).figure(width=7).get_figwidth() == 7
    assert Chart(panels=[panel(equal=True)]).figure().get_figwidth() == 5.0
    assert Chart(panels=[panel(width=700.0)]).draw().figure.get_figwidth() == 7.0


def test_the_title_of_a_chart_stands_over_all_panels_in_the_ink_of_the_theme():
    figure = Chart(panels=[panel(), panel()], title="All").figure("dark")
    assert figure.get_suptitle() == "All"
    assert figure._suptitle.get_color() == THEMES["dark"].text
    assert Chart(panels=[panel()]).figure().get_suptitle() == ""


@pytest.mark.parametrize("domain", [(0.0, 1.0), (1.0, 0.0)])
def test_ticks_outside_the_axis_are_left_out_whichever_way_it_runs(domain):
    given = [(-1.0, "before"), (0.0, "first"), (1.0, "last"), (1.5, "after")]
    ax = drawn(y=Axis(domain=domain, ticks=given))
    assert ticks(ax.yaxis) == [(0.0, "first"), (1.0, "last")]
    assert ax.get_ylim() == domain


def test_axes_are_logarithmic_where_asked_for():
    ax = drawn(x=Axis(domain=(1.0, 64.0), scale="log"), y=Axis(domain=(0.1, 1.0), scale="log"))
    assert (ax.get_xscale(), ax.get_yscale()) == ("log", "log")
    ax = drawn(x=Axis(domain=(1.0, 64.0), scale="log", ticks=[(8.0, "8")]))
    assert (ax.get_xscale(), ticks(ax.xaxis)) == ("log", [(8.0, "8")])
    assert len(ax.xaxis.get_minorticklocs()) == 0


def test_ticks_by_ratios_are_as_many_as_have_room():
    x = Axis(domain=(6.8e3, 4.6e5), scale="log")

    def shown(width):
        figure = plots.paper(lambda _: Chart(panels=[panel(x=x)]), None, columns=width)
        figure.canvas.draw()
        (ax,) = figure.axes
        labels = [each for each in ax.get_xticklabels() if 6.8e3 < each.get_position()[0] < 4.6e5]
        ends = [(box.x0, box.x1) for box in (each.get_window_extent() for each in labels)]
        assert all(end < start for (_, end), (start, _) in itertools.pairwise(ends))
        return [each.get_text() for each in labels]

    assert shown(2) == ["10k", "20k", "50k", "100k", "200k"]
    assert shown(1) == ["10k", "30k", "100k", "300k"]


def test_an_axis_of_whole_numbers_has_no_ticks_between_them():
    places = [
        drawn(x=Axis(domain=(0.0, 3.0), whole=whole)).xaxis.get_majorticklocs()
        for whole in (False, True)
    ]
    assert any(place % 1 for place in places[0])
    assert not any(place % 1 for place in places[1])


def test_numbers_that_lie_over_each_other_are_left_out_and_words_go_in_two_rows():
    many = [(k / 60, str(k)) for k in range(61)]
    kept = texts(drawn(x=Axis(domain=(0.0, 1.0), ticks=many)).xaxis)
    assert 5 < len(kept) < 40
    assert kept[0] == "0"
    few = [(0.0, "0"), (1.0, "60")]
    assert texts(drawn(x=Axis(domain=(0.0, 1.0), ticks=few)).xaxis) == ["0", "60"]
    words = [(k / 20, f"policy {k}") for k in range(21)]
    shown = texts(drawn(x=Axis(domain=(0.0, 1.0), ticks=words)).xaxis)
    assert [text.startswith("\n") for text in shown] == [k % 2 == 1 for k in range(21)]
    assert [text.strip() for text in shown] == [text for _, text in words]
    ax = drawn(y=Axis(domain=(0.0, 1.0), ticks=words))
    assert texts(ax.yaxis) == vars(ax)["rows"] == [text for _, text in words]
    apart = [(0.0, "first"), (0.5, "middle"), (1.0, "last")]
    assert ticks(drawn(x=Axis(domain=(0.0, 1.0), ticks=apart)).xaxis) == apart


def test_kept_numbers_do_not_touch_each_other():
    many = [(k / 60, f"{k}00") for k in range(61)]
    ax = drawn(x=Axis(domain=(0.0, 1.0), ticks=many))
    ax.figure.draw_without_rendering()
    boxes = [Text.get_window_extent(text) for text in ax.get_xticklabels()]
    assert all(a.x1 < b.x0 for a, b in itertools.pairwise(boxes))


def test_round_numbers_are_written_without_zeros_and_as_many_as_have_room():
    ax = drawn(x=Axis(domain=(0.0, 1.0)))
    assert texts(ax.xaxis) == ["0", "0.2", "0.4", "0.6", "0.8", "1"]
    long = Axis(domain=(0.12345, 0.123453))
    narrow, wide = (drawn(x=long, width=width) for width in (250.0, 900.0))
    assert len(texts(narrow.xaxis)) < len(texts(wide.xaxis))
    narrow.figure.draw_without_rendering()
    boxes = [Text.get_window_extent(text) for text in narrow.get_xticklabels()]
    assert all(a.x1 < b.x0 for a, b in itertools.pairwise(boxes))


def test_there_is_a_grid_unless_ticks_are_given_or_it_is_asked_for():
    def has_grid(**how):
        return any(
            line.get_visible() for line in drawn(y=Axis(domain=(0.0, 1.0), **how)).get_ygridlines()
        )

    named = [(0.0, "a"), (1.0, "b")]
    assert has_grid()
    assert not has_grid(ticks=named)
    assert has_grid(ticks=named, grid=True)
    assert not has_grid(grid=False)


def test_large_numbers_are_written_short():
    small, large = (texts(drawn(y=Axis(domain=(0.0, most))).yaxis) for most in (9_000.0, 90_000.0))
    assert any(text.endswith("000") for text in small)
    assert not any(text.endswith("000") for text in large)


def test_an_axis_above_has_its_texts_there_and_no_frame():
    ax = drawn(x=Axis(domain=(0.0, 1.0), ticks=[(0.5, "half")], above=True))
    assert ax.xaxis.get_ticks_position() == "top"
    assert not any(spine.get_visible() for spine in ax.spines.values())
    assert drawn().xaxis.get_ticks_position() == "bottom"


def test_a_bare_panel_has_no_axes_and_an_equal_one_equal_units():
    assert not drawn(bare=True).axison
    assert drawn().axison
    assert drawn(equal=True).get_aspect() == 1.0
    assert drawn().get_aspect() == "auto"


def test_a_legend_lists_the_marks_that_have_a_label_and_only_if_it_is_asked_for():
    marks = [
        Line(x=[0, 1], y=[0, 1], label="line", dash="6 3", width=2.0, color="#D55E00"),
        LINE,
        Points(x=[0, 1], y=[0, 1], label="points", color=["#009E73", "ink"], shape="diamond"),
        Bars(x0=[0], x1=[1], y=[0.5], label="bars"),
    ]
    marks = [*marks, Points(x=[], y=[], label="none")]
    assert drawn(*marks).get_legend() is None
    legend = drawn(*marks, legend=True).get_legend()
    assert [text.get_text() for text in legend.get_texts()] == ["line", "points", "bars"]
    line, points, bars = legend.get_lines()
    assert line.is_dashed()
    assert to_rgba(line.get_color()) == to_rgba("#D55E00")
    assert (points.get_marker(), points.get_color()) == ("D", "#009E73")
    assert bars.get_linewidth() > line.get_linewidth()


def test_names_stand_at_the_ends_of_lines_and_on_strips_they_are_remembered():
    end = End(y=0.5, text="thompson", color="#D55E00")
    ax = drawn(LINE, end)
    assert "thompson" in [text.get_text() for text in ax.texts]
    assert vars(ax)["strips"] == []
    strips = drawn(LINE, end, y=Axis(domain=(0.0, 1.0), ticks=[(0.0, "0")]))
    assert [note.get_text() for note in vars(strips)["strips"]] == ["thompson"]


def test_what_is_drawn_of_a_mark_bears_its_number():
    band = Line(x=[0, 1], y=[0, 1], low=[0, 0], high=[1, 1])
    ax = drawn(LINE, band)
    named = [artist.get_gid() for artist in (*ax.lines, *ax.collections) if artist.get_gid()]
    assert sorted(named) == ["mark-0", "mark-1", "mark-1"]


def test_a_bar_says_what_colours_mean():
    figure = Chart(panels=[panel(bar=ColorBar(RAMP, 5.0, 25.0, "% of pulls"))]).figure()
    _, bar = figure.axes
    assert bar.get_ylabel() == "% of pulls"
    assert bar.get_ylim() == (5.0, 25.0)
    assert len(Chart(panels=[panel()]).figure().axes) == 1


def test_an_axis_that_is_written_elsewhere_has_no_texts_and_a_level_has_its_name():
    x = Axis(domain=(0.0, 1.0), label="round", named=False)
    ax = drawn(LINE, Rule(y=0.5, text="a level"), x=x)
    ax.figure.draw_without_rendering()
    assert ax.get_xlabel() == ""
    assert not any(label.get_visible() and label.get_text() for label in ax.get_xticklabels())
    assert "a level" in [text.get_text() for text in ax.texts]


def test_the_name_of_a_level_hides_no_points():
    x = np.linspace(0, 1, 60)
    points = Points(x=x, y=np.where(x > 0.4, 0.55, 0.9), size=2.0)
    ax = drawn(points, Rule(y=0.5, text="a level"), Points(x=x[30:], y=np.full(30, 0.45), size=2.0))
    ax.figure.draw_without_rendering()
    [text] = [text for text in ax.texts if text.get_text() == "a level"]
    box = text.get_window_extent()
    places = np.concatenate([each.get_offsets() for each in ax.collections])
    assert not any(box.contains(*place) for place in ax.transData.transform(places))
