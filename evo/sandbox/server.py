"""The warm fork server's work: one program after the other, each in a process of its own.

Nothing foreign runs in the server itself. It holds no key: its environment is empty and its
memory never was the user's.
"""

from __future__ import annotations

import gc
import importlib
import os
import socket
import sys
import time
import traceback
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass

import msgspec

from evo.records import Evaluation, Limits, TaskRecord
from evo.sandbox import EVALUATOR_FAILED, outcome, scorer
from evo.sandbox.jail import Jail
from evo.sandbox.messages import ClosedError, Reply, Request, Score, Scored, receive, send
from evo.sandbox.processes import DriverGoneError, Ended, Process, Watcher, start
from evo.sandbox.program import as_value, execute
from evo.sandbox.purity import seed_everything

_SCORED = msgspec.msgpack.Decoder(Scored)


@dataclass(frozen=True)
class _Scorer:
    """The running scorer, and the task and limits that it is for."""

    process: Process
    channel: socket.socket
    key: tuple[str, Limits]


class Server:
    """Evaluates what the driver asks for, one program at a time.

    Args:
        driver: Where requests come from.
        jail: The layers.
        modules: What to import before the first program.
    """

    def __init__(self, driver: socket.socket, jail: Jail, modules: Iterable[str]) -> None:
        self._driver = driver
        self._modules = modules
        self._jail = jail
        self._watcher = Watcher(driver.fileno(), jail, self._spared)
        self._scorer: _Scorer | None = None

    def serve(self) -> None:
        """Answer requests until the driver goes."""
        decoder = msgspec.msgpack.Decoder(Request)
        task: TaskRecord | None = None
        with suppress(ClosedError, DriverGoneError):
            data = receive(self._driver)
            self._preload()
            self._watcher.listen()
            while True:
                request = decoder.decode(data)
                task = request.task or task
                try:
                    if task is None:
                        raise ValueError("the first request must hold a task")
                    reply = Reply(evaluation=self._evaluate(task, request))
                except Exception:  # reported to the driver, which starts another server
                    reply = Reply(fault=traceback.format_exc())
                send(self._driver, reply)
                self._jail.tidy()
                data = receive(self._driver)
        self._stop_scorer()
        self._jail.tidy()

    def _preload(self) -> None:
        for name in self._modules:
            importlib.import_module(name)
        gc.collect()
        gc.freeze()

    def _spared(self) -> set[int]:
        return {self._scorer.process.pid} if self._scorer else set()

    def _evaluate(self, task: TaskRecord, request: Request) -> Evaluation:
        began = time.monotonic()
        ended = None
        if task.evolves == "text" and task.isolation == "separate":
            returned = as_value(request.program, request.limits)
        else:
            ended = self._run(task, request)
            returned = outcome.read_returned(ended, request.limits, task.isolation)
        if returned.kind == "value":
            evaluation = self._score(task, request, returned.value)
        elif returned.kind == "metrics":
            evaluation = outcome.from_metrics(returned)
        else:
            evaluation = Evaluation(status=returned.kind, error=returned.text)
        evaluation = outcome.within_reason(evaluation)
        error = evaluation.error
        if ended and evaluation.status != "ok":
            error = outcome.with_output(error or "", ended)
        seconds = time.monotonic() - began
        return msgspec.structs.replace(evaluation, error=error, seconds=seconds)

    def _run(self, task: TaskRecord, request: Request) -> Ended:
        """Run a program in a process of its own."""

        def run(channel: int, folder: str) -> None:
            seed_everything(request.key)
            returned = execute(task, request.program, request.limits, folder, request.key)
            for stream in (sys.stdout, sys.stderr):
                with suppress(BaseException):  # the program may have replaced them
                    stream.flush()
            _write(channel, msgspec.msgpack.encode(returned))

        deadline = time.monotonic() + request.limits.seconds
        extra = _size(task) if task.isolation == "shared" else 0
        reader, writer = os.pipe()
        try:
            process = start(self._jail, request.limits, run, channel=writer, extra_bytes=extra)
            os.close(writer)
            os.set_blocking(reader, False)
            return self._watcher.watch(process, reader, request.limits, deadline=deadline)
        finally:
            os.close(reader)

    def _score(self, task: TaskRecord, request: Request, value: bytes) -> Evaluation:
        """Score a returned value in the scorer, started anew for another task or other limits."""
        key = (task.hash, request.limits)
        if self._scorer and self._scorer.key != key:
            self._stop_scorer()
        if self._scorer is None:
            self._scorer = self._start_scorer(task, request.limits)
        channel = self._scorer.channel
        message = Score(value=value, key=request.key, keep_value=request.keep_value)
        deadline = time.monotonic() + request.limits.seconds
        try:
            channel.settimeout(request.limits.seconds + 1)
            send(channel, message)
            if self._watcher.wait_for_answer(channel.fileno(), deadline):
                scored = _SCORED.decode(receive(channel))
                return Evaluation(
                    status=scored.status,
                    fitness=scored.fitness,
                    metrics=scored.metrics,
                    error=scored.error,
                    value=scored.value,
                )
        except ClosedError:
            status = self._stop_scorer()
            error = f"{EVALUATOR_FAILED}: its process {outcome.ending(status)}"
            return Evaluation(status="error", error=error)
        except TimeoutError:
            pass
        self._stop_scorer()
        seconds = request.limits.seconds
        return Evaluation(
            status="timeout", error=f"scoring the returned value took over {seconds:g} s"
        )

    def _start_scorer(self, task: TaskRecord, limits: Limits) -> _Scorer:
        own, other = socket.socketpair()

        def run(channel: int, folder: str) -> None:
            scorer.serve(task, socket.socket(fileno=channel))

        with other:
            process = start(
                self._jail,
                limits,
                run,
                channel=other.fileno(),
                extra_bytes=_size(task),
                scorer=True,
            )
        return _Scorer(process=process, channel=own, key=(task.hash, limits))

    def _stop_scorer(self) -> int:
        """Kill the scorer; the status it ended with."""
        if self._scorer is None:
            return 0
        stopped, self._scorer = self._scorer, None
        stopped.channel.close()
        status, _ = self._watcher.kill(stopped.process)
        self._jail.remove_folder(stopped.process.folder)
        stopped.process.check()
        return status


def _size(task: TaskRecord) -> int:
    """Room that a task's files need in a folder, bytes."""
    contents = (*task.files.values(), *task.encoded.values())
    return sum(len(text.encode()) + 4096 for text in contents)


def _write(descriptor: int, data: bytes) -> None:
    view = memoryview(data)
    while view:
        view = view[os.write(descriptor, view) :]
