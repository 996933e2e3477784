"""Fields of configurations: limits of an evaluation are given to studies as they are to runs."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import evo
from evo.plugins import MistakenType
from evo.studies.sweep.fields import configure, dotted
from evo.studies.sweep.space import SpaceError

SMALL: dict[str, Any] = {"task": "mmd", "generations": 1, "seeds": [1], "progress": False}
SPELLINGS: list[dict[str, Any]] = [
    {"limits": {"seconds": 5}},
    {"limits": evo.Limits(seconds=5.0)},
    {"base": {"limits": {"seconds": 5}}},
    {"base": {"limits.seconds": 5}},
    {"base": {"limits.seconds": 9}, "limits": {"seconds": 5}},
]


def test_a_table_of_limits_is_a_field_for_each() -> None:
    assert dotted({"limits": {"seconds": 5}, "children": 2}) == {
        "limits.seconds": 5, "children": 2
    }  # fmt: skip
    assert dotted({"limits": None}) == {}
    spec = {"limits": {"values": [{"seconds": 1}, {"seconds": 2}]}}
    assert dotted(spec) == spec
    assert dotted({"limits": 3}) == {"limits": 3}


def test_limits_of_a_configuration_are_those_of_the_run() -> None:
    whole = configure({"task": "mmd", "limits": {"seconds": 5, "processes": 8}}, {})
    each = configure({"task": "mmd", "limits.seconds": 5, "limits.processes": 8}, {})
    assert whole.id == each.id
    assert (whole.header.limits.seconds, whole.header.limits.processes) == (5.0, 8)
    assert configure({"task": "mmd", "limits": {"seconds": "auto"}}, {}).header.limits.auto
    with pytest.raises(MistakenType, match=r"limits: expected evo\.Limits or a dict, got 3"):
        configure({"task": "mmd", "limits": 3}, {})


@pytest.mark.parametrize("spelled", SPELLINGS)
def test_a_sweep_takes_limits_as_runs_do(spelled: dict[str, Any], tmp_path: Path) -> None:
    made = evo.sweep({"children": [1]}, log_dir=tmp_path / "s", **SMALL, **spelled)
    (path,) = (made.folder / "runs").glob("*.jsonl")
    assert evo.read_log(path).limits.seconds == 5.0


def test_a_sweep_over_limits_has_each_of_them(tmp_path: Path) -> None:
    for number, space in enumerate(
        [
            {"limits": {"seconds": [4, 5]}},
            {"limits": [{"seconds": 4}, {"seconds": 5}]},
            {"limits.seconds": [4, 5]},
        ]
    ):
        made = evo.sweep(space, log_dir=tmp_path / str(number), children=1, **SMALL)
        logs = map(evo.read_log, (made.folder / "runs").glob("*.jsonl"))
        assert sorted(log.limits.seconds for log in logs) == [4.0, 5.0]
    with pytest.raises(SpaceError, match=r"unknown field 'limits\.second'; did you mean"):
        evo.sweep({"children": [1]}, limits={"second": 5}, **SMALL)


def test_a_selection_takes_limits_as_runs_do(tmp_path: Path) -> None:
    pair = [{"children": 1}, {"children": 2}]
    for number, spelled in enumerate(SPELLINGS):
        made = evo.select_best(pair, log_dir=tmp_path / str(number), **SMALL, **spelled)
        assert {log.limits.seconds for logs in made.logs for log in logs} == {5.0}
    pair = [{"children": 1, "limits": {"seconds": each}} for each in (4, 5)]
    made = evo.select_best(pair, log_dir=tmp_path / "own", **SMALL)
    assert [logs[0].limits.seconds for logs in made.logs] == [4.0, 5.0]
    assert made.labels == ("limits.seconds=4", "limits.seconds=5")


def test_an_allocation_and_an_evaluation_take_them_and_a_field_is_answered(tmp_path: Path) -> None:
    common: dict[str, Any] = {"rounds": 3, "children": 1, "progress": False}
    made = evo.allocate_live(
        "mmd", "ucb1", arms=[{"limits": {"seconds": 4}}, 41], limits={"seconds": 5},
        log_dir=tmp_path / "a", **common,
    )  # fmt: skip
    assert made.arms[0].limits.seconds == 4.0
    dot: dict[str, Any] = {"limits.seconds": 5}
    with pytest.raises(TypeError, match=r"'limits\.seconds'; give limits=\{'seconds': \.\.\.\}"):
        evo.run("mmd", **dot)
    with pytest.raises(TypeError, match=r"give limits=\{'seconds': \.\.\.\}"):
        evo.allocate_live("mmd", "ucb1", **dot)
    task = evo.load_task("mmd")
    assert evo.evaluate(task, task.initial_program, limits={"seconds": 9}).status == "ok"
    endless = "def min_max_dist_dim2_16():\n    while True:\n        pass\n"
    assert evo.evaluate(task, endless, limits={"seconds": 0.5}).status == "timeout"
    with pytest.raises(ValueError, match="limits: "):
        evo.evaluate(task, endless, limits={"second": 5})
