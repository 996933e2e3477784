"""The lock of the process that writes a file."""

import fcntl
import threading
from pathlib import Path

import pytest
from samples import write_sample

from evo.logs.journal import LogBusyError, Writer
from evo.logs.locks import is_written


def test_second_writer_is_refused(tmp_path: Path) -> None:
    path = write_sample(tmp_path / "a.jsonl")
    with Writer.claim(path), pytest.raises(LogBusyError, match="another process"):
        Writer.claim(path)
    Writer.claim(path).close()


@pytest.mark.flaky(reruns=2)  # on a starved machine the look outlasts a writer's patience
def test_who_looks_whether_a_log_is_written_keeps_no_writer_from_it(tmp_path: Path) -> None:
    path = write_sample(tmp_path / "a.jsonl")
    assert not is_written(path)
    assert not is_written(tmp_path / "none.jsonl")
    with Writer.claim(path):
        assert is_written(path)
    looked = path.open()
    fcntl.flock(looked, fcntl.LOCK_SH)  # a look, at the moment in which a writer begins
    threading.Timer(0.02, looked.close).start()
    Writer.claim(path).close()
