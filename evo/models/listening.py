"""HTTP/1.1 for the offline model's server and the gate.

One thread reads all connections; a request that has arrived as a whole is answered by a thread of
its own. So clients that send half a request hold no thread, and after a while they are cut off.
"""

from __future__ import annotations

import contextlib
import math
import select
import selectors
import socket
import struct
import sys
import threading
import time
import traceback
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Generator, Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from http import HTTPStatus
from typing import Self

import msgspec

LARGEST_BODY = 64 << 20
LARGEST_HEAD = 64 << 10
REQUEST_SECONDS = 60.0  # from the first byte of a request to its last
IDLE_SECONDS = 300.0  # of a connection without a request
SEND_SECONDS = 60.0  # that a client may take to read what is ready for it
MOST_THREADS = 1024
JSON = "application/json"
EVENTS = "text/event-stream"


_PHRASES = {each.value: each.phrase for each in HTTPStatus}


@dataclass(frozen=True)
class Request:
    """A client's request and the connection on which the client waits."""

    method: str
    path: str
    headers: Mapping[str, str]  # names in lower case
    body: bytes
    connection: socket.socket


@dataclass(frozen=True)
class Response:
    """An HTTP answer."""

    status: int
    content: bytes
    kind: str = JSON
    usage: dict[str, object] | None = None  # of a completion, like the next
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


class Listener(contextlib.AbstractContextManager["Listener"], ABC):
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
        host, port = self._server.address
        return f"http://{host}:{port}/v1"

    def __enter__(self) -> Self:
        with contextlib.ExitStack() as opened:
            self.begin(opened)
            try:
                self._server = opened.enter_context(_Server(self._address, self))
            except OSError as error:
                host, port = self._address
                raise OSError(
                    f"cannot listen on {host}:{port}: {error.strerror or error}; another port may "
                    "be free, 0 picks one that is"
                ) from error
            self._opened = opened.pop_all()
        return self

    def __exit__(self, *_: object) -> None:
        self._opened.close()


@dataclass(eq=False)
class _Connection:
    """A client's connection and what has arrived on it."""

    socket: socket.socket
    buffer: bytearray = field(default_factory=bytearray)
    since: float = field(default_factory=time.monotonic)  # of its last change of state
    waited: bool = False  # whether "100 Continue" was sent to the client


class _Malformed(Exception):  # noqa: N818
    """The request is malformed or not supported."""

    def __init__(self, status: int, words: str = "") -> None:
        super().__init__(words or HTTPStatus(status).phrase)
        self.status = status


