"""Slots: the one small object that every request asks before it is sent.

All limits on an endpoint's load live here. One `Slots` may serve several clients (the arms of an
allocation, say), which together then keep to it.
"""

from __future__ import annotations

import heapq
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

Priority = tuple[int, ...]
"""Lowest first: (generation, index), so that older generations finish first."""


class SlotCancelled(Exception):  # noqa: N818
    """The wait for a slot was given up because of `Slots.cancel` or `Slots.close`."""


@dataclass(order=True)
class _Waiter:
    priority: Priority
    arrival: int
    owner: object = field(compare=False)
    woken: threading.Event = field(compare=False, default_factory=threading.Event)
    granted: bool = field(compare=False, default=False)


class Slots:
    """At most `max_concurrent` requests in flight, by priority and then by arrival.

    No slot is idle while a request waits. Thread-safe.

        slots = Slots(20)
        with slots.slot((generation, index)):
            ...                                   # send one request

    Attributes:
        max_concurrent: Slots in all, at least 1.
    """

    def __init__(self, max_concurrent: int) -> None:
        if max_concurrent < 1:
            raise ValueError(f"max_concurrent must be at least 1, got {max_concurrent!r}")
        self.max_concurrent = max_concurrent
        self._lock = threading.Lock()
        self._waiting: list[_Waiter] = []
        self._in_flight = 0
        self._arrivals = 0
        self._waited = 0.0
        self._closed = False

    @property
    def in_flight(self) -> int:
        """Slots taken now."""
        return self._in_flight

    @property
    def waited_seconds(self) -> float:
        """Time that requests have spent waiting for a slot, summed over requests."""
        return self._waited

    @contextmanager
    def slot(self, priority: Priority = (), *, owner: object = None) -> Iterator[None]:
        """Waits for a slot and holds it for the length of the `with` block.

        Args:
            priority: Lowest first.
            owner: Whom `cancel` can name.

        Raises:
            SlotCancelled: The wait was given up.
        """
        self._take(priority, owner)
        try:
            yield
        finally:
            with self._lock:
                self._in_flight -= 1
                self._grant()

    def cancel(self, owner: object) -> None:
        """Makes every waiter of `owner` raise `SlotCancelled`; slots in use are left alone."""
        with self._lock:
            given_up = [waiter for waiter in self._waiting if waiter.owner is owner]
            self._waiting = [waiter for waiter in self._waiting if waiter.owner is not owner]
            heapq.heapify(self._waiting)
        for waiter in given_up:
            waiter.woken.set()

    def close(self) -> None:
        """Makes every waiter, now and later, raise `SlotCancelled`."""
        with self._lock:
            self._closed = True
            given_up, self._waiting = self._waiting, []
        for waiter in given_up:
            waiter.woken.set()

    def _take(self, priority: Priority, owner: object) -> None:
        with self._lock:
            if self._closed:
                raise SlotCancelled("these slots are closed")
            if self._in_flight < self.max_concurrent:
                self._in_flight += 1
                return
            waiter = _Waiter(priority, self._arrivals, owner)
            self._arrivals += 1
            heapq.heappush(self._waiting, waiter)
        started = time.monotonic()
        try:
            waiter.woken.wait()
        except BaseException:  # a KeyboardInterrupt must not leak the slot
            self._withdraw(waiter)
            raise
        with self._lock:
            self._waited += time.monotonic() - started
        if not waiter.granted:
            raise SlotCancelled("the wait for a slot was cancelled")

    def _withdraw(self, waiter: _Waiter) -> None:
        with self._lock:
            if waiter.granted:
                self._in_flight -= 1
                self._grant()
            elif waiter in self._waiting:
                self._waiting.remove(waiter)
                heapq.heapify(self._waiting)

    def _grant(self) -> None:
        """Hands free slots to those who wait; the lock is held."""
        while self._waiting and self._in_flight < self.max_concurrent:
            waiter = heapq.heappop(self._waiting)
            self._in_flight += 1
            waiter.granted = True
            waiter.woken.set()
