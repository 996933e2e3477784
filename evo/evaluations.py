"""Evaluations: what makes them, and a memory that makes each of them once."""

from __future__ import annotations

import hashlib
import os
import threading
from concurrent.futures import Future
from pathlib import Path
from typing import Protocol

import msgspec

from evo.records import Evaluation, Header, Limits, TaskRecord


class Evaluates(Protocol):
    """Evaluates programs."""

    def evaluate(self, task: TaskRecord, program: str, limits: Limits) -> Evaluation:
        """Evaluates one program."""
        ...


class Sandbox(Evaluates, Protocol):
    """What an arm needs of the sandbox."""

    @property
    def protections(self) -> tuple[str, ...]:
        """Active layers of the sandbox."""
        ...

    def close(self) -> None:
        """Ends every evaluation."""
        ...


def program_digest(program: str) -> bytes:
    """Returns SHA-256 of a program."""
    return hashlib.sha256(program.encode("utf-8", "surrogatepass")).digest()


class EvaluationMemory:
    """Evaluates each program once: in this run, and in a folder across runs if there is one.

    Timeouts stay out of the folder: another machine may be faster.
    """

    def __init__(self, header: Header, evaluator: Evaluates, folder: Path | None) -> None:
        self._task, self._limits, self._evaluator = header.task, header.limits, evaluator
        identity = msgspec.json.encode(header.limits) + header.task.hash.encode()
        self._folder = folder / hashlib.sha256(identity).hexdigest()[:16] if folder else None
        self._known: dict[bytes, Evaluation | Future[Evaluation]] = {}  # a future: under way
        self._lock = threading.Lock()
        self.recalled: set[bytes] = set()

    def learn(self, program: str, evaluation: Evaluation) -> None:
        """Takes over an evaluation from the log."""
        self._known.setdefault(program_digest(program), evaluation)

    def evaluate(self, program: str) -> Evaluation:
        """Returns the program's evaluation; waits if another thread is at it."""
        digest = program_digest(program)
        with self._lock:
            known = self._known.get(digest)
            if known is None:
                future: Future[Evaluation] = Future()
                self._known[digest] = future
        if known is not None:
            return known if isinstance(known, Evaluation) else known.result()
        try:
            evaluation = self._recall(digest) or self._evaluate_and_keep(digest, program)
        except BaseException as error:
            with self._lock:
                del self._known[digest]
            future.set_exception(error)
            raise
        with self._lock:
            self._known[digest] = evaluation
        future.set_result(evaluation)
        return evaluation

    def _evaluate_and_keep(self, digest: bytes, program: str) -> Evaluation:
        evaluation = self._evaluator.evaluate(self._task, program, self._limits)
        if self._folder and evaluation.status != "timeout":
            path = self._path(self._folder, digest)
            path.parent.mkdir(parents=True, exist_ok=True)
            temporary = path.with_suffix(f".{os.getpid()}-{threading.get_ident()}")
            temporary.write_bytes(msgspec.json.encode(evaluation))
            temporary.replace(path)
        return evaluation

    def _recall(self, digest: bytes) -> Evaluation | None:
        if self._folder is None:
            return None
        try:
            content = self._path(self._folder, digest).read_bytes()
            evaluation = msgspec.json.decode(content, type=Evaluation)
        except (OSError, ValueError):  # absent, or damaged: then it is evaluated again
            return None
        self.recalled.add(digest)
        return evaluation

    @staticmethod
    def _path(folder: Path, digest: bytes) -> Path:
        name = digest.hex()
        return folder / name[:2] / f"{name}.json"
