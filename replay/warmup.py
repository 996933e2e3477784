"""What makes the first picture come sooner: imports made ahead, no collector of cycles."""

from __future__ import annotations

import asyncio
import contextlib
import gc
import importlib
import sys
from collections.abc import Iterator

PICTURES = (
    *("matplotlib", "matplotlib.axes", "matplotlib.figure", "matplotlib.backends.backend_agg"),
    *("scipy.special", "ipywidgets", "anywidget", "replay.explorers.budget"),
)
"""What the first picture of an explorer needs, in parts that take some 0.1 s each."""


def prepare_pictures(part: int = 0) -> None:
    """Have the kernel import what pictures need while it waits for the next cell.

    It looks for a cell after each part, and on the thread that runs cells: one beside it could meet
    a half-made module. Without a kernel nothing happens.
    """
    if "ipykernel" in sys.modules and PICTURES[-1] not in sys.modules:
        with contextlib.suppress(RuntimeError):  # no loop runs in this thread
            asyncio.get_running_loop().call_later(0.02, _import, part)


def _import(part: int) -> None:
    with contextlib.suppress(ImportError):  # reported by the function that needs it
        importlib.import_module(PICTURES[part])
    if part + 1 < len(PICTURES):
        prepare_pictures(part + 1)


@contextlib.contextmanager
def uncollected() -> Iterator[None]:
    """Without the collector of cycles, which would go through logs and modules again and again."""
    collecting = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if collecting:
            gc.enable()
