"""The text of a value makes an equal value again, or there is none and the message says why."""

from __future__ import annotations

import collections
import dataclasses
import datetime
import decimal
import enum
import fractions
import functools
import math
import pathlib
import re
from types import ModuleType
from typing import Any, NamedTuple

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from evo.capture.constants import MOST, NoText, expression_of


class Colour(enum.Enum):
    RED = 1


class Point(NamedTuple):
    x: float
    y: float


@dataclasses.dataclass
class Made:
    a: int
    b: list[int]


@dataclasses.dataclass
class Derived:
    a: int
    twice: int = dataclasses.field(init=False, default=0)


KNOWN: dict[str, Any] = {
    each.__name__: each
    for each in (
        Colour, Point, Made, Derived, collections, datetime, decimal, fractions, pathlib, re, math,
        collections.defaultdict, list, int,
    )
}  # fmt: skip
KNOWN["numpy"] = np


def named(value: object) -> str | None:
    """Names what is in KNOWN, and classes of modules that are."""
    for name, known in KNOWN.items():
        if known is value:
            return name
    module = str(getattr(value, "__module__", "")).removesuffix("._local")  # pathlib since 3.13
    if module in KNOWN and not isinstance(value, ModuleType):
        return f"{module}.{getattr(value, '__name__', '')}"
    return None


def again(value: object) -> Any:
    return eval(expression_of(value, named), dict(KNOWN))


ATOMS = st.one_of(
    st.none(), st.booleans(), st.integers(), st.floats(allow_nan=False), st.text(), st.binary(),
    st.complex_numbers(allow_nan=False), st.just(...),
)  # fmt: skip
HASHABLE = st.recursive(ATOMS, lambda inner: st.lists(inner, max_size=3).map(tuple), max_leaves=5)
VALUES = st.recursive(
    ATOMS,
    lambda inner: st.one_of(
        st.lists(inner, max_size=3),
        st.lists(inner, max_size=3).map(tuple),
        st.dictionaries(HASHABLE, inner, max_size=3),
        st.sets(HASHABLE, max_size=3),
        st.frozensets(HASHABLE, max_size=3),
        st.lists(inner, max_size=3).map(collections.deque),
    ),
    max_leaves=8,
)


@given(VALUES)
def test_values_of_python_are_made_again(value: object) -> None:
    made = again(value)
    assert made == value
    assert type(made) is type(value)


@pytest.mark.parametrize(
    "value",
    [
        Colour.RED,
        Point(1.0, -0.0),
        Made(1, [2, 3]),
        collections.Counter("abca"),
        collections.OrderedDict(b=1, a=2),
        collections.defaultdict(list, a=[1]),
        collections.defaultdict(None, a=1),
        datetime.date(2026, 1, 2),
        datetime.timedelta(days=1, seconds=5),
        decimal.Decimal("0.10"),
        fractions.Fraction(1, 3),
        pathlib.PurePath("a/b"),
        re.compile("a+", re.IGNORECASE),
        slice(1, None, 2),
        range(3),
        math.inf,
        np.float32(0.1),
        np.int8(-3),
        np.bool_(True),
        math.pi,
    ],
    ids=repr,
)
def test_what_is_named_is_made_again(value: object) -> None:
    made = again(value)
    assert made == value
    assert type(made) is type(value)


def test_nan_stays_nan() -> None:
    assert math.isnan(again(math.nan))
    assert math.isnan(again([math.nan])[0])
    assert again(-math.inf) == -math.inf


@pytest.mark.parametrize(
    "array",
    [
        np.arange(6.0).reshape(2, 3),
        np.array(2.5),
        np.empty((0, 3), dtype=np.int16),
        np.array(["a", "bc"]),
        np.array([1 + 2j], dtype=np.complex64),
        np.array([[True], [False]]),
        np.array([np.nan, np.inf]),
        np.array([b"ab"]),
    ],
    ids=lambda each: f"{each.dtype}{each.shape}",
)
def test_arrays_keep_their_type_and_shape(array: np.ndarray) -> None:
    made = again(array)
    assert (made.dtype, made.shape) == (array.dtype, array.shape)
    assert np.array_equal(made, array, equal_nan=array.dtype.kind in "fc")


def contains_itself() -> list[Any]:
    value: list[Any] = [1]
    value.append({"inner": value})
    return value


class Own:
    """Nothing is known of how one is made."""


@pytest.mark.parametrize(
    ("value", "message"),
    [
        (contains_itself(), "something that contains itself"),
        (object(), "a object"),
        ([Own()], "a Own"),
        (Own, "'Own'"),
        ({"a": print}, "a builtin_function_or_method"),
        (Derived(1), "a Derived whose field 'twice' is set elsewhere"),
        (np.array([None]), "an array of type object"),
        (np.array([(1, 2.0)], dtype=[("a", int), ("b", float)]), "an array of type"),
        (np.ma.masked_array([1.0]), "an array of type float64"),
        (np.array(["2026-01-01"], dtype="datetime64[D]"), "an array of type datetime64"),
        (functools.partial(int, "3"), "a partial"),
        ("a" * MOST, "1,048,578 characters as text, at most 1,048,576"),
    ],
    ids=lambda each: each if isinstance(each, str) and len(each) < 60 else "",
)
def test_what_has_no_text_is_named(value: object, message: str) -> None:
    with pytest.raises(NoText, match=re.escape(message)):
        expression_of(value, named)


def test_a_value_that_stands_twice_does_not_contain_itself() -> None:
    inner = [1]
    assert again([inner, inner, (inner,)]) == [[1], [1], ([1],)]
    assert len(expression_of("a" * (MOST - 2), named)) == MOST


def test_a_set_has_the_same_text_in_whatever_order_it_was_made() -> None:
    words = [f"w{k}" for k in range(50)]
    assert expression_of({*words}, named) == expression_of({*reversed(words)}, named)
    assert again(set()) == set()
