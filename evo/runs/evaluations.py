"""What makes evaluations, and a memory that makes each of a run's once."""

from __future__ import annotations

import hashlib
import threading
from concurrent.futures import Future
from typing import Protocol

from evo.records import Evaluation, Limits, TaskRecord


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
    """Evaluates each program once in a run; threads that want the same one wait for it.

    Args:
        task: What programs are evaluated on.
        limits: Limits of an evaluation.
        evaluator: Evaluates programs.
    """

    def __init__(self, task: TaskRecord, limits: Limits, evaluator: Evaluates) -> None:
        self._task, self._limits, self._evaluator = task, limits, evaluator
        self._known: dict[bytes, Evaluation | Future[Evaluation]] = {}  # a future: under way
        self._lock = threading.Lock()

    def learn(self, program: str, evaluation: Evaluation) -> None:
        """Takes over an evaluation from the log."""
        self._known.setdefault(program_digest(program), evaluation)

    def evaluate(self, program: str) -> Evaluation:
        """Returns the program's evaluation; waits if another thread is at it."""
        digest = program_digest(program)
        future: Future[Evaluation] = Future()
        with self._lock:
            known = self._known.setdefault(digest, future)
        if known is not future:
            return known if isinstance(known, Evaluation) else known.result()
        try:
            evaluation = self._evaluator.evaluate(self._task, program, self._limits)
        except BaseException as error:
            with self._lock:
                del self._known[digest]
            future.set_exception(error)
            raise
        with self._lock:
            self._known[digest] = evaluation
        future.set_result(evaluation)
        return evaluation
