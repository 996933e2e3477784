"""The lock of the process that writes a file."""

import fcntl
from pathlib import Path
from types import SimpleNamespace

import pytest
from samples import write_sample

from evo.logs import locks
from evo.logs.journal import LogBusyError, Writer
from evo.logs.locks import is_written


def test_second_writer_is_refused(tmp_path: Path) -> None:
    path = write_sample(tmp_path / "a.jsonl")
    with Writer.claim(path), pytest.raises(LogBusyError, match="another process"):
        Writer.claim(path)
    Writer.claim(path).close()


def test_who_looks_whether_a_log_is_written_keeps_no_writer_from_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = write_sample(tmp_path / "a.jsonl")
    assert not is_written(path)
    assert not is_written(tmp_path / "none.jsonl")
    with Writer.claim(path):
        assert is_written(path)
    looked = path.open()
    fcntl.flock(looked, fcntl.LOCK_SH)  # a look, at the moment in which a writer begins
    pauses: list[float] = []

    def pause(seconds: float) -> None:
        pauses.append(seconds)
        if len(pauses) == 3:
            looked.close()

    monkeypatch.setattr(locks, "time", SimpleNamespace(sleep=pause))
    Writer.claim(path).close()
    assert len(pauses) == 3
