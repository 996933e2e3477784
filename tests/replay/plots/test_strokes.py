"""How each kind of mark is drawn on paper: where it stands, and in what ink."""

import itertools
from typing import get_args

import numpy as np
import pytest
from matplotlib.colors import to_rgba
from matplotlib.patches import Ellipse
from matplotlib.path import Path
from matplotlib.text import Annotation, Text

from replay.plots import style
from replay.plots.marks import (
    RAMP,
    Area,
    Bars,
    Cells,
    Discs,
    Label,
    Line,
    Mark,
    Points,
    Polylines,
    Rule,
    Segments,
    Spans,
)
from replay.plots.medium import dashes_of
from replay.plots.strokes import PENS, PIXEL, ink_of
from replay.plots.style import THEMES


@pytest.fixture
def ax():
    made = style.subplots(width=6)[1][0]
    made.set(xlim=(0, 10), ylim=(0, 4))
    return made


def drawn(mark, ax, theme="light"):
    return list(PENS[mark.kind](mark, ax, theme))


def boxes(artist):
    """The limits (x0, y0, x1, y1) of each path of a collection."""
    return [path.get_extents().extents.tolist() for path in artist.get_paths()]


def test_there_is_a_pen_for_every_kind_of_mark_and_for_nothing_else():
    assert {each.kind for each in get_args(Mark)} == PENS.keys()


@pytest.mark.parametrize("theme", THEMES)
def test_ink_and_faint_are_those_of_the_theme_and_other_colours_are_themselves(theme):
    assert ink_of("ink", theme) == THEMES[theme].text
    assert ink_of("faint", theme) == THEMES[theme].faint
    assert ink_of("#123456", theme) == "#123456"
    assert (ink_of("#D55E00", theme) == "#D55E00") == (theme != "dark")  # lighter there


def test_dashes_scale_with_the_line_unless_it_is_very_thin():
    assert dashes_of("", 2.0) == "-"
    assert dashes_of("6 3", 2.0) == (0, (3.0, 1.5))
    assert dashes_of("6 3", 0.1) == dashes_of("6 3", 0.5) == (0, (12.0, 6.0))


def test_a_line_has_its_band_only_with_both_limits_and_if_it_is_asked_for(ax):
    line = {"x": [0, 1], "y": [1, 2]}
    both = {"low": [0, 1], "high": [2, 3]}
    assert len(drawn(Line(**line, **both), ax)) == 2
    assert len(drawn(Line(**line, **both, band=False), ax)) == 1
    assert len(drawn(Line(**line, low=[0, 1]), ax)) == 1
    [plain], [stepped] = (drawn(Line(**line, step=step), ax) for step in (False, True))
    assert (plain.get_drawstyle(), stepped.get_drawstyle()) == ("default", "steps-post")
    band, _ = drawn(Line(**line, **both, step=True), ax)
    assert boxes(band) == [[0, 0, 1, 3]]
    corners = band.get_paths()[0].vertices.tolist()
    assert [1, 2] in corners  # level until the next place
    assert [0, 3] not in corners


def test_intervals_of_points_lie_along_their_own_axes(ax):
    points = Points(x=[1, 2], y=[3, 4], x_low=[0, 1], x_high=[2, 5], y_low=[2, 2], y_high=[4, 4])
    level, upright, dots = drawn(points, ax)
    assert boxes(level) == [[0, 3, 2, 3], [1, 4, 5, 4]]
    assert boxes(upright) == [[1, 2, 1, 4], [2, 2, 2, 4]]
    assert dots.get_offsets().tolist() == [[1, 3], [2, 4]]
    assert len(drawn(Points(x=[1], y=[1], x_low=[0]), ax)) == 1  # one end alone is no interval
    assert len(drawn(Points(x=[], y=[], x_low=[], x_high=[]), ax)) == 1


def test_the_size_of_a_point_is_its_radius_in_pixels(ax):
    [dots] = drawn(Points(x=[1, 2], y=[1, 1], size=[2.0, 4.0]), ax)
    assert np.sqrt(dots.get_sizes()) / (2 * PIXEL) == pytest.approx([2.0, 4.0])


def test_only_the_arrow_for_later_is_drawn_beyond_the_axes(ax):
    clipped = {
        shape: drawn(Points(x=[1], y=[1], shape=shape), ax)[0].get_clip_on()
        for shape in ("dot", "later", "below", "diamond", "cross")
    }
    assert [shape for shape, clips in clipped.items() if not clips] == ["later"]


