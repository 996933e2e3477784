"""HTTP/1.1 with a thread per connection: what the offline model's server and the gate stand on."""

from __future__ import annotations

import contextlib
import math
import socket
import sys
import threading
from abc import ABC, abstractmethod
from collections.abc import Generator, Iterable
from dataclasses import dataclass
from email.message import Message
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from socketserver import TCPServer
from typing import Any, Self

import msgspec

LARGEST_BODY = 64 << 20
JSON = "application/json"
EVENTS = "text/event-stream"


@dataclass(frozen=True)
class Request:
    """What a client sent, and the connection on which it waits."""

    method: str
    path: str
    headers: Message
    body: bytes
    connection: socket.socket


@dataclass(frozen=True)
class Response:
    """An HTTP answer."""

    status: int
    content: bytes
    kind: str = JSON
    usage: dict[str, Any] | None = None  # of a completion, like the next
    seed: int | None = None
    retry_after: float | None = None  # seconds after which the client may try again
    final: bool = False  # trying again is of no use
    stream: Generator[bytes] | None = None  # what follows; closed once nobody reads it any more


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


class Listener(contextlib.AbstractContextManager[Any], ABC):
    """Answers requests at `http://HOST:PORT/v1` while the context lasts, then cuts clients off."""

    def __init__(self, host: str, port: int) -> None:
        if not 0 <= port <= 65535:
            raise ValueError(f"port must be from 0 (any free one) to 65535, got {port!r}")
        self._address = (host, port)

    @abstractmethod
    def respond(self, request: Request) -> Response | None:
        """Answers a request, in the thread of its connection; None closes the connection."""

    @abstractmethod
    def begin(self, opened: contextlib.ExitStack) -> None:
        """Opens what answers need, before anybody can ask; it is closed after the last answer."""

    @property
    def url(self) -> str:
        """Base URL for an openai client, once the server is entered."""
        host, port = self._http.server_address[:2]
        return f"http://{host!s}:{port}/v1"

    def __enter__(self) -> Self:
        with contextlib.ExitStack() as opened:
            self.begin(opened)
            try:
                self._http = opened.enter_context(_HTTPServer(self._address, self))
            except OSError as error:
                host, port = self._address
                raise OSError(
                    f"cannot listen on {host}:{port}: {error.strerror or error}; another port may "
                    "be free, 0 picks one that is"
                ) from error
            thread = threading.Thread(target=self._http.serve_forever, args=(0.05,), daemon=True)
            thread.start()
            opened.callback(thread.join)
            opened.callback(self._http.shutdown)
            self._opened = opened.pop_all()
        return self

    def __exit__(self, *_: object) -> None:
        self._opened.close()


class _HTTPServer(ThreadingHTTPServer):
    request_queue_size = 1024
    daemon_threads = False  # so that closing waits for them

    def __init__(self, address: tuple[str, int], listener: Listener) -> None:
        self.listener = listener
        self._connections: set[Any] = set()
        super().__init__(address, _Handler)

    def server_bind(self) -> None:
        """Binds without asking the DNS for the host's name, which can take seconds."""
        TCPServer.server_bind(self)
        self.server_name, self.server_port = str(self.server_address[0]), self.server_address[1]

    def process_request(self, request: Any, client_address: Any) -> None:
        """Serves a connection on a thread of its own, which `server_close` can end."""
        self._connections.add(request)
        super().process_request(request, client_address)

    def shutdown_request(self, request: Any) -> None:
        """Ends a connection."""
        self._connections.discard(request)
        super().shutdown_request(request)

    def server_close(self) -> None:
        """Closes every socket and waits for every thread."""
        for connection in self._connections.copy():
            with contextlib.suppress(OSError):  # the client was quicker
                connection.shutdown(socket.SHUT_RDWR)
        super().server_close()

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A client that went away, or an answer that broke off, is no error of the server."""
        if not isinstance(sys.exception(), ConnectionError):
            super().handle_error(request, client_address)


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    wbufsize = -1  # head and body in one packet
    server: _HTTPServer

    def do_POST(self) -> None:
        """Answers a request."""
        length = self.headers.get("Content-Length", "0" if self.command == "GET" else "")
        if not (length.isascii() and length.isdigit() and len(length) < 10):
            return self.send_error(411, "a Content-Length is needed")
        if int(length) > LARGEST_BODY:
            return self.send_error(413, f"the body may have {LARGEST_BODY} bytes, got {length}")
        body, response = self.rfile.read(int(length)), None
        if len(body) == int(length):
            request = Request(self.command, self.path, self.headers, body, self.connection)
            response = self.server.listener.respond(request)
        if response is None:
            self.close_connection = True
        else:
            self._send(response)
        return None

    do_GET = do_POST  # noqa: N815

    def _send(self, response: Response) -> None:
        stream = response.stream
        with contextlib.nullcontext() if stream is None else contextlib.closing(stream):
            chunked = stream is not None and self.request_version >= "HTTP/1.1"
            self.close_connection |= stream is not None and not chunked
            headers = {"Content-Type": response.kind}
            if chunked:
                headers["Transfer-Encoding"] = "chunked"
            elif stream is None:
                headers["Content-Length"] = str(len(response.content))
            if response.retry_after is not None:
                headers["Retry-After"] = str(math.ceil(response.retry_after))
                headers["retry-after-ms"] = str(math.ceil(1000 * response.retry_after))
            if response.final:
                headers["x-should-retry"] = "false"
            if self.close_connection:
                headers["Connection"] = "close"
            self.send_response(response.status)
            for name, value in headers.items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(response.content)
            for piece in stream or ():
                self.wfile.write(b"%x\r\n%b\r\n" % (len(piece), piece) if chunked else piece)
                self.wfile.flush()
            if chunked:
                self.wfile.write(b"0\r\n\r\n")
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
        """What there is to say stands in the listener's log."""


def has_left(connection: socket.socket) -> bool:
    """Whether the client has closed the connection."""
    try:
        return connection.recv(1, socket.MSG_PEEK | socket.MSG_DONTWAIT) == b""
    except BlockingIOError:
        return False
    except OSError:
        return True
