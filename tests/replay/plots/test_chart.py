"""Charts as the browser gets them: numbers, keys and words."""

import json

import numpy as np
import pytest

from replay.plots.chart import Chart, pack
from replay.plots.marks import Bars, Cells, Line, Points, Rule
from replay.plots.panel import Axis, Panel


def make(*marks):
    unit = Axis(domain=(0.0, 1.0))
    return Chart(panels=[Panel(title="made", x=unit, y=unit, marks=marks)])


def test_numbers_survive_and_what_is_not_finite_is_null():
    y = np.array([0.1 + 0.2, np.nan, np.inf, -1 / 3])
    [panel] = json.loads(pack(make(Line(x=np.arange(4), y=y), Rule(x=float("nan")))))["panels"]
    line, rule = panel["marks"]
    assert line["x"] == [0, 1, 2, 3]
    assert line["y"] == [0.1 + 0.2, None, None, -1 / 3]
    assert "low" not in line
    assert rule["x"] is None


def test_of_keys_the_browser_learns_only_where_there_is_one():
    bars = Bars(x0=[0, 0], x1=[1, 1], y=[0, 1], keys=[(("shown", "secret"),), None])
    chart = make(Points(x=[0.5], y=[0.5], texts=["half"]), bars)
    packed = pack(chart)
    assert b"secret" not in packed
    points, told = json.loads(packed)["panels"][0]["marks"]
    assert told["opens"] == [True, False]
    assert "opens" not in points
    assert chart.keys() == {(0, 1): [(("shown", "secret"),), None]}


def test_what_several_panels_have_is_numbered_alike():
    one, other = (
        make(Points(x=[0.5, 0.6], y=[0.5, 0.6], keys=keys)).panels[0]
        for keys in (["mine", "shared"], ["shared", None])
    )
    panels = json.loads(pack(Chart(panels=[one, other])))["panels"]
    assert [panel["marks"][0]["means"] for panel in panels] == [[None, 0], [0, None]]
    [alone] = json.loads(pack(Chart(panels=[one])))["panels"]
    assert "means" not in alone["marks"][0]


def test_cells_and_message_are_told():
    cells = Cells(
        values=np.array([[0.25, np.nan]]), x0=0, x1=2, y0=0, y1=1, colors=("#000000", "#ffffff")
    )
    assert json.loads(pack(make(cells)))["panels"][0]["marks"][0]["values"] == [[0.25, None]]
    assert json.loads(pack(Chart(message="nothing")))["message"] == "nothing"


def test_what_json_cannot_hold_is_refused():
    with pytest.raises(TypeError):
        pack(make(Points(x=[1.0], y=[1.0], texts=[object()])))


def test_a_chart_of_iterators_is_drawn_as_often_as_it_is_asked():
    def panel(marks):
        return Panel(title="t", x=Axis(), y=Axis(), marks=marks)

    line = Line(x=[0, 1], y=[1, 2])
    chart = Chart(panels=(panel(mark for mark in [line]) for _ in range(2)))
    plain = Chart(panels=[panel([line])] * 2)
    for _ in range(2):
        assert chart.table().equals(plain.table())
        assert len(chart.table()) == 4


@pytest.mark.parametrize("wrong", [Line(x=[0], y=[1]), "line", ["line"], 3, [None]])
def test_what_a_chart_cannot_be_made_of_is_named(wrong):
    with pytest.raises(TypeError, match="panels: expected a list of panels, such as"):
        Chart(panels=wrong)
    wrong = Axis() if isinstance(wrong, Line) else wrong
    with pytest.raises(TypeError, match="marks: expected a list of marks, such as Line"):
        Panel(title="t", x=Axis(), y=Axis(), marks=wrong)


@pytest.mark.parametrize(
    ("made", "message"),
    [
        (lambda: Axis(label=3), "label: expected a text, got 3"),
        (
            lambda: Axis(ticks=[1, 2]),
            "ticks: expected pairs of a number and a text, .* got 1 among",
        ),
        (lambda: Axis(ticks=[(1, 2)]), r"ticks: expected pairs .* got \(1, 2\) among them"),
        (lambda: Panel(title=40, x=Axis(), y=Axis(), marks=[]), "title: expected a text, got 40"),
        (
            lambda: Panel(title="t", about=None, x=Axis(), y=Axis(), marks=[]),
            "about: expected a text, got None",
        ),
    ],
)
def test_a_text_that_is_none_is_named_before_a_pen_draws_it(made, message):
    with pytest.raises(TypeError, match=message):
        made()


@pytest.mark.parametrize("suffix", [".png", ".html"])
def test_a_chart_is_saved_in_a_folder_that_is_made_for_it(tmp_path, suffix):
    panel = Panel(title="", x=Axis(), y=Axis(), marks=[Line(x=[0, 1], y=[0, 1])])
    path = tmp_path / "new" / "folder" / f"chart{suffix}"
    assert Chart(panels=[panel]).save(path) == path
    assert path.stat().st_size > 1000
