"""Jailed processes: started, watched until their deadline, killed with all they started."""

from __future__ import annotations

import fcntl
import os
import select
import signal
import time
import traceback
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass

from evo.logs.records import Evaluation, Limits
from evo.sandbox.jail import Jail, descendants
from evo.sandbox.outcome import Ended, failed

_CHANNEL, _TROUBLE = 3, 4  # in the child
_FRAME_SLACK = 1 << 16  # a message is larger than the value in it
_LOOK_SECONDS = 0.1  # between looks at what a program's processes have together
_CHUNK = 1 << 16


class DriverGoneError(Exception):
    """Nobody waits for the evaluation any more."""


@dataclass(frozen=True)
class Process:
    """A jailed child; everything it started ends with it."""

    pid: int
    folder: str  # its own, to be removed after its end
    output: int  # reading end of standard output and errors; -1: they are dropped
    trouble: int  # reading end of a pipe that it held until it was locked in

    def check(self) -> None:
        """Raise `OSError` if it ended without being locked in: a failure of the sandbox's own."""
        with open(self.trouble, "rb") as stream:
            if text := stream.read():
                raise OSError(f"a process could not be locked in: {text.decode()}")


def start(
    jail: Jail,
    limits: Limits,
    main: Callable[[int, str], None],
    *,
    channel: int,
    extra_bytes: int = 0,
    scorer: bool = False,
) -> Process:
    """Fork a process, lock it in and call `main(channel, folder)` there, in an empty folder.

    Its end is that of `main`. Besides the limit its folder has room for `extra_bytes`, the task's
    own files. A scorer's output is dropped.
    """
    folder = jail.make_folder(scorer=scorer)
    nothing = os.open(os.devnull, os.O_RDWR | os.O_CLOEXEC)
    output, writer = (-1, nothing) if scorer else os.pipe()
    trouble, report = os.pipe()
    pid = jail.fork()
    if pid == 0:
        told_first = _TROUBLE  # until it is closed, what is raised is the sandbox's failure
        try:
            _arrange_descriptors(nothing, writer, writer, channel, report)
            jail.enter(limits, folder, extra_bytes=extra_bytes, scorer=scorer)
            work = os.path.join(folder, "work")
            os.mkdir(work)
            os.chdir(work)
            os.environ |= {"HOME": folder, "TMPDIR": folder}
            os.close(_TROUBLE)
            told_first = 2
            main(_CHANNEL, folder)
        except BaseException:  # the wall: nothing leaves the child but its end
            os.write(told_first, traceback.format_exc().encode("utf-8", "backslashreplace"))
        finally:
            os._exit(0)
    for descriptor in {nothing, report, writer}:
        os.close(descriptor)
    return Process(pid, folder, output, trouble)


def _arrange_descriptors(*kept: int) -> None:
    """Keep these under the first numbers, close all else, forget the server's signals."""
    os.setsid()
    signal.set_wakeup_fd(-1)
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    high = [fcntl.fcntl(descriptor, fcntl.F_DUPFD, len(kept)) for descriptor in kept]
    for target, source in enumerate(high):
        os.dup2(source, target, inheritable=target < _CHANNEL)
    os.closerange(len(kept), os.sysconf("SC_OPEN_MAX"))


class _Stream:
    """The beginning and the end of what arrives at a descriptor, so many bytes each."""

    def __init__(self, descriptor: int, head: int, tail: int = 0) -> None:
        os.set_blocking(descriptor, False)
        self.descriptor, self.open, self.total = descriptor, True, 0
        self.head, self._most_head = bytearray(), head
        self._tail, self._most_tail = bytearray(), tail

    def read(self) -> bool:
        """Take what is there; whether there may be more."""
        try:
            data = os.read(self.descriptor, _CHUNK)
        except BlockingIOError:
            return False
        self.open = bool(data)
        self.total += len(data)
        room = self._most_head - len(self.head)
        self.head += data[:room]
        self._tail += data[room:]
        del self._tail[: max(len(self._tail) - self._most_tail, 0)]
        return self.open

    def text(self) -> str:
        dropped = self.total - len(self.head) - len(self._tail)
        gap = f"\n... {dropped} bytes dropped ...\n".encode() if dropped else b""
        return (self.head + gap + self._tail).decode("utf-8", "backslashreplace").strip()


