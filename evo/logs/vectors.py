"""Embeddings as a log holds them: whole numbers of 16 bits, so that all machines compare alike."""

from __future__ import annotations

import base64
import binascii
import contextlib
import hashlib
import math
from collections.abc import Iterable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

MOST = 1 << 16
"""Numbers of a vector at most."""

COMPARING = "near_embeddings"
"""The name of the filter that compares embeddings, with which its reasons begin."""

NO_VECTOR = "there is no embedding"
"""How its reason goes on where a program could not be compared."""

_LARGEST = (1 << 15) - 1


def embedding_key(name: str, text: str) -> str:
    """Returns what a log knows the embedding of a text by, given the name of what embeds."""
    return hashlib.sha256(f"{name}\0{text}".encode("utf-8", "surrogatepass")).hexdigest()[:16]


def encode_vector(values: Iterable[object]) -> str:
    """Returns a vector as a text: its numbers in proportion to the largest one, in Base64.

    Its length is lost, which a cosine does not depend on, and of each number what is below
    1/65534 of the largest one.

    Raises:
        ValueError: It has no direction, or what stands in it are no finite numbers.

    Example:
        >>> encode_vector([1, -0.5]) == encode_vector([2, -1])
        True
    """
    numbers = [_number(each) for each in values]
    largest = max(map(abs, numbers), default=0.0)
    if not largest or len(numbers) > MOST:
        raise ValueError(
            f"expected 1 to {MOST} numbers of which one is not 0, got {len(numbers)} numbers"
            + (" that are 0" if numbers and not largest else "")
        )
    whole = [round(each / largest * _LARGEST) for each in numbers]
    return base64.b64encode(
        b"".join(each.to_bytes(2, "little", signed=True) for each in whole)
    ).decode()


def vectors_in(returned: object, count: int) -> list[list[object]]:
    """Returns what a function returned for so many texts as lists of numbers.

    Raises:
        ValueError: It is not one vector for each text, whatever holds them: lists, arrays, tensors.
    """
    rows = _listed(returned)
    if rows is None or len(rows) != count:
        what = "one vector" if count == 1 else f"{count} vectors"
        raise ValueError(
            f"expected a list of {what}, one for each of the texts that the function is given, "
            f"got {returned!r:.80}"
        )
    vectors = []
    for row in rows:
        if (vector := _listed(row)) is None:
            raise ValueError(f"expected a vector as a list of numbers, got {row!r:.80}")
        encode_vector(vector)
        vectors.append(vector)
    return vectors


def decode_vector(text: str) -> NDArray[np.int16]:
    """Returns the numbers of a vector.

    Raises:
        ValueError: The text is no vector.
    """
    import numpy as np

    try:
        numbers = np.frombuffer(base64.b64decode(text, validate=True), dtype="<i2")
    except (ValueError, binascii.Error) as error:
        raise ValueError(f"expected a vector in Base64, got {text!r:.40}") from error
    if not numbers.any():
        raise ValueError(f"expected a vector that has a direction, got {text!r:.40}")
    return numbers.astype(np.int16)


def cosines(one: NDArray[np.int16], others: Iterable[NDArray[np.int16]]) -> NDArray[np.float64]:
    """Returns the cosine similarity of a vector to each of some others of its length.

    All sums are whole numbers below 2**53, so that neither the order of a sum nor the processor
    changes a digit; a vector's cosine with itself is 1.

    Example:
        >>> ahead, aside = (decode_vector(encode_vector(each)) for each in ([1, 0], [1, 1]))
        >>> cosines(ahead, [ahead, aside]).round(3).tolist()
        [1.0, 0.707]
    """
    import numpy as np

    own = one.astype(np.float64)
    rows = (each.astype(np.float64) for each in others)  # all at once would not fit a cache
    products, squares = np.array([(row @ own, row @ row) for row in rows]).reshape(-1, 2).T
    found: NDArray[np.float64] = products / np.sqrt(squares * (own @ own))
    return found


def _listed(value: object) -> list[object] | None:
    """Returns the elements of a list, an array or a tensor; None: it is none of these."""
    if callable(made := getattr(value, "tolist", None)):
        value = made()
    return list(value) if isinstance(value, list | tuple) else None


def _number(value: object) -> float:
    """Returns a finite number as a float."""
    if isinstance(value, int | float) and not isinstance(value, bool):
        with contextlib.suppress(OverflowError):
            if math.isfinite(number := float(value)):
                return number
    raise ValueError(f"expected finite numbers, got {value!r:.40}")
