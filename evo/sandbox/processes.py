"""Jailed processes: started, watched until their deadline, killed with all they started."""

from __future__ import annotations

import fcntl
import os
import select
import signal
import time
import traceback
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass

from evo.records import Limits
from evo.sandbox.jail import Jail
from evo.sandbox.proc import descendants

_CHANNEL, _TROUBLE = 3, 4  # in the child
_FRAME_SLACK = 1 << 16  # a message is larger than the value in it
_LOOK_SECONDS = 0.1  # between looks at what a program's processes have together
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
        trouble: Reading end of a pipe that it held until it was locked in.
    """

    pid: int
    folder: str
    stdout: int
    stderr: int
    trouble: int

    def check(self) -> None:
        """Tell, once it ended, whether it was locked in.

        Raises:
            OSError: It was not: a failure of the sandbox, not of what should have run.
        """
        with open(self.trouble, "rb") as stream:
            if text := stream.read():
                raise OSError(f"a process could not be locked in: {text.decode()}")


@dataclass(frozen=True)
class Ended:
    """How a watched process ended.

    Attributes:
        sent: What it wrote to its channel.
        status: As from `os.waitpid`.
        cpu_seconds: Processor time it used itself.
        timed_out: It was killed at the deadline.
        too_much: It was killed because it wrote more to its channel than allowed.
        excess: What else it was killed for having too much of, or an empty text.
        stdout: Beginning and end of its output.
        stderr: The same of its errors.
    """

    sent: bytes
    status: int
    cpu_seconds: float
    timed_out: bool
    too_much: bool
    excess: str
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
    folder = jail.make_folder(scorer=scorer)
    nothing = os.open(os.devnull, os.O_RDWR | os.O_CLOEXEC)
    readers, writers = (-1, -1), (nothing, nothing)
    if not scorer:
        readers, writers = zip(os.pipe(), os.pipe(), strict=True)
    trouble, told = os.pipe()
    pid = jail.fork()
    if pid == 0:
        told_first = _TROUBLE  # until it is closed, what is raised is the sandbox's failure
        try:
            _arrange_descriptors(nothing, *writers, channel, told)
            jail.enter(limits, folder, extra_bytes=extra_bytes, scorer=scorer)
            work = os.path.join(folder, "work")
            os.mkdir(work)
            os.chdir(work)
            os.environ |= {"HOME": folder, "TMPDIR": folder}
            os.close(_TROUBLE)
            told_first = 2
            main(_CHANNEL, folder)
        except BaseException:
            os.write(told_first, traceback.format_exc().encode("utf-8", "backslashreplace"))
        finally:
            os._exit(0)
    for descriptor in {nothing, told, *writers}:
        os.close(descriptor)
    for reader in readers:
        if reader >= 0:
            os.set_blocking(reader, False)
    return Process(pid, folder, *readers, trouble)


def _arrange_descriptors(*kept: int) -> None:
    """Keep these descriptors under the first numbers, close all else, forget the server's signals.

    They are standard input, output and errors, the channel and the one for trouble.
    """
    os.setsid()
    signal.set_wakeup_fd(-1)
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    high = [fcntl.fcntl(descriptor, fcntl.F_DUPFD, len(kept)) for descriptor in kept]
    for target, source in enumerate(high):
        os.dup2(source, target, inheritable=target < _CHANNEL)
    os.closerange(len(kept), os.sysconf("SC_OPEN_MAX"))


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
        self._wake = -1

    def listen(self) -> None:
        """Learn of the ends of children from now on."""
        self._wake, writer = os.pipe()
        for end in (self._wake, writer):
            os.set_blocking(end, False)
        signal.signal(signal.SIGCHLD, lambda *_: None)
        signal.set_wakeup_fd(writer, warn_on_full_buffer=False)

    def watch(self, process: Process, channel: int, limits: Limits, *, deadline: float) -> Ended:
        """Read what a process sends until its end, which is that of all it started.

        Args:
            process: From `start`.
            channel: Reading end of the channel, not blocking.
            limits: What it may send and have at most; beyond that it is killed.
            deadline: On the monotonic clock; the process is killed then.

        Raises:
            DriverGoneError: The driver is gone; the process was killed.
            OSError: The process could not be locked in.
        """
        streams = _Streams(
            process,
            channel,
            max_bytes=int(limits.value_mb * 2**20) + _FRAME_SLACK,
            max_output=limits.output_kb * 1024,
        )
        ended: tuple[int, float] | None = None
        timed_out = driver_gone = False
        excess = ""
        look = time.monotonic() + _LOOK_SECONDS
        while ended is None and not (timed_out or driver_gone or streams.too_much or excess):
            ready = self._wait(streams.unfinished, min(deadline, look))
            now = time.monotonic()
            timed_out = now >= deadline
            if now >= look:
                excess = self._jail.excess(self._spared(), limits)
                look = time.monotonic() + max(_LOOK_SECONDS, 20 * (time.monotonic() - now))
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
        process.check()
        streams.drain()
        for descriptor in streams.captures:
            os.close(descriptor)
        return Ended(
            sent=bytes(streams.sent),
            status=ended[0],
            cpu_seconds=ended[1],
            timed_out=timed_out,
            too_much=streams.too_much,
            excess=excess,
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
        while left := descendants(self._spared() - {process.pid}):
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
