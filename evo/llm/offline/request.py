"""Reads a chat-completions request and refuses what the offline model cannot answer."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from evo.llm.offline import OFFLINE_CONTEXT, OFFLINE_MODELS
from evo.llm.offline.usage import prompt_tokens

DEFAULT_TEMPERATURE = 0.6
DEFAULT_MAX_TOKENS = 8192


class RequestError(Exception):
    """A request that is answered with an error.

    Attributes:
        http_status: 400 or 404.
        param: The field at fault, or None.
        code: OpenAI's word for the error, or None.
    """

    def __init__(
        self,
        message: str,
        *,
        http_status: int = 400,
        param: str | None = None,
        code: str | None = None,
    ) -> None:
        super().__init__(message)
        self.http_status = http_status
        self.param = param
        self.code = code

    def body(self) -> dict[str, Any]:
        """Returns the error as the JSON object that OpenAI's endpoints send."""
        kind = "invalid_request_error"
        return {
            "error": {"message": str(self), "type": kind, "param": self.param, "code": self.code}
        }


@dataclass(frozen=True)
class Request:
    """What the offline model reads of a request.

    Attributes:
        model: The name it was asked for by.
        messages: (role, text) of each message, in order.
        seed: The request's seed, or None.
        temperature: In [0, 2].
        max_tokens: Limit of completion tokens, at least 1.
        stream: Whether the answer is wanted as server-sent events.
        stream_usage: Whether a stream ends with the usage.
    """

    model: str
    messages: tuple[tuple[str, str], ...]
    seed: int | None
    temperature: float
    max_tokens: int
    stream: bool
    stream_usage: bool

    @property
    def prompt(self) -> str:
        """The text of the last user message, empty if there is none."""
        return next((text for role, text in reversed(self.messages) if role == "user"), "")

    @property
    def system(self) -> str:
        """The texts of all system messages."""
        return "\n".join(text for role, text in self.messages if role in {"system", "developer"})


def read_request(body: Mapping[str, Any]) -> Request:
    """Reads a request.

    Raises:
        RequestError: With HTTP status 404 for another model, 400 for anything else.
    """
    model = body.get("model")
    if model not in OFFLINE_MODELS:
        raise RequestError(
            f"no model {model!r} here; this endpoint has only {OFFLINE_MODELS[0]!r}, "
            f"which is not an LLM",
            http_status=404,
            param="model",
            code="model_not_found",
        )
    if body.get("n") not in (None, 1):
        raise RequestError(f"'n' must be 1, got {body['n']!r}", param="n")
    limit = "max_completion_tokens"
    if body.get(limit) is None:
        limit = "max_tokens"
    options = body.get("stream_options")
    request = Request(
        model=str(model),
        messages=_read_messages(body.get("messages")),
        seed=_integer(body, "seed", None),
        temperature=_number(body, "temperature", DEFAULT_TEMPERATURE, low=0.0, high=2.0),
        max_tokens=_integer(body, limit, DEFAULT_MAX_TOKENS, low=1) or DEFAULT_MAX_TOKENS,
        stream=_boolean(body, "stream"),
        stream_usage=isinstance(options, dict) and options.get("include_usage") is True,
    )
    _number(body, "top_p", 1.0, low=0.0, high=1.0)
    tokens = prompt_tokens(request.messages)
    if tokens > OFFLINE_CONTEXT:
        raise RequestError(
            f"the context window is {OFFLINE_CONTEXT} tokens, but the messages have {tokens}",
            param="messages",
            code="context_length_exceeded",
        )
    return request


def _read_messages(messages: object) -> tuple[tuple[str, str], ...]:
    """Reads the messages: a list of objects with `role` and a text or text parts as `content`."""
    if not isinstance(messages, list) or not messages:
        raise RequestError(
            f"'messages' must be a list of at least one message, got {_short(messages)}",
            param="messages",
        )
    read = []
    for number, message in enumerate(messages):
        where = f"messages[{number}]"
        if not isinstance(message, dict) or not isinstance(message.get("role"), str):
            raise RequestError(
                f"'{where}' must be an object with a 'role', got {_short(message)}", param=where
            )
        content = message.get("content")
        if isinstance(content, list):
            content = _join_parts(content)
        if not isinstance(content, str):
            raise RequestError(
                f"'{where}.content' must be a text, got {_short(message.get('content'))}",
                param=f"{where}.content",
            )
        read.append((message["role"], content))
    return tuple(read)


def _join_parts(parts: list[Any]) -> str | None:
    """Joins the parts of a message; None if one is no text."""
    texts = [part.get("text") if isinstance(part, dict) else None for part in parts]
    strings = [text for text in texts if isinstance(text, str)]
    return "".join(strings) if len(strings) == len(texts) else None


def _integer(
    body: Mapping[str, Any], name: str, default: int | None, *, low: int | None = None
) -> int | None:
    value = body.get(name)
    if value is None:
        return default
    if type(value) is not int or (low is not None and value < low):
        wanted = "an integer" if low is None else f"an integer of at least {low}"
        raise RequestError(f"'{name}' must be {wanted}, got {_short(value)}", param=name)
    return value


def _number(
    body: Mapping[str, Any], name: str, default: float, *, low: float, high: float
) -> float:
    value = body.get(name)
    if value is None:
        return default
    if type(value) not in (int, float) or not math.isfinite(value) or not low <= value <= high:
        raise RequestError(
            f"'{name}' must be a number from {low} to {high}, got {_short(value)}", param=name
        )
    return float(value)


def _boolean(body: Mapping[str, Any], name: str) -> bool:
    value = body.get(name)
    if value is not None and type(value) is not bool:
        raise RequestError(f"'{name}' must be true or false, got {_short(value)}", param=name)
    return bool(value)


def _short(value: object) -> str:
    text = repr(value)
    return text if len(text) <= 80 else text[:77] + "..."
