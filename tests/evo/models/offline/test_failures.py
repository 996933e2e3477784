"""How often replies of the offline model fail, and what is broken then."""

import ast
from collections import Counter

import pytest

import evo
from evo.keyed import KeyedStream
from evo.models.offline.failures import RATES, draw_failure, spoil


@pytest.mark.parametrize(("temperature", "scale"), [(0.0, 0.5), (0.6, 1.0), (1.8, 2.0)])
def test_failures_are_as_frequent_as_stated(temperature, scale):
    draws, count = KeyedStream("f", temperature), 20_000
    found = Counter(draw_failure(draws, temperature=temperature) for _ in range(count))
    for failure, rate in RATES.items():
        expected = count * rate * scale
        assert abs(found[failure] - expected) < 4.5 * expected**0.5
    assert abs(found["none"] / count - (1 - scale * sum(RATES.values()))) < 0.02


PLAIN = """import math


def helper():
    return 1


def solve():
    x = (1 + 2)
    return x
"""


@pytest.mark.parametrize("seed", range(10))
def test_broken_syntax_is_no_python(seed):
    broken = spoil(PLAIN, "syntax", KeyedStream(seed))
    with pytest.raises(SyntaxError):
        ast.parse(broken)
    with pytest.raises(SyntaxError):
        ast.parse(spoil("x = 1\n", "shape", KeyedStream(seed)))  # no function to break otherwise


@pytest.mark.parametrize("failure", ["exception", "shape", "infeasible"])
def test_outside_the_shipped_tasks_the_last_function_raises(failure):
    space = {}
    exec(spoil(PLAIN, failure, KeyedStream(1)), space)
    assert space["helper"]() == 1
    with pytest.raises(NotImplementedError, match="not handled yet"):
        space["solve"]()


def test_an_endless_program_parses_and_loops_without_an_end():
    broken = spoil(PLAIN, "endless", KeyedStream(1))
    assert "while error > 0:" in broken
    assert ast.parse(broken)
    error = 1.0
    for _ in range(10_000):
        error = 0.5 * (error + 1e-12)
    assert error > 0  # it tends to 1e-12


@pytest.mark.parametrize("failure", ["exception", "shape", "infeasible"])
@pytest.mark.parametrize("task", ["mmd", "cp"])
def test_programs_of_shipped_tasks_stay_python_and_change_their_answer(task, failure):
    source = evo.load_task(task).initial_program
    broken = spoil(source, failure, KeyedStream(task, failure))
    assert ast.parse(broken)
    assert broken != source
