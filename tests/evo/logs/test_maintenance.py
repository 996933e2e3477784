"""Logs that are checked, mended, and copied without their texts."""

import random
from pathlib import Path

import msgspec
import pytest
from samples import changed, make_log_bytes, sample_lines, write_lines, write_sample

from evo.logs.journal import LogError
from evo.logs.log import read_log
from evo.logs.maintenance import compact, faults_of, salvage_log
from evo.logs.records import Child, Generation, Header, Line, Plan, Planned
from evo.runs.verification import verify


def test_compact_keeps_everything_but_texts(tmp_path: Path) -> None:
    log = read_log(write_sample(tmp_path / "a.jsonl", shuffle=random.Random(1)))
    small = compact(log.path, tmp_path / "small.jsonl.gz")
    assert small.header == msgspec.structs.replace(log.header, compact=True)
    assert small.outcomes == log.outcomes
    assert small.generations == log.generations
    assert small.sessions == log.sessions
    assert all(c.reply is None and c.program is None for c in small.children)
    assert not verify(small.path).faults
    again = compact(log.path, tmp_path / "again.jsonl.gz")
    assert again.path.read_bytes() == small.path.read_bytes()
    with pytest.raises(LogError, match="exists already"):
        compact(log.path, small.path)


def test_what_stands_twice_is_salvaged_once(tmp_path: Path) -> None:
    header, *rest = make_log_bytes(generations=1).splitlines(keepends=True)
    child = next(line for line in rest if b'"kind":"child"' in line)
    (tmp_path / "a.jsonl").write_bytes(b"".join([header, *rest, child, header]))
    lost = salvage_log(tmp_path / "a.jsonl", tmp_path / "b.jsonl")
    assert [each.partition(" (")[0] for each in lost] == ["child", "a header again"]
    assert (tmp_path / "b.jsonl").read_bytes() == b"".join([header, *rest])


SOUND = sample_lines(generations=3)
TASK = msgspec.structs.replace(SOUND[0].task, program_file="elsewhere.py")  # type: ignore[union-attr]


def planned(count: int, parents: tuple[tuple[int, int], ...] = ((0, 0),)) -> list[Line]:
    """The sound lines after a plan of so many requests for generation 1."""
    plan = Plan(generation=1, requests=(Planned(parents=parents),) * count)
    return [*SOUND[:3], plan, *SOUND[3:]]


FAULTS: dict[str, list[Line]] = {
    "its task has no file 'elsewhere.py', which the header names": changed(
        SOUND, Header, task=TASK
    ),
    "children of generations [3] whose predecessors are not complete": [
        line for line in SOUND if not isinstance(line, Generation) or line.generation < 2
    ],
    "generation 1 names as best (1, 7), not logged": changed(SOUND, Generation, best=(1, 7)),
    "generation 1 is marked as inherited, which is after any fork": changed(
        SOUND, Child, inherited=True
    ),
    "the plan of generation 1 has 2 requests": planned(2),
    "child 1 of generation 1 is not what was planned": planned(3, ((0, 0), (0, 0))),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_lines_that_are_sound_each_and_disagree_are_named(fault: str, tmp_path: Path) -> None:
    assert list(faults_of(read_log(write_lines(tmp_path / "a.jsonl", SOUND)))) == []
    found = list(faults_of(read_log(write_lines(tmp_path / "b.jsonl", FAULTS[fault]))))
    assert fault in found


def test_a_file_without_a_sound_header_has_nothing_to_salvage(tmp_path: Path) -> None:
    path = write_sample(tmp_path / "a.jsonl")
    path.write_bytes(path.read_bytes().replace(b"sample", b"simple", 1))
    with pytest.raises(LogError, match="header, is damaged: nothing can be salvaged"):
        salvage_log(path, tmp_path / "b.jsonl")
    assert not (tmp_path / "b.jsonl").exists()
