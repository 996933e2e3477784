"""What others wrote is kept verbatim if a log can hold it, and cut with a note if not."""

from __future__ import annotations

import json
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from evo.logs.cost import usage_tokens
from evo.logs.escapes import plain_text
from evo.logs.fitting import MOST_NESTED, fit_text, fit_usage, fit_value, is_shallow

numbers = st.integers() | st.floats() | st.integers(min_value=10**30, max_value=10**400)
leaves = st.none() | st.booleans() | numbers | st.text(st.characters(), max_size=300)
usages = st.recursive(
    leaves,
    lambda inner: st.lists(inner, max_size=5) | st.dictionaries(st.text(), inner, max_size=5),
    max_leaves=40,
)
keys = st.none() | st.booleans() | st.integers() | st.floats() | st.text() | st.tuples(st.text())
values = st.recursive(
    leaves | st.binary(max_size=20),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(keys, inner, max_size=4),
    max_leaves=30,
)


def nested(depth: int) -> Any:
    value: Any = 1
    for _ in range(depth):
        value = [value]
    return value


def is_held(value: object) -> bool:
    """Whether a log gives back what it got, at any depth that a reader may have."""
    encoded = msgspec.json.encode(value)
    return msgspec.json.decode(encoded) == value and is_shallow(encoded)


@given(st.dictionaries(st.text(st.characters()), usages))
def test_any_usage_becomes_one_that_a_log_holds(usage: dict[str, Any]) -> None:
    assert is_held(fit_usage(usage))


@given(st.dictionaries(st.text(), st.none() | st.integers(0, 10**15) | st.text(), max_size=9))
def test_a_usual_usage_is_verbatim(usage: dict[str, Any]) -> None:
    assert fit_usage(usage) is usage


def test_counts_of_tokens_stay_whatever_else_is_cut() -> None:
    junk = {f"x{k}": list(range(1000)) for k in range(500)}
    counts = {
        "prompt_tokens": 7,
        "completion_tokens": 3,
        "prompt_tokens_details": {"cached_tokens": 2, "more": nested(50)},
    }
    kept = fit_usage(junk | counts)
    assert kept is not None
    assert usage_tokens(kept) == (7, 2, 3)
    assert "[cut: 1,000 entries]" in kept.values()
    assert len(msgspec.json.encode(kept)) < 1 << 15
    assert fit_usage({"n": 10**400, "x": float("inf")}) == {
        "n": "[cut: an integer of 1,329 bits]",
        "x": "[cut: the number inf]",
    }
    assert fit_usage([1]) is None


@given(values)
def test_any_construction_becomes_one_that_a_log_holds(value: object) -> None:
    assert is_held(fit_value(value, 10_000))


def test_a_construction_that_is_too_large_or_too_deep_is_left_out() -> None:
    assert fit_value([[0.5, 1], {"a": True}], 10) == [[0.5, 1], {"a": True}]
    assert fit_value([1] * 10, 10) is None
    assert fit_value("x" * 1000, 10) is None
    assert fit_value(nested(MOST_NESTED), 1000) == nested(MOST_NESTED)
    assert fit_value(nested(MOST_NESTED + 1), 1000) is None
    assert fit_value({None: 1, (1, 2): 2, True: 3, 4: 5}, 10) == {
        "null": 1,
        "(1, 2)": 2,
        "true": 3,
        "4": 5,
    }


@pytest.mark.parametrize(
    "forged",
    [
        {f"{k:05d}" + "\x00" * 195: None for k in range(999)},
        [{"\x00" * 200: None}] * 499,
        {"\x00" * 19 + str(k): k for k in range(999)},
        ["\x00" * 19] * 999,
        [b"\xff" * 19] * 999,
        [-(2**62)] * 999,
    ],
    ids=["long keys", "one key each", "short keys", "texts", "bytes", "numbers"],
)
def test_no_forged_construction_takes_more_than_some_hundred_bytes_a_part(forged: object) -> None:
    """A control character takes six bytes in JSON, in a key as in a text."""
    assert len(msgspec.json.encode(fit_value(forged, 1000))) < 250 * 1000


@given(usages)
def test_depth_is_that_of_the_json_and_not_of_its_texts(value: object) -> None:
    def depth(part: object) -> int:
        inside = part.values() if isinstance(part, dict) else part
        return 1 + max(map(depth, inside), default=0) if isinstance(part, list | dict) else 0

    assert is_shallow(json.dumps(value).encode()) == (depth(value) <= MOST_NESTED)
    assert is_shallow(json.dumps(["[" * 900, '"' + "{" * 900, value]).encode())
    assert not is_shallow(json.dumps([nested(MOST_NESTED), "]]]"]).encode())


@given(st.text(st.characters()))
def test_a_text_is_cut_with_a_note_and_never_holds_half_a_pair(text: str) -> None:
    cut = fit_text(text, 10)
    assert cut.encode().decode() == cut
    assert cut == text or "?" in cut or cut.startswith(fit_text(text[:10], 10))
    assert len(text) <= 10 or f"{len(text) - 10:,} further" in cut


def test_control_characters_are_escaped_and_line_feeds_stay() -> None:
    assert plain_text("a\x1b[31m\tb\n\x9b\u202e\r") == "a\\x1b[31m\tb\n\\x9b\\u202e\\r"
    assert plain_text("größer → 10²") == "größer → 10²"
