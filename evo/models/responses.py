"""Requests that a server gets and its answers, as plain values."""

from __future__ import annotations

import math
from collections.abc import AsyncGenerator, Iterable, Mapping
from dataclasses import dataclass, field

import msgspec

JSON = "application/json"
EVENTS = "text/event-stream"


@dataclass(slots=True)
class HttpRequest:
    """A client's request, which has arrived as a whole."""

    method: str
    path: str  # without the query, percent-decoded
    headers: Mapping[str, str]  # names in any case
    body: bytes


@dataclass(slots=True)
class Response:
    """An HTTP answer."""

    status: int
    content: bytes
    kind: str = JSON
    usage: dict[str, object] | None = None  # of a completion, like the next
    seed: int | None = None
    retry_after: float | None = None  # seconds after which the client may try again
    final: bool = False  # trying again is of no use
    stream: AsyncGenerator[bytes] | None = None  # what follows; closed once nobody reads it
    headers: Mapping[str, str] = field(default_factory=dict)  # further ones

    def all_headers(self) -> dict[str, str]:
        """Returns all headers but those of the connection."""
        headers = {"Content-Type": self.kind, "Server": "evo", **self.headers}
        if self.retry_after is not None:
            headers["Retry-After"] = str(math.ceil(self.retry_after))
            headers["retry-after-ms"] = str(math.ceil(1000 * self.retry_after))
        if self.final:
            headers["x-should-retry"] = "false"
        return headers


def error_response(
    status: int, message: str, code: str, *, retry_after: float | None = None, final: bool = False
) -> Response:
    """Returns an error as OpenAI's endpoints send it."""
    error = {"message": message, "type": code, "param": None, "code": code}
    content = msgspec.json.encode({"error": error})
    return Response(status, content, retry_after=retry_after, final=final)


def list_models(names: Iterable[str], owner: str) -> Response:
    """Returns a list of models as OpenAI's endpoints send it."""
    data = [{"id": n, "object": "model", "created": 0, "owned_by": owner} for n in names]
    return Response(200, msgspec.json.encode({"object": "list", "data": data}))
