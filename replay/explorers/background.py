"""Threads of explorers, which end before the interpreter closes what they write to.

A kernel closes its sockets when the interpreter exits: a thread that shows a picture after that
moment fails with a traceback in the kernel's log. These threads are therefore not daemons, so that
Python waits for them first, and they end by themselves once the interpreter exits.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

POLL = 0.1
"""Seconds between checks whether the interpreter exits."""


def start_thread(work: Callable[[], None]) -> threading.Thread:
    """Starts a thread; `work` must return soon after `exiting()` is true."""
    thread = threading.Thread(target=work, name=work.__qualname__)
    thread.start()
    return thread


def exiting() -> bool:
    """Whether the interpreter waits for its threads to end."""
    return not threading.main_thread().is_alive()


def wait(ended: threading.Event, seconds: float) -> bool:
    """Waits in a thread of `start_thread`, until it must end or the time is up.

    Args:
        ended: Set when the thread has nothing left to do.
        seconds: The time to wait at most.

    Returns:
        Whether the thread must end.
    """
    deadline = time.monotonic() + seconds
    while (left := deadline - time.monotonic()) > 0 and not exiting():
        if ended.wait(min(left, POLL)):
            return True
    return exiting() or ended.is_set()
