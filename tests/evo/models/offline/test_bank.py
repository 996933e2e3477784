"""What the offline model knows: steps that can be written, and the arguments that they take."""

from __future__ import annotations

import ast
from typing import Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evo.keyed import KeyedStream
from evo.models.offline.bank import BANKS, Argument, Bank, Idea, shorten

SEEDS = st.integers(0, 10**6)
RANGES = st.tuples(st.integers(-100, 100), st.integers(1, 200)).map(lambda p: (p[0], p[0] + p[1]))


def ideas(bank: Bank) -> list[Idea]:
    return [*bank.layouts, *bank.moves, *bank.lasts]


@given(SEEDS, RANGES, st.sampled_from(["real", "whole", "seed"]))
def test_an_argument_is_drawn_from_its_range(
    seed: int, ends: tuple[int, int], kind: Literal["real", "whole", "seed"]
) -> None:
    found = Argument(*ends, kind).draw(KeyedStream(seed))
    assert ends[0] <= found <= ends[1]
    assert isinstance(found, float if kind == "real" else int)
    if kind != "real":
        both = {Argument(0, 1, kind).draw(KeyedStream(k)) for k in range(20)}
        assert both == {0, 1}  # the ends are among what can be drawn


@given(SEEDS, RANGES, st.data())
def test_a_number_that_is_tuned_moves_within_its_range(
    seed: int, ends: tuple[int, int], data: st.DataObject
) -> None:
    low, high = ends
    value = data.draw(st.integers(low, high))
    whole = Argument(low, high, "whole").tune(value, KeyedStream(seed))
    assert isinstance(whole, int)
    assert low <= whole <= high
    assert whole != value or value in ends
    real = Argument(low, high).tune(float(value), KeyedStream(seed))
    assert low <= real <= high
    assert shorten(real) == real  # as people write it
    assert 0.5 * abs(value) - 1e-9 <= abs(real) <= 2 * abs(value) + 1e-9
    assert real == value or value != 0


@given(SEEDS)
def test_a_whole_number_that_scaling_leaves_alone_goes_one_step_either_way(seed: int) -> None:
    assert Argument(0, 100, "whole").tune(3, KeyedStream(seed)) in {2, 4, 6}
    steps = {Argument(0, 100, "whole").tune(0, KeyedStream(k)) for k in range(20)}
    assert steps == {0, 1}  # below its range there is nothing


@given(SEEDS)
def test_a_seed_and_what_is_no_number_are_drawn_anew(seed: int) -> None:
    seeds, other = Argument(0, 9999, "seed"), Argument(1, 2)
    assert seeds.tune(7, KeyedStream(seed)) == seeds.draw(KeyedStream(seed))
    for value in (None, "3", (1, 2)):
        assert other.tune(value, KeyedStream(seed)) == other.draw(KeyedStream(seed))


@given(st.floats(-1e6, 1e6, allow_subnormal=False))
def test_a_number_is_shortened_to_four_digits_once_and_for_all(value: float) -> None:
    found = shorten(value)
    assert found == pytest.approx(value, rel=5.1e-4)
    assert shorten(found) == found
    digits = f"{found:.15e}".partition("e")[0].replace(".", "").strip("-0")
    assert len(digits) <= 4 or digits[4:].strip("09") == ""


@pytest.mark.parametrize("bank", BANKS, ids=lambda bank: bank.entries[0])
def test_every_step_is_a_function_of_the_arguments_that_are_drawn_for_it(bank: Bank) -> None:
    for idea in ideas(bank):
        tree = ast.parse(idea.source)
        function = next(n for n in tree.body if isinstance(n, ast.FunctionDef))
        assert function.name == idea.name
        drawn = idea.draw(KeyedStream(idea.name))
        parameters = [argument.arg for argument in function.args.args]
        assert {*drawn} <= {*parameters}
        for name, value in drawn.items():
            if name in idea.choices:
                assert value in idea.choices[name]
            else:
                assert idea.arguments[name].low <= value <= idea.arguments[name].high
        given = len(parameters) - len(function.args.defaults)
        array = 0 if idea in bank.layouts else 1
        assert given - array <= len(drawn)  # what has no default is drawn


@pytest.mark.parametrize("bank", BANKS, ids=lambda bank: bank.entries[0])
def test_an_idea_is_found_by_its_name_wherever_it_stands(bank: Bank) -> None:
    for idea in ideas(bank):
        assert bank.idea(idea.name) is idea
    assert bank.idea("unheard_of") is None
    names = [idea.name for idea in ideas(bank)]
    assert len({*names}) == len(names)


def test_a_call_takes_longer_by_what_each_of_its_arguments_costs() -> None:
    idea = Idea(name="f", title="", source="", weight=1.0, fixed_ms=2.0, ms_per={"n": 0.5, "m": 3})
    assert idea.milliseconds({}) == 2.0
    assert idea.milliseconds({"n": 4}) == 4.0
    assert idea.milliseconds({"n": 4, "m": 1, "other": 9}) == 7.0
    assert idea.milliseconds({"n": (1, 2)}) == 2.0  # a tuple has no length of time