def test_a_cross_and_an_edge_are_lines_and_other_points_have_none(ax):
    widths = [
        drawn(Points(x=[1], y=[1], **look), ax)[0].get_linewidths()[0]
        for look in ({}, {"shape": "cross"}, {"edge": "ink"})
    ]
    assert widths[0] == 0 < min(widths[1:])
    [edged] = drawn(Points(x=[1], y=[1], edge="faint"), ax)
    assert edged.get_edgecolors()[0].tolist() == pytest.approx(to_rgba(THEMES["light"].faint))


def test_a_point_that_is_nowhere_or_has_no_text_is_not_labelled(ax):
    points = Points(x=[1, np.nan, 3, 4], y=[1, 1, np.inf, 2], labels=["a", "b", "c", ""])
    _, *notes = drawn(points, ax)
    assert [note.get_text() for note in notes] == ["a"]


def test_bars_are_centred_on_their_rows_and_keep_their_colours_where_others_are_unknown(ax):
    bars = Bars(
        x0=[0, 0, 1], x1=[2, np.nan, 3], y=[0, 1, 2], thickness=[0.5, 0.5, 1.0],
        color=["#111111", "#222222", "#333333"], opacity=0.4,
    )  # fmt: skip
    [found] = drawn(bars, ax)
    assert boxes(found) == [[0, -0.25, 2, 0.25], [1, 1.5, 3, 2.5]]
    assert found.get_facecolors().tolist() == [
        pytest.approx(to_rgba(colour, 0.4)) for colour in ("#111111", "#333333")
    ]


def test_bars_that_nobody_sees_are_there_for_the_mouse_alone(ax):
    assert drawn(Bars(x0=[0], x1=[1], y=[0], opacity=0), ax) == []


def test_a_span_without_an_end_reaches_that_of_the_panel(ax):
    [upright] = drawn(Spans(x0=[2], x1=[3], opacity=0.5), ax)
    assert boxes(upright) == [[2, 0, 3, 4]]
    [level] = drawn(Spans(y0=[1], y1=[2], opacity=0.5), ax)
    assert boxes(level) == [[0, 1, 10, 2]]
    framed = [
        drawn(Spans(x0=[2], x1=[3], frame=frame), ax)[0].get_zorder() for frame in (0.0, [2.0])
    ]
    assert framed[0] < 2 < framed[1]  # curves lie between a ground and a frame


def test_a_frame_alone_has_nothing_inside(ax):
    ends = {"x0": [np.nan, 2], "x1": [1, 3], "y0": [0, 0], "y1": [1, 1]}
    [found] = drawn(Spans(**ends, frame=[1.0, 2.5], color=["#111111", "#D55E00"]), ax)
    assert found.get_facecolors()[0][3] == 0
    assert found.get_linewidths() == pytest.approx([2.5 * PIXEL])
    assert found.get_edgecolors().tolist() == [pytest.approx(to_rgba("#D55E00"))]


def test_a_segment_is_straight_or_level_until_it_turns(ax):
    ends = {"x0": [0.0], "y0": [1.0], "x1": [9.0], "y1": [3.0]}
    [straight] = drawn(Segments(**ends), ax)
    assert straight.get_paths()[0].vertices.tolist() == [[0, 1], [9, 3]]
    [bent] = drawn(Segments(**ends, turn=[3.0]), ax)
    [path] = bent.get_paths()
    assert path.codes.tolist() == [Path.MOVETO, Path.LINETO, *[Path.CURVE4] * 3]
    assert path.vertices.tolist() == [[0, 1], [3, 1], [5, 1], [7, 3], [9, 3]]


def test_a_rule_is_upright_level_or_both(ax):
    [upright] = drawn(Rule(x=2.0), ax)
    assert upright.get_xdata() == [2.0, 2.0]
    [level] = drawn(Rule(y=3.0, dash="1.5 3"), ax)
    assert level.get_ydata() == [3.0, 3.0]
    assert len(drawn(Rule(x=2.0, y=3.0), ax)) == 2


def test_a_label_moves_right_and_down_and_is_bare_only_if_asked(ax):
    [label] = drawn(Label(x=1.0, y=2.0, text="a", dx=10, dy=5, anchor="end"), ax)
    assert label.xyann == pytest.approx((10 * PIXEL, -5 * PIXEL))
    assert label.get_ha() == "right"
    assert label.get_path_effects()
    [bare] = drawn(Label(x=1.0, y=2.0, text="a", bare=True), ax)
    assert not bare.get_path_effects()


GRID = {"x0": 0.0, "x1": 2.0, "y0": 0.0, "y1": 2.0, "colors": RAMP}
VALUES = np.array([[0.0, 1.0], [0.5, np.nan]])


