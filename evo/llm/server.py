"""The offline model over HTTP, for any tool that speaks the chat-completions protocol.

It can be slow, fail and limit as endpoints do, each in a seeded way, and it logs what it saw.
"""

from __future__ import annotations

import contextlib
import hashlib
import math
import random
import socket
import sys
import threading
import time
from collections import deque
from collections.abc import Generator
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from socketserver import TCPServer
from typing import Any, BinaryIO, Literal, get_args

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


class RateLimits:
    """Requests and tokens that were let through in the last minute.

    Args:
        rpm: Requests in any 60 s; None: no limit.
        tpm: Tokens in any 60 s; None: no limit. A request above it passes alone.
    """

    def __init__(self, rpm: int | None, tpm: int | None) -> None:
        self._rpm = math.inf if rpm is None else rpm
        self._tpm = math.inf if tpm is None else tpm
        self._passed: deque[tuple[float, int]] = deque()  # until when each counts, its tokens
        self._used = 0
        self._lock = threading.Lock()

    def admit(self, tokens: int, *, now: float) -> float:
        """Returns 0 and counts the request, or the seconds until it would pass if no other came.

        Args:
            tokens: Of the request.
            now: Seconds on a clock that never goes back.
        """
        if self._rpm == self._tpm == math.inf:
            return 0.0
        with self._lock:
            while self._passed and self._passed[0][0] <= now:
                self._used -= self._passed.popleft()[1]
            count, used, wait = len(self._passed), self._used, 0.0
            for expiry, passed_tokens in self._passed:
                if count < self._rpm and used + tokens <= self._tpm:
                    break
                wait = expiry - now
                count, used = count - 1, used - passed_tokens
            if not wait:
                self._passed.append((now + MINUTE, tokens))
                self._used += tokens
            return wait


