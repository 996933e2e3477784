"""What a gate counts, admits and refuses."""

from __future__ import annotations

import math
import time
from contextlib import ExitStack
from pathlib import Path

import pytest
from gates import Upstream

from evo.gate.account import Account, Refused
from evo.gate.log import Opened, Sent, Settled
from evo.logs.journal import LogError, encode_line
from evo.logs.records import Attempt, Model
from evo.runs.budget import BudgetError


@pytest.mark.parametrize(
    ("age", "waits"), [(0.0, 60.0), (20.0, 40.0), (90.0, None), (-3600.0, 60.0)]
)
def test_a_gate_that_goes_on_knows_when_the_requests_of_its_log_were_sent(
    tmp_path: Path, age: float, waits: float | None
) -> None:
    """Also where the clock was set back meanwhile, so that they seem to be still to come."""
    path, at = tmp_path / "g.jsonl", time.time() - age
    with Upstream() as upstream:
        model = upstream.model
    sent = Sent(number=0, at=at, client="a", body="b", worst={})
    answered = Attempt(status="ok", latency=0.1, http_status=200)
    lines = [Opened(model=model, began=at), sent, Settled(number=0, at=at, attempt=answered)]
    path.write_bytes(b"".join(map(encode_line, lines)))
    account = Account(model, {}, rpm=1, tpm=None)
    with ExitStack() as opened:
        account.open_log(path, opened)
        if waits is None:
            assert account.admit("a", "b", {"tokens": 1.0}).number == 1
        else:
            with pytest.raises(Refused) as refused:
                account.admit("a", "b", {"tokens": 1.0})
            assert refused.value.wait is not None
            assert 0 < refused.value.wait <= waits


def account(limits=None, *, rpm=None, tpm=None, **fields) -> Account:
    priced = Model(name="m", input_price=1.0, output_price=2.0, **fields)
    return Account(priced, limits or {}, rpm, tpm)


def worst(calls: float = 1.0, tokens: float = 100.0, dollars: float = 0.5) -> dict[str, float]:
    return {"calls": calls, "tokens": tokens, "dollars": dollars, "flops": math.inf}


def answered(prompt: int, completion: int, **fields) -> Attempt:
    usage = {"prompt_tokens": prompt, "completion_tokens": completion}
    known = {"status": "ok", "latency": 0.1, "http_status": 200, "usage": usage}
    return Attempt(**known | fields)


def answered_with(status: int, prompt: int, completion: int) -> Attempt:
    return answered(prompt, completion, status="error", http_status=status)


def test_a_request_counts_at_its_worst_until_it_is_settled() -> None:
    gate = account()
    sent = gate.admit("a", "b", worst())
    assert (gate.in_flight, gate.spent["calls"], gate.spent["tokens"]) == (1, 1, 100)
    assert math.isnan(gate.spent["flops"])  # it has no bound
    gate.settle(sent, answered(10, 5))
    assert (gate.in_flight, gate.spent["calls"], gate.spent["tokens"]) == (0, 1, 15)
    assert gate.spent["dollars"] == pytest.approx((10 + 2 * 5) / 1e6)


@pytest.mark.parametrize(
    ("attempt", "calls", "tokens"),
    [
        (Attempt(status="error", latency=0.1, sent=False), 0, 0),
        (Attempt(status="error", latency=0.1, http_status=429), 1, 0),
        (Attempt(status="ok", latency=0.1, http_status=200), 1, 100),  # no usage: at its worst
        (Attempt(status="timeout", latency=9.0), 1, 100),
        (answered_with(500, 30, 5), 1, 35),  # an error that states what it took
        (answered_with(200, 30, 5), 1, 35),  # no choices
    ],
)
def test_what_the_endpoint_does_not_say_counts_at_its_worst(attempt, calls, tokens) -> None:
    gate = account()
    gate.settle(gate.admit("a", "b", worst()), attempt)
    assert (gate.spent["calls"], gate.spent["tokens"]) == (calls, tokens)


