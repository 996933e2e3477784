"""What trackers of experiments are told, by a tracker that writes it down."""

import math
from pathlib import Path
from types import SimpleNamespace

import pytest
from samples import sample_header, write_sample

from evo.listeners.tracking import Tracker, finite, parameters_of, shares_of
from evo.logs.log import read_log


class Notes(Tracker[str]):
    """Writes down what it is told."""

    def __init__(self) -> None:
        super().__init__()
        self.told: list[tuple[object, ...]] = []

    def begin(self, name, group, parameters) -> str:
        self.told.append(("begin", name, group, dict(parameters)))
        return name

    def measure(self, run, numbers, step) -> None:
        self.told.append(("measure", run, dict(numbers), step))

    def finish(self, run, numbers, program, failed) -> None:
        self.told.append(("finish", run, dict(numbers), program, failed))


def event(path, kind, **fields):
    known = {"generation": 0, "best_fitness": None, "cost": {}, "record": None}
    return SimpleNamespace(kind=kind, path=path, header=sample_header(), **{**known, **fields})


@pytest.mark.parametrize(
    ("reason", "failed"),
    [("completed", False), ("interrupted", False), ("endpoint", True), ("refused", True)],
)
def test_a_run_begins_once_is_measured_by_generation_and_ends(tmp_path: Path, reason, failed):
    path = write_sample(tmp_path / "a.jsonl")
    notes = Notes()
    notes(event(path, "start"))
    notes(event(path, "child", best_fitness=0.2))
    notes(event(path, "generation", generation=1, best_fitness=0.5,
                cost={"calls": 3.0, "dollars": math.nan}))  # fmt: skip
    notes(event(path, "end", cost={"calls": 9.0}, record=SimpleNamespace(reason=reason)))
    kinds = [each[0] for each in notes.told]
    assert kinds == ["begin", "measure", "measure", "finish"]
    _, name, group, parameters = notes.told[0]
    assert (name, group, parameters["log"]) == ("a", "min_max_distance", str(path))
    assert notes.told[2] == ("measure", "a", {"cost/calls": 3.0, "best_fitness": 0.5}, 1)
    log = read_log(path)
    _, run, numbers, program, ended = notes.told[3]
    assert (run, program, ended) == ("a", log.best.program, failed)
    assert numbers["cost/calls"] == 9
    assert sum(v for k, v in numbers.items() if k.startswith("share/")) == pytest.approx(1)
    notes(event(path, "start"))  # the log goes on
    assert notes.told[-2][0] == "begin"


def of_sweep(kind, completed=None, **data):
    return SimpleNamespace(event=kind, worker="w", completed=completed, data=data)


def test_a_sweep_is_one_run_whose_steps_are_its_completed_runs():
    notes = Notes()
    for each in (
        of_sweep("run_started"),
        of_sweep("run_completed", 1, fitness=0.5, calls=None, tokens=math.inf),
        of_sweep("completed", total=1),
    ):
        notes(each)
    assert notes.told == [
        ("begin", "sweep", "sweep", {"worker": "w"}),
        ("measure", "sweep", {"fitness": 0.5}, 1),
        ("finish", "sweep", {"total": 1}, None, False),
    ]
    notes(of_sweep("interrupted"))
    assert notes.told[-1][-1] is True


def test_parameters_are_plain_and_leave_out_what_is_not_set():
    found = parameters_of(sample_header(children=5, seed=3))
    assert (found["children"], found["seed"], found["search"]) == (5, 3, "greedy")
    assert found["limits.seconds"] == 60
    assert "limits.auto" not in found
    assert "filters" not in found
    assert all(isinstance(value, int | float | str | bool) for value in found.values())


def test_shares_are_those_of_the_children_and_unknown_numbers_are_left_out(tmp_path: Path):
    log = read_log(write_sample(tmp_path / "a.jsonl"))
    ok = sum(child.evaluation.status == "ok" for child in log.children)
    assert shares_of(log) == pytest.approx(
        {"share/ok": ok / len(log.children), "share/error": 1 - ok / len(log.children)}
    )
    assert finite({"a": 1, "b": math.nan, "c": -math.inf}) == {"a": 1}
    assert shares_of(SimpleNamespace(children=[])) == {}
