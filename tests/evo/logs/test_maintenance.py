"""Logs that are checked, mended, and copied without their texts."""

import random
from pathlib import Path

import msgspec
import pytest
from samples import make_log_bytes, write_sample

from evo.logs.journal import LogError
from evo.logs.log import read_log
from evo.logs.maintenance import compact, salvage_log
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
