"""What happens in a program's own process, after it was locked in."""

from __future__ import annotations

import os
import sys
import traceback
from types import ModuleType

from evo.records import Limits, TaskRecord
from evo.sandbox import EVALUATOR_FAILED, values
from evo.sandbox.evaluators import run_evaluator
from evo.sandbox.messages import Scored
from evo.sandbox.outcome import describe, failed
from evo.sandbox.purity import for_subprocesses


def execute(
    task: TaskRecord, program: str, limits: Limits, folder: str, key: bytes
) -> bytes | Scored:
    """Run a program to its end, whatever it does: its value as bytes, or how it ended.

    The task's isolation decides whether its evaluator runs here as well; `key` is that of the
    randomness of interpreters which that starts.
    """
    path = os.path.join(folder, "program.txt" if task.evolves == "text" else "program.py")
    with open(path, "w", encoding="utf-8", errors="surrogatepass") as file:
        file.write(program)
    try:
        if task.isolation == "shared":
            _key_subprocesses(key, folder)
            return run_evaluator(task, path)
        return _call(task, program, path, limits)
    except BaseException as error:  # the wall: nothing a program raises passes it
        text = describe(error)
        if task.isolation == "shared" and not _has_part_in(error, path):
            text = f"{EVALUATOR_FAILED}: {text}"
        return failed(text)


def _call(task: TaskRecord, program: str, path: str, limits: Limits) -> bytes | Scored:
    module = ModuleType("program")
    module.__file__ = path
    sys.modules["program"] = module
    exec(compile(program, path, "exec"), module.__dict__)
    functions = (module.__dict__.get(name) for name in task.entry)
    function = next(filter(callable, functions), None)
    if function is None:
        expected = " or ".join(f"{name}()" for name in task.entry)
        return failed(f"the program defines no function {expected}")
    return as_value(function(), limits)


def as_value(value: object, limits: Limits) -> bytes | Scored:
    """A returned value as bytes, if it is plain data of allowed size."""
    try:
        return values.encode(value, max_bytes=limits.value_mb * 2**20)
    except values.UnsendableError as error:
        return failed(str(error), "invalid")


def _key_subprocesses(key: bytes, folder: str) -> None:
    """Let the interpreters that an evaluator starts draw keyed random numbers too."""
    place = os.path.join(folder, "keyed")
    os.mkdir(place)
    with open(os.path.join(place, "sitecustomize.py"), "w", encoding="utf-8") as file:
        file.write(for_subprocesses(key))
    os.environ["PYTHONPATH"] = place


def _has_part_in(error: BaseException, path: str) -> bool:
    """Whether a program had a part in an exception that passed its evaluator."""
    if isinstance(error, MemoryError | RecursionError):
        return True
    if isinstance(error, SyntaxError) and error.filename == path:
        return True
    owner = getattr(error, "obj", None)  # of an AttributeError: what lacks the attribute
    if isinstance(owner, ModuleType) and getattr(owner, "__file__", None) == path:
        return True
    frames = traceback.walk_tb(error.__traceback__)
    return any(frame.f_code.co_filename == path for frame, _ in frames)
