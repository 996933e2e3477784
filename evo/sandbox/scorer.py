"""The process that scores returned values; it never sees a program."""

from __future__ import annotations

import math
import os
import socket
import traceback
from collections.abc import Callable
from numbers import Real
from typing import Any

import msgspec
import numpy as np

from evo.records import TaskRecord
from evo.sandbox import EVALUATOR_FAILED, values
from evo.sandbox.messages import ClosedError, Score, Scored, printable, receive, send, short
from evo.sandbox.program import missing_package
from evo.sandbox.purity import seed_everything
from evo.sandbox.together import as_float, load_evaluator

_SCORE = msgspec.msgpack.Decoder(Score)


def serve(task: TaskRecord, channel: socket.socket) -> None:
    """Load a task's evaluator from the working folder, then score values until the server goes."""
    score, problem = _load(task)
    while True:
        try:
            request = _SCORE.decode(receive(channel))
        except ClosedError:
            return
        send(channel, _score(score, request) if score else Scored(status="error", error=problem))


def _load(task: TaskRecord) -> tuple[Callable[[Any], Any] | None, str]:
    """The evaluator's `score`, or why there is none."""
    name = task.evaluator_file
    try:
        score = getattr(load_evaluator(task, os.getcwd()), "score", None)
    except ModuleNotFoundError as error:
        missing = missing_package(error.name or str(error))
        return None, f"{EVALUATOR_FAILED}: {name!r}: {missing}"
    except BaseException as error:  # an evaluator must not take the run down
        return None, f"{EVALUATOR_FAILED}: {name!r} could not be imported: {_describe(error)}"
    if not callable(score):
        return None, f"{EVALUATOR_FAILED}: {name!r} defines no function score(value)"
    return score, ""


def _score(score: Callable[[Any], Any], request: Score) -> Scored:
    try:
        value = values.decode(request.value)
    except ValueError as error:
        return Scored(status="error", error=str(error))
    kept = values.to_lists(value) if request.keep_value and values.is_small(value) else None
    seed_everything(request.key)
    try:
        result = score(value)
    except ValueError as error:
        return Scored(status="invalid", error=short(str(error)), value=kept)
    except BaseException as error:  # an evaluator must not take the run down
        return Scored(status="error", error=f"{EVALUATOR_FAILED}: {_describe(error)}")
    try:
        return _read(result, kept)
    except BaseException as error:  # what it returned is its own code too
        return Scored(status="error", error=f"{EVALUATOR_FAILED}: {_describe(error)}")


def _read(result: Any, kept: Any) -> Scored:
    """What `score` returned, as numbers."""
    if not isinstance(result, dict) or "fitness" not in result:
        error = f"{EVALUATOR_FAILED}: score(value) must return a dict with the key 'fitness'"
        error += f", got {result!r}"
        return Scored(status="error", error=short(error))
    metrics: dict[str, float] = {}
    for name, number in result.items():
        if not isinstance(number, Real | np.bool):
            error = (
                f"{EVALUATOR_FAILED}: score(value) must return numbers, got {name!r}: {number!r}"
            )
            return Scored(status="error", error=short(error))
        metrics[printable(str(name))] = value = as_float(number)
        if not math.isfinite(value):
            error = f"{name} is not finite: {value!r}"
            return Scored(status="invalid", error=short(error), value=kept)
    return Scored(status="ok", fitness=metrics.pop("fitness"), metrics=metrics, value=kept)


def _describe(error: BaseException) -> str:
    lines = traceback.format_exception(type(error), error, error.__traceback__)
    return printable("".join(lines).strip()[-2000:])
