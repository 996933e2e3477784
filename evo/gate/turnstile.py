"""The turnstile of a gate: requests wait there until they are granted, in the order of arrival."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable

MOST_WAITING = 64
"""Requests of one client that may wait at once; one more is taken for a flood."""


class Turnstile:
    """Lets as many requests through as were granted; the others wait; thread-safe.

        turnstile = Turnstile()
        turnstile.grant(8)
        if turnstile.enter():
            ...                               # forward the request

    Args:
        most: Number of requests that may wait at once.
        on_change: Called without a lock after a request arrived, passed or left.

    Attributes:
        passed: Number of requests that were let through.
        flooded: Whether more requests than `most` wanted to wait. It then lets nothing through.
    """

    def __init__(
        self, most: int = MOST_WAITING, on_change: Callable[[], None] = lambda: None
    ) -> None:
        self.passed, self.flooded = 0, False
        self._most, self._on_change = most, on_change
        self._granted = 0
        self._closed = False
        self._queue: deque[object] = deque()
        self._changed = threading.Condition()

    @property
    def waiting(self) -> int:
        """Number of requests that wait now."""
        with self._changed:
            return max(0, len(self._queue) - self._open)

    @property
    def granted(self) -> int:
        """Number of requests that may still pass."""
        with self._changed:
            return self._open

    @property
    def _open(self) -> int:
        """Number of requests that pass without waiting; the lock is held."""
        return 0 if self._closed else self._granted - self.passed

    def grant(self, requests: int) -> None:
        """Allows this many further requests."""
        with self._changed:
            self._granted += requests
            self._changed.notify_all()

    def revoke(self) -> None:
        """Takes back what was granted and not used."""
        with self._changed:
            self._granted = self.passed

    def close(self) -> None:
        """Turns away everyone who waits, now and later."""
        with self._changed:
            self._closed = True
            self._changed.notify_all()

    def enter(self, has_left: Callable[[], bool] = lambda: False, look: float = 0.5) -> bool:
        """Waits for a grant and uses it up.

        Args:
            has_left: Returns whether the client has gone, in which case no grant is used.
            look: Seconds between two calls of `has_left`.

        Returns:
            Whether the request may pass; it may not if the turnstile is closed or flooded, or if
            the client has gone.
        """
        turn = object()
        with self._changed:
            if self._closed or len(self._queue) - self._open >= self._most:
                self.flooded |= not self._closed
                self._closed = True
                self._changed.notify_all()
                return False
            self._queue.append(turn)
        self._on_change()
        try:
            while True:
                with self._changed:
                    first = self._queue[0] is turn
                    if self._closed:
                        return False
                    if first and self._open > 0:
                        self.passed += 1
                        return True
                    self._changed.wait(look)
                if has_left():
                    return False
        finally:
            with self._changed:
                self._queue.remove(turn)
                self._changed.notify_all()
            self._on_change()

    def give_back(self) -> None:
        """Takes back a request that passed and was not forwarded: another one may pass."""
        with self._changed:
            self.passed -= 1
            self._changed.notify_all()
