"""How a freshly executed process becomes warm fork servers, and what each of them does.

Forking takes time in proportion to memory, which SciPy's optimisers triple: so one server, for
programs that do not mention SciPy, has NumPy only. Each runs one program after the other, in
processes of their own; nothing foreign runs in the server itself, which holds no key. What goes
wrong in it ends it, and the driver reads why.

A forked process has all of its server's memory. So evaluators and data sets are known to a server
of their own only, and a programs' server never held them, unless the task has them share a process
with the program (isolation `shared`): its programs run in servers that serve no other isolation.
"""

from __future__ import annotations

import gc
import importlib
import importlib.machinery
import os
import signal
import socket
import sys
import time
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from types import ModuleType

import msgspec

from evo.logs.records import Evaluation, Limits, TaskRecord
from evo.sandbox import EVALUATOR_FAILED, foreign, kernel, outcome
from evo.sandbox.jail import Jail
from evo.sandbox.messages import (
    ClosedError,
    ProgramAnswer,
    ProgramRequest,
    Ready,
    ScorerRequest,
    ScoringRequest,
    Setup,
    receive,
    send,
)
from evo.sandbox.outcome import Ended, failed
from evo.sandbox.processes import DriverGoneError, Process, Watcher, start
from evo.sandbox.purity import seed_everything

# What programs use most, so that a forked process has it at once.
NUMPY = ("numpy.fft", "numpy.linalg", "numpy.random", "scipy")
SCIPY = ("scipy.linalg", "scipy.optimize", "scipy.spatial.distance", "scipy.special")
_REQUEST = msgspec.msgpack.Decoder(ProgramRequest)
_SCORING = msgspec.msgpack.Decoder(ScoringRequest)
_SCORED = msgspec.msgpack.Decoder(Evaluation)


def main() -> None:
    """Serve the driver until it goes.

    The command line holds the folder that the package `evo` was imported from, which programs
    must not find, and the descriptors of sockets: for programs without SciPy, with it, and for
    evaluators if they run apart. That folder is the last one of the path. A server gets ready when
    its socket brings the set-up: it takes 45 ms to make and end its namespaces, and in many runs
    no program mentions SciPy.
    """
    descriptors = sys.argv[2:]
    del sys.argv[1:]
    channels = [socket.socket(fileno=int(descriptor)) for descriptor in descriptors]
    setup = msgspec.msgpack.decode(receive(channels[0]), type=Setup)
    sys.path.pop()  # the packages of this project are loaded
    sys.path += [path for path in setup.packages if path not in sys.path]
    _hide_own_packages()
    _load(NUMPY)
    jail = Jail(setup)
    jail.separate()
    servers = []
    kinds: tuple[Callable[[socket.socket, Jail], Server | ScoringServer], ...]
    kinds = (Server, partial(Server, modules=SCIPY), ScoringServer)
    for channel, kind in zip(channels, kinds, strict=False):
        pid = os.fork()  # the first one is also the first process of the new process tree
        if pid == 0:
            for other in set(channels) - {channel}:
                other.close()
            if kernel.LINUX:
                kernel.prctl(kernel.PR_SET_PDEATHSIG, signal.SIGKILL)
                with suppress(OSError), open("/proc/self/oom_score_adj", "w") as file:
                    file.write("500")  # what eats the memory ends rather than the driver
            with suppress(ClosedError):
                if channel is not channels[0]:  # where the set-up has arrived
                    receive(channel)
                jail.establish()
                ready = Ready(protections=jail.protections, missing=jail.missing, folder=jail.base)
                send(channel, ready)
                kind(channel, jail).serve()
            os._exit(0)
        servers.append(pid)
    for channel in channels:
        channel.close()
    ended, status = os.wait()  # they end together: when the driver goes, or as a broken pair
    left = set(servers) - {ended}
    for pid in left:
        os.kill(pid, signal.SIGKILL)
    # In no fixed order: the first process of a process tree ends only when all others are reaped.
    for _ in left:
        os.wait()
    os._exit(os.waitstatus_to_exitcode(status) & 0xFF)


def _hide_own_packages() -> None:
    """Let nothing installed be found under this project's names, however it was installed.

    Modules of these names in folders that join the path later, such as a task's, are found.
    """
    installed = frozenset(sys.path)

    class Others(importlib.machinery.PathFinder):
        @classmethod
        def find_spec(
            cls,
            fullname: str,
            path: Sequence[str] | None = None,
            target: ModuleType | None = None,
        ) -> importlib.machinery.ModuleSpec | None:
            if path is None and fullname in ("evo", "replay"):
                path = [entry for entry in sys.path if entry not in installed]
            return super().find_spec(fullname, path, target)

    sys.meta_path[sys.meta_path.index(importlib.machinery.PathFinder)] = Others


def _load(modules: Iterable[str]) -> None:
    for name in modules:
        importlib.import_module(name)
    gc.collect()
    gc.freeze()


@dataclass(frozen=True)
class _Scorer:
    """The running scorer, and the task and limits that it is for."""

    process: Process
    channel: socket.socket
    key: tuple[str, str | None, Limits]


