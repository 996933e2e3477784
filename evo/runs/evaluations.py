"""A memory that makes each of a run's evaluations once, and what is wrong with a first one."""

from __future__ import annotations

import hashlib
import re
import threading
import warnings
from collections.abc import Callable

import msgspec

from evo.folder import TaskError
from evo.prompt import last_line
from evo.records import Evaluation, Limits, TaskRecord
from evo.sandbox import EVALUATOR_FAILED
from evo.task import EvaluatorFailed

Evaluate = Callable[[TaskRecord, str, Limits], Evaluation]
"""Evaluates a program, or a text."""

Draw = Callable[..., Evaluation]
"""Likewise one draw, told as `draw=` and the run's `seed=`; 0 is keyed by the program's text."""


def program_digest(program: str) -> bytes:
    """Returns SHA-256 of a program."""
    return hashlib.sha256(program.encode("utf-8", "surrogatepass")).digest()


def plain(evaluation: Evaluation) -> Evaluation:
    """Returns an evaluation without the construction, which has a place of its own in a line."""
    if evaluation.value is None:
        return evaluation
    return msgspec.structs.replace(evaluation, value=None)


class EvaluationMemory:
    """Evaluates each program once in a run; threads that want the same one wait for it."""

    def __init__(self, task: TaskRecord, limits: Limits, source: Evaluate) -> None:
        self._task, self._limits, self.source = task, limits, source
        self._known: dict[bytes, Evaluation] = {}
        self._turns: dict[bytes, threading.Lock] = {}

    def learn(self, program: str, evaluation: Evaluation) -> None:
        """Takes over an evaluation from the log."""
        self._known.setdefault(program_digest(program), evaluation)

    def evaluate(self, program: str) -> Evaluation:
        """Returns the program's evaluation; waits if another thread is at it."""
        digest = program_digest(program)
        with self._turns.setdefault(digest, threading.Lock()):
            if (known := self._known.get(digest)) is None:
                known = self._known[digest] = self.source(self._task, program, self._limits)
            return known

    def forget_values(self) -> None:
        """Lets go of constructions: those of a complete generation are logged, or not wanted."""
        for digest in self._turns:
            if digest in self._known:
                self._known[digest] = plain(self._known[digest])
        self._turns.clear()


def tell_of_initial(task: str, evaluation: Evaluation) -> None:
    """Says what is wrong with a task before the model is paid for children that cannot do better.

    Raises:
        TaskError: A package is missing; nothing was logged, so the run goes on once it is there.
        EvaluatorFailed: The evaluator fails for a reason of its own.
    """
    said = re.split(r"^--- std", evaluation.error or "", flags=re.MULTILINE)[0].strip()
    last = last_line(evaluation.error)
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
