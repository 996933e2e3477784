"""A verification says whether a log is sound, and whether its task is the installed one."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest
from samples import sample_lines, write_sample

from evo.logs.journal import encode_line
from evo.logs.records import Header
from evo.runs.verification import verify

NOBODYS = "is not one of the shipped tasks, nor of an installed package"


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({}, "its task equals the shipped min_max_distance"),
        ({"hash": "0" * 64}, "its task differs from the shipped min_max_distance"),
        ({"name": "mmd"}, f"its task 'mmd' {NOBODYS}"),  # an alias
        ({"name": "mine"}, f"its task 'mine' {NOBODYS}"),
        ({"name": "../shipped"}, f"its task '../shipped' {NOBODYS}"),
    ],
)
def test_a_task_is_the_shipped_one_another_or_not_shipped(
    changes: dict[str, str], sentence: str, tmp_path: Path
) -> None:
    header, *lines = sample_lines(generations=1)
    assert isinstance(header, Header)
    task = msgspec.structs.replace(header.task, **changes)
    path = tmp_path / "a.jsonl"
    path.write_bytes(
        b"".join(map(encode_line, [msgspec.structs.replace(header, task=task), *lines]))
    )
    assert verify(path).task == sentence


def test_a_torn_last_line_is_a_fault_and_the_rest_is_read(tmp_path: Path) -> None:
    path = write_sample(tmp_path / "a.jsonl", generations=2)
    whole = verify(path)
    path.write_bytes(path.read_bytes()[:-9])
    torn = verify(path)
    assert len(torn.faults) == len(whole.faults) + 1
    assert "torn" in torn.faults[-1]
    assert str(path) in torn.faults[-1]
    assert len(torn.log.generations) == 2
