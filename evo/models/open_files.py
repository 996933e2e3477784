"""How many calls may be in flight at once with the files that a process may have open.

Each call holds a connection. A process whose limit is small, such as 256 on macOS or what
`ulimit -n` states, fails in the middle of a generation where more are made.
"""

from __future__ import annotations

import os
from contextlib import suppress

from evo.warning import warn

try:
    import resource
except ImportError:  # there is no such limit
    resource = None  # type: ignore[assignment]

_PER_WORKER = 4  # the channels of a sandbox, and its words
_BESIDE = 24  # the event loop, a cache, a few logs, and what the caller's process opens meanwhile
_PER_CALL = 2  # a connection, and perhaps the log of a run of its own


def fitting(max_concurrent: int, workers: int = 0) -> int:
    """Returns how many calls of those wanted fit, after raising the limit of open files if need be.

    The limit is raised for this process, as far as is needed and as its hard limit allows. If not
    all calls fit then, a UserWarning says so.

    Args:
        max_concurrent: Calls wanted in flight, at least 1.
        workers: Sandboxes that are open beside them.
    """
    if resource is None:
        return max_concurrent
    beside = _open_now() + _BESIDE + _PER_WORKER * workers
    needed = beside + _PER_CALL * max_concurrent
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft == resource.RLIM_INFINITY or needed <= soft:
        return max_concurrent
    most = needed if hard == resource.RLIM_INFINITY else min(needed, hard)
    with suppress(OSError, ValueError):  # such as macOS, beyond what its kernel has
        resource.setrlimit(resource.RLIMIT_NOFILE, (most, hard))
        soft = most
    fit = min(max_concurrent, max(1, (soft - beside) // _PER_CALL))
    if fit < max_concurrent:
        warn(
            f"{fit} calls in flight in place of {max_concurrent}: this process may open no more "
            f"than {soft} files (`ulimit -n`)",
        )
    return fit


def _open_now() -> int:
    for folder in ("/proc/self/fd", "/dev/fd"):
        with suppress(OSError):
            return len(os.listdir(folder))
    return 0