class _Server(contextlib.AbstractContextManager["_Server", None]):
    """Listens at an address, and has a listener answer, while the context lasts."""

    def __init__(self, address: tuple[str, int], listener: Listener) -> None:
        self._listener = listener
        self._accepting = socket.create_server(address, backlog=1024)
        self._accepting.setblocking(False)
        self._wakes, self._waker = socket.socketpair()
        self._wakes.setblocking(False)
        self._selector = selectors.DefaultSelector()
        self._selector.register(self._accepting, selectors.EVENT_READ)
        self._selector.register(self._wakes, selectors.EVENT_READ)
        self._workers = ThreadPoolExecutor(MOST_THREADS, "evo-listener")
        self._served = deque[_Connection]()  # answered: they wait for another request
        self._open: set[_Connection] = set()
        self._over = False
        self._thread = threading.Thread(target=self._read, daemon=True)
        self._thread.start()

    @property
    def address(self) -> tuple[str, int]:
        """Host and port."""
        host, port = self._accepting.getsockname()[:2]
        return str(host), int(port)

    def __exit__(self, *_: object) -> None:
        """Cuts off every client and waits for every thread."""
        self._over = True
        self._wake()
        self._thread.join()
        self._accepting.close()
        for connection in self._open.copy():
            with contextlib.suppress(OSError):  # the client was quicker
                connection.socket.shutdown(socket.SHUT_RDWR)
        self._workers.shutdown()
        for connection in self._open.copy():
            self._drop(connection)
        self._selector.close()
        self._wakes.close()
        self._waker.close()

    def _wake(self) -> None:
        with contextlib.suppress(OSError):
            self._waker.send(b"x")

    def _read(self) -> None:
        """Accepts connections and reads requests, until the end."""
        looked = time.monotonic()
        while not self._over:
            for key, _ in self._selector.select(1.0):
                if key.fileobj is self._accepting:
                    self._accept()
                elif key.fileobj is self._wakes:
                    with contextlib.suppress(BlockingIOError):
                        self._wakes.recv(4096)
                else:
                    self._receive(key.data)
            while self._served:
                self._wait_again(self._served.popleft())
            if time.monotonic() - looked > 1.0:
                looked = time.monotonic()
                self._cut_off(looked)

    def _accept(self) -> None:
        try:
            made, _ = self._accepting.accept()
        except OSError:  # it left again, or there are too many open files
            time.sleep(0.01)
            return
        made.setblocking(True)
        made.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        timeout = struct.pack("ll", int(SEND_SECONDS), 0)
        made.setsockopt(socket.SOL_SOCKET, socket.SO_SNDTIMEO, timeout)
        connection = _Connection(made)
        self._open.add(connection)
        self._selector.register(made, selectors.EVENT_READ, connection)

    def _receive(self, connection: _Connection) -> None:
        """Takes what has arrived; a whole request is handed to a thread."""
        try:
            data = connection.socket.recv(1 << 18, socket.MSG_DONTWAIT)
        except BlockingIOError:
            return
        except OSError:
            data = b""
        if not data:
            self._selector.unregister(connection.socket)
            self._drop(connection)
            return
        if not connection.buffer:
            connection.since = time.monotonic()
        connection.buffer += data
        if self._hand_over(connection):
            self._selector.unregister(connection.socket)

    def _wait_again(self, connection: _Connection) -> None:
        """Waits for another request on a connection whose last one was answered."""
        connection.since, connection.waited = time.monotonic(), False
        if not self._hand_over(connection):
            self._selector.register(connection.socket, selectors.EVENT_READ, connection)

    def _hand_over(self, connection: _Connection) -> bool:
        """Has a thread answer if a whole request has arrived, or one that cannot become one."""
        try:
            request = _take_request(connection)
        except _Malformed as error:
            response = error_response(error.status, str(error), "http")
            self._workers.submit(self._refuse, connection, response)
            return True
        if request is None:
            return False
        self._workers.submit(self._answer, connection, *request)
        return True

    def _answer(self, connection: _Connection, request: Request, keeps: bool, modern: bool) -> None:
        """Answers a request and gives the connection back."""
        stays = False
        try:
            response = self._listener.respond(request)
            stays = response is not None and _send(connection.socket, response, keeps, modern)
        except OSError:  # the client went away, or the answer broke off
            pass
        except Exception:
            traceback.print_exc(file=sys.stderr)
        finally:
            if stays and not self._over:
                self._served.append(connection)
                self._wake()
            else:
                self._drop(connection)

    def _refuse(self, connection: _Connection, response: Response) -> None:
        with contextlib.suppress(OSError):
            _send(connection.socket, response, keeps=False, modern=True)
            connection.socket.shutdown(socket.SHUT_WR)
        self._drop(connection)

    def _cut_off(self, now: float) -> None:
        """Ends connections that send no request, or none that ends."""
        for key in list(self._selector.get_map().values()):
            connection = key.data
            if connection is None:
                continue
            most = REQUEST_SECONDS if connection.buffer else IDLE_SECONDS
            if now - connection.since > most:
                self._selector.unregister(connection.socket)
                if connection.buffer:
                    words = f"the request was not whole after {REQUEST_SECONDS:g} s"
                    response = error_response(408, words, "http")
                    self._workers.submit(self._refuse, connection, response)
                else:
                    self._drop(connection)

    def _drop(self, connection: _Connection) -> None:
        self._open.discard(connection)
        connection.socket.close()


