"""What a program may return, as bytes and back: plain data, never pickles.

None, bool, int, float, str, list, tuple, dict with str keys, and NumPy arrays and scalars of
booleans, integers and real numbers. NaN and infinities pass: what is legal is the evaluator's
business.
"""

from __future__ import annotations

from math import prod
from typing import Any

import msgspec
import numpy as np
from numpy.typing import NDArray

_ARRAY = 1
_TUPLE = 2
_MAX_DEPTH = 64
_KINDS = "biuf"
_MAX_EMPTY = 1000  # parts of an array without numbers


class UnsendableError(ValueError):
    """The value is not plain data, or larger than allowed; the text says which."""


def encode(value: object, *, max_bytes: int) -> bytes:
    """A returned value in MessagePack; `UnsendableError` where it is too large or not plain."""
    return msgspec.msgpack.encode(_Budget(max_bytes).plain(value, 0))


class _Budget:
    """Turns a value into what MessagePack knows, as long as it stays within so many bytes."""

    def __init__(self, max_bytes: int) -> None:
        self.max_bytes = max_bytes
        self.left = max_bytes

    def spend(self, count: int) -> None:
        self.left -= count
        if self.left < 0:
            raise UnsendableError(f"the returned value is larger than {self.max_bytes} bytes")

    def plain(self, value: Any, depth: int) -> object:
        if depth > _MAX_DEPTH:
            raise UnsendableError(f"the returned value is nested deeper than {_MAX_DEPTH} levels")
        kind = type(value)
        if value is None or kind is bool:
            return value
        if kind is float:
            self.spend(8)
            return value
        if issubclass(kind, np.generic):
            return self.plain(_from_scalar(value), depth)
        if kind is int:
            self.spend(8)
            if not -(2**63) <= value < 2**63:
                raise _not_plain("an integer of more than 64 bits")
            return value
        if kind is str:
            return self._text(value)
        if kind is np.ndarray:
            return self._array(value)
        # The methods of the base class, not those of a subclass that the program wrote.
        for base in (list, tuple):
            if issubclass(kind, base):
                self.spend(base.__len__(value))
                items = [self.plain(item, depth + 1) for item in base.__iter__(value)]
                if base is list:
                    return items
                return msgspec.msgpack.Ext(_TUPLE, msgspec.msgpack.encode(items))
        if issubclass(kind, dict):
            return self._mapping(value, depth)
        raise _not_plain(f"an object of type {kind.__name__!r}")

    def _text(self, value: str) -> str:
        try:
            self.spend(len(value.encode()))
        except UnicodeEncodeError as error:
            raise _not_plain("text with lone surrogates") from error
        return value

    def _mapping(self, value: dict[object, object], depth: int) -> dict[str, object]:
        self.spend(dict.__len__(value))
        plain = {}
        for key, item in dict.items(value):
            if type(key) is not str:
                raise _not_plain(f"a dict key of type {type(key).__name__!r}")
            plain[self._text(key)] = self.plain(item, depth + 1)
        return plain

    def _array(self, value: NDArray[np.generic]) -> msgspec.msgpack.Ext:
        if value.dtype.kind not in _KINDS:
            raise _not_plain(f"an array of type {str(value.dtype)!r}")
        if not value.size and _places(value.shape) > _MAX_EMPTY:
            raise _not_plain(f"an array without numbers of shape {value.shape!r}")
        self.spend(value.nbytes)
        if value.dtype.itemsize > 8:
            with np.errstate(over="ignore"):
                value = value.astype(np.float64)
        value = value.astype(value.dtype.newbyteorder("<"), copy=False)
        parts = (value.dtype.str, value.shape, value.tobytes())
        return msgspec.msgpack.Ext(_ARRAY, msgspec.msgpack.encode(parts))


def _places(shape: tuple[int, ...]) -> int:
    """How many lists or numbers an array becomes as nested lists; an empty one may be many."""
    return prod(max(length, 1) for length in shape)


def _from_scalar(value: np.generic) -> bool | int | float:
    for kinds, plain in (("b", bool), ("iu", int), ("f", float)):
        if value.dtype.kind in kinds:
            return plain(value)
    raise _not_plain(f"a NumPy {type(value).__name__!r}")


def _not_plain(what: str) -> UnsendableError:
    return UnsendableError(
        f"the returned value holds {what}; allowed are None, bool, int, float, str, list, tuple, "
        f"dict with str keys and numeric NumPy arrays"
    )


def decode(data: bytes) -> object:
    """What `encode` wrote; `ValueError` where something hostile stands in its place."""
    try:
        return _decoder.decode(data)
    except (msgspec.DecodeError, RecursionError, TypeError, ValueError) as error:
        raise ValueError(f"the returned bytes are no value: {error}") from error


def _extension(code: int, data: memoryview) -> object:
    if code == _TUPLE:
        items = _decoder.decode(data)
        if not isinstance(items, list):
            raise ValueError(f"a tuple expected, got {type(items).__name__!r}")
        return tuple(items)
    if code != _ARRAY:
        raise ValueError(f"unknown extension {code!r}")
    name, shape, content = _array_decoder.decode(data)
    dtype = np.dtype(name)
    if dtype.kind not in _KINDS or dtype.itemsize > 8:
        raise ValueError(f"an array of numbers expected, got type {name!r}")
    if any(length < 0 for length in shape) or len(content) != prod(shape) * dtype.itemsize:
        raise ValueError(f"an array of shape {shape!r} does not have {len(content)} bytes")
    if _places(shape) > max(len(content), _MAX_EMPTY):
        raise ValueError(f"an array of shape {shape!r} has many parts and no numbers")
    return np.frombuffer(bytearray(content), dtype=dtype).reshape(shape)


_decoder = msgspec.msgpack.Decoder(object, ext_hook=_extension)
_array_decoder = msgspec.msgpack.Decoder(tuple[str, tuple[int, ...], bytes])


def to_lists(value: object) -> object:
    """The same value with arrays and tuples as nested lists."""
    if isinstance(value, np.ndarray):
        return value.tolist()
    if isinstance(value, list | tuple):
        return [to_lists(item) for item in value]
    if isinstance(value, dict):
        return {key: to_lists(item) for key, item in value.items()}
    return value


def is_small(value: object, *, most: int = 20_000) -> bool:
    """Whether a value has so few numbers that a log keeps it."""
    return _count(value, most) <= most


def _count(value: object, most: int) -> int:
    """Counts numbers and lists, up to a little more than `most`."""
    if isinstance(value, np.ndarray):
        return _places(value.shape)
    total = 1
    if isinstance(value, list | tuple | dict):
        for item in value.values() if isinstance(value, dict) else value:
            total += _count(item, most)
            if total > most:
                break
    return total
