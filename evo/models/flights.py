"""Requests under way, each waited for by a thread until its deadline or until all are cancelled."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Awaitable
from concurrent.futures import CancelledError, Future
from typing import Any, TypeVar

from evo.models import background
from evo.models.answer import AnsweredLate, Exchange
from evo.models.blocking import Blocking, Helpers
from evo.models.limits import Lease
from evo.warning import warn

T = TypeVar("T")


class Flights:
    """The requests of one client that are under way.

    Args:
        seconds: The deadline of each.
        name: Of the function that answers them; empty: something else does.
    """

    def __init__(self, seconds: float, name: str = "") -> None:
        self._seconds, self._name = seconds, name
        self._helpers = Helpers()
        self._flights: set[Future[Any]] = set()  # adding, discarding, copying are atomic
        self._cancelled = threading.Event()
        self._warned = False

    def answer(
        self, sent: Exchange | Awaitable[Exchange] | Blocking, began: float, lease: Lease
    ) -> Exchange:
        """Returns the answer to a request.

        Args:
            sent: What `Wire.post` returned.
            began: When that was called, by the monotonic clock.
            lease: That of the request's slot.

        Raises:
            TimeoutError: The deadline is over.
            CancelledError: `cancel` was called.
            Exception: What became of the request.
        """
        if isinstance(sent, Exchange):
            if (seconds := time.monotonic() - began) > self._seconds:
                limit = f"the limit is {self._seconds:g} s"
                raise AnsweredLate(f"the answer came after {seconds:.1f} s, {limit}")
            return sent
        found = self._helped(sent, lease) if isinstance(sent, Blocking) else sent
        return found if isinstance(found, Exchange) else self._awaited(found)

    def cancel(self) -> None:
        """Ends all requests that are under way, and later ones at once."""
        self._cancelled.set()
        for flight in self._flights.copy():
            flight.cancel()

    def close(self) -> None:
        """Ends helper threads that are idle."""
        self._helpers.close()

    def _awaited(self, exchange: Awaitable[Exchange]) -> Exchange:
        """Waits for an answer that comes on the event loop; the deadline holds for all of it."""

        async def in_time() -> Exchange:
            async with asyncio.timeout(self._seconds):
                return await exchange

        return self._result(background.start(in_time()))

    def _helped(self, request: Blocking, lease: Lease) -> Exchange | Awaitable[Exchange]:
        """Waits for an answer that a helper thread gets, and gives it up at the deadline."""
        work = self._helpers.start(request.send)
        lease.until = work.over
        goes_on = f"{request.sender} goes on by itself, and what it returns is dropped"
        try:
            return self._result(work.answer, self._seconds + request.grace)
        except CancelledError:
            raise CancelledError(goes_on) from None
        except KeyboardInterrupt as interrupt:
            raise interrupt from CancelledError(goes_on)
        except TimeoutError:
            if work.over.done():  # it is an error of its own
                raise
            self._warn_once()
            raise AnsweredLate(f"no answer within {self._seconds:g} s; {goes_on}") from None

    def _result(self, flight: Future[T], seconds: float | None = None) -> T:
        self._flights.add(flight)
        try:
            if self._cancelled.is_set():  # after the flight is known, so that none slips through
                flight.cancel()
            return flight.result(seconds)
        finally:
            self._flights.discard(flight)
            flight.cancel()  # if this thread does not wait any more; else it is over

    def _warn_once(self) -> None:
        """Says why a run may stand still: calls without an end hold their slots."""
        if self._name and not self._warned:
            self._warned = True
            warn(
                f"the function of the model {self._name!r} did not return within "
                f"{self._seconds:g} s; such a call is a timeout, goes on by itself, and holds its "
                "slot until it returns"
            )
