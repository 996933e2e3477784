"""Bring what others wrote within what a log can hold: JSON's types, and sizes that readers accept.

An endpoint, a program or an evaluator may send anything. What fits is kept verbatim; what does not
is cut or replaced, and a note stands in its place.
"""

from __future__ import annotations

import base64
import itertools
import math
import re
from collections.abc import Mapping

import msgspec

MOST_NESTED = 32
"""Lists and objects within each other that a log holds."""

MOST_NOTES = 2_000
"""Characters of an evaluator's notes that a log holds and a prompt shows."""

_MOST_USAGE = 1 << 16  # bytes of an endpoint's usage that are kept verbatim
_MOST_ENTRIES = 64  # of an object, where the whole is too large
_MOST_WORDS = 200  # characters of a text in it
_COUNTS = re.compile(r"(prompt|input|completion|output|total|cached)_tokens(_details)?")


class _TooMuch(ValueError):  # noqa: N818
    """A construction has more parts than are kept."""


def fit_text(text: str, most: int) -> str:
    """Returns a text that UTF-8 can hold, with a note where it was cut after `most` characters."""
    whole = text.encode("utf-8", "replace").decode()  # JSON may escape half a surrogate pair
    if len(whole) <= most:
        return whole
    return f"{whole[:most]} ... [cut: {len(whole) - most:,} further characters]"


def fit_usage(usage: object) -> dict[str, object] | None:
    """Returns an endpoint's usage as a log can hold it; None if it is no object.

    Where it is too large, nested too deep, or holds what JSON does not, its counts of tokens are
    kept, and notes replace what was cut.
    """
    if not isinstance(usage, dict):
        return None
    return usage if _is_verbatim(usage) else _outline(usage)


def _is_verbatim(usage: dict[str, object]) -> bool:
    """Whether a log holds exactly this: it can be encoded, is small, and comes back equal."""
    try:
        encoded = msgspec.json.encode(usage)
        if len(encoded) > _MOST_USAGE or not is_shallow(encoded):
            return False
        return bool(msgspec.json.decode(encoded) == usage)
    except (msgspec.DecodeError, OverflowError, TypeError, ValueError, RecursionError):
        return False


def is_shallow(encoded: bytes) -> bool:
    """Whether no more than `MOST_NESTED` lists and objects stand within each other in JSON."""
    if encoded.count(b"[") + encoded.count(b"{") <= MOST_NESTED:
        return True
    depth = deepest = 0
    in_text = escaped = False
    for code in encoded:
        if in_text:
            in_text, escaped = escaped or code != 0x22, not escaped and code == 0x5C
        elif code == 0x22:
            in_text = True
        elif code in b"[{":
            depth += 1
            deepest = max(deepest, depth)
        elif code in b"]}":
            depth -= 1
    return deepest <= MOST_NESTED


def _outline(usage: Mapping[object, object], levels: int = 2) -> dict[str, object]:
    """Returns the first entries of an object, counts of tokens before others."""
    names = sorted(usage, key=lambda name: not _COUNTS.fullmatch(str(name)))
    found = {}
    for name in itertools.islice(names, _MOST_ENTRIES):
        value = usage[name]
        if isinstance(value, dict) and levels > 1:
            kept: object = _outline(value, levels - 1)
        else:
            kept = _fit_part(value)
        found[fit_text(str(name), _MOST_WORDS)] = kept
    if len(names) > _MOST_ENTRIES:
        found["cut"] = f"[cut: {len(names) - _MOST_ENTRIES:,} further entries]"
    return found


def _fit_part(part: object) -> object:
    if isinstance(part, dict | list | tuple):
        return f"[cut: {len(part):,} entries]"
    if isinstance(part, str):
        return fit_text(part, _MOST_WORDS)
    if isinstance(part, float) and not math.isfinite(part):
        return f"[cut: the number {part}]"
    if isinstance(part, int) and not -(2**63) <= part < 2**63:
        return f"[cut: an integer of {part.bit_length():,} bits]"
    if part is None or isinstance(part, bool | int | float):
        return part
    return f"[cut: an object of type {type(part).__name__}]"


def fit_value(value: object, most: int) -> object:
    """Returns a construction in JSON's types; None if it is nested too deep or too large.

    Numbers that JSON does not have become None, keys become texts, bytes base64.

    Args:
        value: Plain data: None, booleans, numbers, texts, bytes, lists, tuples and dicts.
        most: Parts at most, where a text or key counts as one for every 20 characters.
    """
    left = most

    def fit(part: object, depth: int) -> object:
        nonlocal left
        left -= 1 + (len(part) // 20 if isinstance(part, str | bytes) else 0)
        if left < 0 or depth > MOST_NESTED:
            raise _TooMuch
        if isinstance(part, dict):
            keys = [_key(name) for name in part]
            left -= sum(len(key) // 20 for key in keys)
            return {
                key: fit(entry, depth + 1) for key, entry in zip(keys, part.values(), strict=True)
            }
        if isinstance(part, list | tuple):
            return [fit(entry, depth + 1) for entry in part]
        if isinstance(part, bytes):
            return base64.b64encode(part).decode()
        if isinstance(part, str):
            return part.encode("utf-8", "replace").decode()
        if isinstance(part, float) and not math.isfinite(part):
            return None
        if isinstance(part, int) and not -(2**63) <= part < 2**63:
            return None
        return part

    try:
        return fit(value, 0)
    except _TooMuch:
        return None


def _key(name: object) -> str:
    """Returns a key as JSON writes it; others than texts and numbers by their repr."""
    if isinstance(name, str):
        return fit_text(name, _MOST_WORDS)
    plain = {None: "null", True: "true", False: "false"}
    if name is None or isinstance(name, bool):
        return plain[name]
    return fit_text(repr(name), _MOST_WORDS)
