"""Costs against examples computed by hand, and relations that hold for any attempts."""

import math

import msgspec
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from evo.logs.cost import (
    TIMEOUT_RULES,
    Cost,
    Tokens,
    added,
    assumed_completion,
    cost_of_attempts,
    flops_of_tokens,
    lacks_usage,
    median_limited_completion,
    price_of_tokens,
    usage_tokens,
)
from evo.logs.records import Attempt, Evaluation, Model, Outcome, Sampling

MODEL = Model(name="m", active_parameters=1000, input_price=2.0, cached_price=0.5, output_price=8.0)
SAMPLING = Sampling(temperature=1.0, top_p=1.0, max_tokens=500)
TIMEOUT = Attempt(status="timeout", latency=60.0)


def answer(prompt: int, cached: int, completion: int, **fields: object) -> Attempt:
    usage = {
        "prompt_tokens": prompt,
        "completion_tokens": completion,
        "prompt_tokens_details": {"cached_tokens": cached},
    }
    return Attempt(**{"status": "ok", "latency": 2.0, "usage": usage, "http_status": 200} | fields)


def outcome(*attempts: Attempt) -> Outcome:
    return Outcome(
        generation=1, index=0, seed=0, prompt_hash="", attempts=attempts,
        evaluation=Evaluation(status="no_reply"),
    )  # fmt: skip


def test_a_call_by_hand():
    cost = cost_of_attempts([answer(100, 40, 30)], MODEL, SAMPLING)
    assert cost == Cost(
        calls=1, attempts=1, prompt_tokens=100, cached_tokens=40, completion_tokens=30,
        flops=2 * 1000 * 90, dollars=(60 * 2.0 + 40 * 0.5 + 30 * 8.0) / 1e6, seconds=2.0,
    )  # fmt: skip
    assert (cost.tokens, cost.cache_hit_rate) == (130, 0.4)


def test_the_rules_by_hand():
    """A timeout, then an answer of 30 tokens; the run's truncated answers had 80, 90 and 200."""
    attempts = [TIMEOUT, answer(100, 40, 30)]
    run = [answer(1, 0, n, finish_reason="length") for n in (200, 80, 90)]
    median = median_limited_completion([*run, answer(1, 0, 5000, finish_reason="stop"), TIMEOUT])
    assert median == 90
    for rule, completion in [("worst_case", 530), ("exclude", 30), ("bounded", 120)]:
        cost = cost_of_attempts(attempts, MODEL, SAMPLING, rule=rule, bounded_completion=median)
        assert cost.completion_tokens == completion
        assert cost.flops == 2 * 1000 * (60 + completion)
        assert cost.dollars == pytest.approx((60 * 2.0 + 40 * 0.5 + completion * 8.0) / 1e6)
        assert (cost.calls, cost.attempts, cost.without_usage, cost.seconds) == (1, 2, 1, 62.0)


@pytest.mark.parametrize(
    ("attempt", "lacks"),
    [
        (TIMEOUT, True),
        (Attempt(status="ok", latency=1.0, http_status=200), True),
        (Attempt(status="ok", latency=1.0, usage={"total_tokens": 5}), True),
        (Attempt(status="error", latency=1.0, http_status=200), True),  # no chat completion
        (Attempt(status="error", latency=1.0, http_status=504), True),
        (Attempt(status="error", latency=1.0, http_status=408), True),
        (Attempt(status="error", latency=1.0, error="the connection broke"), True),
        (Attempt(status="error", latency=1.0, error="no connection", sent=False), False),
        (Attempt(status="error", latency=1.0, http_status=429), False),
        (Attempt(status="error", latency=1.0, http_status=400), False),
        (Attempt(status="error", latency=1.0, http_status=500), False),
        (Attempt(status="ok", latency=0.0, cached=True), False),
        (answer(1, 0, 1, status="error", http_status=500), False),
        (answer(1, 0, 1), False),
        (answer(0, 0, 0), False),
    ],
)
def test_what_counts_as_an_attempt_without_usage(attempt, lacks):
    assert lacks_usage(attempt) == lacks
    assert cost_of_attempts([attempt], MODEL, SAMPLING).without_usage == lacks


def test_what_was_turned_away_or_cached_costs_nothing():
    free = [
        Attempt(status="error", latency=1.0, http_status=429),
        Attempt(status="error", latency=1.0, sent=False),
        msgspec.structs.replace(answer(100, 0, 50), cached=True, latency=0.0),
    ]
    for model in (MODEL, Model(name="unknown")):
        cost = cost_of_attempts(free[:2], model, SAMPLING)
        assert (cost.tokens, cost.flops, cost.dollars, cost.seconds) == (0, 0, 0, 2.0)
    cost = cost_of_attempts(free, MODEL, SAMPLING)
    assert (cost.attempts, cost.tokens, cost.flops, cost.dollars) == (3, 0, 0, 0)
    assert cost.cache_hit_rate is None


