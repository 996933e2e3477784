import itertools
import json
import re
from pathlib import Path

import numpy as np
import pytest

from replay import plots
from replay.plots.chart import Chart, pack
from replay.plots.marks import RAMP, Area, Bars, Cells, Discs, Line, Points, Rule, Segments
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
        pack(make(Line(x=[object()], y=[1.0])))


def test_the_ramp_is_cividis():
    from matplotlib import colormaps
    from matplotlib.colors import to_rgb

    wanted = colormaps["cividis"](np.linspace(0, 1, len(RAMP)))[:, :3]
    assert np.abs(np.array([to_rgb(each) for each in RAMP]) - wanted).max() < 0.02


@pytest.mark.parametrize(
    ("mark", "columns"),
    [
        (Line, {"x": [1, 2], "y": [1, 2, 3]}),
        (Line, {"x": [1, 2], "y": [1, 2], "low": [0]}),
        (Points, {"x": np.arange(2), "y": [1, 2], "texts": ["one"]}),
        (Points, {"x": [1, 2], "y": [1, 2], "color": ["ink"]}),
        (Bars, {"x0": [0], "x1": [1, 2], "y": [0]}),
        (Segments, {"x0": [0], "y0": [0], "x1": [1], "y1": [1, 2]}),
        (Discs, {"x": [0], "y": [0], "r": [1, 2]}),
        (Area, {"x": [0, 1, 2], "y": [0, 1]}),
    ],
)
def test_columns_of_a_mark_that_differ_in_length_are_refused(mark, columns):
    with pytest.raises(ValueError, match=f"{mark.__name__}: expected as many values .*, but x"):
        mark(**columns)
    cut = {name: values[:1] for name, values in columns.items()}
    mark(**cut)


def test_what_two_scripts_need_stands_in_the_one_that_they_share():
    folder = Path(plots.__file__).parent
    views = [folder / "chart.js", *(folder.parent / "explorers").glob("*view.js")]
    found = {
        path.name: set(re.findall(r"^(?:export )?function (\w+)", path.read_text(), re.M))
        - {"mount"}
        for path in (folder / "drawing.js", *views)
    }
    assert len(found) == 4
    for one, other in itertools.combinations(found.values(), 2):
        assert not one & other
