"""Budgets of sweeps: what may be in flight when they run out, under random latencies."""

import random
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from itertools import count

import pytest
from samples import sample_header

from evo.llm.client import Call, CallCancelled
from evo.llm.limits import SlotCancelled, Slots
from evo.records import Attempt
from evo.sweeping.admission import Admission, AdmittingSlots, RunCaller


class Ledger:
    """An endpoint of random latency and usage that keeps its own books."""

    def __init__(self, slots: AdmittingSlots, unit: str, seed: int) -> None:
        self.header = sample_header()
        self.model, self.sampling = self.header.model, self.header.sampling
        self._slots, self._unit, self._draws = slots, unit, random.Random(seed)
        self._lock = threading.Lock()
        self.over = 0.0  # spent by calls that are over
        self.flying: dict[int, float] = {}
        self.worst = 0.0  # most that was spent when a call began
        self.answered = 0
        self._numbers = count()

    def amount(self, prompt: int, completion: int) -> float:
        dollars = (prompt * 1.0 + completion * 2.0) / 1e6
        return {"calls": 1.0, "tokens": prompt + completion, "dollars": dollars}[self._unit]

    def call(self, messages, *, seed, generation, index) -> Call:
        with self._lock:
            prompt, completion = self._draws.randint(10, 90), self._draws.randint(1, 100)
            latency, fails = self._draws.random() * 0.002, self._draws.random() < 0.1
        usage = {"prompt_tokens": prompt, "completion_tokens": completion}
        number = -1
        for _ in range(1 + fails):  # after a failure it queues for a slot once more
            try:
                with self._slots.slot((generation, index), owner=self):
                    with self._lock:
                        if number < 0:
                            self.worst = max(self.worst, self.over)
                            number = next(self._numbers)
                            self.flying[number] = self.amount(prompt, completion)
                    time.sleep(latency)
            except SlotCancelled as error:
                raise CallCancelled(str(error)) from None
        with self._lock:
            self.over += self.flying.pop(number)
            self.answered += 1
        return Call((Attempt(status="ok", latency=latency, usage=usage),), reply="x")

    def cancel(self) -> None: ...

    def close(self) -> None: ...


def spend(limit: float, unit: str, *, seed: int, slots: int, spent: float = 0.0):
    """Calls of four runs until a budget is spent; returns the endpoint and its admission."""
    admission = Admission({unit: limit})
    admission.begin({unit: spent})
    admitting = AdmittingSlots(Slots(slots), admission)
    endpoint = Ledger(admitting, unit, seed)
    runs = [RunCaller(endpoint, admission, endpoint.header) for _ in range(4)]
    logged = []

    def child(run: RunCaller, index: int) -> None:
        try:
            call = run.call([{"role": "user"}], seed=index, generation=1, index=index)
        except CallCancelled:
            return
        logged.append(call)
        run._close((1, index))

    with ThreadPoolExecutor(16) as pool:
        for index in range(25):
            for run in runs:
                pool.submit(child, run, index)
    return endpoint, admission, logged


@pytest.mark.parametrize("unit", ["calls", "tokens", "dollars"])
@pytest.mark.parametrize("block", range(4))
def test_200_random_budgets_are_kept_to_what_is_in_flight(unit, block) -> None:
    draws = random.Random(f"{unit}/{block}")
    scale = {"calls": 40, "tokens": 4000, "dollars": 0.005}[unit]
    for seed in range(17):
        limit = max(1.0, round(draws.random() * scale)) if unit != "dollars" else (
            draws.random() * scale + 1e-6
        )  # fmt: skip
        endpoint, admission, logged = spend(limit, unit, seed=seed, slots=draws.randint(1, 12))
        assert admission.halted == "budget"
        assert endpoint.worst < limit, "a call began after the budget was spent"
        most = endpoint.amount(90, 100)
        assert endpoint.over < limit + 2 * most
        assert unit != "calls" or endpoint.over == limit
        assert len(logged) == endpoint.answered, "an answered call was lost"
        assert admission.spent[unit] == pytest.approx(endpoint.over)
        assert not endpoint.flying


def test_what_earlier_sessions_spent_counts() -> None:
    endpoint, _, _ = spend(30.0, "calls", seed=1, slots=4, spent=12.0)
    assert endpoint.answered == 18


def test_a_budget_beyond_the_work_is_not_exhausted() -> None:
    endpoint, admission, _ = spend(1000.0, "calls", seed=1, slots=8)
    assert endpoint.answered == 100
    assert admission.halted is None


def test_seconds_run_out_between_calls() -> None:
    admission = Admission({"seconds": 0.2})
    admission.begin({})
    endpoint = Ledger(AdmittingSlots(Slots(2), admission), "calls", 0)
    run = RunCaller(endpoint, admission, endpoint.header)
    for index in range(10_000):
        try:
            run.call([], seed=0, generation=1, index=index)
        except CallCancelled:
            break
        run._close((1, index))
    assert admission.halted == "budget"
    assert endpoint.answered >= 1


def test_a_refused_call_waits_until_its_run_has_logged_what_was_in_flight() -> None:
    admission = Admission({})
    admission.begin({})
    endpoint = Ledger(AdmittingSlots(Slots(8), admission), "calls", 0)
    run = RunCaller(endpoint, admission, endpoint.header)
    run.call([], seed=0, generation=1, index=0)  # answered, its evaluation goes on
    admission.halt("paused")
    refused = threading.Event()

    def ask() -> None:
        with pytest.raises(CallCancelled):
            run.call([], seed=0, generation=1, index=1)
        refused.set()

    thread = threading.Thread(target=ask)
    thread.start()
    assert not refused.wait(0.1)
    run._close((1, 0))
    thread.join(10)
    assert refused.is_set()
    assert endpoint.answered == 1
