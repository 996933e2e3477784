"""A toy task with programs for it, and a look for what evaluations leave behind."""

from __future__ import annotations

import contextlib
import os
import tempfile
import threading
import time
from collections.abc import Iterator
from pathlib import Path

from evo.logs.records import Limits, TaskRecord

SCORE = """
import numpy as np

def score(value):
    points = np.asarray(value, dtype=float)
    if points.shape != (4, 2):
        raise ValueError(f"expected shape (4, 2), got {points.shape}")
    if not np.isfinite(points).all():
        raise ValueError("not finite")
    return {"fitness": float(points.mean()), "objective": float(points.sum())}
"""
GOOD = "def construct():\n    return [[0.5, 0.5]] * 4"
NEEDS_SCIPY = f"from scipy.optimize import minimize\nminimize(abs, 1.0)\n{GOOD}"
IMPORTS_US = (
    "import sys\nfor name in [n for n in sys.modules if n.startswith('replay')]:\n"
    f"    del sys.modules[name]\nimport replay\n{GOOD}"
)
NO_IMPORT = "named 'replay'\nthe package 'replay' cannot be imported inside the sandbox"
LIMITS = Limits(seconds=30.0, memory_mb=1024, processes=64, files_mb=16)
HURRY = Limits(seconds=1.0, memory_mb=1024, processes=64, files_mb=16)  # for what never ends


def make_task(evaluator: str = SCORE, **changes: object) -> TaskRecord:
    """A toy task whose program returns four points; its hash is that of the evaluator."""
    fields: dict[str, object] = {
        "name": "toy",
        "hash": f"{evaluator}{changes!r}",
        "files": {"evaluator.py": evaluator, "initial_program.py": ""},
        "program_file": "initial_program.py",
        "evaluator_file": "evaluator.py",
        "statement": "",
        "entry": ("construct", "build"),
        **changes,
    }
    return TaskRecord(**fields)  # type: ignore[arg-type]


class Remnants:
    """Whatever an evaluation may leave behind on this machine.

    Every process that the sandbox forks has the token in its command line, wherever it went;
    programs of the tests put it into the command line of what they execute.
    """

    def __init__(self, token: str) -> None:
        self.token = token

    def count(self) -> dict[str, int]:
        """Processes, threads, descriptors and temporary folders that there are now."""
        return {
            "processes": sum(self._is_ours(name) for name in os.listdir("/proc")),
            "threads": threading.active_count(),
            "descriptors": len(os.listdir("/proc/self/fd")),
            "folders": sum(1 for _ in self._folders()),
        }

    def settled(self, before: dict[str, int], seconds: float = 60.0) -> dict[str, int]:
        """What there is, as soon as it is what there was: others evaluate on this machine, too."""
        deadline = time.monotonic() + seconds
        while True:
            now = self.count()
            for name in ("folders", "threads", "descriptors"):  # fewer: those of others
                now[name] = max(now[name], before[name])
            if now == before or time.monotonic() > deadline:
                return now
            time.sleep(0.05)

    def _is_ours(self, name: str) -> bool:
        try:
            return self.token.encode() in Path(f"/proc/{int(name)}/cmdline").read_bytes()
        except (OSError, ValueError):
            return False

    def _folders(self) -> Iterator[Path]:
        for base in Path(tempfile.gettempdir()).glob("evo-sandbox-*"):
            with contextlib.suppress(FileNotFoundError):  # of another process, and just gone
                if base.stat().st_uid == os.geteuid() and os.access(base, os.R_OK):
                    yield from base.glob("*/program.py")
