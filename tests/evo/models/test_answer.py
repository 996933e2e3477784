"""Whatever an endpoint answers is read without an exception and becomes a line that is readable."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from samples import make_log_bytes, sample_header

from evo.logs.cost import cost_of_attempts
from evo.logs.journal import encode_line
from evo.logs.log import line_decoder, read_log
from evo.logs.records import Attempt, Child
from evo.models.answer import Exchange, read_answer, read_json, retry_after, write_json
from evo.models.client import Endpoint

HEADER = sample_header()
LINES = make_log_bytes().splitlines(keepends=True)
CHILD = next(line for line in map(line_decoder.decode, LINES) if isinstance(line, Child))

keys = st.sampled_from(
    ["choices", "message", "content", "finish_reason", "usage", "prompt_tokens", "error", "code"]
)
leaves = st.none() | st.booleans() | st.floats() | st.text(st.characters(), max_size=20)
leaves |= st.integers() | st.just(10**400) | st.just(-(10**30))
values = st.recursive(
    leaves, lambda inner: st.lists(inner) | st.dictionaries(keys, inner), max_leaves=12
)


def completion(usage: object, reason: object = "stop", **message: object) -> bytes:
    choice = {"message": {"content": "hi", **message}, "finish_reason": reason}
    return json.dumps({"choices": [choice], "usage": usage}).encode()


def readable(attempt: Attempt, reply: str | None = None) -> bool:
    """Whether a log that holds an attempt is read, and its costs are numbers or unknown."""
    attempt = Endpoint("", "key").without_key(attempt)
    child = msgspec.structs.replace(CHILD, attempts=(attempt,), reply=reply)
    line = encode_line(child)
    assert line_decoder.decode(line) == child
    cost = cost_of_attempts([attempt], HEADER.model, HEADER.sampling)
    return all(math.isnan(value) or abs(value) < 1e25 for value in cost.by_unit(0.0).values())


@example(completion({"prompt_tokens": 10**400, "completion_tokens": 1}), 200, {})
@example(completion({"prompt_tokens": 1e308, "completion_tokens": 1e308}), 200, {})
@example(completion({"a": "\ud800"}), 200, {})
@example(
    b'{"choices": [{"message": {"content": "hi"}}], "usage": {"a": 1' + b"0" * 9999 + b"}}", 200, {}
)
@example(b"", 503, {"retry-after": "Wed, 21 Oct 999999999999 07:28:00 GMT"})
@example(b"", 503, {"retry-after": "Wed, 21 Oct 2015 07:28:00 +99999999999999"})
@given(
    st.binary() | values.map(lambda value: json.dumps(value).encode()) | values.map(completion),
    st.integers(200, 599),
    st.dictionaries(st.sampled_from(["retry-after", "retry-after-ms", "location"]), st.text()),
)
def test_any_answer_becomes_a_readable_line(
    body: bytes, status: int, headers: dict[str, str]
) -> None:
    answer = read_answer(Exchange(status, headers, body), 0.1)
    assert answer.verdict == "answered" or status >= 300 or answer.verdict == "retry"
    assert (answer.reply is not None) == (answer.verdict == "answered")
    assert answer.retry_after is None or answer.retry_after >= 0
    assert readable(answer.attempt, answer.reply)


@given(values)
def test_a_sound_reply_counts_whatever_stands_beside_it(value: object) -> None:
    for body in (completion(value), completion(None, value), completion(None, reasoning=value)):
        answer = read_answer(Exchange(200, {}, body), 0.1)
        assert (answer.verdict, answer.reply) == ("answered", "hi")
        assert readable(answer.attempt, answer.reply)


@pytest.mark.parametrize("status", [200, 400, 404, 429, 503])
@pytest.mark.parametrize("choices", [None, [], [{}], [{"message": None}], "none"])
def test_usage_that_an_answer_without_a_reply_states_is_its_cost(
    status: int, choices: object
) -> None:
    usage = {"prompt_tokens": 9, "completion_tokens": 4}
    body = json.dumps({"choices": choices, "error": {"message": "no"}, "usage": usage}).encode()
    attempt = read_answer(Exchange(status, {}, body), 0.1).attempt
    assert (attempt.status, attempt.usage) == ("error", usage)
    assert cost_of_attempts([attempt], HEADER.model, HEADER.sampling).tokens == 13


def test_usage_that_no_log_can_hold_is_outlined() -> None:
    nested = b'{"prompt_tokens": 3, "completion_tokens": 2, "a":' * 200 + b"1" + b"}" * 200
    body = b'{"choices": [{"message": {"content": "hi"}}], "usage": ' + nested + b"}"
    usage = read_answer(Exchange(200, {}, body), 0.1).attempt.usage
    assert usage == {
        "prompt_tokens": 3,
        "completion_tokens": 2,
        "a": {"prompt_tokens": 3, "completion_tokens": 2, "a": "[cut: 3 entries]"},
    }


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=6)
@given(st.sampled_from(["x", "\x01", "é", "\U0001f600"]), st.integers(1, 4))
def test_a_reply_fits_into_a_line_with_its_program_and_its_reasoning(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, letter: str, millions: int
) -> None:
    monkeypatch.setenv("EVO_MAX_LINE_MB", "1")
    text = letter * (millions << 18)
    answer = read_answer(Exchange(200, {}, completion({}, content=text, reasoning=text)), 0.1)
    more = {"reply": answer.reply, "program": answer.reply, "reasoning": answer.reasoning}
    child = msgspec.structs.replace(CHILD, **more)
    path = tmp_path / "a.jsonl"
    path.write_bytes(b"".join([LINES[0], encode_line(child)]))
    assert read_log(path).children == [child]
    assert answer.reply == text or "further characters]" in str(answer.reply)


@given(values)
def test_json_is_passed_on_as_it_was_read(value: Any) -> None:
    content = json.dumps(value).encode()
    again = json.dumps(read_json(write_json(read_json(content))))
    finite = json.loads(json.dumps(read_json(content)), parse_constant=lambda name: None)
    assert again == json.dumps(finite)


def test_a_date_of_no_calendar_is_no_time_to_wait() -> None:
    for date in ("Wed, 21 Oct 99999 07:28:00 GMT", "x", "1 2 3 4 5 6", "0", "Oct -1 2015 x"):
        assert retry_after({"retry-after": date}) in (None, 0.0)