class Server:
    """Runs what the driver asks for, one program at a time; first imports the modules."""

    def __init__(self, driver: socket.socket, jail: Jail, modules: Iterable[str] = ()) -> None:
        self._driver, self._jail, self._modules = driver, jail, modules
        self._watcher = Watcher(driver.fileno(), jail)

    def serve(self) -> None:
        """Answer requests until the driver goes."""
        task: TaskRecord | None = None
        with suppress(ClosedError, DriverGoneError):
            data = receive(self._driver)
            _load(self._modules)
            self._watcher.listen()
            while True:
                request = _REQUEST.decode(data)
                task = request.task or task
                if task is None:
                    raise ValueError("the first request must hold a task")
                send(self._driver, self._answer(task, request))
                self._jail.tidy()
                data = receive(self._driver)
        self._jail.tidy()

    def _answer(self, task: TaskRecord, request: ProgramRequest) -> ProgramAnswer:
        began = time.monotonic()
        printed = ""
        if task.evolves == "text" and task.isolation == "separate":
            returned = foreign.as_value(task.given(request.program), request.limits)
        else:
            ended = self._run(task, request)
            returned = outcome.read_returned(ended, request.limits, task.isolation)
            printed = ended.printed
        if isinstance(returned, bytes) and task.isolation == "here":  # scored by the driver
            returned = Evaluation(status="ok", fitness=0.0, value=returned)
        seconds = time.monotonic() - began
        if isinstance(returned, bytes):
            return ProgramAnswer(value=returned, printed=printed, seconds=seconds)
        return ProgramAnswer(evaluation=_evaluation(task, returned, printed, seconds))

    def _run(self, task: TaskRecord, request: ProgramRequest) -> Ended:
        """Run a program in a process of its own."""

        def run(channel: int, folder: str) -> None:
            seed_everything(request.key)
            returned = foreign.execute(task, request.program, request.limits, folder, request.key)
            for stream in (sys.stdout, sys.stderr):
                with suppress(BaseException):  # the program may have replaced them
                    stream.flush()
            view = memoryview(msgspec.msgpack.encode(returned))
            while view:
                view = view[os.write(channel, view) :]

        deadline = time.monotonic() + request.limits.seconds
        extra = foreign.size_of(task) if task.isolation == "shared" else 0
        reader, writer = os.pipe()
        try:
            process = start(self._jail, request.limits, run, channel=writer, extra_bytes=extra)
            os.close(writer)
            return self._watcher.watch(process, reader, request.limits, deadline=deadline)
        finally:
            os.close(reader)


def _evaluation(task: TaskRecord, scored: Evaluation, printed: str, seconds: float) -> Evaluation:
    """The evaluation, with no more scores of instances than the task has instances."""
    lines = task.files.get(task.instances_file, "").count("\n") + 1
    instances = lines if task.instances_file else 0
    return outcome.evaluation_of(scored, printed, seconds, instances=instances)


class ScoringServer:
    """Has values scored by the evaluators of their tasks, each in a process of its own."""

    def __init__(self, driver: socket.socket, jail: Jail) -> None:
        self._driver, self._jail = driver, jail
        self._watcher = Watcher(driver.fileno(), jail)
        self._scorer: _Scorer | None = None

    def serve(self) -> None:
        """Answer requests until the driver goes."""
        task: TaskRecord | None = None
        self._jail.close_memory()
        self._watcher.listen()
        with suppress(ClosedError, DriverGoneError):
            while True:
                request = _SCORING.decode(receive(self._driver))
                task = request.task or task
                if task is None:
                    raise ValueError("the first request must hold a task")
                began, returned = time.monotonic(), request.returned
                scored = self._score(task, request, returned.value)
                seconds = returned.seconds + time.monotonic() - began
                send(self._driver, _evaluation(task, scored, returned.printed, seconds))
                self._jail.tidy()
        self._stop_scorer()
        self._jail.tidy()

    def _score(self, task: TaskRecord, request: ScoringRequest, value: bytes) -> Evaluation:
        """Score a returned value in the scorer, started anew for another task or other limits."""
        key = task.hash, task.files.get(task.notes_file), request.limits
        if self._scorer and self._scorer.key != key:
            self._stop_scorer()
        if self._scorer is None:
            self._scorer = self._start_scorer(task, request.limits)
        channel, seconds = self._scorer.channel, request.limits.seconds
        deadline = time.monotonic() + seconds
        with suppress(TimeoutError):
            try:
                channel.settimeout(seconds + 1)
                send(
                    channel,
                    ScorerRequest(value=value, key=request.key, keep_value=request.keep_value),
                )
                if self._watcher.wait_for_answer(channel.fileno(), deadline):
                    return _SCORED.decode(receive(channel))
            except ClosedError:
                how = outcome.ending(self._stop_scorer())
                return failed(f"{EVALUATOR_FAILED}: its process {how}")
        self._stop_scorer()
        return failed(f"scoring the returned value took over {seconds:g} s", "timeout")

    def _start_scorer(self, task: TaskRecord, limits: Limits) -> _Scorer:
        own, other = socket.socketpair()

        def run(channel: int, folder: str) -> None:
            foreign.serve_scores(task, socket.socket(fileno=channel), folder)

        with other:
            extra, channel = foreign.size_of(task), other.fileno()
            process = start(
                self._jail, limits, run, channel=channel, extra_bytes=extra, scorer=True
            )
        key = task.hash, task.files.get(task.notes_file), limits
        return _Scorer(process=process, channel=own, key=key)

    def _stop_scorer(self) -> int:
        """Kill the scorer; the status it ended with."""
        if self._scorer is None:
            return 0
        stopped, self._scorer = self._scorer, None
        stopped.channel.close()
        status, _ = self._watcher.kill(stopped.process)
        stopped.process.check()
        return status