def _take_request(connection: _Connection) -> tuple[Request, bool, bool] | None:
    """Takes the first whole request out of what has arrived; None if there is none yet.

    Returns with it whether the connection stays open, and whether the client speaks HTTP/1.1.
    """
    buffer = connection.buffer
    while buffer[:2] == b"\r\n":
        del buffer[:2]
    end = buffer.find(b"\r\n\r\n")
    if max(end, len(buffer) if end < 0 else 0) > LARGEST_HEAD:
        raise _Malformed(431 if b"\r\n" in buffer[:LARGEST_HEAD] else 414)
    if end < 0:
        return None
    first, *lines = bytes(buffer[:end]).decode("latin-1").split("\r\n")
    method, path, version = _request_line(first)
    headers = _headers(lines)
    length = headers.get("content-length", "0" if method == "GET" else "")
    if "transfer-encoding" in headers or not _is_length(length):
        raise _Malformed(411, "a Content-Length is needed")
    if int(length) > LARGEST_BODY:
        raise _Malformed(413, f"the body may have {LARGEST_BODY} bytes, got {length}")
    start, stop = end + 4, end + 4 + int(length)
    if len(buffer) < stop:
        if not connection.waited and headers.get("expect", "").lower() == "100-continue":
            connection.waited = True
            with contextlib.suppress(OSError):
                connection.socket.send(b"HTTP/1.1 100 Continue\r\n\r\n", socket.MSG_DONTWAIT)
        return None
    body = bytes(buffer[start:stop])
    del buffer[:stop]
    modern, wish = version >= "HTTP/1.1", headers.get("connection", "").lower()
    keeps = "close" not in wish if modern else "keep-alive" in wish
    return Request(method, path, headers, body, connection.socket), keeps, modern


def _request_line(line: str) -> tuple[str, str, str]:
    parts = line.split(" ")
    if len(parts) != 3 or parts[2] not in ("HTTP/1.0", "HTTP/1.1"):
        raise _Malformed(400, f"expected METHOD PATH HTTP/1.1, got {line!r:.80}")
    method, path, version = parts
    if method not in ("GET", "POST"):
        raise _Malformed(501, f"expected GET or POST, got {method!r:.80}")
    return method, path, version


def _headers(lines: Iterable[str]) -> dict[str, str]:
    found: dict[str, str] = {}
    for line in lines:
        name, colon, value = line.partition(":")
        name, value = name.lower(), value.strip()
        if not colon or not name or name != name.strip():
            raise _Malformed(400, f"expected NAME: VALUE, got {line!r:.80}")
        if name == "content-length" and found.get(name, value) != value:
            raise _Malformed(400, "two lengths that differ")
        found[name] = value
    return found


def _is_length(text: str) -> bool:
    return text.isascii() and text.isdigit() and len(text) < 10


def _send(connection: socket.socket, response: Response, keeps: bool, modern: bool) -> bool:
    """Sends an answer, head and body in one packet; returns whether the connection stays open."""
    stream = response.stream
    with contextlib.nullcontext() if stream is None else contextlib.closing(stream):
        chunked = stream is not None and modern
        keeps &= stream is None or chunked
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
        if not keeps:
            headers["Connection"] = "close"
        phrase = _PHRASES.get(response.status, "")
        lines = [f"HTTP/1.1 {response.status} {phrase}"]
        lines += [f"{name}: {value}" for name, value in headers.items()]
        head = "\r\n".join(lines).encode("latin-1", "replace")
        connection.sendall(head + b"\r\n\r\n" + response.content)
        for piece in stream or ():
            if piece:
                connection.sendall(b"%x\r\n%b\r\n" % (len(piece), piece) if chunked else piece)
        if chunked:
            connection.sendall(b"0\r\n\r\n")
    return keeps


def has_left(connection: socket.socket) -> bool:
    """Whether the client has closed the connection."""
    try:
        return connection.recv(1, socket.MSG_PEEK | socket.MSG_DONTWAIT) == b""
    except BlockingIOError:
        return False
    except OSError:
        return True


def any_readable(connections: Iterable[socket.socket]) -> bool:
    """Whether anything has arrived on any of these connections, its end included."""
    look = select.poll()
    for connection in connections:
        if (descriptor := connection.fileno()) >= 0:  # else it was closed just now
            look.register(descriptor, select.POLLIN)
    return bool(look.poll(0))
