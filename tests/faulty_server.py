"""The offline model over HTTP with the faults that endpoints have, each drawn in a seeded way."""

from __future__ import annotations

import hashlib
import random
import threading
from collections import Counter
from pathlib import Path
from typing import Literal

from evo.gate.server import OfflineServer
from evo.models.responses import Response, error_response

Fault = Literal["rate_limit", "server_error", "hang", "drop"]
"""`rate_limit`: 429 with Retry-After; `server_error`: 500; `hang`: no answer until the client
gives up; `drop`: the connection is closed without an answer."""

LONGEST_HANG = 3600.0
WAIT = 0.2  # seconds of Retry-After of a rate limit


class FaultyServer(OfflineServer):
    """Fails with the probability of each fault; a request that is repeated draws anew."""

    def __init__(self, faults: dict[Fault, float], request_log: Path | None = None) -> None:
        super().__init__(request_log=request_log)
        self._faults = faults
        self._drawing = threading.Lock()
        self._occurrences: Counter[bytes] = Counter()

    def answer(self, path: str, body: bytes) -> tuple[Response | None, float]:
        fault = self._draw_fault(body)
        if fault in {"hang", "drop"}:
            return None, LONGEST_HANG if fault == "hang" else 0.0
        if fault == "server_error":
            return error_response(500, "a simulated error of the server", "server_error"), 0.0
        if fault == "rate_limit":
            text = f"a simulated rate limit; retry in {WAIT} s"
            return error_response(429, text, "rate_limit_exceeded", retry_after=WAIT), 0.0
        return super().answer(path, body)

    def _draw_fault(self, body: bytes) -> Fault | None:
        digest = hashlib.sha256(body).digest()
        with self._drawing:
            occurrence = self._occurrences[digest]
            self._occurrences[digest] += 1
        point = random.Random(digest + str(occurrence).encode()).random()
        for fault, probability in self._faults.items():
            point -= probability
            if point < 0:
                return fault
        return None
