"""Slots: the one small object that every request asks before it is sent.

All limits on an endpoint's load live here. One `Slots` may serve several clients (the arms of an
allocation, the models of a session), which together then keep to it.
"""

from __future__ import annotations

import functools
import heapq
import itertools
import math
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any

from evo.llm.rates import MINUTE, Lease, Rates

Priority = tuple[int, ...]
"""Lowest first: (generation, index), so that older generations finish first."""


class SlotCancelled(Exception):  # noqa: N818
    """The wait for a slot was given up because of `Slots.cancel`."""


class _Door(Rates):
    """An endpoint's rates, with the requests that wait for them, a heap."""

    def __init__(self, *limits: Any, **named: Any) -> None:
        super().__init__(*limits, **named)
        self.waiting: list[_Waiter] = []


@dataclass(order=True)
class _Waiter:
    priority: Priority
    arrival: int
    owner: object = field(compare=False)
    door: _Door = field(compare=False)
    lease: Lease = field(compare=False)
    woken: threading.Event = field(compare=False, default_factory=threading.Event)
    granted: bool = field(compare=False, default=False)


@dataclass(kw_only=True)
class Load:
    """How slots were used so far, seconds."""

    slots: int
    open: float = 0.0  # while any request waited or flew
    busy: float = 0.0  # slots taken, summed over that time
    queued: float = 0.0  # waiting for a slot, summed over requests
    limited: float = 0.0  # waiting with a slot free, for a limit or the endpoint's own wish

    @property
    def utilisation(self) -> float:
        """Busy time over slots x open time, in [0, 1]; NaN before the first request."""
        return self.busy / (self.slots * self.open) if self.open else math.nan


class Slots:
    """At most `max_concurrent` requests in flight, by priority and then by arrival; thread-safe.

    No slot is idle while a request waits that the limits of its endpoint let through.

        slots = Slots(20, requests_per_minute=600)
        with slots.slot((generation, index), tokens=9000) as lease:
            ...                                   # send one request
            lease.settle(tokens_used)             # gives back what was reserved in excess

    The slots are shared by all endpoints; each endpoint has its own (sliding) minute, its own
    allowance after a 429 and its own pause, so that one that is busy does not hold up the others.

    Attributes:
        in_flight: Slots taken now.
        waiting: Requests that wait now.
    """

    def __init__(
        self,
        max_concurrent: int,
        *,
        requests_per_minute: int | None = None,
        tokens_per_minute: int | None = None,
        window: float = MINUTE,
    ) -> None:
        for name, value in (
            ("max_concurrent", max_concurrent),
            ("requests_per_minute", requests_per_minute),
            ("tokens_per_minute", tokens_per_minute),
        ):
            if value is not None and value < 1:
                raise ValueError(f"{name} must be at least 1, got {value!r}")
        self.max_concurrent = max_concurrent
        self._new_door = functools.partial(
            _Door,
            max_concurrent,
            requests_per_minute=requests_per_minute,
            tokens_per_minute=tokens_per_minute,
            window=window,
        )
        self._doors: dict[str, _Door] = {}
        self._lock = threading.Lock()
        self._arrivals = itertools.count()
        self.in_flight = self.waiting = 0
        self._gone: set[object] = set()  # owners who cancelled; None: all
        self._alarm: threading.Timer | None = None
        self._now = time.monotonic()  # as of the last change
        self._load = Load(slots=max_concurrent)

    @property
    def load(self) -> Load:
        """How the slots were used until now."""
        with self._lock:
            self._measure()
            return replace(self._load)

    @contextmanager
    def slot(
        self, priority: Priority = (), *, owner: object = None, endpoint: str = "", tokens: int = 0
    ) -> Iterator[Lease]:
        """Waits for a slot and holds it for the length of the `with` block.

        Args:
            priority: Lowest first.
            owner: Whom `cancel` can name; hashable.
            endpoint: Whose limits hold.
            tokens: Of prompt and reply, estimated from above; the lease is told the real ones.
        """
        with self._lock:
            door = self._doors.get(endpoint) or self._doors.setdefault(endpoint, self._new_door())
        waiter = _Waiter(priority, next(self._arrivals), owner, door, Lease(tokens))
        try:  # a KeyboardInterrupt must not leak the slot, either
            self._take(waiter)
            yield waiter.lease
        finally:
            self._give_back(waiter)

    def cancel(self, owner: object = None) -> None:
        """Makes all waiters of `owner` (None: all), now and later, raise `SlotCancelled`."""
        with self._lock:
            self._gone.add(owner)
            self._measure()
            for door in self._doors.values():
                for waiter in [w for w in door.waiting if owner in (None, w.owner)]:
                    waiter.woken.set()
                    door.waiting.remove(waiter)
                heapq.heapify(door.waiting)
            self._grant()

    def _take(self, waiter: _Waiter) -> None:
        with self._lock:
            if self._gone & {None, waiter.owner}:
                waiter.woken.set()
            else:
                self._measure()
                heapq.heappush(waiter.door.waiting, waiter)
                self._grant()
        if not waiter.granted:
            waiter.woken.wait()
        if not waiter.granted:
            raise SlotCancelled("the wait for a slot was cancelled")

    def _give_back(self, waiter: _Waiter) -> None:
        """Ends a slot, or the wait for it."""
        door = waiter.door
        with self._lock:
            self._measure()
            if waiter.granted:
                self.in_flight -= 1
                door.release(waiter.lease, now=self._now)
            elif waiter in door.waiting:
                door.waiting.remove(waiter)
                heapq.heapify(door.waiting)
            self._grant()

    def _grant(self) -> None:
        """Hands free slots to those who wait and may pass; the lock is held."""
        now, opening = self._now, math.inf
        while self.in_flight < self.max_concurrent:
            doors = [door for door in self._doors.values() if door.waiting]
            waits = [door.wait(door.waiting[0].lease.tokens, now=now) for door in doors]
            ready = [door for door, wait in zip(doors, waits, strict=True) if wait <= 0]
            if not ready:
                opening = min(waits, default=math.inf)
                break
            door = min(ready, key=lambda each: each.waiting[0])
            waiter = heapq.heappop(door.waiting)
            door.admit(waiter.lease, now=now)
            self.in_flight += 1
            waiter.granted = True
            waiter.woken.set()
        self.waiting = sum(len(door.waiting) for door in self._doors.values())
        if self._alarm is not None:
            self._alarm.cancel()
            self._alarm = None
        if self.in_flight < self.max_concurrent and opening < math.inf:
            self._alarm = threading.Timer(opening, self._ring)
            self._alarm.daemon = True
            self._alarm.start()

    def _ring(self) -> None:
        """Lets those through whom a limit held up."""
        with self._lock:
            self._measure()
            self._grant()

    def _measure(self) -> None:
        """Adds up the load since the last change; the lock is held."""
        before, self._now, load = self._now, time.monotonic(), self._load
        seconds = self._now - before
        if self.waiting or self.in_flight:
            load.open += seconds
            load.busy += self.in_flight * seconds
            load.queued += self.waiting * seconds
            if self.waiting and self.in_flight < self.max_concurrent:
                load.limited += seconds
