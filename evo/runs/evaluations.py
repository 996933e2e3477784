"""What makes evaluations, and a memory that makes each of a run's once."""

from __future__ import annotations

import hashlib
import re
import threading
import warnings
from concurrent.futures import Future
from typing import Protocol

import msgspec

from evo.folder import TaskError
from evo.records import Evaluation, Limits, TaskRecord
from evo.sandbox import EVALUATOR_FAILED
from evo.task import EvaluatorFailed


class Evaluates(Protocol):
    """Evaluates programs."""

    def evaluate(self, task: TaskRecord, program: str, limits: Limits) -> Evaluation:
        """Evaluates one program."""
        ...


class Draws(Protocol):
    """Evaluates one draw of a program."""

    def evaluate(
        self, task: TaskRecord, program: str, limits: Limits, *, draw: int = 0, seed: int = 0
    ) -> Evaluation:
        """Evaluates one draw; 0 is keyed by the program's text."""
        ...


class Sandbox(Draws, Protocol):
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
        self._task, self._limits, self.evaluator = task, limits, evaluator
        self._known: dict[bytes, Evaluation | Future[Evaluation]] = {}  # a future: under way
        self._valued: list[bytes] = []  # those that hold a construction
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
            evaluation = self.evaluator.evaluate(self._task, program, self._limits)
        except BaseException as error:
            with self._lock:
                del self._known[digest]
            future.set_exception(error)
            raise
        with self._lock:
            self._known[digest] = evaluation
            if evaluation.value is not None:
                self._valued.append(digest)
        future.set_result(evaluation)
        return evaluation

    def forget_values(self) -> None:
        """Lets go of constructions: those of a complete generation are logged, or not wanted."""
        with self._lock:
            for digest in self._valued:
                known = self._known[digest]
                if isinstance(known, Evaluation):
                    self._known[digest] = msgspec.structs.replace(known, value=None)
            self._valued.clear()


def tell_of_initial(task: str, evaluation: Evaluation) -> None:
    """Says what is wrong with a task before the model is paid for children that cannot do better.

    Raises:
        TaskError: A package is missing; nothing was logged, so the run goes on once it is there.
        EvaluatorFailed: The evaluator fails for a reason of its own.
    """
    said = re.split(r"^--- std", evaluation.error or "", flags=re.MULTILINE)[0].strip()
    last = said.rpartition("\n")[2]
    if "the package " in last and "pip install" in last:
        raise TaskError(f"{task}: {last}; then `evo resume` goes on with the log")
    # Many evaluators catch what they raise and return it as their word for a failure.
    misses_file = "No such file or directory" in said and '"program.py"' not in said
    if evaluation.status == "error" and (said.startswith(EVALUATOR_FAILED) or misses_file):
        lines = re.findall(r'File "([^"]+)", line (\d+)', said)
        where = " ({}, line {})".format(*lines[-1]) if lines else ""
        reason = last.removeprefix(EVALUATOR_FAILED).lstrip(": ")
        raise EvaluatorFailed(
            f"{task}: the evaluator fails on the initial program{where}: {reason}; no call was "
            "made: mend the task and run it again"
        )
    if evaluation.status != "ok":
        warnings.warn(
            f"{task}: the initial program is {evaluation.status!r} ({last}); the search begins "
            "without a fitness",
            stacklevel=2,
        )
    elif said:
        warnings.warn(f"{task}: {said}", stacklevel=2)
