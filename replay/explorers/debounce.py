"""When no control of an explorer has moved for a moment, its view is shown in full."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from contextlib import AbstractContextManager

from replay.explorers.background import POLL, exiting, start_thread

REST = 0.3
"""Seconds without a change after which a view is drawn in full."""


class Debounce:
    """Works on a thread once nothing has moved for a while; `soon` and `cancel` are called locked.

    Args:
        lock: The explorer's.
        work: Receives a function that returns whether nothing has moved since.
    """

    def __init__(
        self, lock: AbstractContextManager[object], work: Callable[[Callable[[], bool]], None]
    ) -> None:
        self._lock, self._work = lock, work
        self._moves = 0
        self._due: float | None = None
        self.thread: threading.Thread | None = None

    def soon(self) -> None:
        """Something moved: work once nothing has for a while."""
        self._moves += 1
        self._due = time.monotonic() + REST
        if self.thread is None:
            self.thread = start_thread(self._run)

    def cancel(self) -> None:
        """No work, and no more of that which has begun."""
        self._moves += 1
        self._due = None

    def _run(self) -> None:
        while True:
            with self._lock:
                if self._due is None or exiting():
                    self.thread = None
                    return
                moves, left = self._moves, self._due - time.monotonic()
                if left <= 0:
                    self._due = None
            if left > 0:
                time.sleep(min(left, POLL))
            else:
                self._work(lambda moves=moves: moves == self._moves and not exiting())  # type: ignore[misc]
