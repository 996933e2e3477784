"""The calls of a run as arrays cost what each of them costs by itself."""

from pathlib import Path

import msgspec
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from samples import sample_child, sample_header

from evo.logs.cost import MOST_TOKENS, TIMEOUT_RULES, cost_of_attempts, median_limited_completion
from evo.logs.records import Attempt
from replay.importers import answered
from replay.logs.costs import Calls, floats
from replay.logs.decode import LeanRun

HEADER = sample_header(children=9)

ODD = [-1, 0.5, 7.9, True, "9", MOST_TOKENS, 10**400]
COUNTS = st.none() | st.integers(0, 500) | st.sampled_from(ODD)
USAGE = st.none() | st.fixed_dictionaries(
    {},
    optional={
        "prompt_tokens": COUNTS,
        "completion_tokens": COUNTS,
        "input_tokens": COUNTS,
        "output_tokens": COUNTS,
        "dollars": COUNTS,
        "prompt_tokens_details": st.none() | st.fixed_dictionaries({"cached_tokens": COUNTS}),
        "input_tokens_details": st.none() | st.fixed_dictionaries({"cached_tokens": COUNTS}),
    },
)
ATTEMPTS = st.builds(
    Attempt,
    status=st.sampled_from(["ok", "timeout", "error"]),
    latency=st.sampled_from([None, 0.25, 1.5]),
    usage=USAGE,
    finish_reason=st.sampled_from([None, "stop", "length"]),
    http_status=st.sampled_from([None, 200, 408, 429, 500, 504]),
    cached=st.booleans(),
    sent=st.booleans(),
    rates=st.sampled_from([{}, {}, {"output_price": 9.0}]),
)


def calls_of(*several, inherited=False, of=None, header=HEADER):
    children = [
        msgspec.structs.replace(
            sample_child(1, k, 0.5), attempts=tuple(attempts), inherited=inherited
        )
        for k, attempts in enumerate(several)
    ]
    run = LeanRun(Path("a.jsonl"), "a", header, None, children, [], [], [], {}, "")
    return Calls(run, of=of)


@settings(max_examples=40)
@given(
    st.lists(st.lists(ATTEMPTS, min_size=1, max_size=3), min_size=1, max_size=3),
    st.sampled_from(TIMEOUT_RULES),
)
def test_each_call_costs_what_its_attempts_cost(several, rule):
    middle = median_limited_completion(each for attempts in several for each in attempts)
    spent = calls_of(*several).spent(rule)
    for place, attempts in enumerate(several):
        cost = cost_of_attempts(
            attempts, HEADER.model, HEADER.sampling, rule=rule,
            bounded_completion=middle if rule == "bounded" else None,
        )  # fmt: skip
        for unit in ("tokens", "flops", "dollars"):
            expected = getattr(cost, unit)
            known = np.nan if expected is None else float(expected)
            assert spent[unit][place] == pytest.approx(known, nan_ok=True), (unit, attempts)
        assert spent["n_without_usage"][place] == cost.without_usage
        assert spent["n_attempts"][place] == len(attempts)


def test_what_was_inherited_or_only_evaluated_again_costs_nothing():
    attempt = Attempt(status="ok", latency=1.0, usage={"prompt_tokens": 5, "completion_tokens": 3})
    paid = calls_of([attempt]).spent("worst_case")
    assert paid["tokens"].tolist() == [8.0]
    for free in (
        calls_of([attempt], inherited=True),
        calls_of([attempt], of=calls_of([attempt]).run),
    ):
        assert {name: values.tolist() for name, values in free.spent("worst_case").items()} == {
            name: [0.0] for name in paid
        }


def test_a_call_without_attempts_has_unknown_costs():
    spent = calls_of([]).spent("worst_case")
    for name in ("n_attempts", "tokens", "flops", "dollars", "call_seconds"):
        assert np.isnan(spent[name]).all(), name


def test_cached_tokens_are_part_of_the_prompt_and_none_where_nothing_is_said_of_a_cache():
    def cached(**usage):
        attempt = Attempt(status="ok", latency=1.0, usage={"completion_tokens": 1, **usage})
        return calls_of([attempt]).spent("exclude")["cached_tokens"].tolist()

    assert cached(prompt_tokens=10) == [0.0]
    assert cached(prompt_tokens=10, prompt_tokens_details={"cached_tokens": 4}) == [4.0]
    assert cached(prompt_tokens=10, prompt_tokens_details={"cached_tokens": 40}) == [10.0]
    assert cached(prompt_tokens=10, prompt_tokens_details="none") == [0.0]
    assert np.isnan(cached(prompt_tokens_details={"cached_tokens": 4})).all()


def test_of_what_another_tool_counted_without_a_word_of_a_cache_cached_tokens_are_unknown():
    [attempt] = answered(10, 1)
    [known] = answered(10, 1, prompt_tokens_details={"cached_tokens": 0})
    spent = calls_of([attempt], [known]).spent("worst_case")
    assert spent["cached_tokens"] == pytest.approx([np.nan, 0.0], nan_ok=True)
    assert spent["flops"].tolist() == [spent["flops"][1]] * 2


def test_unknown_numbers_are_nan():
    assert np.isnan(floats([None])).all()
    assert floats([1, 2.5]).tolist() == [1.0, 2.5]
    assert floats([]).shape == (0,)
