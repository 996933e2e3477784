"""The one event loop, on a thread of its own: all calls to endpoints and all servers share it.

Other threads hand it coroutines and wait for them. It starts with the first one, and it ends with
the process.
"""

from __future__ import annotations

import asyncio
import os
import threading
from collections.abc import Coroutine
from concurrent.futures import Future
from typing import Any, TypeVar

T = TypeVar("T")


class _Background:
    def __init__(self) -> None:
        self.loop: asyncio.AbstractEventLoop | None = None
        self.lock = threading.Lock()


_background = _Background()


def event_loop() -> asyncio.AbstractEventLoop:
    """Returns the loop, which runs."""
    with _background.lock:
        if _background.loop is None:
            _background.loop = loop = asyncio.new_event_loop()
            threading.Thread(target=loop.run_forever, name="evo-event-loop", daemon=True).start()
        return _background.loop


def start(work: Coroutine[Any, Any, T]) -> Future[T]:
    """Begins a coroutine on the loop; cancelling what is returned cancels it there."""
    return asyncio.run_coroutine_threadsafe(work, event_loop())


def wait(work: Coroutine[Any, Any, T]) -> T:
    """Returns what a coroutine returns once it has run on the loop; it ends with the waiting.

    Not to be called on the loop itself, which would wait for itself.
    """
    future = start(work)
    try:
        return future.result()
    except BaseException:  # such as a KeyboardInterrupt while waiting
        future.cancel()
        raise


def _forget() -> None:
    """In a forked process there is no thread any more."""
    _background.__init__()  # type: ignore[misc]


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget)