def test_cells_are_an_image_that_leaves_the_axes_as_they_are(ax):
    [image] = drawn(Cells(values=VALUES, **GRID), ax)
    assert image.get_extent() == [0, 2, 0, 2]
    assert (ax.get_xlim(), ax.get_ylim()) == ((0, 10), (0, 4))
    shown = image.cmap(image.norm([-3.0, 0.0, 1.0, 7.0]))
    assert shown[0] == pytest.approx(to_rgba(RAMP[0]), abs=0.01)
    assert shown[0].tolist() == shown[1].tolist()
    assert shown[2].tolist() == shown[3].tolist() == list(to_rgba(RAMP[-1]))


def test_written_cells_stand_apart_and_an_unknown_one_is_left_out(ax):
    shapes = np.array([[False, True], [False, False]])
    mark = Cells(values=VALUES, written=[["a", "b"], ["c", "d"]], round=shapes, **GRID)
    [found] = drawn(mark, ax)
    assert [text.get_text() for text in ax.texts] == ["a", "b", "c"]
    assert [text.get_position() for text in ax.texts] == [(0.5, 0.5), (1.5, 0.5), (0.5, 1.5)]
    one, other, above = boxes(found)
    assert one == [0, 0, 1, 1]
    assert above == [0, 1, 1, 2]
    disc = Ellipse((1.5, 0.5), 0.9, 0.9)
    assert other == pytest.approx(disc.get_path().transformed(disc.get_transform()).get_extents()
                                  .extents.tolist())  # fmt: skip
    assert ax.texts[0].get_color() != ax.texts[1].get_color()  # on dark and on bright


def test_nothing_is_written_where_it_could_not_be_read(ax):
    wide = np.zeros((1, 200))
    drawn(Cells(values=wide, written=[["0"] * 200], **GRID), ax)
    assert len(ax.texts) == 0
    drawn(Cells(values=wide[:, :5], written=[["0"] * 5], **GRID), ax)
    assert len(ax.texts) == 5


@pytest.mark.parametrize("columns", [5, 16, 26])
def test_what_is_written_has_room_in_its_cell(columns):
    ax = style.subplots(width=6)[1][0]
    ax.set(xlim=(0, 2), ylim=(0, 2))
    drawn(Cells(values=np.zeros((1, columns)), written=[[".12"] * columns], **GRID), ax)
    assert len(ax.texts) == columns
    (left, _), (right, _) = ax.transData.transform([(0, 0), (2 / columns, 0)])
    assert Text.get_window_extent(ax.texts[0]).width < right - left


def test_polylines_have_a_colour_and_a_width_each(ax):
    [found] = drawn(
        Polylines(x=[0, 1], rows=[[1, 2], [3, 4]], colors=["ink", "#D55E00"], widths=[1, 3]), ax
    )
    assert [each.tolist() for each in found.get_segments()] == [
        [[0, 1], [1, 2]],
        [[0, 3], [1, 4]],
    ]
    assert found.get_colors().tolist() == [
        pytest.approx(to_rgba(c)) for c in (THEMES["light"].text, "#D55E00")
    ]
    assert found.get_linewidths() == pytest.approx([PIXEL, 3 * PIXEL])


def test_discs_and_areas_are_filled_as_much_as_asked_for(ax):
    [discs] = drawn(Discs(x=[1, 5], y=[1, 1], r=[1, 2], opacity=0.25), ax)
    [(left, *_), (x0, y0, x1, y1)] = boxes(discs)
    assert left == pytest.approx(0)
    assert (x0, y0, x1, y1) == pytest.approx((3, -1, 7, 3))
    [area] = drawn(Area(x=[0, 1, 1], y=[0, 0, 1], opacity=0.5), ax)
    assert discs.get_facecolors()[0][3] == 0.25
    assert area.get_facecolor()[3] == 0.5
    assert area.get_edgecolor()[3] == 1


def test_texts_beside_points_lie_over_neither_each_other_nor_the_points(ax):
    x, y = [1.0, 1.05, 5.0, 1.1], [1.0, 1.0, 2.0, 1.02]
    points = Points(x=x, y=y, labels=["1", "2", "3", "4"])
    texts = [each for each in drawn(points, ax) if isinstance(each, Annotation)]
    ax.figure.draw_without_rendering()
    boxes_of = [each.get_window_extent() for each in texts]
    assert len(texts) >= 3
    for one, other in itertools.combinations(boxes_of, 2):
        assert not one.overlaps(other)
    for place in ax.transData.transform(np.column_stack([x, y])):
        assert not any(each.contains(*place) for each in boxes_of)
