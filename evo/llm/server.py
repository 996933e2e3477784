"""The offline model over HTTP, for any tool that speaks the chat-completions protocol.

It can be slow, fail and limit as endpoints do, each in a seeded way, and it logs what it saw.
"""

from __future__ import annotations

import contextlib
import hashlib
import math
import random
import socket
import threading
import time
from collections import deque
from collections.abc import Generator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Literal, get_args

import msgspec

from evo.llm.offline.endpoint import Response, error_response, respond
from evo.llm.offline.latency import Latency

Fault = Literal["rate_limit", "server_error", "hang", "drop"]
"""`rate_limit`: 429 with Retry-After; `server_error`: 500; `hang`: no answer until the client
gives up; `drop`: the connection is closed without an answer."""
FAULTS: tuple[Fault, ...] = get_args(Fault)

MINUTE = 60.0
LONGEST_HANG = 3600.0
SIMULATED_WAIT = 0.2  # seconds of Retry-After of a simulated rate limit
LARGEST_BODY = 64 << 20


def parse_faults(text: str | None) -> dict[Fault, float]:
    """Parses `rate_limit:0.1,server_error:0.05`: the probability of each fault of a request.

    Raises:
        ValueError: An unknown fault, a number outside [0, 1], or a sum above 1.
    """
    found: dict[Fault, float] = {}
    for part in (text or "").split(","):
        if not part.strip():
            continue
        name, _, number = part.strip().partition(":")
        try:
            probability = float(number)
        except ValueError:
            probability = -1.0
        fault = next((fault for fault in FAULTS if fault == name), None)
        if fault is None or not 0 <= probability <= 1:
            raise ValueError(
                f"faults: expected NAME:PROBABILITY with a name out of {', '.join(FAULTS)} and a "
                f"probability from 0 to 1, got {part!r}"
            )
        found[fault] = probability
    if sum(found.values()) > 1:
        raise ValueError(f"faults: the probabilities add up to more than 1 in {text!r}")
    return found


class Limits:
    """Requests and tokens that were let through in the last minute."""

    def __init__(self, rpm: int | None, tpm: int | None) -> None:
        self._rpm, self._tpm = rpm, tpm
        self._passed: deque[tuple[float, int]] = deque()
        self._tokens = 0
        self._lock = threading.Lock()

    def admit(self, tokens: int) -> float:
        """Returns 0 and counts the request, or the seconds until it may be asked again."""
        if self._rpm is None and self._tpm is None:
            return 0.0
        now = time.monotonic()
        with self._lock:
            while self._passed and self._passed[0][0] <= now - MINUTE:
                self._tokens -= self._passed.popleft()[1]
            full = self._rpm is not None and len(self._passed) >= self._rpm
            dear = self._tpm is not None and self._passed and self._tokens + tokens > self._tpm
            if full or dear:
                return max(0.05, self._passed[0][0] + MINUTE - now)
            self._passed.append((now, tokens))
            self._tokens += tokens
            return 0.0


