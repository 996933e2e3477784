"""The keeper of an engine's program: nothing of it outlives the keeper, and its output is kept."""

from __future__ import annotations

import os
import sys
import time
from pathlib import Path

import pytest
from toy_engine import ended, lives

from evo.gate.engines import keeper
from evo.gate.engines.process import EngineProcess


def test_an_engine_waits_until_an_earlier_one_in_its_folder_has_ended(tmp_path: Path) -> None:
    slow = (
        "import os, signal, time\n"
        "def end(*_): time.sleep(.5); os.write(1, b'first ended\\n'); os._exit(0)\n"
        "signal.signal(signal.SIGTERM, end); os.write(1, b'first\\n'); time.sleep(600)"
    )
    output = tmp_path / "output.txt"
    first = EngineProcess([sys.executable, "-c", slow], tmp_path, {"PATH": "/bin"})
    while not (output.exists() and "first" in output.read_text()):
        time.sleep(0.01)
    second = EngineProcess([sys.executable, "-c", "print('second')"], tmp_path, {"PATH": "/bin"})
    first.end()
    while second.ended is None:
        time.sleep(0.01)
    second.end()
    assert output.read_text().split("\n") == ["first", "first ended", "second", ""]


def test_a_program_that_cannot_be_started_says_why(tmp_path: Path) -> None:
    process = EngineProcess(["/no/such/program", "x"], tmp_path, {"PATH": "/bin"})
    assert ended(process) == (
        "the engine ended with exit code 127: /no/such/program: No such file or directory"
    )


def test_what_a_program_leaves_running_ends_with_it(tmp_path: Path) -> None:
    process = EngineProcess(
        ["/bin/sh", "-c", "sleep 600 & echo $!; exit 7"], tmp_path, {"PATH": "/bin"}
    )
    ended(process)
    deadline = time.monotonic() + 60
    while lives(int(process.output.read_text())):
        assert time.monotonic() < deadline
        time.sleep(0.005)


def test_output_beyond_its_limit_is_read_and_dropped(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(keeper, "MOST_OUTPUT", 70_000)
    path, printed = tmp_path / "output.txt", tmp_path / "printed"
    path.write_text("earlier ")
    text = "".join(f"{number:9}\n" for number in range(20_000))
    printed.write_text(text)
    with printed.open("rb") as output:
        keeper.keep(output, str(path))
        assert output.read() == b""  # all of it was read
    assert path.read_text() == f"earlier {text[:70_000]}"


def test_the_last_words_of_a_program_are_kept_however_many_they_are(tmp_path: Path) -> None:
    program = "print('x' * 5_000_000); print('last')"
    process = EngineProcess([sys.executable, "-c", program], tmp_path, {"PATH": "/bin"})
    ended(process)
    assert process.output.stat().st_size == 5_000_006


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs the device of a full disk")
def test_a_full_disk_costs_output_and_does_not_hold_up_the_program() -> None:
    reader, writer = os.pipe()
    with os.fdopen(reader, "rb") as output:
        for piece in (b"first", b"second"):
            os.write(writer, piece)
        os.close(writer)
        keeper.keep(output, "/dev/full")
        assert output.read() == b""  # all of it was read
