"""Slots and rates: never too many, never one idle, by priority; no sliding minute too full."""

import math
import threading
import time
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor

import endpoints
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from evo.models.limits import DECREASE, MINUTE, Lease, Rates, SlotCancelled, Slots


def together(slots: Slots, count: int, work: Callable[[int], None]) -> None:
    endpoints.together(count, work)
    assert (slots.in_flight, slots.waiting) == (0, 0)


def queue_up(slots: Slots, priorities: list[tuple[int, ...]]) -> list[int]:
    """Lets requests arrive in order while the only slot is taken; returns the order they got it."""
    order: list[int] = []

    def work(number: int) -> None:  # slots are shared by endpoints
        with slots.slot(priorities[number], endpoint=f"{number % 3}"):
            order.append(number)

    with ThreadPoolExecutor(12) as pool, slots.slot():
        for number in range(len(priorities)):
            pool.submit(work, number)
            while slots.waiting <= number:
                time.sleep(0.0005)
    return order


def test_a_request_that_outlasts_its_block_holds_the_slot_until_it_is_done():
    slots, over = Slots(1), Future[None]()
    with slots.slot() as lease:
        lease.until = over
    assert slots.in_flight == 1
    with ThreadPoolExecutor(1) as pool:
        got = pool.submit(queue_for, slots)
        while not slots.waiting:
            time.sleep(0.0005)
        over.set_result(None)
        assert got.result(30)
    with slots.slot() as lease:  # it is done before the block is left
        lease.until = over
    assert slots.in_flight == 0


def queue_for(slots: Slots) -> bool:
    with slots.slot():
        return slots.in_flight == 1


@settings(max_examples=25)
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

    together(slots, 20, work)
    assert most[0] == 5
    assert slots.load.queued > 0


def waiters(
    slots: Slots, owners: list[object], endpoint: str = ""
) -> tuple[list[threading.Thread], list[str]]:
    outcomes = [""] * len(owners)

    def work(number: int) -> None:
        try:
            with slots.slot((1,), owner=owners[number], endpoint=endpoint):
                outcomes[number] = "served"
        except SlotCancelled:
            outcomes[number] = "cancelled"

    threads = [threading.Thread(target=work, args=(k,)) for k in range(len(owners))]
    for thread in threads:
        thread.start()
    while slots.waiting < len(owners):
        time.sleep(0.0005)
    return threads, outcomes


def test_cancel_ends_the_waits_of_one_owner_or_all_now_and_later():
    slots, one, other = Slots(1), object(), object()
    with slots.slot():
        threads, outcomes = waiters(slots, [one, other, one])
        slots.cancel(one)
        threads[0].join(30)
        threads[2].join(30)
        assert outcomes == ["cancelled", "", "cancelled"]
    threads[1].join(30)
    assert outcomes[1] == "served"
    with slots.slot():
        threads, outcomes = waiters(slots, [None, other])
        slots.cancel()
        for thread in threads:
            thread.join(30)
    assert outcomes == ["cancelled", "cancelled"]
    with pytest.raises(SlotCancelled, match="cancelled"), slots.slot():
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


# --- limits of endpoints


def hold(slots: Slots, endpoint: str = "", *, seconds: float = 0.0, **settled: object) -> None:
    with slots.slot((1,), endpoint=endpoint, tokens=10) as lease:
        time.sleep(seconds)
        lease.settle(1, **settled)


def test_a_small_request_does_not_overtake_a_large_one_of_its_endpoint():
    slots, order = Slots(4, tokens_per_minute=100, window=0.3), list[int]()

    def work(number: int) -> None:
        with slots.slot((number,), tokens=(80, 5)[number]):
            order.append(number)

    with ThreadPoolExecutor(2) as pool, slots.slot(tokens=90) as lease:
        for number in range(2):
            pool.submit(work, number)
            while slots.waiting <= number and not order:
                time.sleep(0.0005)
        assert not order  # there is room for the small one
        lease.settle(90)
    assert sorted(order) == [0, 1]


def test_a_pause_holds_up_its_own_endpoint_alone():
    slots = Slots(4)
    started = time.monotonic()
    hold(slots, "busy", answered=False, turned_away=True, pause=0.5)
    hold(slots, "busy")
    assert time.monotonic() - started >= 0.5
    hold(slots, "busy", answered=False, turned_away=True, pause=1000)
    threads, outcomes = waiters(slots, [None], endpoint="busy")
    hold(slots, "free")
    assert (slots.waiting, outcomes) == (1, [""])
    slots.cancel()
    threads[0].join(30)
    assert outcomes == ["cancelled"]
    assert slots.load.limited > 0.3


def test_the_load_adds_up():
    slots = Slots(2)
    assert math.isnan(slots.load.utilisation)
    together(slots, 4, lambda _: hold(slots, seconds=0.05))
    time.sleep(0.05)  # nobody wants anything: counts for nothing
    load = slots.load
    assert 0.2 <= load.busy <= 2 * load.open
    assert load.utilisation == load.busy / (2 * load.open)
    assert load.limited == 0
    slots = Slots(1)
    with slots.slot():
        threads, _ = waiters(slots, [None] * 3)
        time.sleep(0.2)
        assert slots.load.queued >= 3 * 0.2
    for thread in threads:
        thread.join()


