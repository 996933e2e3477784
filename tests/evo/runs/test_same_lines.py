"""What was logged once is logged again: by a run, by one that was killed, and at any concurrency.

Every sixth configuration is tried, which leaves no search out; with EVO_TORTURE above 5, all.
"""

import os
import random
from pathlib import Path
from typing import Any

import pytest
import same_lines
from tiers import thorough_after

import evo
from evo.logs.records import SCHEMA
from evo.tasks.task import Task

EVERY = max(1, 6 // int(os.environ.get("EVO_TORTURE", "1")))
NUMBERS = range(0, same_lines.COUNT, EVERY)

pytestmark = pytest.mark.filterwarnings("ignore:.*the initial program's fitness")


@pytest.fixture(scope="module")
def tasks(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Task]:
    return same_lines.tasks(tmp_path_factory.mktemp("tasks"))


@pytest.fixture(scope="module")
def recorded() -> list[dict[str, Any]]:
    return same_lines.recorded()


def run(
    one: dict[str, Any],
    tasks: dict[str, Task],
    path: Path,
    *,
    schema: int = SCHEMA,
    **settings: Any,
) -> evo.Log:
    header = same_lines.header_of(one, tasks, schema=schema)
    return same_lines.run(header, one["generations"], path, **settings)


def cut(log: evo.Log, rng: random.Random, path: Path) -> Path:
    """The log as a kill leaves it: some whole lines, and maybe a part of the next one."""
    lines = log.path.read_bytes().splitlines(keepends=True)
    kept = rng.randrange(2, len(lines))
    path.write_bytes(b"".join(lines[:kept]) + lines[kept][: rng.choice([0, 30])])
    return path


@pytest.mark.parametrize("number", thorough_after(3, NUMBERS))
def test_a_run_and_its_forks_give_the_recorded_lines(
    number: int, recorded: list[dict[str, Any]], tasks: dict[str, Task], tmp_path: Path
) -> None:
    one = recorded[number]
    log = run(one, tasks, tmp_path / "run.jsonl")
    assert same_lines.canonical(log) == one["lines"]
    made = same_lines.forks(log, one["changes"], tmp_path / "forks")
    assert [same_lines.canonical(fork) for fork in made] == one["forks"]


@pytest.mark.parametrize("number", NUMBERS[1::4])
def test_a_run_that_was_killed_goes_on_to_the_recorded_lines(
    number: int, recorded: list[dict[str, Any]], tasks: dict[str, Task], tmp_path: Path
) -> None:
    one, rng = recorded[number], random.Random(number)
    logs = [run(one, tasks, tmp_path / f"run-{n}.jsonl", schema=n) for n in (2, SCHEMA)]
    for kill, log in enumerate(logs):
        path = cut(log, rng, tmp_path / f"killed-{kill}.jsonl")
        went_on = run(one, tasks, path)
        assert outcomes(same_lines.canonical(went_on)) == outcomes(one["lines"])


@pytest.mark.parametrize("number", NUMBERS[2::4])
def test_calls_at_once_give_the_recorded_lines_in_any_order(
    number: int, recorded: list[dict[str, Any]], tasks: dict[str, Task], tmp_path: Path
) -> None:
    one = recorded[number]
    log = run(one, tasks, tmp_path / "run.jsonl", max_concurrent=8)
    assert outcomes(same_lines.canonical(log)) == outcomes(one["lines"])


def outcomes(lines: list[str]) -> list[str]:
    """Lines in an order of their own, without those that say how a session ended.

    Of equal replies that a critic scores once, either may have been the first.
    """
    kept = {line for line in lines if not line.startswith("end ")}
    return sorted(
        " ".join(line.split()[:3]) if line.startswith("CriticCall") else line for line in kept
    )