class OfflineServer(contextlib.AbstractContextManager["OfflineServer"]):
    """The offline model at `http://HOST:PORT/v1` while the context lasts.

        with OfflineServer() as server:
            openai.OpenAI(base_url=server.url, api_key="none")

    Args:
        host: Address to listen on.
        port: 0 picks a free one.
        latency: Simulated latency; None: none.
        faults: Such as `rate_limit:0.1,server_error:0.05`, see `parse_faults`. A request that is
            repeated draws anew, so that a retry can succeed.
        request_log: File that gets one JSON line per request once it is answered: `received` and
            `answered` (seconds since the server began), `status` (HTTP; 0: no answer), `seed`,
            `prompt_hash` (SHA-256 of the messages), `usage`, `in_flight` (when received).
        rpm: Requests in any 60 s beyond which a 429 is given; None: no limit.
        tpm: Tokens in any 60 s, prompt and completion, likewise.
    """

    def __init__(
        self,
        host: str = "127.0.0.1",
        port: int = 0,
        *,
        latency: Latency | None = None,
        faults: str | None = None,
        request_log: Path | None = None,
        rpm: int | None = None,
        tpm: int | None = None,
    ) -> None:
        self._faults = parse_faults(faults)
        self._latency = latency
        self._limits = Limits(rpm, tpm)
        self._request_log = request_log
        self._lock = threading.Lock()
        self._began = time.monotonic()
        self._in_flight = 0
        self._occurrences: dict[bytes, int] = {}
        self._stopped = threading.Event()
        self._http = _HTTPServer((host, port), _Handler)
        self._http.endpoint = self
        self._thread = threading.Thread(target=self._http.serve_forever, args=(0.05,), daemon=True)

    @property
    def url(self) -> str:
        """Base URL for an openai client."""
        host, port = self._http.server_address[:2]
        return f"http://{host!s}:{port}/v1"

    def __enter__(self) -> OfflineServer:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stopped.set()
        self._http.shutdown()
        self._http.server_close()
        self._thread.join()

    def answer(self, method: str, path: str, body: bytes) -> tuple[Response | None, float]:
        """Returns an answer, None to close the connection, and the seconds to wait first."""
        if method != "POST":
            return respond(method, path, body), 0.0
        fault = self._draw_fault(body)
        if fault == "hang":
            return None, LONGEST_HANG
        if fault == "drop":
            return None, 0.0
        if fault == "server_error":
            return error_response(500, "a simulated error of the server", "server_error"), 0.0
        if fault == "rate_limit":
            return self._limited("a simulated rate limit", SIMULATED_WAIT), 0.0
        response = respond(method, path, body)
        used = sum((response.usage or {}).get(k, 0) for k in ("prompt_tokens", "completion_tokens"))
        wait = self._limits.admit(used)
        if wait:
            return self._limited("over the limit of requests or tokens per minute", wait), 0.0
        return response, self._latency.seconds(body) if self._latency else 0.0

    @staticmethod
    def _limited(message: str, wait: float) -> Response:
        text = f"{message}; retry in {wait:.2f} s"
        return error_response(429, text, "rate_limit_exceeded", retry_after=wait)

    def _draw_fault(self, body: bytes) -> Fault | None:
        if not self._faults:
            return None
        digest = hashlib.sha256(body).digest()
        with self._lock:
            occurrence = self._occurrences.get(digest, 0)
            self._occurrences[digest] = occurrence + 1
        point = random.Random(digest + str(occurrence).encode()).random()
        for fault, probability in self._faults.items():
            point -= probability
            if point < 0:
                return fault
        return None

    @contextlib.contextmanager
    def record(self, body: bytes) -> Generator[list[Response]]:
        """Logs a request once the block ends; the block appends the answer that was sent."""
        received = time.monotonic() - self._began
        with self._lock:
            self._in_flight += 1
            in_flight = self._in_flight
        sent: list[Response] = []
        try:
            yield sent
        finally:
            with self._lock:
                self._in_flight -= 1
                if self._request_log is not None:
                    line = {
                        "received": round(received, 4),
                        "answered": round(time.monotonic() - self._began, 4),
                        "status": sent[0].status if sent else 0,
                        "seed": sent[0].seed if sent else None,
                        "prompt_hash": _prompt_hash(body),
                        "usage": sent[0].usage if sent else None,
                        "in_flight": in_flight,
                    }
                    with self._request_log.open("ab") as file:
                        file.write(msgspec.json.encode(line) + b"\n")

    def sleep(self, seconds: float, connection: socket.socket) -> None:
        """Sleeps, but no longer than the client stays and the server runs."""
        deadline = time.monotonic() + seconds
        while (left := deadline - time.monotonic()) > 0 and not self._stopped.is_set():
            self._stopped.wait(min(left, 0.25))
            if left > 0.25 and _gone(connection):
                return


class _HTTPServer(ThreadingHTTPServer):
    daemon_threads = True
    block_on_close = False
    request_queue_size = 1024
    endpoint: OfflineServer

    def handle_error(self, request: object, client_address: object) -> None:
        """A client that went away is no error of the server."""


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    wbufsize = -1  # head and body in one packet
    server: _HTTPServer

    def do_GET(self) -> None:
        """Lists the models."""
        self._send(respond("GET", self.path, b""))

    def do_POST(self) -> None:
        """Answers a completion."""
        length = self.headers.get("Content-Length", "")
        if not length.isdigit() or int(length) > LARGEST_BODY:
            self.close_connection = True
            self._send(error_response(411, "a Content-Length up to 64 MiB is needed", "length"))
            return
        body = self.rfile.read(int(length))
        endpoint = self.server.endpoint
        with endpoint.record(body) as sent:
            response, wait = endpoint.answer("POST", self.path, body)
            if wait:
                endpoint.sleep(wait, self.connection)
            if response is None:
                self.close_connection = True
                return
            sent.append(response)
        self._send(response)

    def _send(self, response: Response) -> None:
        self.send_response(response.status)
        self.send_header("Content-Type", response.kind)
        self.send_header("Content-Length", str(len(response.content)))
        if response.retry_after is not None:
            self.send_header("Retry-After", str(math.ceil(response.retry_after)))
            self.send_header("retry-after-ms", str(math.ceil(1000 * response.retry_after)))
        self.end_headers()
        self.wfile.write(response.content)
        self.wfile.flush()

    def log_message(self, *_: object) -> None:
        """The request log says what there is to say."""


def _gone(connection: socket.socket) -> bool:
    """Whether the client has closed the connection."""
    try:
        return connection.recv(1, socket.MSG_PEEK | socket.MSG_DONTWAIT) == b""
    except BlockingIOError:
        return False
    except OSError:
        return True


def _prompt_hash(body: bytes) -> str | None:
    try:
        messages = msgspec.json.decode(body)["messages"]
    except (ValueError, KeyError, TypeError):
        return None
    return hashlib.sha256(msgspec.json.encode(messages, order="sorted")).hexdigest()


def serve(
    host: str = "127.0.0.1",
    port: int = 8000,
    *,
    latency: Latency | None = None,
    faults: str | None = None,
    request_log: Path | None = None,
    rpm: int | None = None,
    tpm: int | None = None,
) -> None:
    """Serves the offline model until interrupted; arguments as for `OfflineServer`."""
    server = OfflineServer(
        host, port, latency=latency, faults=faults, request_log=request_log, rpm=rpm, tpm=tpm
    )
    with server:
        print(f"the offline model (not an LLM) at {server.url}; Ctrl-C ends it", flush=True)
        threading.Event().wait()
