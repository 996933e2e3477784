"""A logged call keeps the prices that it was made at."""

from __future__ import annotations

import msgspec
import pytest
from samples import sample_child, sample_header

from evo.logs.records import Generation, Header, ReplyLine
from evo.runs.rates import with_rates
from evo.runs.state import State


def priced(**prices: float | None) -> Header:
    header = sample_header()
    return msgspec.structs.replace(header, model=msgspec.structs.replace(header.model, **prices))


@pytest.mark.parametrize(
    ("prices", "rates"),
    [
        ({}, {}),
        ({"input_price": 1.0, "output_price": 2.0}, {}),  # those of the log
        ({"output_price": 5.0}, {"output_price": 5.0}),
        ({"input_price": None}, {"input_price": None}),  # no longer known
        ({"input_price": 0.0, "output_price": 0.0}, {"input_price": 0.0, "output_price": 0.0}),
    ],
)
def test_only_prices_that_are_not_the_logs_are_kept(
    prices: dict[str, float | None], rates: dict[str, float | None]
) -> None:
    line = sample_child(1, 0, 0.5)
    kept = with_rates(priced(**prices), State(sample_header()), line)
    assert [each.rates for each in kept.attempts] == [rates] * len(line.attempts)
    assert msgspec.structs.replace(kept, attempts=line.attempts) == line


def test_a_child_keeps_the_prices_of_the_session_that_got_its_reply() -> None:
    state, child = State(sample_header()), sample_child(1, 0, 0.5)
    reply = ReplyLine(generation=1, index=0, attempts=child.attempts, reply="x")
    earlier = with_rates(priced(output_price=5.0), state, reply)
    state.take(earlier)
    kept = with_rates(priced(output_price=9.0), state, child)
    assert kept.attempts == earlier.attempts
    assert kept.attempts[0].rates == {"output_price": 5.0}


def test_a_line_without_calls_stays_as_it_is() -> None:
    line = Generation(generation=1, best_fitness=0.5, best=(1, 0), improved=True, seconds=0.0)
    assert with_rates(priced(output_price=5.0), State(sample_header()), line) is line
