"""The space of a sweep and its strategies: relations, no runs."""

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st
from sweep_spaces import WIDE, inside

from evo.studies.sweep.fields import known_fields
from evo.studies.sweep.space import SpaceError, parse_space

numbers = st.floats(0.01, 1.0).map(lambda x: round(x, 3))
dimension = st.one_of(
    st.lists(st.integers(1, 50), min_size=1, max_size=4, unique=True),
    st.tuples(st.integers(1, 9), st.integers(0, 9)).map(lambda t: {"min": t[0], "max": sum(t)}),
    st.tuples(st.integers(1, 9), st.integers(0, 99)).map(
        lambda t: {"min": t[0], "max": sum(t), "log": True}
    ),
)
spaces = st.dictionaries(
    st.sampled_from(["children", "generations", "max_tokens", "limits.processes"]), dimension
)


@given(spaces, st.integers(0, 99))
def test_draws_and_changed_draws_stay_inside(spec, key) -> None:
    space = parse_space(spec)
    values = space.draw(str(key))
    assert inside(space, values)
    assert space.draw(str(key)) == values
    moved = space.perturb(values, str(key))
    assert inside(space, moved)
    assert sum(moved[name] != values[name] for name in values) <= 1


@given(spaces)
def test_a_grid_is_the_product(spec) -> None:
    listed = {name: each for name, each in spec.items() if not isinstance(each, dict)}
    grid = parse_space(listed).grid()
    size = 1
    for values in listed.values():
        size *= len(values)
    assert len(grid) == size
    assert all([*row] == sorted(listed) for row in grid)
    assert grid == sorted(grid, key=lambda row: [listed[n].index(row[n]) for n in sorted(listed)])
    for name, values in listed.items():
        assert {row[name] for row in grid} == set(values)


def test_ranges_include_both_ends() -> None:
    temperature, children = (
        parse_space({name: spec}).dimensions[0].values
        for name, spec in (
            ("temperature", {"min": 0.1, "max": 0.7, "step": 0.1}),
            ("children", {"min": 2, "max": 9, "step": 3}),
        )
    )
    assert temperature == (0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7)
    assert children == (2, 5, 8)
    tokens = parse_space({"max_tokens": {"min": 2, "max": 4096, "log": True}})
    drawn = [tokens.draw(str(k))["max_tokens"] for k in range(400)]
    assert min(drawn) < 4
    assert max(drawn) > 1024
    assert sum(value < 91 for value in drawn) == pytest.approx(200, abs=50)


def test_conditions_hold_in_a_grid_and_in_draws() -> None:
    spec = {"model": ["a", "b"], "top_p": {"values": [0.9, 1.0], "when": {"model": "b"}}}
    assert parse_space(spec).grid() == [
        {"model": "a"}, {"model": "b", "top_p": 0.9}, {"model": "b", "top_p": 1.0},
    ]  # fmt: skip
    chain = {**spec, "children": {"values": [2, 4], "when": {"top_p": [0.9]}}}
    space = parse_space(chain)
    drawn = [space.draw(str(k)) for k in range(50)]
    assert {frozenset(values) for values in drawn} == {
        frozenset({"model"}),
        frozenset({"model", "top_p"}),
        frozenset({"model", "top_p", "children"}),
    }


def test_one_fields_draws_do_not_depend_on_the_others() -> None:
    wide, narrow = parse_space(WIDE), parse_space({"children": WIDE["children"]})
    for key in map(str, range(30)):
        assert wide.draw(key)["children"] == narrow.draw(key)["children"]


@pytest.mark.parametrize(
    ("spec", "says"),
    [
        ({"temprature": [1]}, "did you mean 'temperature'"),
        ({"nonsense": [1]}, "known: advice, arms, asynchronous, audit, base_url, "),
        ({"seed": [1]}, "seeds="),
        ({"children": []}, "at least one value"),
        ({"children": [2, 2]}, "twice"),
        ({"children": {"min": 4, "max": 2}}, "min <= max"),
        ({"children": {"min": 1, "max": 2.5}}, "whole numbers"),
        ({"temperature": {"min": 0, "max": 1, "log": True}}, "min > 0"),
        ({"temperature": {"min": 0.1, "max": 1, "log": True, "step": 0.1}}, "no step"),
        ({"temperature": {"min": 0, "max": 1, "step": 0}}, "step above 0"),
        ({"temperature": {"min": 0}}, "min, max"),
        ({"temperature": {"mim": 0, "max": 1}}, "min, max"),
        ({"temperature": {"mim": 0}}, "expected values, or min and max"),
        ({"temperature": {"min": "a", "max": 1}}, "numbers"),
        ({"temperature": [1.0], "sampling.temperature": [1.0]}, "the same field"),
        ({"children": {"values": [2], "when": {"model": "a"}}}, "no other field of this space"),
        ({"model": ["a"], "children": {"values": [2], "when": {"model": "b"}}}, "never 'b'"),
        (
            {
                "children": {"values": [2], "when": {"generations": 1}},
                "generations": {"values": [1], "when": {"children": 2}},
            },
            "circle",
        ),
    ],
)
def test_mistakes_say_what_exists(spec, says) -> None:
    with pytest.raises(SpaceError, match=says):
        parse_space(spec)


def test_a_grid_of_a_range_without_a_step_says_what_takes_one() -> None:
    with pytest.raises(SpaceError, match="random, guided and bayesian"):
        parse_space({"temperature": {"min": 0, "max": 1}}).grid()
    assert {"model", "task", "generations", "sampling.top_p", "limits.seconds"} <= {*known_fields()}


@given(st.integers(0, 2**31))
def test_moves_are_to_neighbours_or_within_a_fifth_of_the_range(key) -> None:
    draws = random.Random(key)
    for step in (0.25, None):
        spec = {"min": 0.0, "max": 2.0, **({"step": step} if step else {})}
        dimension = parse_space({"temperature": spec}).dimensions[0]
        value = dimension.draw(draws)
        moved = abs(dimension.move(value, draws) - value)
        assert moved == pytest.approx(0.25) if step else moved <= 0.4 + 1e-3


@pytest.mark.parametrize("log", [False, True])
def test_a_continuous_value_moves_both_ways_by_a_fifth_of_its_range_at_most(log: bool) -> None:
    [tokens] = parse_space({"temperature": {"min": 0.01, "max": 1.0, "log": log}}).dimensions
    middle = 0.1 if log else 0.5
    moved = [tokens.move(middle, random.Random(k)) for k in range(300)]
    reach = [0.01**0.2, 0.01**-0.2] if log else [0.302 / 0.5, 0.698 / 0.5]
    assert reach[0] * 0.999 <= min(moved) / middle < reach[0] * 1.1
    assert reach[1] * 0.9 < max(moved) / middle <= reach[1] * 1.001


def test_neighbours_in_a_list_that_falls_are_alike_too() -> None:
    def moved(*values: float) -> set[object]:
        [listed] = parse_space({"temperature": list(values)}).dimensions
        return {listed.move(values[0], random.Random(k)) for k in range(50)}

    assert moved(0.9, 0.5, 0.1) == {0.5}
    assert moved(0.1, 0.5, 0.9) == {0.5}
    assert moved(0.9, 0.1, 0.5) == {0.1, 0.5}


def test_rounding_leads_out_of_no_range() -> None:
    [narrow] = parse_space({"temperature": {"min": 0.123461, "max": 0.123469}}).dimensions
    drawn = {narrow.draw(random.Random(k)) for k in range(50)} | set(narrow.ends())
    assert all(0.123461 <= value <= 0.123469 for value in drawn)
