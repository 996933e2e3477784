"""Gates on a clock of their own: no sliding minute too full, AIMD, pauses."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evo.llm.rates import DECREASE, MINUTE, Lease, Rates

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
    gate = Rates(slots, requests_per_minute=rpm, tokens_per_minute=tpm)
    seen = sorted(play(gate, plans))
    for start, _ in seen:
        inside = [used for at, used in seen if start <= at < start + MINUTE]
        assert len(inside) <= rpm
        assert sum(inside) <= tpm


@given(st.integers(1, 50), st.integers(1, 200))
def test_a_minutes_worth_passes_at_once_and_the_next_a_minute_later(rpm, count):
    seen = play(Rates(1000, requests_per_minute=rpm), [(1, 0, 0.0, 0.0, True)] * count)
    assert [at for at, _ in seen] == pytest.approx([60.0 * (k // rpm) for k in range(count)])


def test_a_request_larger_than_the_limit_passes_alone():
    gate = Rates(10, tokens_per_minute=100)
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
    gate = Rates(8)
    long, short = Lease(0), Lease(0)
    gate.admit(long, now=0.0)
    gate.admit(short, now=0.0)
    answer(gate, long, 1.0, answered=False, pause=10.0)
    answer(gate, short, 2.0, answered=False, pause=3.0)
    assert gate.wait(0, now=2.0) == 9
    assert gate.wait(0, now=11.0) == 0
