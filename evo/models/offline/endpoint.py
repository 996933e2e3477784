"""The offline model as an HTTP endpoint: a request's path and body in, status and bytes out.

Tokens are counted by a rule, not a tokenizer:

- A text has ceil(characters / 4) tokens; a message costs 4 more; a limit of n tokens cuts a reply
  after 4 n characters.
- `cached_tokens` are those of the leading system messages, rounded down to blocks of 64, of the
  first call too, so that usage is a function of the request alone.
"""

from __future__ import annotations

import hashlib
import itertools
from collections.abc import Iterable, Iterator
from typing import Annotated, Literal

import msgspec

from evo.models.offline import OFFLINE_CONTEXT, OFFLINE_MODELS
from evo.models.offline.model import answer
from evo.models.responses import EVENTS, Response, error_response, list_models

PIECE = 400  # characters of a reply in one event of a stream
CHARACTERS_PER_TOKEN = 4
TOKENS_PER_MESSAGE = 4
CACHE_BLOCK = 64
DEFAULT_TEMPERATURE = 0.6
DEFAULT_MAX_TOKENS = 8192


class _Part(msgspec.Struct):
    text: str


class _Message(msgspec.Struct):
    role: str
    content: str | list[_Part]

    @property
    def text(self) -> str:
        """The text of the message, of its parts joined."""
        parts = self.content
        return parts if isinstance(parts, str) else "".join(part.text for part in parts)


class _Options(msgspec.Struct):
    include_usage: bool | None = None


_Limit = Annotated[int, msgspec.Meta(ge=1)] | None


class _Body(msgspec.Struct):
    """What is read of a request's JSON; everything else is ignored."""

    messages: list[_Message]
    seed: int | None = None
    temperature: Annotated[float, msgspec.Meta(ge=0, le=2)] | None = None
    top_p: Annotated[float, msgspec.Meta(ge=0, le=1)] | None = None
    max_tokens: _Limit = None
    max_completion_tokens: _Limit = None
    n: Literal[1] | None = None
    stream: bool | None = None
    stream_options: _Options | None = None


_decoder = msgspec.json.Decoder(_Body)  # made here: many threads at once would crash


class _Refused(Exception):  # noqa: N818
    """A request that is answered with an error: the status, the field at fault, OpenAI's code."""

    def __init__(
        self, message: str, param: str | None = None, code: str | None = None, status: int = 400
    ) -> None:
        self.error = {"message": message, "type": "invalid_request_error", "param": param}
        self.status, self.error["code"] = status, code


def respond(method: str, path: str, body: bytes) -> Response:
    """Answers one request, at a path with or without a prefix such as `/v1`; a pure function."""
    place = "/" + path.partition("?")[0].strip("/")
    if method == "GET" and place.endswith("/models"):
        return list_models(OFFLINE_MODELS, "evo-replay (not an LLM)")
    if method == "POST" and place.endswith("/chat/completions"):
        try:
            return _complete(body)
        except _Refused as no:
            return Response(no.status, msgspec.json.encode({"error": no.error}))
        except (RecursionError, ValueError, ArithmeticError) as error:  # a strange literal
            return error_response(500, f"the offline model failed: {error!r}", "server_error")
    return error_response(
        404, f"no {method} {place} here: POST .../chat/completions and GET .../models are", "route"
    )


def _complete(content: bytes) -> Response:
    model, body = _read(content)
    messages = tuple((message.role, message.text) for message in body.messages)
    prompt = _count_prompt(messages)
    if prompt > OFFLINE_CONTEXT:
        words = f"the context window is {OFFLINE_CONTEXT} tokens, but the messages have {prompt}"
        raise _Refused(words, "messages", "context_length_exceeded")
    temperature = DEFAULT_TEMPERATURE if body.temperature is None else body.temperature
    reply, finish_reason = answer(model, messages, body.seed, temperature)
    most = body.max_completion_tokens or body.max_tokens or DEFAULT_MAX_TOKENS
    if len(reply) > most * CHARACTERS_PER_TOKEN:
        reply, finish_reason = reply[: most * CHARACTERS_PER_TOKEN], "length"
    leading = itertools.takewhile(lambda each: each[0] in {"system", "developer"}, messages)
    cached = _count_prompt(leading) // CACHE_BLOCK * CACHE_BLOCK
    usage = {
        "prompt_tokens": prompt,
        "completion_tokens": _count(reply),
        "total_tokens": prompt + _count(reply),
        "prompt_tokens_details": {"cached_tokens": cached},
    }
    identity = repr((messages, body.seed, reply)).encode("utf-8", "replace")
    head = {
        "id": f"chatcmpl-offline-{hashlib.sha256(identity).hexdigest()[:16]}",
        "object": "chat.completion",
        "created": 0,  # the model has no clock
        "model": model,
        "system_fingerprint": f"offline-{OFFLINE_MODELS[model]} (not an LLM)",
    }
    if body.stream:
        asked = bool(body.stream_options and body.stream_options.include_usage)
        events = b"".join(_events(head, reply, finish_reason, usage if asked else None))
        return Response(200, events, EVENTS, usage=usage, seed=body.seed)
    choice = {
        "index": 0,
        "message": {"role": "assistant", "content": reply},
        "finish_reason": finish_reason,
        "logprobs": None,
    }
    completion = msgspec.json.encode(head | {"choices": [choice], "usage": usage})
    return Response(200, completion, usage=usage, seed=body.seed)


def _read(content: bytes) -> tuple[str, _Body]:
    try:
        body = msgspec.json.decode(content)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise _Refused(f"the body is not JSON: {error}") from None
    if not isinstance(body, dict):
        raise _Refused(f"the body must be a JSON object, got {type(body).__name__}")
    model = body.get("model")
    if not isinstance(model, str) or model not in OFFLINE_MODELS:
        words = f"no model {model!r} here; this endpoint has only 'offline', which is not an LLM"
        raise _Refused(words, "model", "model_not_found", 404)
    try:
        read = _decoder.decode(content)
    except msgspec.ValidationError as error:
        what, _, where = str(error).partition(" - at `$.")
        param = where.removesuffix("`") or "messages"
        raise _Refused(f"'{param}': {what}", param) from None
    if not read.messages:
        raise _Refused("'messages' must be a list of at least one message, got []", "messages")
    return model, read


def _events(
    head: dict[str, object], text: str, finish_reason: str, usage: dict[str, object] | None
) -> Iterator[bytes]:
    """Yields a completion as server-sent events; `usage`: where the client asked for it."""
    order = ("id", "created", "model", "system_fingerprint")
    head = {key: head[key] for key in order} | {"object": "chat.completion.chunk"}

    def event(**fields: object) -> bytes:
        return b"data: " + msgspec.json.encode(head | fields) + b"\n\n"

    def delta(content: dict[str, object], finish_reason: str | None = None) -> bytes:
        return event(choices=[{"index": 0, "delta": content, "finish_reason": finish_reason}])

    yield delta({"role": "assistant", "content": ""})
    for start in range(0, len(text), PIECE):
        yield delta({"content": text[start : start + PIECE]})
    yield delta({}, finish_reason)
    if usage is not None:
        yield event(choices=[], usage=usage)
    yield b"data: [DONE]\n\n"


def _count_prompt(messages: Iterable[tuple[str, str]]) -> int:
    return sum(TOKENS_PER_MESSAGE + _count(text) for _, text in messages)


def _count(text: str) -> int:
    return -(-len(text) // CHARACTERS_PER_TOKEN)
