"""The offline model as an HTTP endpoint: a request's path and body in, status and bytes out.

Used in-process by `evo.llm.transport` and over a socket by `evo.llm.server`, so both give the
same answers.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Protocol

import msgspec

from evo.llm.offline import OFFLINE_MODELS
from evo.llm.offline.model import complete
from evo.llm.offline.request import RequestError

JSON = "application/json"
EVENTS = "text/event-stream"
PIECE = 400  # characters of a reply in one event of a stream


class Stream(Protocol):
    """The rest of an answer, as it comes."""

    def __iter__(self) -> Iterator[bytes]:
        """Yields its pieces."""
        ...

    def close(self) -> None:
        """Notes that nobody reads on."""
        ...


@dataclass(frozen=True)
class Response:
    """An HTTP answer.

    Attributes:
        status: HTTP status.
        content: Body.
        kind: Its content type.
        usage: Token counts of a completion; None for anything else.
        seed: Seed of the request; None without.
        retry_after: Seconds after which the client may try again; None: not said.
        final: Whether trying again is of no use.
        stream: What follows the content piece by piece; closed once nobody reads it any more.
    """

    status: int
    content: bytes
    kind: str = JSON
    usage: dict[str, Any] | None = None
    seed: int | None = None
    retry_after: float | None = None
    final: bool = False
    stream: Stream | None = None


def respond(method: str, path: str, body: bytes) -> Response:
    """Answers one request; a pure function.

    Args:
        method: HTTP method.
        path: With or without a prefix such as `/v1`.
        body: The request's JSON.
    """
    place = "/" + path.partition("?")[0].strip("/")
    if method == "GET" and place.endswith("/models"):
        return Response(200, msgspec.json.encode({"object": "list", "data": _models()}))
    if method == "POST" and place.endswith("/chat/completions"):
        try:
            return _complete(body)
        except RequestError as error:
            return Response(error.http_status, msgspec.json.encode(error.body()))
        except Exception as error:  # whatever a prompt holds, its sender gets an answer
            return error_response(500, f"the offline model failed: {error!r}", "server_error")
    return error_response(
        404, f"no {method} {place} here: POST .../chat/completions and GET .../models are", "route"
    )


def error_response(
    status: int,
    message: str,
    code: str,
    *,
    retry_after: float | None = None,
    final: bool = False,
) -> Response:
    """Returns an error as OpenAI's endpoints send it."""
    error = {"message": message, "type": code, "param": None, "code": code}
    content = msgspec.json.encode({"error": error})
    return Response(status, content, retry_after=retry_after, final=final)


def _models() -> list[dict[str, Any]]:
    return [
        {"id": name, "object": "model", "created": 0, "owned_by": "evo-replay (not an LLM)"}
        for name in OFFLINE_MODELS
    ]


def _complete(body: bytes) -> Response:
    try:
        request = msgspec.json.decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise RequestError(f"the body is not JSON: {error}") from None
    if not isinstance(request, dict):
        raise RequestError(f"the body must be a JSON object, got {type(request).__name__}")
    completion = complete(request)
    common = {"usage": completion["usage"], "seed": request.get("seed")}
    if request.get("stream"):
        with_usage = (request.get("stream_options") or {}).get("include_usage")
        content = b"".join(_events(completion, with_usage=bool(with_usage)))
        return Response(200, content, EVENTS, **common)
    return Response(200, msgspec.json.encode(completion), **common)


def _events(completion: dict[str, Any], *, with_usage: bool) -> Iterator[bytes]:
    """Yields a completion as server-sent events."""
    choice = completion["choices"][0]
    text = choice["message"]["content"]
    head = {key: completion[key] for key in ("id", "created", "model", "system_fingerprint")} | {
        "object": "chat.completion.chunk"
    }

    def event(**fields: Any) -> bytes:
        return b"data: " + msgspec.json.encode(head | fields) + b"\n\n"

    def delta(content: dict[str, Any], finish_reason: str | None = None) -> bytes:
        return event(choices=[{"index": 0, "delta": content, "finish_reason": finish_reason}])

    yield delta({"role": "assistant", "content": ""})
    for start in range(0, len(text), PIECE):
        yield delta({"content": text[start : start + PIECE]})
    yield delta({}, choice["finish_reason"])
    if with_usage:
        yield event(choices=[], usage=completion["usage"])
    yield b"data: [DONE]\n\n"
