"""Warnings that name the line of the user's code, however deep inside of the project one is."""

from __future__ import annotations

import inspect
import sys
import warnings
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from types import FrameType


def warn(message: str, category: type[Warning] = UserWarning) -> None:
    """Warns of the line that called this project.

    `warnings.warn` takes a number of frames, which differs from caller to caller.
    """
    frame = inspect.currentframe()
    assert frame is not None  # only other Pythons have none
    while frame.f_back is not None and _is_inside(frame):
        frame = frame.f_back
    names = frame.f_globals
    warnings.warn_explicit(
        message,
        category,
        frame.f_code.co_filename,
        frame.f_lineno,
        names.get("__name__", "<string>"),
        names.setdefault("__warningregistry__", {}),
    )


def _is_inside(frame: FrameType) -> bool:
    """Whether a frame is of this project, or of what the standard library runs for it."""
    package = str(frame.f_globals.get("__name__", "")).partition(".")[0]
    return package in ("evo", "replay") or package in sys.stdlib_module_names
