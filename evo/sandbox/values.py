"""What a program may return, as bytes and back: plain data, never pickles.

None, booleans, numbers, texts, lists (tuples become lists), dicts, and NumPy arrays and scalars of
booleans, integers and real numbers. NaN and infinities pass: what is legal is the evaluator's
business. A program can send any bytes, so only `decode` guards against it.
"""

from __future__ import annotations

from math import prod

import msgspec
import numpy as np

_ARRAY = 1
_KINDS = "biuf"
_MAX_EMPTY = 100  # parts of an array without numbers
_PLAIN = "None, booleans, numbers, texts, lists, dicts and numeric NumPy arrays"


class UnsendableError(ValueError):
    """The value is not plain data, or larger than allowed; the message states which."""


def encode(value: object, *, max_bytes: int) -> bytes:
    """A returned value in MessagePack; `UnsendableError` where it is too large or not plain."""

    def hook(part: object) -> object:
        if type(part) is np.ndarray and part.nbytes > max_bytes:  # perhaps a view of one number
            raise too_large
        return _from_numpy(part)

    too_large = UnsendableError(f"the returned value is larger than {max_bytes} bytes")
    try:
        data = msgspec.msgpack.encode(value, enc_hook=hook)
    except UnsendableError:
        raise
    except (OverflowError, TypeError, ValueError, RecursionError) as error:
        big = isinstance(error, OverflowError)
        what = "an integer of more than 64 bits" if big else f"what cannot be sent ({error})"
        words = f"the returned value holds {what}; allowed are {_PLAIN}"
        raise UnsendableError(words) from None
    if len(data) > max_bytes:
        raise too_large
    return data


def _from_numpy(value: object) -> object:
    if isinstance(value, np.generic) and value.dtype.kind in _KINDS:
        return float(value) if value.dtype.kind == "f" else value.item()
    if type(value) is not np.ndarray:
        raise TypeError(f"an object of type {type(value).__name__!r}")
    if value.dtype.kind not in _KINDS:
        raise TypeError(f"an array of type {str(value.dtype)!r}")
    if not value.size and _places(value.shape) > _MAX_EMPTY:
        raise TypeError(f"an array without numbers of shape {value.shape!r}")
    if value.dtype.itemsize > 8:
        with np.errstate(over="ignore"):
            value = value.astype(np.float64)
    value = value.astype(value.dtype.newbyteorder("<"), copy=False)
    parts = (value.dtype.str, value.shape, value.tobytes())
    return msgspec.msgpack.Ext(_ARRAY, msgspec.msgpack.encode(parts))


def _places(shape: tuple[int, ...]) -> int:
    """How many lists or numbers an array becomes as nested lists; an empty one may be many."""
    return prod(max(length, 1) for length in shape)


def decode(data: bytes) -> object:
    """What `encode` wrote; `ValueError` where something hostile stands in its place."""
    try:
        return _decoder.decode(data)
    except (msgspec.DecodeError, RecursionError, TypeError, ValueError) as error:
        raise ValueError(f"the returned bytes are no value: {error}") from error


def _array(code: int, data: memoryview) -> object:
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


_decoder = msgspec.msgpack.Decoder(object, ext_hook=_array)
_array_decoder = msgspec.msgpack.Decoder(tuple[str, tuple[int, ...], bytes])


def to_lists(value: object) -> object:
    """The same value with arrays as nested lists."""
    found: object = msgspec.to_builtins(value, enc_hook=np.ndarray.tolist)
    return found