def test_the_last_call_of_a_budget_passes_and_no_further_one() -> None:
    gate = account({"calls": 2})
    assert gate.used_up is None
    numbers = [gate.admit("a", "b", worst()).number for _ in range(2)]
    assert (numbers, gate.used_up) == ([0, 1], "calls")
    with pytest.raises(
        Refused, match="used up: 2 of 2 calls are spent, and this request may"
    ) as no:
        gate.admit("a", "b", worst())
    assert no.value.wait is None


def test_requests_wait_for_those_under_way_and_are_refused_for_good_once_all_is_spent() -> None:
    gate = account({"tokens": 250})
    first, second = (gate.admit("a", "b", worst()) for _ in range(2))
    with pytest.raises(Refused, match="requests under way may take the tokens that are left") as no:
        gate.admit("a", "b", worst())
    assert no.value.wait == 1.0
    gate.settle(first, answered(40, 10))
    third = gate.admit("a", "b", worst())  # 50 + 100 + 100 are no more than 250
    gate.settle(second, answered(90, 10))
    gate.settle(third, answered(1, 0))
    assert gate.spent["tokens"] == 151
    with pytest.raises(Refused, match="151 of 250 tokens are spent, and this request may take 100"):
        gate.admit("a", "b", worst())
    assert gate.used_up == "tokens"
    assert gate.admit("a", "b", worst(tokens=99)).number == 3


def test_rounding_of_the_running_sum_refuses_nothing_that_fits() -> None:
    gate = account({"dollars": 1.0})
    sents = [gate.admit("a", "b", worst(dollars=0.1)) for _ in range(10)]
    assert len(sents) == 10  # ten times .1 in floats is not 1
    with pytest.raises(Refused):
        gate.admit("a", "b", worst(dollars=0.1))


def test_more_requests_than_a_minute_allows_are_told_when_to_come_again() -> None:
    gate = account(rpm=2)
    for _ in range(2):
        gate.admit("a", "b", worst())
    with pytest.raises(Refused, match="over this gate's limit a minute; retry in") as no:
        gate.admit("a", "b", worst())
    assert 0 < no.value.wait <= 60
    assert gate.spent["calls"] == 2
    assert gate.used_up is None


@pytest.mark.parametrize(
    ("limits", "tpm", "bounded"),
    [({}, None, False), ({"calls": 3}, None, False), ({"tokens": 3}, None, True), ({}, 9, True)],
)
def test_a_bound_of_tokens_is_needed_only_where_tokens_are_limited(limits, tpm, bounded) -> None:
    assert account(limits, tpm=tpm).bounded is bounded


def test_a_unit_that_a_gate_does_not_count_in_is_refused() -> None:
    with pytest.raises(BudgetError, match=r"a gate counts in calls, .*, got 'seconds'"):
        account({"seconds": 5})


def test_repeats_are_counted_by_client_and_taken_back() -> None:
    gate = account()
    assert [gate.repeat("a", "x"), gate.repeat("a", "x"), gate.repeat("b", "x")] == [0, 1, 0]
    assert gate.repeat("a", "x", by=-1) == 2  # what was counted before
    assert gate.repeats["a", "x"] == 1


def test_a_log_that_goes_on_counts_what_was_sent_and_what_was_never_settled(
    tmp_path: Path,
) -> None:
    path = tmp_path / "g.jsonl"
    with ExitStack() as opened:
        first = account()
        first.open_log(path, opened)
        first.settle(first.admit("a", "x", worst()), answered(10, 5))
        first.admit("a", "x", worst())  # killed before the answer
        first.keep("b", "x")
    with ExitStack() as opened:
        again = account({"calls": 3})
        again.open_log(path, opened)
        assert (again.spent["calls"], again.spent["tokens"]) == (2, 115)
        assert dict(again.repeats) == {("a", "x"): 2, ("b", "x"): 1}
        assert again.admit("a", "x", worst()).number == 2
    other = Account(Model(name="other"), {}, None, None)
    with ExitStack() as opened, pytest.raises(LogError, match="holds the calls of model 'm', not"):
        other.open_log(path, opened)
