"""Jailed processes: started, watched until their deadline, killed with all they started."""

from __future__ import annotations

import os
import select
import signal
import time
import traceback
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass

from evo.records import Limits
from evo.sandbox import kernel
from evo.sandbox.jail import Jail

_CHANNEL = 3  # in the child
_CHUNK = 1 << 16


class DriverGoneError(BaseException):
    """Nobody waits for the evaluation any more; passes by every `except Exception`."""


@dataclass(frozen=True)
class Process:
    """A jailed child; everything it started ends with it.

    Attributes:
        pid: Its number.
        folder: Its own folder, to be removed after its end.
        stdout: Reading end of its output, -1 where that is dropped.
        stderr: The same of its errors.
    """

    pid: int
    folder: str
    stdout: int = -1
    stderr: int = -1


@dataclass(frozen=True)
class Ended:
    """How a watched process ended.

    Attributes:
        sent: What it wrote to its channel.
        status: As from `os.waitpid`.
        cpu_seconds: Processor time it used itself.
        timed_out: It was killed at the deadline.
        too_much: It was killed because it wrote more to its channel than allowed.
        stdout: Beginning and end of its output.
        stderr: The same of its errors.
    """

    sent: bytes
    status: int
    cpu_seconds: float
    timed_out: bool
    too_much: bool
    stdout: str
    stderr: str


def start(
    jail: Jail,
    limits: Limits,
    main: Callable[[int, str], None],
    *,
    channel: int,
    extra_bytes: int = 0,
    scorer: bool = False,
) -> Process:
    """Fork a process, lock it in and call `main(channel, folder)` there.

    Args:
        jail: The layers.
        limits: Limits of the evaluation.
        main: Runs in the child, in an empty working folder; the process ends after it.
        channel: A descriptor that the child keeps, besides its output.
        extra_bytes: Room for the task's own files.
        scorer: Whether the process is the scorer, whose output is dropped.
    """
    folder = jail.make_folder()
    nothing = os.open(os.devnull, os.O_RDWR | os.O_CLOEXEC)
    readers, writers = (-1, -1), (nothing, nothing)
    if not scorer:
        readers, writers = zip(os.pipe(), os.pipe(), strict=True)
    pid = jail.fork()
    if pid == 0:
        try:
            _arrange_descriptors(nothing, *writers, channel)
            jail.enter(limits, folder, extra_bytes=extra_bytes, scorer=scorer)
            work = os.path.join(folder, "work")
            os.mkdir(work)
            os.chdir(work)
            os.environ |= {"HOME": folder, "TMPDIR": folder}
            main(_CHANNEL, folder)
        except BaseException:
            os.write(2, traceback.format_exc().encode("utf-8", "backslashreplace"))
        finally:
            os._exit(0)
    for descriptor in {nothing, *writers}:
        os.close(descriptor)
    for reader in readers:
        if reader >= 0:
            os.set_blocking(reader, False)
    return Process(pid, folder, *readers)


def _arrange_descriptors(nothing: int, stdout: int, stderr: int, channel: int) -> None:
    """Keep standard streams and the channel, close all else, and forget the server's signals."""
    os.setsid()
    signal.set_wakeup_fd(-1)
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    for target, source in enumerate((nothing, stdout, stderr)):
        os.dup2(source, target)
    os.dup2(channel, _CHANNEL, inheritable=False)
    os.closerange(_CHANNEL + 1, os.sysconf("SC_OPEN_MAX"))


class _Capture:
    """Beginning and end of a stream."""

    def __init__(self, max_bytes: int) -> None:
        self._half = max_bytes // 2
        self._head = bytearray()
        self._tail = bytearray()
        self._dropped = 0

    def add(self, data: bytes) -> None:
        room = max(self._half - len(self._head), 0)
        self._head += data[:room]
        self._tail += data[room:]
        excess = max(len(self._tail) - self._half, 0)
        self._dropped += excess
        del self._tail[:excess]

    def text(self) -> str:
        gap = f"\n... {self._dropped} bytes dropped ...\n".encode() if self._dropped else b""
        return (self._head + gap + self._tail).decode("utf-8", "backslashreplace")


class _Streams:
    """What arrives from one process: its channel in full, its output abridged."""

    def __init__(self, process: Process, channel: int, *, max_bytes: int, max_output: int) -> None:
        self.channel = channel
        self.sent = bytearray()
        self.captures = {
            process.stdout: _Capture(max_output),
            process.stderr: _Capture(max_output),
        }
        self.max_bytes = max_bytes
        self.unfinished = {channel, process.stdout, process.stderr}

    @property
    def too_much(self) -> bool:
        return len(self.sent) > self.max_bytes

    def read(self, descriptor: int) -> bool:
        """Take what is there; whether there may be more."""
        try:
            data = os.read(descriptor, _CHUNK)
        except BlockingIOError:
            return False
        if not data:
            self.unfinished.discard(descriptor)
        elif descriptor == self.channel:
            self.sent += data
        else:
            self.captures[descriptor].add(data)
        return bool(data)

    def drain(self) -> None:
        """Take all that a process left behind at its end."""
        for descriptor in tuple(self.unfinished):
            while not self.too_much and self.read(descriptor):
                pass


