"""Vectors as a log holds them, and how alike they are."""

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from evo.logs.vectors import MOST, cosines, decode_vector, encode_vector, vectors_in

NUMBERS = st.floats(-1e300, 1e300, allow_subnormal=True)
VECTORS = st.lists(NUMBERS, min_size=1, max_size=20).filter(any)


def exact(one: list[float], other: list[float]) -> float:
    """The cosine of two vectors, each brought to lengths at which no square overflows."""
    a, b = ([each / max(map(abs, v)) for each in v] for v in (one, other))
    dot = math.fsum(x * y for x, y in zip(a, b, strict=True))
    return dot / math.sqrt(math.fsum(x * x for x in a) * math.fsum(y * y for y in b))


@given(VECTORS, st.floats(1e-3, 1e3))
def test_a_vector_keeps_its_direction_and_not_its_length(vector: list[float], by: float) -> None:
    found = decode_vector(encode_vector(vector))
    assert len(found) == len(vector)
    assert cosines(found, [found]).tolist() == [1.0]
    largest = max(map(abs, vector))
    np.testing.assert_allclose(found / 32767, np.array(vector) / largest, atol=0.51 / 32767)
    scaled = decode_vector(encode_vector([each / 1e10 * by for each in vector]))
    assert np.abs(scaled.astype(int) - found).max() <= 1


@given(st.data())
def test_cosines_are_those_of_the_numbers(data: st.DataObject) -> None:
    size = data.draw(st.integers(1, 12))
    own = st.lists(st.floats(-10, 10), min_size=size, max_size=size).filter(any)
    one, *others = data.draw(st.lists(own, min_size=2, max_size=6))
    first, *rest = (decode_vector(encode_vector(each)) for each in (one, *others))
    found = cosines(first, rest)
    assert np.abs(found).max() <= 1 + 1e-15
    np.testing.assert_allclose(found, [exact(one, other) for other in others], atol=2e-3)
    for vector, value in zip(rest, found, strict=True):
        assert cosines(vector, [first])[0] == value


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ([], "1 to 65536 numbers of which one is not 0, got 0 numbers"),
        ([0.0, -0.0], "got 2 numbers that are 0"),
        ([1.0] * (MOST + 1), "got 65537 numbers"),
        ([1.0, math.nan], "expected finite numbers, got nan"),
        ([math.inf], "expected finite numbers, got inf"),
        ([1, True], "expected finite numbers, got True"),
        ([1, "2"], "expected finite numbers, got '2'"),
        ([10**400], "expected finite numbers, got 1000"),
        ([None], "expected finite numbers, got None"),
    ],
)
def test_what_has_no_direction_is_no_vector(wrong: list[Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        encode_vector(wrong)


@pytest.mark.parametrize("text", ["", "AAAA", "!", "AQ=="])
def test_a_text_that_is_no_vector_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="expected a vector"):
        decode_vector(text)


@pytest.mark.parametrize(
    "returned",
    [
        [[1.0, 2.0], [3.0, 4.0]],
        ([1.0, 2.0], (3.0, 4.0)),
        np.array([[1.0, 2.0], [3.0, 4.0]]),
        [np.array([1.0, 2.0]), np.array([3.0, 4.0], dtype=np.float32)],
    ],
    ids=["lists", "tuples", "array", "arrays"],
)
def test_vectors_come_in_whatever_holds_numbers(returned: object) -> None:
    assert vectors_in(returned, 2) == [[1.0, 2.0], [3.0, 4.0]]


@pytest.mark.parametrize(
    ("returned", "message"),
    [
        (None, "a list of one vector, one for each of the texts .* got None"),
        ([[1.0], [2.0]], "a list of one vector"),
        ("text", "a list of one vector, .* got 'text'"),
        ([1.0], "expected a vector as a list of numbers, got 1.0"),
        ([["1"]], "expected finite numbers"),
        (np.array([1.0]), "expected a vector as a list of numbers"),
    ],
)
def test_what_is_not_one_vector_for_each_text_is_named(returned: object, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        vectors_in(returned, 1)
