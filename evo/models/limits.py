"""The limits on an endpoint's load: slots, requests and tokens a minute, and how to react to a 429.

One `Slots`, asked before every request, may serve several clients, which together then keep to it.
`Rates` neither waits nor reads a clock: `now` is an argument, seconds that never go back.
"""

from __future__ import annotations

import bisect
import itertools
import math
import threading
import time
from collections import defaultdict, deque
from collections.abc import Iterator
from concurrent.futures import Future
from contextlib import contextmanager
from dataclasses import dataclass, field, replace

MINUTE = 60.0
DECREASE = 0.7  # factor of RFC 9438, gentler than a half: not every 429 means too many at once

Priority = tuple[int, ...]
"""Lowest first: (generation, index), so that older generations finish first."""


@dataclass(eq=False)
class Lease:
    """One request, and what of the limits it holds once it is let through."""

    tokens: int  # of prompt and reply: an estimate from above, in the end what it was
    granted: float = math.inf
    used: int | None = None  # set by `settle`, as are the next three
    answered: bool = False
    turned_away: bool = False  # the endpoint refused it as one request too many
    pause: float = 0.0  # seconds that the endpoint asks to wait
    until: Future[None] | None = (
        None  # what holds the slot beyond the `with` block until it is done
    )

    def settle(
        self,
        tokens: int | None,
        *,
        answered: bool = True,
        turned_away: bool = False,
        pause: float = 0.0,
    ) -> None:
        """Says what became of the request; tokens unknown: the estimate stands."""
        self.used, self.answered = tokens, answered
        self.turned_away, self.pause = turned_away, pause


class Rates:
    """Lets requests through to one endpoint, within its limits.

    A request counts from the moment it is let through until a minute after its end, whenever the
    endpoint saw it, so that no sliding minute on its clock holds more than allowed. Tokens are an
    estimate from above until the answer reports it; a request larger than the limit passes alone.

    A 429 lowers the number in flight by the factor `DECREASE`, once per round trip: requests under
    way at the last fall do not count again. Answers raise it by one per round trip, up to the most.
    """

    def __init__(
        self, most: int, *, rpm: int | None = None, tpm: int | None = None, window: float = MINUTE
    ) -> None:
        self._most, self._window = most, window
        self._requests = math.inf if rpm is None else rpm
        self._tokens = math.inf if tpm is None else tpm
        self._over: deque[tuple[float, int]] = deque()  # within a minute: when it ended, tokens
        self._used = 0  # tokens, those of requests in flight included
        self._in_flight = 0
        self._fell = -math.inf
        self._paused_until = -math.inf
        self.allowance = float(most)

    def wait(self, tokens: int, *, now: float) -> float:
        """Returns the seconds until so many tokens may pass; infinite: once another ends."""
        if self._in_flight >= int(self.allowance):
            return math.inf
        while self._over and self._over[0][0] + self._window <= now:
            self._used -= self._over.popleft()[1]
        count, used, opening = self._in_flight + len(self._over), self._used, now
        over = iter(self._over)
        while count and (count >= self._requests or used + tokens > self._tokens):
            if (first := next(over, None)) is None:
                return math.inf
            opening = first[0] + self._window
            count, used = count - 1, used - first[1]
        return max(0.0, self._paused_until - now, opening - now)

    def admit(self, lease: Lease, *, now: float) -> None:
        """Counts a request that is let through."""
        lease.granted = now
        self._in_flight += 1
        self._used += lease.tokens

    def release(self, lease: Lease, *, now: float) -> None:
        """Records a request's end and the endpoint's answer."""
        self._in_flight -= 1
        if lease.used is not None:
            self._used += lease.used - lease.tokens
            lease.tokens = lease.used
        if self._requests != math.inf or self._tokens != math.inf:
            self._over.append((now, lease.tokens))
        self._paused_until = max(self._paused_until, now + lease.pause)
        if lease.turned_away and lease.granted > self._fell:
            self.allowance = max(1.0, self.allowance * DECREASE)
            self._fell = now
        elif lease.answered:
            self.allowance = min(float(self._most), self.allowance + 1 / self.allowance)


class SlotCancelled(Exception):  # noqa: N818
    """The wait for a slot was given up because of `Slots.cancel`."""


@dataclass(eq=False, kw_only=True)
class _Waiter(Lease):
    turn: tuple[Priority, int]  # the lowest first: priority and arrival
    owner: object
    rates: Rates
    woken: threading.Event = field(default_factory=threading.Event)


