"""Slots: never too many, never one idle, by priority and then by arrival."""

import threading
import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from evo.llm.limits import SlotCancelled, Slots


def queue_up(slots: Slots, priorities: list[tuple[int, ...]]) -> list[int]:
    """Lets requests arrive in order while the only slot is taken; returns the order they got it."""
    order: list[int] = []

    def work(number: int) -> None:
        with slots.slot(priorities[number]):
            order.append(number)

    threads = [threading.Thread(target=work, args=(k,)) for k in range(len(priorities))]
    with slots.slot():
        for waiting, thread in enumerate(threads, start=1):
            thread.start()
            while slots.waiting < waiting:
                time.sleep(0.0005)
    for thread in threads:
        thread.join()
    return order


@settings(max_examples=25, deadline=None)
@given(st.lists(st.tuples(st.integers(1, 4), st.integers(0, 3)), max_size=12))
def test_the_lowest_priority_goes_first_and_equal_ones_by_arrival(priorities):
    slots = Slots(1)
    expected = sorted(range(len(priorities)), key=lambda k: priorities[k])  # sorted is stable
    assert queue_up(slots, priorities) == expected
    assert slots.in_flight == 0


def test_as_many_as_allowed_are_in_flight_and_never_more():
    slots, most, lock = Slots(5), [0], threading.Lock()

    def work(number: int) -> None:
        for step in range(20):
            with slots.slot((step, number)):
                with lock:
                    most[0] = max(most[0], slots.in_flight)
                time.sleep(0.0005)

    threads = [threading.Thread(target=work, args=(k,)) for k in range(20)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert most[0] == 5
    assert slots.in_flight == 0
    assert slots.load.queued > 0


def test_a_failure_inside_gives_the_slot_back():
    slots = Slots(1)
    with pytest.raises(ZeroDivisionError), slots.slot():
        _ = 1 / 0
    with slots.slot():
        assert slots.in_flight == 1


def waiters(slots: Slots, owners: list[object]) -> tuple[list[threading.Thread], list[str]]:
    outcomes = [""] * len(owners)

    def work(number: int) -> None:
        try:
            with slots.slot((1,), owner=owners[number]):
                outcomes[number] = "served"
        except SlotCancelled:
            outcomes[number] = "cancelled"

    threads = [threading.Thread(target=work, args=(k,)) for k in range(len(owners))]
    for thread in threads:
        thread.start()
    while slots.waiting < len(owners):
        time.sleep(0.0005)
    return threads, outcomes


def test_cancel_ends_the_waits_of_one_owner_only():
    slots, one, other = Slots(1), object(), object()
    with slots.slot():
        threads, outcomes = waiters(slots, [one, other, one])
        slots.cancel(one)
        threads[0].join(2)
        threads[2].join(2)
        assert outcomes == ["cancelled", "", "cancelled"]
    threads[1].join(2)
    assert outcomes[1] == "served"
    assert slots.in_flight == 0


def test_close_ends_all_waits_now_and_later():
    slots = Slots(1)
    with slots.slot():
        threads, outcomes = waiters(slots, [None, object()])
        slots.close()
        for thread in threads:
            thread.join(2)
    assert outcomes == ["cancelled", "cancelled"]
    with pytest.raises(SlotCancelled, match="closed"), slots.slot():
        pass
    assert slots.in_flight == 0


@pytest.mark.parametrize("granted", [False, True])
def test_an_interrupt_while_waiting_does_not_lose_the_slot(monkeypatch, granted):
    slots = Slots(1)

    def interrupt(event: threading.Event) -> None:
        if granted:  # the slot becomes free in the same moment
            first.__exit__(None, None, None)
        raise KeyboardInterrupt

    first = slots.slot()
    first.__enter__()
    monkeypatch.setattr(threading.Event, "wait", interrupt)
    with pytest.raises(KeyboardInterrupt), slots.slot():
        pass
    monkeypatch.undo()
    if not granted:
        first.__exit__(None, None, None)
    assert slots.in_flight == 0
    assert slots.waiting == 0


@pytest.mark.parametrize("number", [0, -1])
def test_no_slots_are_refused(number):
    with pytest.raises(ValueError, match="at least 1"):
        Slots(number)
