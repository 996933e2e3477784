"""The lock of the process that writes a file."""

from __future__ import annotations

import fcntl
import time
from contextlib import suppress
from pathlib import Path


def is_written(path: Path) -> bool:
    """Whether a process holds the lock by which it writes a file."""
    with suppress(OSError), path.open("rb") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except BlockingIOError:
            return True
    return False


def lock(descriptor: int, *, wait: bool) -> bool:
    """Locks a file for its writer; `is_written` may hold it for a moment, which is waited for."""
    for pause in (0.0, 0.001, 0.01, 0.05):
        time.sleep(pause)
        with suppress(OSError):
            fcntl.flock(descriptor, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
            return True
    return False


def lock_new(descriptor: int) -> None:
    """Locks a file that nobody else knows; raises OSError where its folder has no locks."""
    fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