def test_unknown_stays_unknown():
    unpriced = cost_of_attempts([answer(10, 0, 5)], Model(name="m"), SAMPLING)
    assert (unpriced.tokens, unpriced.flops, unpriced.dollars) == (15, None, None)
    silent = Attempt(status="ok", latency=1.0)
    assert cost_of_attempts([silent], MODEL, SAMPLING).completion_tokens == 500
    for settings in ({"rule": "exclude"}, {"rule": "bounded"}):
        cost = cost_of_attempts([silent], MODEL, SAMPLING, **settings)
        assert (cost.completion_tokens, cost.flops, cost.dollars) == (None, None, None)
        assert (cost + Cost()).flops is None
        assert (Cost(flops=3.0) + cost).flops is None
    assert cost_of_attempts([TIMEOUT], MODEL, SAMPLING, rule="exclude").flops == 0


def test_a_cached_price_that_is_not_given_is_the_input_price():
    model = Model(name="m", input_price=3.0, output_price=0.0)
    assert price_of_tokens(10.0, 4.0, 0.0, model=model) == pytest.approx(30e-6)


STATED = {"prompt_tokens": 5, "completion_tokens": 2}


@pytest.mark.parametrize(
    ("usage", "tokens"),
    [
        (STATED, Tokens(5, 0, 2)),
        ({"input_tokens": 5, "output_tokens": 2}, Tokens(5, 0, 2)),
        (
            {"input_tokens": 5, "output_tokens": 2, "input_tokens_details": {"cached_tokens": 3}},
            Tokens(5, 3, 2),
        ),
        (STATED | {"prompt_tokens_details": None}, Tokens(5, 0, 2)),
        (STATED | {"prompt_tokens_details": {"cached_tokens": None}}, Tokens(5, 0, 2)),
        (STATED | {"prompt_tokens_details": {"cached_tokens": 9}}, Tokens(5, 5, 2)),
        (STATED | {"completion_tokens": 2.0}, Tokens(5, 0, 2)),
        ({"prompt_tokens": 5}, None),
        (STATED | {"completion_tokens": None}, None),
        (STATED | {"prompt_tokens": -5}, None),
        (STATED | {"prompt_tokens": True}, None),
        (STATED | {"prompt_tokens": math.nan}, None),
        (STATED | {"prompt_tokens": "5"}, None),
        ({}, None),
        (None, None),
    ],
)
def test_usage_of_every_dialect(usage, tokens):
    assert usage_tokens(usage) == tokens


counts = st.integers(0, 10_000)
attempts = st.one_of(
    st.builds(
        answer, counts, st.just(0), counts, finish_reason=st.sampled_from(["stop", "length"])
    ),
    st.builds(
        Attempt,
        status=st.sampled_from(["ok", "timeout", "error"]),
        latency=st.sampled_from([0.0, 0.5, 2.0]),
        http_status=st.sampled_from([None, 429, 504]),
        sent=st.booleans(),
    ),
)
calls = st.lists(st.lists(attempts, max_size=4), max_size=6)


@given(calls, st.sampled_from(TIMEOUT_RULES), st.none() | st.just(64.0))
def test_costs_add_up_and_unknown_propagates(calls, rule, median):
    settings = {"rule": rule, "bounded_completion": median}
    parts = [cost_of_attempts(call, MODEL, SAMPLING, **settings) for call in calls]
    together = cost_of_attempts([a for call in calls for a in call], MODEL, SAMPLING, **settings)
    whole = sum(parts, Cost())
    for name in ("attempts", "without_usage", "seconds"):
        assert getattr(whole, name) == getattr(together, name)
    for name in ("prompt_tokens", "completion_tokens", "flops", "dollars"):
        values = [getattr(part, name) for part in parts]
        total = getattr(whole, name)
        assert (total is None) == any(value is None for value in values)
        if total is not None:
            assert total == pytest.approx(getattr(together, name))
    assert whole.calls == len(calls)


def test_arrays_and_numbers_follow_one_formula():
    prompt, cached = np.array([100.0, 10.0, np.nan]), np.array([40.0, 0.0, 0.0])
    completion = np.array([30.0, 5.0, 7.0])
    for formula in (flops_of_tokens, price_of_tokens):
        values = formula(prompt, cached, completion, model=MODEL)
        assert values[:2].tolist() == [
            formula(100.0, 40.0, 30.0, model=MODEL),
            formula(10.0, 0.0, 5.0, model=MODEL),
        ]
        assert np.isnan(values[2])
        assert np.isnan(formula(prompt, cached, completion, model=Model(name="m"))).all()


def test_an_unknown_rule_lists_the_known_ones():
    with pytest.raises(ValueError, match="worst_case, exclude, bounded, got 'median'"):
        assumed_completion("median", max_tokens=5)


def test_numbers_are_added_one_after_another_on_every_python():
    """The logs that are shipped were written so; `sum` gives 1.0 here from Python 3.12 on."""
    assert added([0.1] * 10) == 0.9999999999999999
    assert added([]) == 0.0
    assert math.isnan(added([1.0, math.nan]))
