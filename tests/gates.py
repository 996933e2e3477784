"""What tests of the gate share: an endpoint behind it, a client before it, and its log."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from typing import Any

import msgspec
from endpoints import Endpoint, Handling, connected, say

from evo.gate.gate import Gate
from evo.logs.records import Model

KEY = "sk-gate/0123456789-secret"
USAGE = {"prompt_tokens": 30, "completion_tokens": 20}
REPLY = {"choices": [{"message": {"content": "hi"}, "finish_reason": "stop"}], "usage": USAGE}


def reply(handler: BaseHTTPRequestHandler, body: dict[str, Any], number: int) -> None:
    say(handler, 200, json.dumps(REPLY).encode())


class Upstream(Endpoint):
    """An endpoint and its model."""

    def __init__(self, handle: Handling = reply) -> None:
        super().__init__(handle)
        self.seen = self.requests
        known = Model(name="m", context=1000, input_price=1.0, output_price=2.0)
        self.model = msgspec.structs.replace(
            known, id="real-name", base_url=self.url, key_variable="GATE_KEY"
        )


@contextlib.contextmanager
def posting(gate: Gate | str) -> Iterator[Callable[..., tuple[int, Any, Any]]]:
    """A function that sends a body over a connection of its own."""
    with connected(gate if isinstance(gate, str) else gate.url) as connection:

        def post(key: str = "tool", **fields: Any) -> tuple[int, Any, Any]:
            body = {"model": "any", "messages": [{"role": "user", "content": "hi"}], **fields}
            headers = {"authorization": f"Bearer {key}"}
            connection.request("POST", "/v1/chat/completions", json.dumps(body), headers)
            answer = connection.getresponse()
            return answer.status, answer.read(), answer.headers

        yield post


def logged(path: Path | None) -> dict[str, list[dict[str, Any]]]:
    """The lines of a gate's log by their kind."""
    assert path is not None
    found: dict[str, list[dict[str, Any]]] = {}
    for line in path.read_text().splitlines():
        record = json.loads(line)
        found.setdefault(record["kind"], []).append(record)
    return found
