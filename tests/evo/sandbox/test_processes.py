"""Processes that are watched until their end, and what is kept of what they sent and printed."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from io import FileIO

import pytest
from hypothesis import given
from hypothesis import strategies as st
from toy import GOOD, LIMITS, make_task

from evo.logs.records import Limits
from evo.sandbox import Evaluator, SandboxError
from evo.sandbox import evaluator as driver
from evo.sandbox.outcome import Ended
from evo.sandbox.processes import DriverGoneError, Process, Watcher, _Stream


def test_output_is_kept_in_errors_only(evaluator: Evaluator) -> None:
    noisy = "print('out loud')\nimport sys\nprint('quietly', file=sys.stderr)\n"
    limits = Limits(seconds=30, output_kb=1)
    assert evaluator.evaluate(make_task(), noisy + GOOD, limits).error is None
    error = evaluator.evaluate(make_task(), f"{noisy}print('x' * 9999)\n1 / 0", limits).error or ""
    for text in ("out loud", "quietly", "ZeroDivisionError", "line 5", "bytes dropped"):
        assert text in error
    assert len(error) < 3000


def test_a_process_that_cannot_be_locked_in_is_no_fault_of_its_program(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    fails = "from evo.sandbox.jail import Jail; Jail.enter = lambda *_, **__: open('/no lock')"
    monkeypatch.setattr(driver, "_MAIN", driver._MAIN.replace("; main()", f"; {fails}; main()"))
    with Evaluator(1) as broken, pytest.raises(SandboxError, match=r"(?s)locked in: .*no lock"):
        broken.evaluate(make_task(), GOOD, LIMITS)


@given(
    st.lists(st.binary(min_size=1, max_size=30), max_size=6), st.integers(1, 40), st.integers(0, 40)
)
def test_a_stream_keeps_its_beginning_and_its_end_and_counts_what_lay_between(
    pieces: list[bytes], head: int, tail: int
) -> None:
    reader, writer = os.pipe()
    stream, whole = _Stream(reader, head, tail), b"".join(pieces)
    for piece in pieces:
        assert not stream.read()  # nothing is there yet, which is no end
        os.write(writer, piece)
        assert stream.read()
    assert stream.open
    os.close(writer)
    assert not stream.read()
    assert not stream.open
    os.close(reader)
    assert stream.total == len(whole)
    assert bytes(stream.head) == whole[:head]
    dropped = max(len(whole) - head - tail, 0)
    end = whole[head:][-tail:] if tail else b""
    gap = f"\n... {dropped} bytes dropped ...\n".encode() if dropped else b""
    assert stream.text() == (whole[:head] + gap + end).decode("utf-8", "backslashreplace").strip()


class Cell:
    """In place of a jail: it finds what it is told to find, and notes which folders it removed."""

    active = frozenset({"pid"})  # a tree of processes of its own: nothing else is looked for

    def __init__(self) -> None:
        self.found, self.removed = "", list[str]()

    def excess(self, limits: Limits) -> str:
        return self.found

    def remove_folder(self, folder: str) -> None:
        self.removed.append(folder)


class Watched:
    """A watcher and what it needs, all closed with the stack."""

    def __init__(self, stack: contextlib.ExitStack) -> None:
        self.stack, self.jail = stack, Cell()
        driver_end, self.driver = self.pipe()
        self.watcher = Watcher(driver_end.fileno(), self.jail)  # type: ignore[arg-type]
        self.watcher.listen()

    def pipe(self) -> tuple[FileIO, FileIO]:
        reader, writer = os.pipe()
        modes = (reader, "rb"), (writer, "wb")
        first, last = (self.stack.enter_context(FileIO(end, mode)) for end, mode in modes)
        return first, last

    def run(self, command: str, *, trouble: bytes = b"", **limits: float) -> Ended:
        """Runs a shell command that sends to descriptor 3, until the watcher is done."""
        reader, channel = self.pipe()
        (output, writer), (said, report) = os.pipe(), os.pipe()
        os.write(report, trouble)
        os.close(report)
        script = ["/bin/sh", "-c", f"exec 3>&0; {command}"]
        started = subprocess.Popen(script, stdin=channel, stdout=writer, stderr=writer)
        started.returncode = 0  # the watcher waits for it
        channel.close()
        os.close(writer)
        process = Process(started.pid, f"folder {started.pid}", output, said)
        given = Limits(**{"seconds": 60.0, **limits})  # type: ignore[arg-type]
        deadline = time.monotonic() + given.seconds
        try:
            return self.watcher.watch(process, reader.fileno(), given, deadline=deadline)
        except DriverGoneError:
            os.close(output)
            os.close(said)
            raise
        except OSError:
            os.close(output)
            raise
        finally:
            assert self.jail.removed[-1] == process.folder
            with pytest.raises(ProcessLookupError):
                os.kill(started.pid, 0)


@pytest.fixture
def watched() -> Iterator[Watched]:
    before = signal.getsignal(signal.SIGCHLD)
    with contextlib.ExitStack() as stack:
        made = Watched(stack)
        yield made
        os.close(signal.set_wakeup_fd(-1))
        os.close(made.watcher._wake)
        signal.signal(signal.SIGCHLD, before)


def test_a_process_is_followed_to_its_own_end(watched: Watched) -> None:
    began = time.monotonic()
    ended = watched.run("printf value >&3; echo out; echo err >&2; exit 3")
    assert time.monotonic() - began < 30  # it does not wait for the deadline
    assert (ended.sent, ended.stopped) == (b"value", None)
    assert os.waitstatus_to_exitcode(ended.status) == 3
    assert ended.printed == "\n--- stdout and stderr ---\nout\nerr"
    assert watched.run("kill -9 $$").printed == ""


def test_a_process_is_killed_at_its_deadline_and_what_it_printed_is_kept(watched: Watched) -> None:
    began = time.monotonic()
    ended = watched.run("echo begun; exec sleep 600", seconds=0.2)
    assert 0.2 <= time.monotonic() - began < 60
    assert ended.stopped is not None
    assert (ended.stopped.status, ended.stopped.error) == ("timeout", "no value within 0.2 s")
    assert os.WTERMSIG(ended.status) == signal.SIGKILL
    assert ended.printed.endswith("begun")


@pytest.mark.parametrize("then", ["exit 0", "exec sleep 600"])
def test_a_value_beyond_its_limit_is_invalid_whether_its_sender_ended_or_not(
    then: str, watched: Watched
) -> None:
    most = 1 << 20
    send = "head -c {} /dev/zero >&3; {}"
    beyond = watched.run(send.format(most + (1 << 16) + 1, then), value_mb=1)
    assert beyond.stopped is not None
    assert (beyond.stopped.status, beyond.stopped.error) == (
        "invalid",
        "the value is larger than 1 MiB",
    )
    whole = watched.run(send.format(most + 100, "exit 0"), value_mb=1)  # the message, not the value
    assert (whole.stopped, len(whole.sent)) == (None, most + 100)


def test_a_process_is_killed_for_what_the_jail_finds_it_to_use(watched: Watched) -> None:
    watched.jail.found = "too much memory"
    ended = watched.run("exec sleep 600")
    assert ended.stopped is not None
    assert (ended.stopped.status, ended.stopped.error) == ("error", "too much memory")


def test_once_its_driver_is_gone_a_process_is_killed(watched: Watched) -> None:
    watched.driver.close()
    with pytest.raises(DriverGoneError):
        watched.run("exec sleep 600")


def test_a_process_that_was_not_locked_in_has_no_end_of_its_own(watched: Watched) -> None:
    with pytest.raises(OSError, match=r"^a process could not be locked in: no room$"):
        watched.run("exit 0", trouble=b"no room")


def test_half_of_what_is_kept_of_the_output_is_its_end(watched: Watched) -> None:
    command = f'{sys.executable} -c \'print("a" * 3000 + "b" * 3000)\''
    text = watched.run(command, output_kb=2).printed.removeprefix("\n--- stdout and stderr ---\n")
    assert text == f"{'a' * 1024}\n... {6001 - 2048} bytes dropped ...\n{'b' * 1023}"


def test_an_answer_is_waited_for_until_the_deadline_and_no_longer(watched: Watched) -> None:
    reader, writer = watched.pipe()
    began = time.monotonic()
    assert not watched.watcher.wait_for_answer(reader.fileno(), began + 0.05)
    assert time.monotonic() - began >= 0.05
    with subprocess.Popen(["true"]):  # whose end is no answer
        assert not watched.watcher.wait_for_answer(reader.fileno(), time.monotonic() + 0.1)
    writer.write(b"x")
    assert watched.watcher.wait_for_answer(reader.fileno(), time.monotonic() + 60)
    assert not watched.watcher.wait_for_answer(reader.fileno(), time.monotonic() - 1)


def test_the_first_descriptors_of_a_process_are_its_own_and_all_others_are_closed(
    evaluator: Evaluator,
) -> None:
    task = make_task("def score(value):\n    return float(len(value))\n")
    program = (
        "import os\ndef construct():\n    found = []\n    for number in range(64):\n"
        "        try:\n            os.fstat(number)\n            found.append(number)\n"
        "        except OSError:\n            pass\n    return found\n"
    )
    found = evaluator.evaluate(task, program, LIMITS, keep_value=True)
    assert found.value == [0, 1, 2, 3]  # the last is the channel
