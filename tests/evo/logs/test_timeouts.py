"""What programs that ran into their time limit cost is said once, of those that were run."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest
from samples import sample_child, sample_header, sample_lines

from evo.logs.journal import encode_line
from evo.logs.log import Log, read_log
from evo.logs.records import Child, Evaluation, Generation, Limits, Line
from evo.logs.timeouts import timeouts_of

LATE = Evaluation(status="timeout", error="late", seconds=30.0)


def logged(
    path: Path,
    *evaluations: Evaluation,
    seconds: float = 30.0,
    inherited: int = 0,
    repeats: tuple[int, ...] = (),
) -> Log:
    """Returns the log of one generation whose children came out so."""
    header = msgspec.structs.replace(
        sample_header(children=len(evaluations)), limits=Limits(seconds=seconds)
    )
    lines: list[Line] = [header, *sample_lines(generations=1)[1:3]]
    for index, evaluation in enumerate(evaluations):
        child: Child = sample_child(1, index, 0.5)
        lines.append(
            msgspec.structs.replace(child, evaluation=evaluation, inherited=index < inherited)
        )
    lines.append(
        Generation(
            generation=1, best_fitness=0.1, best=(0, 0), improved=False, seconds=1.0,
            repeats=tuple((index, 1, 0) for index in repeats),
        )
    )  # fmt: skip
    path.write_bytes(b"".join(map(encode_line, lines)))
    return read_log(path)


def of(status: str, fitness: float | None = None) -> Evaluation:
    return Evaluation(status=status, fitness=fitness, seconds=1.0)  # type: ignore[arg-type]


def test_without_a_timeout_nothing_is_said(tmp_path: Path) -> None:
    assert timeouts_of([]) == ""
    assert timeouts_of([logged(tmp_path / "a.jsonl", of("ok", 0.5), of("error"))]) == ""


def test_programs_that_were_run_are_counted_and_late_ones_add_up(tmp_path: Path) -> None:
    run = [of("ok", 0.5), of("invalid"), of("error"), of("partial"), LATE, LATE]
    never = [of("no_reply"), of("no_program"), of("rejected")]
    one = logged(tmp_path / "a.jsonl", *run, *never)
    assert timeouts_of([one]) == "2 of 6 programs ran into the limit of 30 s: 60 s of evaluation"
    assert timeouts_of([one, one]).startswith("4 of 12 programs")


def test_what_was_inherited_or_came_again_does_not_count(tmp_path: Path) -> None:
    fork = logged(tmp_path / "a.jsonl", LATE, LATE, of("ok", 0.5), inherited=1)
    assert timeouts_of([fork]).startswith("1 of 2 programs")
    again = logged(tmp_path / "b.jsonl", LATE, LATE, LATE, repeats=(1, 2))
    assert timeouts_of([again]).startswith("1 of 1 programs")
    assert timeouts_of([logged(tmp_path / "c.jsonl", LATE, inherited=1)]) == ""


@pytest.mark.parametrize(
    ("other", "words"), [(30.0, "the limit of 30 s"), (7.5, "the limits of 7.5 to 30 s")]
)
def test_limits_that_differ_are_told_from_the_least_to_the_most(
    other: float, words: str, tmp_path: Path
) -> None:
    logs = [logged(tmp_path / f"{s}.jsonl", LATE, seconds=s) for s in (30.0, other)]
    assert f"ran into {words}: " in timeouts_of(logs)
    quiet = logged(tmp_path / "quiet.jsonl", of("ok", 0.5), seconds=99.0)
    assert words in timeouts_of([*logs, quiet])  # nobody ran into that one


def test_a_time_and_a_limit_that_are_not_recorded_are_no_numbers(tmp_path: Path) -> None:
    unknown = msgspec.structs.replace(LATE, seconds=None)
    one = logged(tmp_path / "a.jsonl", unknown, of("ok", 0.5))
    assert timeouts_of([one]) == (
        "1 of 2 programs ran into their time limit: how long they took is not recorded"
    )
    two = logged(tmp_path / "b.jsonl", unknown, LATE)
    assert timeouts_of([two]) == (
        "2 of 2 programs ran into the limit of 30 s: at least 30 s of evaluation, without 1 whose "
        "time is not recorded"
    )
