"""What an evaluator may return, and how scores on instances are put together."""

from __future__ import annotations

import math
from collections import OrderedDict
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from evo.sandbox.scores import WrongScore, as_float, notes_text, read_score, score_instances


@pytest.mark.parametrize(
    ("returned", "fitness", "metrics", "notes"),
    [
        (0.5, 0.5, {}, ""),
        (True, 1.0, {}, ""),
        (np.float32(0.5), 0.5, {}, ""),
        (np.array(0.5), 0.5, {}, ""),
        (np.bool_(False), 0.0, {}, ""),
        (Fraction(1, 4), 0.25, {}, ""),
        ({"fitness": 1, "size": 3}, 1.0, {"size": 3.0}, ""),
        (OrderedDict(fitness=0.5, notes="x"), 0.5, {}, "x"),
        ({"fitness": 0.5, "notes": 7}, 0.5, {"notes": 7.0}, ""),  # a metric of that name
        ((0.5, "why"), 0.5, {}, "why"),
        (({"fitness": 0.5, "size": 1}, "why"), 0.5, {"size": 1.0}, "why"),
        (({"fitness": 0.5, "notes": "own"}, "why"), 0.5, {}, "own"),
        ((0.5, None), 0.5, {}, ""),
        ({"fitness": 0.5, "\ud800": 1}, 0.5, {"\\ud800": 1.0}, ""),
    ],
)
def test_a_number_a_dict_or_a_number_and_notes_is_a_score(
    returned: object, fitness: float, metrics: dict[str, float], notes: str
) -> None:
    assert read_score(returned) == (fitness, metrics, notes)


@pytest.mark.parametrize(
    ("returned", "message"),
    [
        (None, r"score\(value\) must return a number, a dict"),
        ("0.5", "must return a number"),
        ([0.5], "must return a number"),
        (np.array([0.5]), "must return a number"),
        ((0.5, "a", "b"), "must return a number"),
        ((("a", "b"), "c"), "must return a number"),
        (1j, "must return a number"),
        ({}, "must return a number, a dict with the key 'fitness'"),
        ({"combined": 0.5}, "the key 'fitness'"),
        ({"fitness": "0.5"}, "must return numbers, got 'fitness': '0.5'; words go into 'notes'"),
        ({"fitness": 0.5, "size": [1]}, r"must return numbers, got 'size': \[1\]$"),
        ({"fitness": None}, "must return numbers, got 'fitness': None"),
    ],
)
def test_anything_else_is_the_evaluators_own_fault(returned: object, message: str) -> None:
    with pytest.raises(WrongScore, match=message):
        read_score(returned)


@pytest.mark.parametrize("number", [math.nan, math.inf, -math.inf, 10**400, -(10**400)])
def test_a_number_beyond_all_bounds_is_illegal_and_not_wrong(number: float) -> None:
    for returned in (number, {"fitness": number}, {"fitness": 0.5, "size": number}):
        with pytest.raises(ValueError, match="is not finite"):
            read_score(returned)
    assert as_float(10**400) == math.inf
    assert as_float(-(10**400)) == -math.inf


def by_value(value: Any, instance: Any) -> Any:
    if isinstance(value, Exception):
        raise value
    return value


def scored(
    *values: Any, unit: bool = True, strict: tuple[int, ...] = (), check: tuple[int, ...] = ()
) -> dict[str, object]:
    outcomes = [("error", None) if value is None else ("ok", value) for value in values]
    instances = [
        {"id": f"i{k}", **({"check": True} if k in check else {})} for k in range(len(values))
    ]
    return score_instances(by_value, outcomes, instances, unit=unit, strict=strict)


def test_each_instance_has_its_score_by_its_place() -> None:
    assert scored(0.5, None, 1.0, 0) == {"fitness": 0.0, "0": 0.5, "2": 1.0, "3": 0.0, "notes": ""}
    assert scored() == {"fitness": 0.0, "notes": ""}


@pytest.mark.parametrize("score", [math.nextafter(0, -1), math.nextafter(1, 2), math.inf])
def test_scores_lie_between_0_and_1_unless_they_may_be_any(score: float) -> None:
    with pytest.raises(WrongScore, match="expected 0 to 1"):
        scored(score)
    assert scored(0.0, 1.0)["1"] == 1.0
    if math.isfinite(score):
        assert scored(score, unit=False)["0"] == score
    else:
        assert scored(score, unit=False)["0 invalid"] == 0.0


def test_a_value_that_is_not_legal_counts_and_an_error_does_not() -> None:
    assert scored(ValueError("no"), OSError("disk"), 0.5) == {
        "fitness": 0.0, "0 invalid": 0.0, "2": 0.5, "notes": ""
    }  # fmt: skip
    assert "0 invalid" in scored(ValueError("no"), OSError("disk"))
    with pytest.raises(OSError, match="first"):
        scored(OSError("first"), OSError("second"), None)


def test_where_there_must_be_a_score_nothing_else_will_do() -> None:
    with pytest.raises(ValueError, match=r"^instance i1: no$"):
        scored(0.5, ValueError("no"), strict=(1,))
    with pytest.raises(OSError, match="disk"):
        scored(0.5, OSError("disk"), strict=(1,))
    assert scored(OSError("disk"), 0.5, strict=(1,))["1"] == 0.5


def test_other_metrics_are_means_over_the_instances_that_count() -> None:
    found = scored(
        {"fitness": 0.5, "size": 2}, {"fitness": 0.5, "size": 4, "more": 1},
        {"fitness": 0.5, "size": 100}, None, check=(2,),
    )  # fmt: skip
    assert (found["mean size"], found["mean more"]) == (3.0, 1.0)


def test_notes_are_those_on_the_instance_that_went_worst_and_of_equal_ones_the_first() -> None:
    notes = {k: {"fitness": f, "notes": f"n{k}"} for k, f in enumerate((0.5, 0.25, 0.25, 0.0))}
    assert scored(*notes.values(), check=(3,))["notes"] == "instance i1: n1"
    quiet = {"fitness": 0.0}
    assert scored(notes[0], quiet)["notes"] == ""  # nothing was said of the worst


@pytest.mark.parametrize(
    ("given_", "text"),
    [
        ("  words \n", "words"),
        (b"by\xfftes", "by\ufffdtes"),
        (1.5, "1.5"),
        (None, ""),
        ([1, "two", None, ["three"]], "1, two, three"),
        ({"missing": ["x", "y"], "of": ()}, "missing: x, y"),
        ({1, 2}, ""),
        ({"a": "x", "b": "", "c": {"d": "y"}, 3: 4}, "a: x\nc: d: y\n3: 4"),
    ],
)
def test_notes_are_a_text_or_several_by_name(given_: object, text: str) -> None:
    assert notes_text(given_) == text


@given(st.lists(st.floats(0, 1), min_size=1, max_size=6), st.randoms())
def test_the_order_of_instances_decides_nothing_but_the_places(
    values: list[float], rng: Any
) -> None:
    order = [*range(len(values))]
    rng.shuffle(order)
    one, other = scored(*values), scored(*(values[k] for k in order))
    assert [other[str(place)] for place in range(len(values))] == [one[str(k)] for k in order]
