"""The turnstile of a gate: requests wait there until they are granted, in the order of arrival."""

from __future__ import annotations

import asyncio
import threading
from collections import deque
from collections.abc import Callable

MOST_WAITING = 64
"""Requests of one client that may wait at once; one more is taken for a flood."""


class _Turn:
    """One request that waits, on the event loop."""

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._called = asyncio.Event()
        self.passes: bool | None = None  # None: not yet known

    def call(self, passes: bool) -> None:
        self.passes = passes
        self._loop.call_soon_threadsafe(self._called.set)

    async def wait(self) -> None:
        await self._called.wait()


class Turnstile:
    """Lets as many requests through as were granted; the others wait.

        turnstile = Turnstile()
        turnstile.grant(8)
        if await turnstile.enter():
            ...                               # forward the request

    Requests enter on an event loop; all else may be done on any thread.

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
        self._queue: deque[_Turn] = deque()
        self._lock = threading.Lock()

    @property
    def waiting(self) -> int:
        """Number of requests that wait now."""
        return len(self._queue)

    @property
    def granted(self) -> int:
        """Number of requests that may still pass."""
        with self._lock:
            return 0 if self._closed else self._granted - self.passed

    def grant(self, requests: int) -> None:
        """Allows this many further requests."""
        with self._lock:
            self._granted += requests
            self._call()

    def revoke(self) -> None:
        """Takes back what was granted and not used."""
        with self._lock:
            self._granted = self.passed

    def close(self) -> None:
        """Turns away everyone who waits, now and later."""
        with self._lock:
            self._closed = True
            self._call()

    async def enter(self) -> bool:
        """Waits for a grant and uses it up; who is cancelled while waiting uses none.

        Returns:
            Whether the request may pass; it may not if the turnstile is closed or flooded.
        """
        turn = _Turn()
        with self._lock:
            if len(self._queue) >= self._most and not self._closed:
                self.flooded = self._closed = True
            self._queue.append(turn)
            self._call()
        self._on_change()
        try:
            await turn.wait()
            return bool(turn.passes)
        except asyncio.CancelledError:
            with self._lock:
                if turn.passes is None:
                    self._queue.remove(turn)
                elif turn.passes:
                    self.passed -= 1
                    self._call()
            raise
        finally:
            self._on_change()

    def give_back(self) -> None:
        """Takes back a request that passed and was not forwarded: another one may pass."""
        with self._lock:
            self.passed -= 1
            self._call()

    def _call(self) -> None:
        """Tells those whose turn it is; the lock is held."""
        while self._queue and (self._closed or self.passed < self._granted):
            self.passed += not self._closed
            self._queue.popleft().call(not self._closed)
