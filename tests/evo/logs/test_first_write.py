"""Whether this process has written anything yet."""

from __future__ import annotations

import contextlib
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from evo.logs.first_write import WRITTEN
from evo.logs.journal import LogError, Writer, write_new


@pytest.fixture(autouse=True)
def _nothing_written() -> Iterator[None]:
    before = WRITTEN.is_set()
    WRITTEN.clear()
    yield
    WRITTEN.set() if before else WRITTEN.clear()


def test_a_file_that_is_begun_or_claimed_counts_and_one_that_is_not_does_not(
    tmp_path: Path,
) -> None:
    path = tmp_path / "a.jsonl"
    with pytest.raises(LogError):
        Writer.claim(path)
    assert not WRITTEN.is_set()
    write_new(path, b"{}\n")
    assert WRITTEN.is_set()
    WRITTEN.clear()
    with pytest.raises(LogError):
        write_new(path, b"{}\n")  # it is there already
    assert not WRITTEN.is_set()
    with contextlib.closing(Writer.claim(path)):
        assert WRITTEN.is_set()
        WRITTEN.clear()
        with pytest.raises(LogError):
            Writer.claim(path)  # somebody else writes it
        assert not WRITTEN.is_set()


def test_it_imports_nothing_beside_threads() -> None:
    code = (
        "import sys, threading, evo.logs; before = {*sys.modules}; import evo.logs.first_write; "
        "print(*{*sys.modules} - before)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["evo.logs.first_write"]
