"""Warnings that name the line of the user's code, however deep inside of the project one is."""

from __future__ import annotations

import inspect
import sys
import warnings
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from types import FrameType


Line = tuple[str, int, str, dict[Any, int]]
"""A line of code: its file, number and module, and the warnings that it has given."""

_called: list[Line] = []  # the line that called last; warnings of other threads name it


def note_caller() -> None:
    """Notes the line that called this project: warnings of threads that work for it name it."""
    frame = _calling()
    if not _is_inside(frame):
        _called[:] = [_line_of(frame)]


def warn(message: str, category: type[Warning] = UserWarning) -> None:
    """Warns of the line that called this project.

    `warnings.warn` takes a number of frames, which differs from caller to caller. On a thread of
    this project that line is the one that began its work.
    """
    frame = _calling()
    line = _called[0] if _called and _is_inside(frame) else _line_of(frame)
    file, number, module, registry = line
    warnings.warn_explicit(message, category, file, number, module, registry)


def _calling() -> FrameType:
    """Returns the frame that called this project; on another thread the first one of that."""
    frame = inspect.currentframe()
    assert frame is not None  # only other Pythons have none
    while frame.f_back is not None and _is_inside(frame):
        frame = frame.f_back
    return frame


def _line_of(frame: FrameType) -> Line:
    names = frame.f_globals
    registry = names.setdefault("__warningregistry__", {})
    return frame.f_code.co_filename, frame.f_lineno, names.get("__name__", "<string>"), registry


def _is_inside(frame: FrameType) -> bool:
    """Whether a frame is of this project, or of what runs it: the standard library and joblib."""
    package = str(frame.f_globals.get("__name__", "")).partition(".")[0]
    return package in ("evo", "replay", "joblib") or package in sys.stdlib_module_names


def and_more(places: Sequence[object], most: int = 1, *, separator: str = ", ") -> str:
    """Names the first of some places, or whatever they are, and says how many more there are.

    Example:
        >>> from evo.warning import and_more
        >>> and_more(["a.jsonl", "b.jsonl", "c.jsonl"])
        'a.jsonl and 2 more'
    """
    named = separator.join(map(str, places[:most]))
    return f"{named} and {len(places) - most} more" if len(places) > most else named