# --- on a clock of their own

requests = st.lists(
    st.tuples(
        st.integers(0, 400),  # tokens it really uses
        st.integers(0, 300),  # tokens estimated in excess
        st.floats(0, 30),  # seconds on the way
        st.floats(0, 90),  # seconds of the answer
        st.booleans(),  # whether its usage becomes known
    ),
    min_size=1,
    max_size=60,
)


def play(gate: Rates, plans: list[tuple[int, int, float, float, bool]]) -> list[tuple[float, int]]:
    """Sends requests as soon as the gate lets them; returns when each arrived, and its tokens."""
    now, seen = 0.0, list[tuple[float, int]]()
    flying: list[tuple[float, Lease]] = []
    for used, excess, transit, answer, known in plans:
        while wait := gate.wait(used + excess, now=now):
            end = min((end for end, _ in flying), default=math.inf)
            assert min(end, wait) < math.inf, "nothing would ever let it through"
            now = min(end, max(now + wait, math.nextafter(now, math.inf)))
            for ended, lease in [each for each in flying if each[0] <= now]:
                gate.release(lease, now=ended)
                flying.remove((ended, lease))
        lease = Lease(used + excess)
        gate.admit(lease, now=now)
        lease.settle(used if known else None)
        seen.append((now + transit, used))
        flying.append((now + transit + answer, lease))
    return seen


@given(requests, st.integers(1, 12), st.integers(700, 2500), st.integers(1, 30))
def test_no_sliding_minute_of_the_endpoint_holds_more_than_allowed(plans, rpm, tpm, slots):
    gate = Rates(slots, rpm=rpm, tpm=tpm)
    seen = sorted(play(gate, plans))
    for start, _ in seen:
        inside = [used for at, used in seen if start <= at < start + MINUTE]
        assert len(inside) <= rpm
        assert sum(inside) <= tpm


@given(st.integers(1, 50), st.integers(1, 200))
def test_a_minutes_worth_passes_at_once_and_the_next_a_minute_later(rpm, count):
    seen = play(Rates(1000, rpm=rpm), [(1, 0, 0.0, 0.0, True)] * count)
    assert [at for at, _ in seen] == pytest.approx([60.0 * (k // rpm) for k in range(count)])


def test_a_request_larger_than_the_limit_passes_alone():
    gate = Rates(10, tpm=100)
    gate.admit(Lease(60), now=0.0)
    assert (gate.wait(40, now=0.0), gate.wait(41, now=0.0)) == (0, math.inf)
    gate = Rates(10, tpm=100)
    assert gate.wait(500, now=0.0) == 0
    lease = Lease(500)
    gate.admit(lease, now=0.0)
    assert gate.wait(1, now=0.0) == math.inf
    gate.release(lease, now=1.0)
    assert gate.wait(1, now=1.0) == pytest.approx(60)
    assert gate.wait(1, now=61.0) == 0


def answer(gate: Rates, lease: Lease, now: float, **settled: object) -> None:
    lease.settle(None, **settled)
    gate.release(lease, now=now)


def test_the_number_in_flight_falls_once_a_round_trip_and_recovers():
    gate = Rates(16)
    leases = [Lease(0) for _ in range(16)]
    for lease in leases:
        gate.admit(lease, now=0.0)
    for lease in leases:
        answer(gate, lease, 1.0, answered=False, turned_away=True)
    assert gate.allowance == pytest.approx(16 * DECREASE)
    late = Lease(0)
    gate.admit(late, now=2.0)
    answer(gate, late, 3.0, answered=False, turned_away=True)
    low = gate.allowance
    assert low == pytest.approx(16 * DECREASE**2)
    for now in range(round(low)):  # one round trip
        lease = Lease(0)
        gate.admit(lease, now=4.0 + now)
        answer(gate, lease, 4.5 + now)
    assert low + 0.8 < gate.allowance < low + 1.2
    for now in range(500):
        lease = Lease(0)
        gate.admit(lease, now=20.0 + now)
        answer(gate, lease, 20.5 + now)
    assert gate.allowance == 16


def test_a_pause_holds_for_everyone_and_the_longest_counts():
    gate, leases = Rates(8), [Lease(0), Lease(0)]
    for lease, (now, pause) in zip(leases, ((1.0, 10.0), (2.0, 3.0)), strict=True):
        gate.admit(lease, now=0.0)
        answer(gate, lease, now, answered=False, pause=pause)
    assert gate.wait(0, now=2.0) == 9
    assert gate.wait(0, now=11.0) == 0


def test_slots_that_are_held_let_nobody_through_and_lose_nobody():
    slots, done = Slots(2), list[int]()
    slots.hold(True)

    def work(number: int) -> None:
        with slots.slot((number,)):
            done.append(number)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(5)]
    for thread in threads:
        thread.start()
    deadline = time.monotonic() + 60
    while slots.waiting < 5:
        assert time.monotonic() < deadline
        time.sleep(0.01)
    assert (slots.in_flight, done) == (0, [])
    slots.hold(False)
    for thread in threads:
        thread.join(60)
    assert sorted(done) == list(range(5))
    assert (slots.in_flight, slots.waiting) == (0, 0)
