"""How far the conditions of a protocol are, counted by hand."""

from types import SimpleNamespace

from evo.logs.records import Evaluation
from evo.studies.protocol import Condition
from evo.studies.protocol_status import status_rows


def child(status="ok", inherited=False):
    fitness = 0.5 if status == "ok" else None
    return SimpleNamespace(
        evaluation=Evaluation(status=status, fitness=fitness), inherited=inherited
    )


def log(generations, *children):
    return SimpleNamespace(generations=[None] * generations, outcomes=children)


def test_runs_calls_and_good_children_are_counted_and_nothing_that_was_inherited():
    runs = Condition(name="deep", task="t", children=2, generations=3, seeds="0:4")
    forks = Condition(
        name="fork",
        task="t",
        children=2,
        generations=3,
        seeds="0:4",
        forks="p/deep",
        at=2,
        copies=5,
    )
    logs = {
        "deep": [log(3, child(), child("error"), child()), log(2, child()), log(4), log(0)],
        "fork": [log(3, child(inherited=True), child(inherited=True), child("timeout"))],
    }
    protocol = SimpleNamespace(conditions=(runs, forks))
    assert status_rows(protocol, logs) == [
        ("deep", "2 of 4", "4 of 24", 3),
        ("fork", "1 of 20", "1 of 40", 0),
    ]
