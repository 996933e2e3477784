"""What one endpoint bears: requests and tokens per minute, and how many requests at once.

Nothing here waits or reads a clock: `now` is an argument, in seconds on a clock that never goes
back, so that a test can play an hour in a moment.
"""

from __future__ import annotations

import math
from collections import deque
from dataclasses import dataclass

MINUTE = 60.0
DECREASE = 0.7  # factor of RFC 9438, gentler than a half: not every 429 means too many at once


@dataclass(eq=False)
class Lease:
    """One request that was let through, and what of the limits it holds."""

    tokens: int  # of prompt and reply: an estimate from above, in the end what it was
    granted: float = math.inf
    ended: float = math.inf
    used: int | None = None  # what `settle` was told, as are the next three
    answered: bool = False
    turned_away: bool = False  # the endpoint said that it was one request too many
    pause: float = 0.0  # seconds that the endpoint asks to wait

    def settle(
        self,
        tokens: int | None,
        *,
        answered: bool = True,
        turned_away: bool = False,
        pause: float = 0.0,
    ) -> None:
        """Says what became of the request; tokens unknown: the estimate stands."""
        self.used, self.answered, self.turned_away = tokens, answered, turned_away
        self.pause = pause


class Rates:
    """Lets requests through to one endpoint, within its limits.

    A request counts from the moment it is let through until a minute after its end, whenever the
    endpoint saw it in between, so that no sliding minute on the endpoint's clock holds more than
    allowed. Tokens are an estimate from above until the answer says how many they were; a request
    larger than the limit passes alone.

    If the endpoint turns a request away (429), the number in flight falls by the factor
    `DECREASE`, once per round trip: requests that were under way at the last fall do not count
    again. Every answer then raises it by a share, one per round trip, up to `max_concurrent`.
    """

    def __init__(
        self,
        max_concurrent: int,
        *,
        requests_per_minute: int | None = None,
        tokens_per_minute: int | None = None,
        window: float = MINUTE,
    ) -> None:
        self._most = max_concurrent
        self._requests = math.inf if requests_per_minute is None else requests_per_minute
        self._tokens = math.inf if tokens_per_minute is None else tokens_per_minute
        self._window = window
        self._over: deque[Lease] = deque()  # requests that ended within a minute, by their end
        self._used = 0  # tokens, those of requests in flight included
        self._in_flight = 0
        self._fell = -math.inf
        self._paused_until = -math.inf
        self.allowance = float(max_concurrent)

    def wait(self, tokens: int, *, now: float) -> float:
        """Returns the seconds until so many tokens may pass; infinite: once another ends."""
        if self._in_flight >= int(self.allowance):
            return math.inf
        return max(0.0, self._paused_until - now, self._wait_for_window(tokens, now))

    def _wait_for_window(self, tokens: int, now: float) -> float:
        while self._over and self._over[0].ended + self._window <= now:
            self._used -= self._over.popleft().tokens
        count, used, opening = self._in_flight + len(self._over), self._used, now
        for lease in (*self._over, None):
            if not count or (count < self._requests and used + tokens <= self._tokens):
                return opening - now
            if lease is not None:
                opening = lease.ended + self._window
                count, used = count - 1, used - lease.tokens
        return math.inf

    def admit(self, lease: Lease, *, now: float) -> None:
        """Counts a request that is let through."""
        lease.granted = now
        self._in_flight += 1
        self._used += lease.tokens

    def release(self, lease: Lease, *, now: float) -> None:
        """Takes note of a request's end, and of what the endpoint said."""
        self._in_flight -= 1
        lease.ended = now
        if lease.used is not None:
            self._used += lease.used - lease.tokens
            lease.tokens = lease.used
        if self._requests != math.inf or self._tokens != math.inf:
            self._over.append(lease)
        self._paused_until = max(self._paused_until, now + lease.pause)
        if lease.turned_away and lease.granted > self._fell:
            self.allowance = max(1.0, self.allowance * DECREASE)
            self._fell = now
        elif lease.answered:
            self.allowance = min(float(self._most), self.allowance + 1 / self.allowance)

    def count(self, tokens: int, *, now: float) -> None:
        """Counts a request that is over already."""
        lease = Lease(tokens)
        self.admit(lease, now=now)
        self.release(lease, now=now)
