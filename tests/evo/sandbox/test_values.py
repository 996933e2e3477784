"""Values on their way out of a program."""

from __future__ import annotations

import contextlib
import re
from typing import Any

import msgspec
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from evo.sandbox.values import UnsendableError, decode, encode, to_lists

LIMIT = 1 << 20
ENDLESS: list[Any] = []
ENDLESS.append(ENDLESS)
plain = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**63 - 1)
    | st.floats(allow_nan=False)
    | st.text(st.characters(exclude_categories=["Cs"])),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(st.text(st.characters(exclude_categories=["Cs"])), inner, max_size=4)
    ),
    max_leaves=20,
)
numeric = (
    arrays.boolean_dtypes()
    | arrays.integer_dtypes(endianness="?")
    | arrays.unsigned_integer_dtypes(endianness="?")
    | arrays.floating_dtypes(endianness="?")
)


@given(plain)
def test_plain_data_comes_back_as_it_was(value: Any) -> None:
    assert repr(decode(encode(value, max_bytes=LIMIT))) == repr(value)


@given(arrays.arrays(numeric, arrays.array_shapes(min_dims=0, min_side=0)))
def test_arrays_come_back_with_shape_and_numbers(value: Any) -> None:
    found = decode(encode({"a": [value, value.T]}, max_bytes=LIMIT))["a"]
    for expected, got in zip((value, value.T), found, strict=True):
        assert got.shape == expected.shape
        assert got.dtype.kind == expected.dtype.kind
        assert got.flags.writeable
        np.testing.assert_array_equal(got, expected)


@given(numeric)
def test_scalars_become_numbers(dtype: np.dtype[Any]) -> None:
    found = decode(encode(np.ones((), dtype=dtype)[()], max_bytes=LIMIT))
    assert type(found) in (bool, int, float)
    assert found == 1


@given(st.binary(max_size=200))
def test_any_bytes_decode_or_raise_value_error(data: bytes) -> None:
    with contextlib.suppress(ValueError):
        decode(data)


@given(st.binary(max_size=20), st.text(max_size=5), st.lists(st.integers(), max_size=3))
def test_forged_arrays_decode_or_raise_value_error(
    content: bytes, dtype: str, shape: list[int]
) -> None:
    try:
        parts = msgspec.msgpack.encode((dtype, shape, content))
    except OverflowError:
        return
    for code in range(4):
        try:
            found = decode(msgspec.msgpack.encode(msgspec.msgpack.Ext(code, parts)))
        except ValueError:
            continue
        assert isinstance(found, np.ndarray)


@pytest.mark.parametrize(
    ("value", "says"),
    [
        (object(), "'object'"),
        (1j, "'complex'"),
        (np.complex128(1j), "'complex128'"),
        (np.array([None]), "'object'"),
        (np.array([1j]), "'complex128'"),
        (np.zeros(2, dtype="f8,i4"), "'<f8'"),
        (np.zeros((101, 0)), "without numbers"),
        (np.ma.zeros(2), "'MaskedArray'"),
        (2**64, "64 bits"),
        ("\ud800", "surrogates"),
        ({"\ud800": 1}, "surrogates"),
        (iter([1]), "'list_iterator'"),
        (ENDLESS, "recursion"),
    ],
    ids=lambda value: type(value).__name__,
)
def test_anything_else_is_refused_with_its_reason(value: Any, says: str) -> None:
    with pytest.raises(UnsendableError, match=says):
        encode([value], max_bytes=LIMIT)


@pytest.mark.parametrize(
    "value", [[0.0] * 200, np.zeros(200), "x" * 2000, {str(i): i for i in range(500)}, (1,) * 2000]
)
def test_size_is_capped(value: Any) -> None:
    encode(value, max_bytes=20_000)
    with pytest.raises(UnsendableError, match="larger than 1000 bytes"):
        encode(value, max_bytes=1000)
    with pytest.raises(UnsendableError, match="larger than 1000 bytes"):
        encode([np.broadcast_to(0.5, (10**9, 10**9))], max_bytes=1000)


def test_nested_lists() -> None:
    value = {"a": (np.ones((1, 2)), [np.arange(2)]), "b": "text"}
    found = to_lists(decode(encode(value, max_bytes=LIMIT)))
    assert found == {"a": [[[1.0, 1.0]], [[0, 1]]], "b": "text"}


FORGED = [
    (("|O", (1,), bytes(8)), "an array of numbers expected, got type '|O'"),
    (("<c16", (1,), bytes(16)), "an array of numbers expected, got type '<c16'"),
    (("<f8", (-1,), b""), "of shape (-1,) does not have 0 bytes"),
    (("<f8", (2,), bytes(8)), "of shape (2,) does not have 8 bytes"),
    (("<f8", (1 << 40, 0), b""), "of shape (1099511627776, 0) has many parts and no numbers"),
]


@pytest.mark.parametrize(("parts", "words"), FORGED)
def test_a_forged_array_is_refused_with_its_reason(parts: tuple[object, ...], words: str) -> None:
    honest = encode(np.ones(2), max_bytes=LIMIT)
    code = msgspec.msgpack.decode(honest, ext_hook=lambda code, data: code)
    forged = msgspec.msgpack.Ext(code, msgspec.msgpack.encode(parts))
    with pytest.raises(ValueError, match=re.escape(words)):
        decode(msgspec.msgpack.encode(forged))


def test_numbers_wider_than_a_float_come_back_as_the_nearest_or_infinite() -> None:
    wide = np.array(["1.5", "-1e4000", "nan"], dtype=np.longdouble)
    if wide.dtype.itemsize == 8:
        pytest.skip("this platform has none")
    found = decode(encode(wide, max_bytes=LIMIT))
    assert isinstance(found, np.ndarray)
    assert found.dtype == np.float64
    assert repr(found.tolist()) == "[1.5, -inf, nan]"
