"""Reads a chat-completions request and refuses what the offline model cannot answer."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any, Literal

import msgspec

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
    if not isinstance(model, str) or model not in OFFLINE_MODELS:
        raise RequestError(
            f"no model {model!r} here; this endpoint has only 'offline', which is not an LLM",
            http_status=404,
            param="model",
            code="model_not_found",
        )
    try:
        read = _decoder.decode(msgspec.json.encode(body))
    except msgspec.ValidationError as error:
        what, _, where = str(error).partition(" - at `$.")
        param = where.removesuffix("`") or "messages"
        raise RequestError(f"'{param}': {what}", param=param) from None
    if not read.messages:
        raise RequestError(
            "'messages' must be a list of at least one message, got []", param="messages"
        )
    request = Request(
        model=model,
        messages=tuple((message.role, message.text) for message in read.messages),
        seed=read.seed,
        temperature=DEFAULT_TEMPERATURE if read.temperature is None else read.temperature,
        max_tokens=read.max_completion_tokens or read.max_tokens or DEFAULT_MAX_TOKENS,
        stream=bool(read.stream),
        stream_usage=bool(read.stream_options and read.stream_options.include_usage),
    )
    tokens = prompt_tokens(request.messages)
    if tokens > OFFLINE_CONTEXT:
        raise RequestError(
            f"the context window is {OFFLINE_CONTEXT} tokens, but the messages have {tokens}",
            param="messages",
            code="context_length_exceeded",
        )
    return request
