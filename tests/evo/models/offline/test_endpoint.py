"""The offline model as bytes: purity, refusals, streams, limits of tokens."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from offline_requests import PARENTS, ask, post, showing

from evo.models.offline.endpoint import CACHE_BLOCK, respond

TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=300)
GOOD: dict[str, Any] = {"model": "offline", "messages": [{"role": "user", "content": "hello"}]}


# --- one request, one reply


# --- usage and limits


@given(system=TEXTS, user=TEXTS.filter(str.strip), seed=st.integers(0, 2**31 - 1))
def test_usage_follows_the_rule(system: str, user: str, seed: int) -> None:
    messages = [{"role": "system", "content": system}, {"role": "user", "content": user}]
    reply = ask(messages, seed=seed)
    usage = reply.usage
    tokens = [4 + (len(text) + 3) // 4 for text in (system, user)]
    cached = usage["prompt_tokens_details"]["cached_tokens"]
    assert usage["prompt_tokens"] == sum(tokens)
    assert usage["completion_tokens"] == (len(reply.text) + 3) // 4
    assert usage["total_tokens"] == usage["prompt_tokens"] + usage["completion_tokens"]
    assert cached % CACHE_BLOCK == 0
    assert tokens[0] - CACHE_BLOCK < cached <= tokens[0]
    without_system = ask(messages[1:], seed=seed).usage
    assert without_system["prompt_tokens_details"]["cached_tokens"] == 0


# --- streams


def events(content: bytes) -> list[Any]:
    """The JSON of each server-sent event before the last, which says that it is the last."""
    parts = content.decode().removesuffix("\n\n").split("\n\n")
    assert all(part.startswith("data: ") for part in parts)
    assert parts[-1] == "data: [DONE]"
    return [msgspec.json.decode(part.removeprefix("data: ")) for part in parts[:-1]]


@pytest.mark.parametrize("options", [None, {}, {"include_usage": True}])
def test_a_stream_carries_the_same_completion(options: dict[str, bool] | None) -> None:
    messages, seed = showing(PARENTS["cp"]), 3
    whole = ask(messages, seed=seed)
    response = post(messages, seed=seed, stream=True, stream_options=options)
    assert (response.status, response.kind) == (200, "text/event-stream")
    pieces = events(response.content)
    choices = [piece["choices"][0] for piece in pieces if piece["choices"]]
    assert "".join(choice["delta"].get("content", "") for choice in choices) == whole.text
    assert len(choices) > 4
    assert choices[-1]["finish_reason"] == whole.finish_reason
    assert {choice["finish_reason"] for choice in choices[:-1]} == {None}
    usages = [piece["usage"] for piece in pieces if "usage" in piece]
    assert usages == ([whole.usage] if options else [])
    assert response.usage == whole.usage


# --- bad requests


def refusal(body: bytes, method: str = "POST", path: str = "/v1/chat/completions") -> Any:
    """The error of a request that must be refused, and its HTTP status."""
    response = respond(method, path, body)
    assert response.kind == "application/json"
    assert response.usage is None
    answer = msgspec.json.decode(response.content)
    assert answer.keys() == {"error"}
    assert answer["error"].keys() == {"message", "type", "param", "code"}
    assert answer["error"]["message"]
    return answer["error"] | {"status": response.status}


@pytest.mark.parametrize(
    ("fields", "param"),
    [
        ({"messages": None}, "messages"),
        ({"messages": []}, "messages"),
        ({"messages": ["hello"]}, "messages[0]"),
        ({"messages": [*GOOD["messages"], {"content": "x"}]}, "messages[1]"),
        ({"messages": [{"role": 1, "content": "x"}]}, "messages[0].role"),
        ({"messages": [{"role": "user", "content": 3}]}, "messages[0].content"),
        (
            {"messages": [{"role": "user", "content": [{"type": "image"}]}]},
            "messages[0].content[0]",
        ),
        ({"seed": "1"}, "seed"),
        ({"temperature": -0.1}, "temperature"),
        ({"temperature": 2.1}, "temperature"),
        ({"top_p": 1.01}, "top_p"),
        ({"max_tokens": 0}, "max_tokens"),
        ({"max_completion_tokens": -5}, "max_completion_tokens"),
        ({"n": 2}, "n"),
        ({"stream": "yes"}, "stream"),
    ],
)
def test_a_wrong_field_is_named(fields: dict[str, Any], param: str) -> None:
    error = refusal(msgspec.json.encode(GOOD | fields))
    assert (error["status"], error["param"]) == (400, param)
    assert error["type"] == "invalid_request_error"
    assert param in error["message"]


@pytest.mark.parametrize("model", [None, "", "gpt-4", 3, ["offline"]])
def test_another_model_is_not_found(model: object) -> None:
    error = refusal(msgspec.json.encode(GOOD | {"model": model}))
    assert (error["status"], error["param"], error["code"]) == (404, "model", "model_not_found")
    assert "'offline'" in error["message"]


@pytest.mark.parametrize(
    "body", [b"", b"hello", b"\xff\xfe", b"[]", b"3", b"null", b'{"model":', b'{"a":' * 100_000]
)
def test_a_body_that_is_no_json_object_is_refused(body: bytes) -> None:
    assert refusal(body)["status"] == 400


@pytest.mark.parametrize("path", ["chat/completions", "/proxy/v1/chat/completions/?version=3"])
def test_any_prefix_does(path: str) -> None:
    assert respond("POST", path, msgspec.json.encode(GOOD)).status == 200


SCALARS = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | TEXTS
)
JSON_VALUES = SCALARS | st.lists(SCALARS, max_size=3) | st.dictionaries(TEXTS, SCALARS, max_size=3)
FIELDS = ("model", "messages", "seed", "temperature", "top_p", "max_tokens", "n", "stream", "stop")


@given(st.dictionaries(st.sampled_from(FIELDS), JSON_VALUES, max_size=4), st.booleans())
@settings(deadline=None)
def test_any_json_body_is_answered(fields: dict[str, Any], mended: bool) -> None:
    body = msgspec.json.encode((GOOD if mended else {}) | fields)
    if respond("POST", "/v1/chat/completions", body).status != 200:
        assert refusal(body)["status"] in {400, 404}
