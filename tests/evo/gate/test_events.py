"""Server-sent events on their way through a gate: what passes, and what they say of tokens."""

from __future__ import annotations

import asyncio
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evo.gate.events import Events
from evo.models.client import TOKENS_PER_CHARACTER


def event(content=None, *, usage=None, finish=None, **delta) -> bytes:
    choice = {"delta": {**({} if content is None else {"content": content}), **delta}}
    if finish is not None:
        choice["finish_reason"] = finish
    whole = {"choices": [choice]} | ({} if usage is None else {"usage": usage})
    return b"data: " + json.dumps(whole).encode() + b"\n\n"


USAGE = {"prompt_tokens": 7, "completion_tokens": 3}
LAST = b"data: " + json.dumps({"choices": [], "usage": USAGE}).encode() + b"\n\n"
DONE = b"data: [DONE]\n\n"


def passed(events: Events, *pieces: bytes) -> bytes:
    async def answer():
        for piece in pieces:
            yield piece

    async def read() -> bytes:
        return b"".join([out async for out in events.read(answer())])

    return asyncio.run(read())


def events(*, asks_usage: bool = True, hide=lambda line: line, keeps_text: bool = False) -> Events:
    return Events(asks_usage, 0.0, hide, keeps_text)


@given(st.lists(st.integers(1, 60), max_size=20))
def test_a_client_that_asks_for_usage_gets_every_byte_however_the_stream_is_cut(cuts) -> None:
    stream = b": a comment\n\n" + event("a") + event("b", finish="stop") + LAST + DONE
    pieces, rest = [], stream
    for cut in cuts:
        pieces.append(rest[:cut])
        rest = rest[cut:]
    heard = events(keeps_text=True)
    assert passed(heard, *pieces, rest) == stream
    assert (heard.text, heard.finish, heard.whole) == ("ab", "stop", True)
    assert heard.attempt.usage == USAGE


def test_usage_that_nobody_asked_for_is_counted_and_left_out() -> None:
    heard = events(asks_usage=False)
    found = passed(heard, event("a"), event("b", usage=USAGE), LAST, DONE)
    assert b"usage" not in found
    lines = [json.loads(line[5:]) for line in found.split(b"\n") if line.startswith(b"data: {")]
    assert [line["choices"][0]["delta"]["content"] for line in lines] == ["a", "b"]
    assert heard.attempt.usage == USAGE
    assert heard.whole


@pytest.mark.parametrize(
    "line", [b"data: no json\n", b"data: [1, 2]\n", b"data:\n", b"event: x\n", b"\n", b"data: 1"]
)
def test_what_is_no_event_of_a_reply_passes_as_it_is(line) -> None:
    heard = events(asks_usage=False)
    assert passed(heard, line) == line
    assert heard.attempt.usage is None
    assert not heard.whole


def test_a_key_is_hidden_before_anything_is_read() -> None:
    heard = events(hide=lambda line: line.replace(b"secret", b"***"), keeps_text=True)
    assert b"secret" not in passed(heard, event("a sec"), event("ret secret"))
    assert heard.text == "a secret ***".replace("secret", "secret")


def test_the_text_is_kept_only_on_request_and_without_reasoning() -> None:
    stream = (event("a", reasoning="thoughts"), event(reasoning_content="more"), event("b"))
    kept, not_kept = events(keeps_text=True), events()
    for heard in (kept, not_kept):
        passed(heard, *stream)
    assert (kept.text, not_kept.text) == ("ab", "")


def test_tokens_of_a_reply_that_a_client_left_are_estimated_from_what_came() -> None:
    heard = events()
    passed(heard, *[event("x") for _ in range(6)])
    found = heard.left(40, 1000)
    pieces = 6  # of one character each: a piece is at least a token
    assert found.usage == {
        "prompt_tokens": -(-40 * TOKENS_PER_CHARACTER // 1),
        "completion_tokens": pieces,
        "estimated": True,
    }
    assert found.error == "the client left; its tokens are estimated"
    long = events()
    passed(long, event("x" * 4000))
    assert long.left(40, 5000).usage["completion_tokens"] == -(-4000 * TOKENS_PER_CHARACTER // 1)


def test_an_estimate_is_held_to_what_prompt_and_reply_can_have_together() -> None:
    heard = events()
    passed(heard, event("x" * 4000))
    full = heard.left(10**6, 50).usage
    assert (full["prompt_tokens"], full["completion_tokens"]) == (50, 0)
    part = heard.left(0, 50).usage
    assert (part["prompt_tokens"], part["completion_tokens"]) == (0, 50)


def test_usage_that_came_before_the_client_left_is_no_estimate() -> None:
    heard = events()
    passed(heard, event("x", usage=USAGE))
    found = heard.left(40, 1000)
    assert (found.usage, found.error, found.status) == (USAGE, "the client left", "error")


def test_a_later_event_without_usage_or_reason_leaves_those_before() -> None:
    heard = events()
    passed(heard, event("a", usage=USAGE, finish="length"), event("b", usage=None), DONE)
    assert (heard.attempt.usage, heard.attempt.finish_reason) == (USAGE, "length")