class Watcher:
    """Follows one process at a time until it ends, its deadline passes or the driver goes.

    Nothing arrives at the descriptor `driver` during an evaluation unless the driver is gone; then
    `DriverGoneError` is raised.
    """

    def __init__(self, driver: int, jail: Jail) -> None:
        self._driver, self._jail, self._wake = driver, jail, -1

    def listen(self) -> None:
        """Learn of the ends of children from now on."""
        self._wake, writer = os.pipe()
        for end in (self._wake, writer):
            os.set_blocking(end, False)
        signal.signal(signal.SIGCHLD, lambda *_: None)
        signal.set_wakeup_fd(writer, warn_on_full_buffer=False)

    def watch(self, process: Process, channel: int, limits: Limits, *, deadline: float) -> Ended:
        """Read what a process sends until its end, which is that of all it started.

        It is killed at the deadline (of the monotonic clock), beyond the limits, and when the
        driver goes. It raises `OSError` if the process could not be locked in.
        """
        half, most = limits.output_kb * 512, int(limits.value_mb * 2**20) + _FRAME_SLACK
        streams = sent, printed = _Stream(channel, most), _Stream(process.output, half, half)
        ended: tuple[int, float] | None = None
        stopped: Evaluation | None = None
        look = time.monotonic() + _LOOK_SECONDS
        try:
            while not (ended or stopped) and sent.total <= most:
                ready = self._wait([s.descriptor for s in streams if s.open], min(deadline, look))
                now = time.monotonic()
                if now >= look:
                    if excess := self._jail.excess(limits):
                        stopped = failed(excess)
                    look = time.monotonic() + max(_LOOK_SECONDS, 20 * (time.monotonic() - now))
                for stream in streams:
                    if stream.descriptor in ready:
                        stream.read()
                if self._wake in ready:
                    ended = _wait_for(process.pid, os.WNOHANG)
                if now >= deadline:
                    stopped = failed(f"no value within {limits.seconds:g} s", "timeout")
        finally:
            ended = self.kill(process, ended)
        process.check()
        for stream in streams:  # what it left behind at its end
            while sent.total <= most and stream.open and stream.read():
                pass
        if sent.total > most:
            stopped = failed(f"the value is larger than {limits.value_mb} MiB", "invalid")
        os.close(process.output)
        text = printed.text()
        output = f"\n--- stdout and stderr ---\n{text}" if text else ""
        return Ended(bytes(sent.head), *ended, stopped, output)

    def wait_for_answer(self, channel: int, deadline: float) -> bool:
        """Whether something can be read before the deadline."""
        while time.monotonic() < deadline:
            if channel in self._wait([channel], deadline):
                return True
        return False

    def kill(self, process: Process, ended: tuple[int, float] | None = None) -> tuple[int, float]:
        """Kill a process, unless it has ended, and all that it started, and drop its folder.

        Returns its status and its seconds of processor time.
        """
        if ended is None:
            with suppress(ProcessLookupError):
                os.kill(process.pid, signal.SIGKILL)
            ended = _wait_for(process.pid, 0)
        if "pid" not in self._jail.active:
            self._end_descendants(process)
        self._jail.remove_folder(process.folder)
        return ended or (0, 0.0)

    def _wait(self, descriptors: Iterable[int], deadline: float) -> set[int]:
        """What can be read, before the deadline; among it that a child ended."""
        poll = select.poll()
        for descriptor in (self._driver, self._wake, *descriptors):
            poll.register(descriptor, select.POLLIN)
        left = max(deadline - time.monotonic(), 0)
        ready = {descriptor for descriptor, _ in poll.poll(left * 1000 + 1)}
        if self._driver in ready:
            raise DriverGoneError
        if self._wake in ready:
            os.read(self._wake, _CHUNK)
        return ready

    def _end_descendants(self, process: Process) -> None:
        """Without a process tree of its own a program's descendants are found one by one."""
        with suppress(OSError):
            os.killpg(process.pid, signal.SIGKILL)
        while left := descendants():
            for pid in left:
                with suppress(OSError):
                    os.kill(pid, signal.SIGKILL)
                _wait_for(pid, os.WNOHANG)
            time.sleep(0.001)


def _wait_for(pid: int, options: int) -> tuple[int, float] | None:
    """Status and processor time of a child that ended, or None."""
    try:
        found, status, usage = os.wait4(pid, options)
    except ChildProcessError:
        return None
    return (status, usage.ru_utime + usage.ru_stime) if found else None
