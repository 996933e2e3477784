"""The offline model over HTTP, for any tool that speaks the chat-completions protocol.

It can be slow, in a seeded way, and it logs what it saw.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import math
import time
from dataclasses import dataclass
from pathlib import Path
from statistics import NormalDist
from typing import BinaryIO

import msgspec

from evo.keyed import KeyedStream
from evo.models.client import prompt_hash
from evo.models.offline.endpoint import respond
from evo.models.responses import HttpRequest, Response
from evo.models.serving import HttpServer


@dataclass(frozen=True)
class Latency:
    """Lognormal latency: its median, seconds, and the standard deviation of its logarithm."""

    median: float
    sigma: float = 0.0

    def __post_init__(self) -> None:
        if not (0 <= self.median < math.inf and 0 <= self.sigma < math.inf):
            words = f"got {self.median!r}, {self.sigma!r}"
            raise ValueError(f"latency: expected numbers of at least 0, {words}")

    def seconds(self, body: bytes) -> float:
        """Returns the latency of a request, seconds: the same for the same body."""
        uniform = KeyedStream("latency", body.decode("utf-8", "replace")).uniform(1e-9, 1 - 1e-9)
        return self.median * math.exp(self.sigma * NormalDist().inv_cdf(uniform))


class OfflineServer(HttpServer):
    """The offline model at `http://HOST:PORT/v1` while the context lasts.

        with OfflineServer() as server:
            openai.OpenAI(base_url=server.url, api_key="none")

    The file `request_log` gets one JSON line per POST just before it is answered: `received` and
    `answered` (seconds since the server began), `status` (HTTP; 0: no answer, or nobody there to
    take it), `seed`, `prompt_hash` (SHA-256 of the messages), `usage`, `in_flight` (when received).
    """

    def __init__(
        self,
        host: str = "127.0.0.1",
        port: int = 0,
        *,
        latency: Latency | None = None,
        request_log: Path | None = None,
    ) -> None:
        super().__init__(host, port)
        self._latency = latency
        self._request_log = request_log
        self._log_file: BinaryIO | None = None
        self._in_flight = 0

    def begin(self, opened: contextlib.ExitStack) -> None:
        """Opens the request log."""
        self._began = time.monotonic()
        if self._request_log is not None:
            self._log_file = opened.enter_context(self._request_log.open("ab", buffering=0))

    async def respond(self, request: HttpRequest) -> Response | None:
        """Answers as the offline model, with its latency."""
        if request.method != "POST":
            return respond(request.method, request.path, request.body)
        received, response = time.monotonic(), None
        self._in_flight += 1
        in_flight = self._in_flight
        try:
            answer, wait = self.answer(request.path, request.body)
            await asyncio.sleep(wait)
            response = answer
        finally:
            self._in_flight -= 1
            self._log(request.body, response, received, in_flight)
        return response

    def answer(self, path: str, body: bytes) -> tuple[Response | None, float]:
        """Returns an answer, None to close the connection, and the seconds to wait first."""
        seconds = self._latency.seconds(body) if self._latency else 0.0
        return respond("POST", path, body), seconds

    def _log(self, body: bytes, sent: Response | None, received: float, in_flight: int) -> None:
        """Writes the line of a request."""
        if self._log_file is None:
            return
        prompt = None
        with contextlib.suppress(ValueError, KeyError, TypeError, RecursionError):
            prompt = prompt_hash(json.loads(body)["messages"])
        line = {
            "received": round(received - self._began, 4),
            "answered": round(time.monotonic() - self._began, 4),
            "status": sent.status if sent else 0,
            "seed": sent.seed if sent else None,
            "prompt_hash": prompt,
            "usage": sent.usage if sent else None,
            "in_flight": in_flight,
        }
        self._log_file.write(msgspec.json.encode(line) + b"\n")