class Watcher:
    """Follows one process at a time until it ends, its deadline passes or the driver goes.

    Args:
        driver: Descriptor on which nothing arrives during an evaluation unless the driver is gone.
        jail: The layers.
        spared: Gives the processes to leave alone when descendants are killed.
    """

    def __init__(self, driver: int, jail: Jail, spared: Callable[[], set[int]]) -> None:
        self._driver = driver
        self._jail = jail
        self._spared = spared
        self._wake, writer = os.pipe()
        for end in (self._wake, writer):
            os.set_blocking(end, False)
        signal.signal(signal.SIGCHLD, lambda *_: None)
        signal.set_wakeup_fd(writer, warn_on_full_buffer=False)

    def watch(
        self, process: Process, channel: int, *, deadline: float, max_bytes: int, max_output: int
    ) -> Ended:
        """Read what a process sends until its end, which is that of all it started.

        Args:
            process: From `start`.
            channel: Reading end of the channel, not blocking.
            deadline: On the monotonic clock; the process is killed then.
            max_bytes: What it may send at most; it is killed if it sends more.
            max_output: Bytes kept of stdout and of stderr.

        Raises:
            DriverGoneError: The driver is gone; the process was killed.
        """
        streams = _Streams(process, channel, max_bytes=max_bytes, max_output=max_output)
        ended: tuple[int, float] | None = None
        timed_out = driver_gone = False
        while ended is None and not (timed_out or driver_gone or streams.too_much):
            ready = self._wait(streams.unfinished, deadline)
            timed_out = time.monotonic() >= deadline
            driver_gone = self._driver in ready
            for descriptor in ready & streams.unfinished:
                streams.read(descriptor)
            if self._wake in ready:
                os.read(self._wake, _CHUNK)
                ended = _wait_for(process.pid, os.WNOHANG)
        if ended is None:
            ended = self.kill(process)
        else:
            self._end_descendants(process)
        self._jail.remove_folder(process.folder)
        if driver_gone:
            raise DriverGoneError
        streams.drain()
        for descriptor in streams.captures:
            os.close(descriptor)
        return Ended(
            sent=bytes(streams.sent),
            status=ended[0],
            cpu_seconds=ended[1],
            timed_out=timed_out,
            too_much=streams.too_much,
            stdout=streams.captures[process.stdout].text(),
            stderr=streams.captures[process.stderr].text(),
        )

    def wait_for_answer(self, channel: int, deadline: float) -> bool:
        """Whether something can be read before the deadline.

        Raises:
            DriverGoneError: The driver is gone.
        """
        while time.monotonic() < deadline:
            ready = self._wait({channel}, deadline)
            if self._driver in ready:
                raise DriverGoneError
            if channel in ready:
                return True
            if self._wake in ready:  # another child ended
                os.read(self._wake, _CHUNK)
        return False

    def kill(self, process: Process) -> tuple[int, float]:
        """Kill a process and all that it started; its status and its seconds of processor time."""
        with suppress(ProcessLookupError):
            os.kill(process.pid, signal.SIGKILL)
        ended = _wait_for(process.pid, 0)
        self._end_descendants(process)
        return ended or (0, 0.0)

    def _wait(self, descriptors: set[int], deadline: float) -> set[int]:
        poll = select.poll()
        for descriptor in (self._driver, self._wake, *descriptors):
            poll.register(descriptor, select.POLLIN)
        left = max(deadline - time.monotonic(), 0)
        return {descriptor for descriptor, _ in poll.poll(left * 1000 + 1)}

    def _end_descendants(self, process: Process) -> None:
        """Without a process tree of its own a program's descendants are found one by one."""
        if "pid" in self._jail.active:
            return
        with suppress(OSError):
            os.killpg(process.pid, signal.SIGKILL)
        while left := _descendants(self._spared() - {process.pid}):
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


def _descendants(spared: set[int]) -> set[int]:
    """Processes that this one started, directly or not, orphans included."""
    parents: dict[int, int] = {}
    for name in os.listdir("/proc") if kernel.LINUX else ():
        with suppress(OSError, ValueError), open(f"/proc/{int(name)}/stat", "rb") as file:
            parents[int(name)] = int(file.read().rpartition(b")")[2].split()[1])
    found = {os.getpid()}
    while more := {pid for pid, parent in parents.items() if parent in found} - found - spared:
        found |= more
    return found - {os.getpid()}
