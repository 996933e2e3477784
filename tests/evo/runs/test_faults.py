"""Runs that once hung, stopped for good, or went on as something else without a word."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from evo_runs import same_run, write_task

import evo
from evo.keyed import KeyedStream
from evo.runs.delivery import deliver_rest
from evo.searches import SEARCHES, Member, Request

QUIET: dict[str, Any] = {"progress": False, "workers": 1}
PROGRAM = "def value():\n    a = 1.5\n    b = 2.5\n    return a * b\n"
JUDGE = "def score(value):\n    return {'fitness': 1 - abs(value - 5) / 5}\n"


@dataclass(frozen=True)
class Lags:
    """Rewrites what was made so many generations ago."""

    lags: tuple[int, ...] = (1, 2)
    weights: tuple[tuple[str, float], ...] = (("a", 0.5),)

    name = "lags"

    def start(self, initial: Member, min_improvement: float) -> tuple[Member, ...]:
        """Returns the initial program."""
        return (initial,)

    def plan(self, state: tuple[Member, ...], children: int, rng: KeyedStream) -> Sequence[Request]:
        """Returns one request per child."""
        lags = [self.lags[index % len(self.lags)] for index in range(children)]
        return [Request((state[-min(lag, len(state))].place,)) for lag in lags]

    def fold(self, state: tuple[Member, ...], generation: Sequence[Member]) -> tuple[Member, ...]:
        """Returns all that are ok."""
        return (*state, *(each for each in generation if each.fitness is not None))


@pytest.fixture(scope="module")
def task(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("tasks") / "toy"
    return write_task(folder, PROGRAM, JUDGE, "entry = ['value']\n")


@pytest.fixture
def registered() -> Any:
    SEARCHES["lags"] = Lags
    yield
    del SEARCHES["lags"]


def test_a_search_with_tuples_is_resumed_forked_and_rerun(
    task: Path, tmp_path: Path, registered: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    search = Lags(lags=(2, 1))
    whole = evo.run(
        task, search=search, generations=3, children=2, log=tmp_path / "a.jsonl", **QUIET
    )
    evo.run(task, search=search, generations=1, children=2, log=tmp_path / "b.jsonl", **QUIET)
    assert same_run(evo.resume(tmp_path / "b.jsonl", generations=3, **QUIET), whole)
    assert same_run(evo.fork(whole, at=2, log_dir=tmp_path / "f", **QUIET)[0], whole)
    assert evo.rerun(whole).same

    @dataclass(frozen=True)
    class Lag(Lags):
        """Its field has another type than the log says."""

        lags: float = 1.0  # type: ignore[assignment]

    monkeypatch.setitem(SEARCHES, "lags", Lag)
    with pytest.raises(ValueError, match="search 'lags': its fields do not fit"):
        evo.rerun(whole.path)  # which once said that all was the same


def test_a_listener_may_start_another_run_with_a_listener(task: Path, tmp_path: Path) -> None:
    heard: list[str] = []

    def inner(event: evo.Event) -> None:
        heard.append(f"inner {event.kind}")

    def outer(event: evo.Event) -> None:
        heard.append(f"outer {event.kind}")
        if event.kind == "generation":
            evo.run(task, generations=1, children=2, log=tmp_path / "inner.jsonl", on_event=inner,
                    **QUIET)  # fmt: skip

    handle = evo.start(task, generations=1, children=2, log=tmp_path / "outer.jsonl",
                       on_event=outer, **QUIET)  # fmt: skip
    handle.wait(timeout=120)
    deliver_rest(60)  # a run waits two seconds for its listeners
    assert heard.count("inner child") == 2
    assert heard[-1] == "outer end"


def test_a_new_goal_keeps_target_and_patience(task: Path, tmp_path: Path) -> None:
    log = evo.run(task, generations=1, children=1, target=0.99, patience=3,
                  log=tmp_path / "a.jsonl", **QUIET)  # fmt: skip
    resumed = evo.resume(log.path, generations=2, **QUIET)
    last = resumed.sessions[-1]
    assert (last.generations, last.target, last.patience) == (2, 0.99, 3)
    resumed = evo.resume(log.path, generations=3, target=2.0, **QUIET)
    last = resumed.sessions[-1]
    assert (last.generations, last.target, last.patience) == (3, 2.0, 3)


@pytest.mark.parametrize("value", ["{None: 3}", "{(1, 2): 3}", "{'a': {b'x': 1j.imag}}"])
def test_a_construction_with_any_keys_ends_no_run(value: str, tmp_path: Path) -> None:
    program = f"def value():\n    a = 1.5\n    return {value}\n"
    judge = "def score(value):\n    return {'fitness': 0.5}\n"
    toml = "entry = ['value']\npicture = 'circles'\n"
    folder = write_task(tmp_path / "odd", program, judge, toml)
    log = evo.run(folder, generations=1, children=1, log=tmp_path / "a.jsonl", **QUIET)
    assert len(log.generations) == 1
    assert not evo.verify(log.path).faults
