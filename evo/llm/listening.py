"""HTTP/1.1 with a thread per connection: what the offline model's server and the gate stand on."""

from __future__ import annotations

import contextlib
import math
import socket
import sys
import threading
from abc import ABC, abstractmethod
from dataclasses import dataclass
from email.message import Message
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from socketserver import TCPServer
from typing import Any, Self

from evo.llm.offline.endpoint import Response, error_response

LARGEST_BODY = 64 << 20


@dataclass(frozen=True)
class Request:
    """What a client sent, and the connection on which it waits."""

    method: str
    path: str
    headers: Message
    body: bytes
    connection: socket.socket


class Listener(contextlib.AbstractContextManager[Any], ABC):
    """Answers requests at `http://HOST:PORT/v1` while the context lasts.

    A client that keeps its connection open is cut off when the context ends.

    Args:
        host: Address to listen on.
        port: 0 picks a free one.

    Raises:
        ValueError: A port outside 0 to 65535.
        OSError: On entering: the address cannot be had.
    """

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
                reason = error.strerror or error
                raise OSError(
                    f"cannot listen on {host}:{port}: {reason}; another port may be free, "
                    f"0 picks one that is"
                ) from error
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


class _HTTPServer(ThreadingHTTPServer):
    request_queue_size = 1024

    def __init__(self, address: tuple[str, int], listener: Listener) -> None:
        self.listener = listener
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
        body = self._read_body()
        if body is None:
            return
        request = Request(self.command, self.path, self.headers, body, self.connection)
        response = self.server.listener.respond(request)
        if response is None:
            self.close_connection = True
        else:
            self._send(response)

    do_GET = do_POST  # noqa: N815

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
        stream = response.stream
        with contextlib.nullcontext() if stream is None else contextlib.closing(stream):
            chunked = stream is not None and self.request_version >= "HTTP/1.1"
            self.close_connection |= stream is not None and not chunked
            self.send_response(response.status)
            self.send_header("Content-Type", response.kind)
            if chunked:
                self.send_header("Transfer-Encoding", "chunked")
            elif stream is None:
                self.send_header("Content-Length", str(len(response.content)))
            if response.retry_after is not None:
                self.send_header("Retry-After", str(math.ceil(response.retry_after)))
                self.send_header("retry-after-ms", str(math.ceil(1000 * response.retry_after)))
            if response.final:
                self.send_header("x-should-retry", "false")
            if self.close_connection:
                self.send_header("Connection", "close")
            self.end_headers()
            if self.command != "HEAD":
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
