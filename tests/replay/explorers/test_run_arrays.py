"""A run as JSON for the browser: its chart, and what leads from points to programs."""

import json
import math
from types import SimpleNamespace

import pytest
from samples import sample_lines, write_sample

from evo.logs.log import read_log
from replay.explorers.run_arrays import drawing_arrays, parents_of, run_arrays
from replay.explorers.run_data import RunData


@pytest.fixture(scope="module")
def log(tmp_path_factory):
    return read_log(write_sample(tmp_path_factory.mktemp("run") / "a.jsonl", generations=4))


@pytest.fixture(scope="module")
def arrays(log):
    return json.loads(json.dumps(run_arrays(log, "a run"), allow_nan=False))


def test_every_program_stands_once_and_is_one_point_of_the_chart(log, arrays):
    places = [tuple(place) for place in arrays["places"]]
    assert places == [(0, 0), *((o.generation, o.index) for o in log.outcomes)]
    numbers = [k for _, _, numbers in arrays["points"] for k in numbers]
    assert sorted(numbers) == list(range(len(places)))
    for panel, mark, of in arrays["points"]:
        points = arrays["chart"]["panels"][panel]["marks"][mark]
        assert len(points["x"]) == len(points["texts"]) == len(of)


def test_parents_come_before_their_children_and_the_first_has_none(log, arrays):
    assert arrays["parents"][0] == -1
    parents = parents_of(log)
    for number, outcome in enumerate(log.outcomes, start=1):
        parent = arrays["parents"][number]
        assert 0 <= parent < number
        place = tuple(arrays["places"][parent])
        assert parents[outcome.generation, outcome.index] == place


def test_what_improved_the_best_so_far_is_that_of_the_log(log, arrays):
    better = [tuple(arrays["places"][k]) for k in arrays["better"]]
    assert better == [each.best for each in log.generations if each.improved]
    assert arrays["name"] == "a run"
    assert arrays["words"].endswith(f"ends at {log.trajectory[-1]:.6g} after 4 generations")


def test_parents_that_are_not_in_the_log_are_none(log):
    data = RunData(log)
    data._numbers = {place: k for place, k in data._numbers.items() if place != (0, 0)}
    first = [k for k, place in enumerate(data.places) if data.parent(place) == (0, 0)]
    assert first
    assert {data.parents[k] for k in first} == {-1}


def test_a_run_without_a_program_is_a_message(tmp_path):
    from evo.logs.journal import encode_line

    lines = [line for line in sample_lines(generations=1) if type(line).__name__ != "Initial"]
    path = tmp_path / "b.jsonl"
    path.write_bytes(b"".join(map(encode_line, lines[:2])))
    found = run_arrays(read_log(path), "b")
    assert found == {"name": "b", "message": "No program was evaluated yet.", "places": []}


def test_a_drawing_is_a_chart_or_the_reason_why_there_is_none():
    reason = SimpleNamespace(value=None, reason="it is compact", pictured=True)
    assert drawing_arrays(reason) == {"reason": "it is compact", "pictured": True}
    square = [(x, y) for x in range(4) for y in range(4)]
    drawn = drawing_arrays(SimpleNamespace(value=square, picture="points"))
    [panel] = drawn["chart"]["panels"]
    assert len(panel["marks"][-1]["x"]) == 16
    wrong = drawing_arrays(SimpleNamespace(value=[[math.inf]], picture="points"))
    assert list(wrong) == ["reason"]
