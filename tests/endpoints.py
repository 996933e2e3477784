"""An endpoint over HTTP that does as a script says and notes what it was asked."""

from __future__ import annotations

import contextlib
import http.client
import json
import socket
import ssl
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Self


@dataclass
class Answer:
    """What the endpoint does with one request."""

    status: int = 200
    body: object = None
    headers: dict[str, str] = field(default_factory=dict)
    wait: float = 0.0  # seconds before the status line
    trickle: float = 0.0  # seconds between the bytes of the body


Script = Callable[[int], Answer]
Handling = Callable[[BaseHTTPRequestHandler, dict[str, Any], int], None]


class Endpoint:
    """A server that answers by a script, or lets a function handle each request (from 1)."""

    def __init__(self, handle: Handling | None = None, context: ssl.SSLContext | None = None):
        self.script: Script = lambda number: Answer()
        self.requests: list[dict[str, Any]] = []
        self.headers: list[dict[str, str]] = []
        self.dropped = threading.Event()  # a client went away before its answer
        outer, lock = self, threading.Lock()

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"
            wbufsize = 0 if handle is None else -1

            def do_POST(self) -> None:
                body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                with lock:
                    outer.requests.append(body)
                    outer.headers.append(
                        {name.lower(): value for name, value in self.headers.items()}
                    )
                    number = len(outer.requests)
                with contextlib.suppress(ConnectionError):
                    if handle is None:
                        outer.answer(self, outer.script(number - 1))
                    else:
                        handle(self, body, number)

            def log_message(self, *_: object) -> None: ...

        class Server(ThreadingHTTPServer):
            request_queue_size = 256  # else the kernel resets what nobody here ever sees

        self.http = Server(("127.0.0.1", 0), Handler)
        self.http.daemon_threads = True
        self.url = f"http://127.0.0.1:{self.http.server_port}/v1"
        if context is not None:
            self.http.socket = context.wrap_socket(self.http.socket, server_side=True)
            self.url = self.url.replace("http:", "https:")

    def __enter__(self) -> Self:
        threading.Thread(target=self.http.serve_forever, args=(0.01,), daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self.http.shutdown()
        self.http.server_close()

    def answer(self, handler: BaseHTTPRequestHandler, answer: Answer) -> None:
        if self.gone(handler, answer.wait):
            return
        body = answer.body
        content = body if isinstance(body, bytes) else json.dumps(body).encode()
        say(handler, answer.status, b"" if answer.trickle else content, len(content),
            **answer.headers)  # fmt: skip
        for byte in content if answer.trickle else b"":
            if self.gone(handler, answer.trickle):
                return
            handler.wfile.write(bytes([byte]))

    def gone(self, handler: BaseHTTPRequestHandler, seconds: float) -> bool:
        """Waits, and says whether the client closed the connection meanwhile."""
        if not seconds:
            return False
        handler.connection.settimeout(seconds)
        try:
            closed = handler.connection.recv(1) == b""
        except TimeoutError:
            return False
        except OSError:
            closed = True
        finally:
            handler.connection.settimeout(None)
        if closed:
            handler.close_connection = True
            self.dropped.set()
        return closed


def say(
    handler: BaseHTTPRequestHandler,
    status: int,
    content: bytes,
    length: int | None = None,
    **headers: str,
) -> None:
    """Answers a request."""
    handler.send_response(status)
    size = str(len(content) if length is None else length)
    for name, value in {"Content-Length": size, **headers}.items():
        handler.send_header(name.replace("_", "-"), value)
    handler.end_headers()
    handler.wfile.write(content)


def noting_the_end(
    gone: threading.Event,
) -> Callable[[BaseHTTPRequestHandler, Any, int], None]:
    """Answers one request, and notes when the client has closed the connection after it."""

    def answer(handler: BaseHTTPRequestHandler, body: Any, number: int) -> None:
        say(handler, 200, b"{}")
        handler.wfile.flush()
        if handler.connection.recv(1) == b"":  # until then the connection is kept for more
            gone.set()
            handler.close_connection = True

    return answer


def together(count: int, work: Callable[[int], Any]) -> list[Any]:
    """What a function makes of 0, 1, ..., each on a thread of its own."""
    with ThreadPoolExecutor(count) as pool:
        return list(pool.map(work, range(count)))


@contextlib.contextmanager
def connected(url: str) -> Iterator[http.client.HTTPConnection]:
    """A plain connection that is kept open."""
    connection = http.client.HTTPConnection(url[7:-3], timeout=60)
    with contextlib.closing(connection):
        yield connection


@contextlib.contextmanager
def serving(*options: str) -> Iterator[tuple[subprocess.Popen[str], str]]:
    """`evo serve` as a process, and the URL that it names once it listens."""
    command = [sys.executable, "-m", "evo", "serve", "--port", "0", *options]
    with subprocess.Popen(command, stdout=-1, stderr=-1, text=True) as process:
        try:
            assert process.stdout is not None
            yield process, process.stdout.readline().split()[0]
        finally:
            process.kill()


def closed_port() -> str:
    """A URL at which nobody listens."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        return f"http://127.0.0.1:{free.getsockname()[1]}/v1"