class OfflineServer(contextlib.AbstractContextManager["OfflineServer"]):
    """The offline model at `http://HOST:PORT/v1` while the context lasts.

        with OfflineServer() as server:
            openai.OpenAI(base_url=server.url, api_key="none")

    A client that keeps its connection open is cut off when the context ends.

    Args:
        host: Address to listen on.
        port: 0 picks a free one.
        latency: Simulated latency; None: none.
        faults: Such as `rate_limit:0.1,server_error:0.05`, see `parse_faults`. A request that is
            repeated draws anew, so that a retry can succeed.
        request_log: File that gets one JSON line per POST just before it is answered: `received`
            and `answered` (seconds since the server began), `status` (HTTP; 0: no answer, or
            nobody there to take it), `seed`, `prompt_hash` (SHA-256 of the messages), `usage`,
            `in_flight` (when received).
        rpm: Requests in any 60 s beyond which a 429 is given; None: no limit.
        tpm: Tokens in any 60 s, prompt and completion, likewise.

    Raises:
        ValueError: A port above 65535, or faults that `parse_faults` refuses.
        OSError: On entering: the address or the request log cannot be had.
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
        if not 0 <= port <= 65535:
            raise ValueError(f"port must be from 0 (any free one) to 65535, got {port!r}")
        self._address = (host, port)
        self._faults = parse_faults(faults)
        self._latency = latency
        self._limits = RateLimits(rpm, tpm)
        self._request_log = request_log
        self._log_file: BinaryIO | None = None
        self._lock = threading.Lock()
        self._in_flight = 0
        self._occurrences: dict[bytes, int] = {}

    @property
    def url(self) -> str:
        """Base URL for an openai client, once the server is entered."""
        host, port = self._http.server_address[:2]
        return f"http://{host!s}:{port}/v1"

    def __enter__(self) -> OfflineServer:
        with contextlib.ExitStack() as opened:
            if self._request_log is not None:
                file = open(self._request_log, "ab", buffering=0)
                self._log_file = opened.enter_context(file)
            try:
                self._http = opened.enter_context(_HTTPServer(self._address, self))
            except OSError as error:
                host, port = self._address
                reason = error.strerror or error
                raise OSError(
                    f"cannot listen on {host}:{port}: {reason}; another port may be free, "
                    f"0 picks one that is"
                ) from error
            self._began = time.monotonic()
            self._thread = threading.Thread(
                target=self._http.serve_forever, args=(0.05,), daemon=True
            )
            self._thread.start()
            self._opened = opened.pop_all()
        return self

    def __exit__(self, *_: object) -> None:
        self._http.shutdown()
        self._thread.join()
        self._opened.close()

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
        wait = self._limits.admit(used, now=time.monotonic())
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
                if self._log_file is not None:
                    line = {
                        "received": round(received, 4),
                        "answered": round(time.monotonic() - self._began, 4),
                        "status": sent[0].status if sent else 0,
                        "seed": sent[0].seed if sent else None,
                        "prompt_hash": _prompt_hash(body),
                        "usage": sent[0].usage if sent else None,
                        "in_flight": in_flight,
                    }
                    self._log_file.write(msgspec.json.encode(line) + b"\n")

    def wait(self, seconds: float, connection: socket.socket) -> bool:
        """Waits; returns False soon after the client leaves or the server ends."""
        deadline = time.monotonic() + seconds
        while (left := deadline - time.monotonic()) > 0:
            time.sleep(min(left, 0.1))
            if _gone(connection):
                return False
        return True


class _HTTPServer(ThreadingHTTPServer):
    request_queue_size = 1024

    def __init__(self, address: tuple[str, int], endpoint: OfflineServer) -> None:
        self.endpoint = endpoint
        self._connections: dict[threading.Thread, Any] = {}
        self._lock = threading.Lock()
        super().__init__(address, _Handler)

    def server_bind(self) -> None:
        """Binds without asking the DNS for the host's name, which can take seconds."""
        TCPServer.server_bind(self)
        self.server_name, self.server_port = str(self.server_address[0]), self.server_address[1]

    def process_request(self, request: Any, client_address: Any) -> None:
        """Serves a connection on a thread of its own, which `server_close` can end."""
        thread = threading.Thread(
            target=self.process_request_thread, args=(request, client_address), daemon=True
        )
        with self._lock:
            thread.start()
            self._connections[thread] = request

    def process_request_thread(self, request: Any, client_address: Any) -> None:
        """Serves a connection until it ends."""
        try:
            super().process_request_thread(request, client_address)
        finally:
            with self._lock:
                del self._connections[threading.current_thread()]

    def server_close(self) -> None:
        """Closes every socket and waits for every thread."""
        super().server_close()
        with self._lock:
            connections = dict(self._connections)
        for connection in connections.values():
            with contextlib.suppress(OSError):  # the client was quicker
                connection.shutdown(socket.SHUT_RDWR)
        for thread in connections:
            thread.join()

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A client that went away is no error of the server."""
        if not isinstance(sys.exception(), ConnectionError):
            super().handle_error(request, client_address)


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    wbufsize = -1  # head and body in one packet
    server: _HTTPServer

    def do_GET(self) -> None:
        """Lists the models."""
        if self._read_body() is not None:
            self._send(respond("GET", self.path, b""))

    def do_POST(self) -> None:
        """Answers a completion."""
        body = self._read_body()
        if body is None:
            return
        endpoint = self.server.endpoint
        with endpoint.record(body) as sent:
            response, wait = endpoint.answer("POST", self.path, body)
            if not endpoint.wait(wait, self.connection) or response is None:
                self.close_connection = True
                return
            sent.append(response)
        self._send(response)

    def _read_body(self) -> bytes | None:
        """Returns the body; None if it breaks off, or cannot be read, which is answered."""
        length = self.headers.get("Content-Length", "0" if self.command == "GET" else "")
        if not (length.isascii() and length.isdigit() and len(length) < 10):
            self.send_error(411, "a Content-Length is needed")
            return None
        if int(length) > LARGEST_BODY:
            self.send_error(413, f"the body may have {LARGEST_BODY} bytes, got {length}")
            return None
        body = self.rfile.read(int(length))
        if len(body) < int(length):
            self.close_connection = True
            return None
        return body

    def _send(self, response: Response) -> None:
        self.send_response(response.status)
        self.send_header("Content-Type", response.kind)
        self.send_header("Content-Length", str(len(response.content)))
        if response.retry_after is not None:
            self.send_header("Retry-After", str(math.ceil(response.retry_after)))
            self.send_header("retry-after-ms", str(math.ceil(1000 * response.retry_after)))
        if self.close_connection:
            self.send_header("Connection", "close")
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(response.content)
        self.wfile.flush()

    def send_error(self, code: int, message: str | None = None, explain: str | None = None) -> None:
        """Refuses what is no proper HTTP request, as JSON like every other error."""
        self.close_connection = True
        self._send(error_response(code, message or HTTPStatus(code).phrase, "http"))

    def handle_expect_100(self) -> bool:
        """Lets a client that asks first send its body, at once."""
        allowed = super().handle_expect_100()
        self.wfile.flush()
        return allowed

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
    except (ValueError, KeyError, TypeError, RecursionError):
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