@dataclass(kw_only=True)
class Load:
    """Use of the slots so far, in seconds."""

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

    The slots are shared by all endpoints; each endpoint has its own `Rates`, so that one that is
    busy does not hold up the others. `in_flight` slots are taken now.
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
        rpm, tpm = requests_per_minute, tokens_per_minute
        self._rates = defaultdict[str, Rates](
            lambda: Rates(max_concurrent, rpm=rpm, tpm=tpm, window=window)
        )
        self._waiting: list[_Waiter] = []  # by their turn
        self._lock = threading.Lock()
        self._arrivals = itertools.count()
        self.in_flight = 0
        self._gone: set[object] = set()  # owners who cancelled; None: all
        self._held = False
        self._alarm: threading.Timer | None = None
        self._now = time.monotonic()  # as of the last change
        self._load = Load(slots=max_concurrent)

    @property
    def waiting(self) -> int:
        """Requests that wait now."""
        return len(self._waiting)

    @property
    def load(self) -> Load:
        """Returns the use of the slots until now."""
        with self._lock:
            self._measure()
            return replace(self._load)

    @contextmanager
    def slot(
        self, priority: Priority = (), *, owner: object = None, endpoint: str = "", tokens: int = 0
    ) -> Iterator[Lease]:
        """Waits for a slot and holds it for the length of the `with` block, lowest priority first.

        `cancel` can name the owner; the endpoint's limits hold; tokens are estimated from above. A
        request that outlasts the block, since nobody can end it, holds its slot `until` it is done.
        """
        with self._lock:
            turn, rates = (priority, next(self._arrivals)), self._rates[endpoint]
            waiter = _Waiter(tokens=tokens, turn=turn, owner=owner, rates=rates)
        try:  # a KeyboardInterrupt must not leak the slot, either
            with self._lock:
                if self._gone & {None, owner}:
                    waiter.woken.set()
                else:
                    self._measure()
                    bisect.insort(self._waiting, waiter, key=lambda each: each.turn)
                    self._grant()
            if waiter.granted == math.inf:
                waiter.woken.wait()
            if waiter.granted == math.inf:
                raise SlotCancelled("the wait for a slot was cancelled")
            yield waiter
        finally:
            if waiter.until is None:
                self._give_back(waiter)
            else:  # at once if that is done
                waiter.until.add_done_callback(lambda _: self._give_back(waiter))

    def _give_back(self, waiter: _Waiter) -> None:
        """Frees a slot, or takes one who waits for it out of the queue."""
        with self._lock:
            self._measure()
            if waiter.granted < math.inf:
                self.in_flight -= 1
                waiter.rates.release(waiter, now=self._now)
            elif waiter in self._waiting:
                self._waiting.remove(waiter)
            self._grant()

    def cancel(self, owner: object = None) -> None:
        """Makes all waiters of `owner` (None: all), now and later, raise `SlotCancelled`."""
        with self._lock:
            self._gone.add(owner)
            self._measure()
            for waiter in [w for w in self._waiting if owner in (None, w.owner)]:
                waiter.woken.set()
                self._waiting.remove(waiter)
            self._grant()

    def hold(self, held: bool) -> None:
        """Keeps free slots from all who wait, now and later, or hands them out again."""
        with self._lock:
            self._held = held
            self._measure()
            self._grant()

    def _grant(self) -> None:
        """Hands free slots to those who wait and may pass; the lock is held."""
        shut: dict[Rates, float] = {}  # and the seconds until they may open
        for waiter in [] if self._held else self._waiting.copy():
            if self.in_flight == self.max_concurrent:
                break
            if waiter.rates in shut:
                continue
            if wait := waiter.rates.wait(waiter.tokens, now=self._now):
                shut[waiter.rates] = wait
                continue
            waiter.rates.admit(waiter, now=self._now)
            self._waiting.remove(waiter)
            self.in_flight += 1
            waiter.woken.set()
        if self._alarm is not None:
            self._alarm.cancel()
            self._alarm = None
        opening = min(shut.values(), default=math.inf)
        if opening < math.inf and self.in_flight < self.max_concurrent:
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
        if self._waiting or self.in_flight:
            load.open += seconds
            load.busy += self.in_flight * seconds
            load.queued += len(self._waiting) * seconds
            if self._waiting and self.in_flight < self.max_concurrent:
                load.limited += seconds
