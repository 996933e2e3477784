"""A run as arrays for the browser: every program once, by its number."""

import json
import math
from types import SimpleNamespace

import pytest
from samples import sample_lines, write_sample

from evo.logs.log import read_log
from evo.logs.records import STATUSES
from replay.explorers.run_arrays import LONGEST, LOOKS, drawing_arrays, parents_of, run_arrays


@pytest.fixture(scope="module")
def log(tmp_path_factory):
    return read_log(write_sample(tmp_path_factory.mktemp("run") / "a.jsonl", generations=4))


@pytest.fixture(scope="module")
def arrays(log):
    return json.loads(json.dumps(run_arrays(log, "a run"), allow_nan=False))


def test_every_program_stands_once_with_its_place_fitness_and_status(log, arrays):
    children = arrays["children"]
    places = list(zip(children["generation"], children["index"], strict=True))
    assert places == [(0, 0), *((o.generation, o.index) for o in log.outcomes)]
    assert children["fitness"] == [0.1, *(o.evaluation.fitness for o in log.outcomes)]
    names = [each[0] for each in arrays["statuses"]]
    for number, outcome in enumerate(log.outcomes, start=1):
        status = children["status"][number]
        assert ("ok" if status == -1 else names[status]) == outcome.evaluation.status
        said = children["said"].get(str(number))
        assert (said is None) == (outcome.evaluation.status == "ok")
        assert said is None or arrays["errors"][said] == "boom"
    assert arrays["errors"] == ["boom"]  # each text once


def test_parents_come_before_their_children_and_the_first_has_none(log, arrays):
    children = arrays["children"]
    assert children["parent"][0] == -1
    parents = parents_of(log)
    for number, outcome in enumerate(log.outcomes, start=1):
        parent = children["parent"][number]
        assert 0 <= parent < number
        place = (children["generation"][parent], children["index"][parent])
        assert parents[outcome.generation, outcome.index] == place


def test_the_best_so_far_and_what_improved_it_are_those_of_the_log(log, arrays):
    assert arrays["best"] == log.trajectory.tolist()
    children = arrays["children"]
    better = [(children["generation"][k], children["index"][k]) for k in children["better"]]
    assert better == [each.best for each in log.generations if each.improved]
    assert (arrays["N"], arrays["last"], arrays["name"]) == (3, 4, "a run")
    low, high = arrays["limits"]
    assert low <= min(filter(None, children["fitness"]))
    assert high >= max(filter(None, children["fitness"]))
    assert ["initial program", 0.1] in arrays["references"]


def test_without_an_initial_program_and_a_fitness_the_arrays_are_json_all_the_same(tmp_path):
    from evo.logs.journal import encode_line

    lines = [line for line in sample_lines(generations=1) if type(line).__name__ != "Initial"]
    path = tmp_path / "b.jsonl"
    path.write_bytes(b"".join(map(encode_line, lines[:2])))
    found = run_arrays(read_log(path), "b")
    assert json.loads(json.dumps(found, allow_nan=False))["children"]["fitness"] == []
    assert "ends at unknown after 0 generations" in found["words"]


def test_every_status_but_ok_has_a_look_of_its_own():
    assert {*LOOKS} == {*STATUSES} - {"ok"}
    assert len({marker for marker, _ in LOOKS.values()}) == len(LOOKS)
    assert LONGEST == 160


def test_a_drawing_is_coordinates_or_the_reason_why_there_is_none():
    reason = SimpleNamespace(value=None, reason="it is compact", pictured=True)
    assert drawing_arrays(reason) == {"reason": "it is compact", "pictured": True}
    square = [(x, y) for x in range(4) for y in range(4)]
    drawn = drawing_arrays(SimpleNamespace(value=square, picture="points"))
    assert {"title", "about", "points", "outline"} <= drawn.keys()
    assert len(drawn["points"]) == 16
    wrong = drawing_arrays(SimpleNamespace(value=[[math.inf]], picture="points"))
    assert list(wrong) == ["reason"]
