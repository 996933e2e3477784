"""What happens in a program's own process, after it was locked in."""

from __future__ import annotations

import os
import sys
import traceback
from collections.abc import Callable
from types import ModuleType
from typing import Any

from evo.records import Limits, TaskRecord
from evo.sandbox import EVALUATOR_FAILED, values
from evo.sandbox.messages import Returned, printable
from evo.sandbox.purity import for_subprocesses
from evo.sandbox.together import run_evaluator

_MAX_ERROR = 4000  # characters
_NOT_SHOWN = (os.path.dirname(__file__), "<frozen importlib")  # frames outside the program

PACKAGES = {
    "cv2": "opencv-python",
    "PIL": "pillow",
    "skimage": "scikit-image",
    "sklearn": "scikit-learn",
    "yaml": "pyyaml",
}
"""Packages whose name at the package index differs from the one they are imported by."""


def execute(task: TaskRecord, program: str, limits: Limits, folder: str, key: bytes) -> Returned:
    """Run a program to its end, whatever it does, and say how it ended.

    Args:
        task: The task; its isolation decides whether its evaluator runs here as well.
        program: Source text, or the text that evolves.
        limits: For the size of the returned value.
        folder: The process's own folder.
        key: Of the randomness of interpreters that an evaluator starts.
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
        text = _describe(error, path)
        if task.isolation == "shared" and not _has_part_in(error, path):
            text = f"{EVALUATOR_FAILED}: {text}"
        return Returned(kind="error", text=text)


def _call(task: TaskRecord, program: str, path: str, limits: Limits) -> Returned:
    module = ModuleType("program")
    module.__file__ = path
    sys.modules["program"] = module
    exec(compile(program, path, "exec"), module.__dict__)
    function = find_entry(module, task.entry)
    if function is None:
        expected = " or ".join(f"{name}()" for name in task.entry)
        return Returned(kind="error", text=f"the program defines no function {expected}")
    return as_value(function(), limits)


def as_value(value: object, limits: Limits) -> Returned:
    """A returned value as bytes, if it is plain data of allowed size."""
    try:
        data = values.encode(value, max_bytes=limits.value_mb * 2**20)
    except values.UnsendableError as error:
        return Returned(kind="invalid", text=printable(str(error)))
    return Returned(kind="value", value=data)


def _key_subprocesses(key: bytes, folder: str) -> None:
    """Let the interpreters that an evaluator starts draw keyed random numbers too."""
    place = os.path.join(folder, "keyed")
    os.mkdir(place)
    with open(os.path.join(place, "sitecustomize.py"), "w", encoding="utf-8") as file:
        file.write(for_subprocesses(key))
    os.environ["PYTHONPATH"] = place


def find_entry(module: ModuleType, names: tuple[str, ...]) -> Callable[[], Any] | None:
    """The first of the named functions that a module has."""
    for name in names:
        function = module.__dict__.get(name)
        if callable(function):
            return function  # type: ignore[no-any-return]
    return None


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


def _describe(error: BaseException, path: str) -> str:
    """Text of an exception with the program's own frames; safe against hostile exceptions."""
    try:
        trace = error.__traceback__
        while trace is not None and trace.tb_frame.f_code.co_filename.startswith(_NOT_SHOWN):
            trace = trace.tb_next
        # Without a frame of the program, as for a syntax error, the exception says it all.
        text = "".join(traceback.format_exception(type(error), error, trace)).strip()
        if isinstance(error, SystemExit):
            text = f"the program called sys.exit\n{text}"
        if isinstance(error, MemoryError):
            text = f"the program ran out of memory\n{text}"
        if isinstance(error, ModuleNotFoundError) and error.name:
            text += f"\n{missing_package(error.name)}"
        if len(text) > _MAX_ERROR:
            text = f"{text[: _MAX_ERROR // 2]}\n...\n{text[-_MAX_ERROR // 2 :]}"
        return printable(text)
    except BaseException:
        return f"an exception of type {type.__repr__(type(error))} that cannot be shown"


def missing_package(name: str) -> str:
    """What to do about a module that is not installed."""
    package = name.partition(".")[0]
    return f"the package {package!r} is not installed: pip install {PACKAGES.get(package, package)}"
