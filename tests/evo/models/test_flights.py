"""Requests under way: each ends with its answer, its deadline or a cancellation."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Iterator
from concurrent.futures import CancelledError

import pytest

from evo.models.answer import AnsweredLate, Exchange
from evo.models.blocking import Blocking
from evo.models.flights import Flights
from evo.models.limits import Lease

FOUND = Exchange(200, {}, b"found")
LONG, SHORT = 60.0, 0.05


def lease() -> Lease:
    return Lease(tokens=1)


def now() -> float:
    return time.monotonic()


async def later(seconds: float = 0.0) -> Exchange:
    await asyncio.sleep(seconds)
    return FOUND


@pytest.fixture
def open_gate() -> Iterator[threading.Event]:
    """What a blocking request waits for; it is let go at the end."""
    event = threading.Event()
    yield event
    event.set()


def waiting(gate: threading.Event, grace: float = 0.0) -> Blocking:
    def send() -> Exchange:
        gate.wait(LONG)
        return FOUND

    return Blocking(send, "the function", grace)


def test_an_answer_is_the_same_however_it_comes() -> None:
    flights = Flights(LONG)
    ways = (FOUND, later(), Blocking(lambda: FOUND, "it"), Blocking(later, "it"))
    assert [flights.answer(sent, now(), lease()) for sent in ways] == [FOUND] * 4
    flights.close()


@pytest.mark.parametrize("seconds", [SHORT, LONG])
def test_what_was_answered_at_once_may_still_have_come_too_late(seconds: float) -> None:
    began = now() - 1.0
    if seconds == LONG:
        assert Flights(seconds).answer(FOUND, began, lease()) == FOUND
        return
    with pytest.raises(AnsweredLate, match=r"the answer came after 1\.0 s, the limit is 0\.05 s"):
        Flights(seconds).answer(FOUND, began, lease())


def test_what_is_awaited_ends_at_the_deadline() -> None:
    with pytest.raises(TimeoutError):
        Flights(SHORT).answer(later(LONG), now(), lease())


def test_what_blocks_is_given_up_at_the_deadline_and_holds_its_slot(
    open_gate: threading.Event,
) -> None:
    held = lease()
    late = r"no answer within 0\.05 s; the function goes on by itself"
    with pytest.raises(AnsweredLate, match=late):
        Flights(SHORT).answer(waiting(open_gate), now(), held)
    assert held.until is not None
    assert not held.until.done()
    open_gate.set()
    held.until.result(LONG)


def test_a_request_that_ends_by_itself_has_its_grace() -> None:
    flights = Flights(SHORT)
    slow = Blocking(lambda: time.sleep(3 * SHORT) or FOUND, "it", grace=LONG)
    assert flights.answer(slow, now(), lease()) == FOUND


def test_a_timeout_of_the_function_is_its_own_error() -> None:
    def fail() -> Exchange:
        raise TimeoutError("mine")

    with pytest.raises(TimeoutError, match=r"^mine$"):
        Flights(LONG, "f").answer(Blocking(fail, "it"), now(), lease())


def test_a_function_that_does_not_return_is_warned_of_once_by_its_name(
    open_gate: threading.Event, recwarn: pytest.WarningsRecorder
) -> None:
    for name in ("f", ""):
        flights = Flights(SHORT, name)
        for _ in range(2):
            with pytest.raises(AnsweredLate):
                flights.answer(waiting(open_gate), now(), lease())
    (said,) = [str(each.message) for each in recwarn]
    assert "the function of the model 'f' did not return within 0.05 s" in said


@pytest.mark.parametrize("blocks", [False, True])
def test_a_cancellation_ends_what_is_under_way_and_all_that_comes_later(
    blocks: bool, open_gate: threading.Event
) -> None:
    flights = Flights(LONG)
    timer = threading.Timer(SHORT, flights.cancel)
    timer.start()
    words = "the function goes on by itself" if blocks else None
    for _ in range(2):
        with pytest.raises(CancelledError, match=words):
            flights.answer(waiting(open_gate) if blocks else later(LONG), now(), lease())
    timer.join()
