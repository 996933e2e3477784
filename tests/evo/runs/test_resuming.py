"""What is left to do for a log: its goal, its model, and logs that cannot go on."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec
import pytest
from samples import changed, sample_lines, write_lines

from evo.logs.journal import LogError
from evo.logs.log import Log, read_log
from evo.logs.records import Header, Model
from evo.models.registry import find_model
from evo.runs.resuming import resume_job
from evo.runs.session import RunJob
from evo.runs.settings import Goal

AS_LOGGED = (None, None)
LINES = changed(sample_lines(generations=2), Header, model=find_model("offline"))


def job(log: Log, asked: Any = AS_LOGGED, **options: Any) -> RunJob:
    return resume_job(log, options, asked, None, None)  # type: ignore[arg-type]


@pytest.fixture
def log(tmp_path: Path) -> Log:
    """A log of two generations whose goal was two."""
    return read_log(write_lines(tmp_path / "a.jsonl", LINES))


def test_what_is_not_given_stays_as_the_last_session_had_it(log: Log) -> None:
    kept = job(log)
    assert (kept.path, kept.header, kept.named) == (log.path, log.header, False)
    assert kept.goal == Goal(log.goal, log.sessions[-1].target, log.sessions[-1].patience)
    more = job(log, generations=5, target=0.5, patience=3)
    assert more.goal == Goal(5, 0.5, 3)


@pytest.mark.parametrize("asked", [(Model("other", base_url="http://127.0.0.1:9/v1"), None)])
def test_another_model_is_called_from_now_on_and_nothing_else_changes(log: Log, asked: Any) -> None:
    other = job(log, asked)
    assert other.named
    assert other.header.model.name == "other"
    changed = {"model": log.header.model, "models": log.header.models}
    assert msgspec.structs.replace(other.header, sampling=log.header.sampling, **changed) == (
        log.header
    )


def test_a_goal_below_what_is_done_and_none_at_all_are_refused(log: Log, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="holds 2 generations already, cannot go on to T=1"):
        job(log, generations=1)
    assert job(log, generations=2).goal.generations == 2
    begun = read_log(write_lines(tmp_path / "header.jsonl", LINES[:1]))
    with pytest.raises(ValueError, match=r"states no goal; give one, generations \(-T\)"):
        job(begun)
    assert job(begun, generations=3).goal == Goal(3)


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"compact": True}, "a compact log holds no programs and cannot go on"),
        ({"source": "OpenEvolve"}, "written by OpenEvolve; only runs of evo can go on"),
    ],
)
def test_a_log_without_programs_or_of_another_tool_cannot_go_on(
    changes: dict[str, Any], words: str, tmp_path: Path
) -> None:
    path = write_lines(tmp_path / "b.jsonl", changed(LINES, Header, **changes))
    with pytest.raises(LogError, match=words):
        job(read_log(path))
