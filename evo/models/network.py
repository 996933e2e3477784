"""HTTP with a deadline for the whole request, and with cancellation from another thread.

The timeouts of an HTTP client bound each read, so a server that trickles bytes can hold a request
for ever. Here every socket operation gets what is left of the request's time, and cancelling shuts
the socket down, so that a blocked read ends and the server sees that nobody waits.
"""

from __future__ import annotations

import base64
import contextlib
import http.client
import io
import socket
import ssl
import struct
import time
import zlib
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any
from urllib.request import getproxies, proxy_bypass

import httpx2

from evo.logs.caps import above, cap
from evo.models.flight import flight_of_thread
from evo.models.offline import OFFLINE_URL

if TYPE_CHECKING:
    from typing_extensions import Buffer

Field = tuple[str, str] | tuple[bytes, bytes]
"""A header's name and value."""

CONNECT_SECONDS = 10.0  # connecting for longer is an error of the network, not a slow answer
KEEP_ALIVE = 60.0  # seconds that an idle connection is kept
_PIECE = 1 << 18  # bytes that are read or decompressed at a time


class TooMuch(httpx2.TransportError):
    """The answer is larger than its cap, or in no encoding that was asked for."""


class _Socket:
    """A connected socket, as `http.client` uses one; its operations end with the thread's flight.

    `http.client` closes a socket as soon as it knows that no other answer will come, though this
    one is still to be read. So `close` does nothing here, and `end` closes it.
    """

    def __init__(self, connected: socket.socket) -> None:
        self._socket = connected
        self._secure = isinstance(connected, ssl.SSLSocket)
        self._unsent: list[bytes] = []
        connected.settimeout(None)

    def sendall(self, data: bytes) -> None:
        """Keeps data until something is to be read, so that head and body leave together."""
        self._unsent.append(data)

    def receive_into(self, buffer: memoryview) -> int:
        """Sends what is kept; returns the number of bytes received, 0 if there are no more."""
        if self._unsent:
            self._send(b"".join(self._unsent))
            self._unsent.clear()
        self._bound(socket.SO_RCVTIMEO)
        try:
            return self._socket.recv_into(buffer)
        except BlockingIOError:
            raise TimeoutError from None

    def _send(self, data: bytes) -> None:
        left = memoryview(data)
        while left:
            self._bound(socket.SO_SNDTIMEO)
            try:
                left = left[self._socket.send(left) :]
            except BlockingIOError:
                raise TimeoutError from None

    def makefile(self, mode: str) -> io.BufferedReader:
        """Returns a file to read an answer from."""
        return io.BufferedReader(_Reader(self))

    def close(self) -> None:
        """Does nothing."""

    def end(self) -> None:
        """Closes the socket."""
        self._socket.close()

    @property
    def quiet(self) -> bool:
        """Whether nothing has arrived, not even the end of the connection."""
        if self._secure:
            self._socket.settimeout(0.0)
        try:
            socket.socket.recv(self._socket, 1, socket.MSG_PEEK | socket.MSG_DONTWAIT)
        except BlockingIOError:
            return True
        except OSError:
            pass
        return False

    def _bound(self, option: int) -> None:
        """Limits the next operation to what is left of the time."""
        left = 0.0
        if (flight := flight_of_thread()) is not None:
            left = flight.board(self._socket)
            if flight.cancelled:
                raise ConnectionAbortedError("cancelled")
            if not left:
                raise TimeoutError
        if self._secure:
            self._socket.settimeout(left or None)
        else:  # half the system calls of `settimeout`, and as many switches between threads
            whole = int(left)
            limit = struct.pack("ll", whole, int(1e6 * (left - whole)) or int(left > 0))
            self._socket.setsockopt(socket.SOL_SOCKET, option, limit)


class _Reader(io.RawIOBase):
    """What arrives on a socket, as a file."""

    def __init__(self, source: _Socket) -> None:
        self._source = source

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Buffer, /) -> int:
        return self._source.receive_into(memoryview(buffer))


class _Connection(http.client.HTTPConnection):
    """A connection to an endpoint, straight or by way of a proxy.

    Args:
        url: Address of the endpoint.
        context: For TLS; None where the connection has none.
        proxy: Address of the proxy, if any.
    """

    def __init__(
        self, url: httpx2.URL, context: ssl.SSLContext | None, proxy: httpx2.URL | None
    ) -> None:
        first = proxy or url
        super().__init__(first.host, first.port or (443 if first.scheme == "https" else 80))
        self._context, self._name = context, url.host
        self.used = time.monotonic()
        self.socket: _Socket | None = None
        if proxy is not None and context is not None:
            self.set_tunnel(url.host, url.port or 443, _login(proxy))

    def connect(self) -> None:
        """Connects, through the proxy's tunnel and with TLS if need be."""
        flight = flight_of_thread()
        left = CONNECT_SECONDS if flight is None else flight.left
        self.timeout = max(min(left, CONNECT_SECONDS), 1e-3)
        super().connect()
        if self._context is not None:
            self.sock = self._context.wrap_socket(self.sock, server_hostname=self._name)
        self.sock = self.socket = _Socket(self.sock)

    def ask(
        self, method: str, target: str, headers: Iterable[Field], content: bytes
    ) -> http.client.HTTPResponse:
        """Sends a request; returns the answer, whose body is still to be read."""
        self.putrequest(method, target, skip_host=True, skip_accept_encoding=True)
        for name, value in headers:
            self.putheader(name, value)
        self.endheaders(content)
        return self.getresponse()

    def body(self, answer: http.client.HTTPResponse) -> Iterator[bytes]:
        """Yields the body of an answer as it arrives."""
        try:
            while piece := answer.read1(_PIECE):
                yield piece
            if missing := answer.length:
                raise http.client.HTTPException(f"the answer ends {missing} bytes too early")
        except (OSError, http.client.HTTPException, ValueError) as error:
            self.close()  # no other answer can be read from it
            raise _translated(error) from error

    @property
    def stale(self) -> bool:
        """Whether an idle connection is of no use any more."""
        old = time.monotonic() - self.used > KEEP_ALIVE
        return old or self.socket is None or not self.socket.quiet

    def end(self) -> None:
        """Closes it."""
        self.close()
        if self.socket is not None:
            self.socket.end()


class Incoming(httpx2.SyncByteStream):
    """An endpoint's answer, whose body is still to be read.

    Attributes:
        status: HTTP status.
        headers: The headers, names in lower case.
    """

    def __init__(
        self,
        status: int,
        headers: Mapping[str, str],
        pieces: Iterable[bytes],
        done: Callable[[], None] = lambda: None,
    ) -> None:
        self.status, self.headers = status, headers
        self._pieces, self._done = pieces, done

    def __iter__(self) -> Iterator[bytes]:
        yield from self._pieces

    def read(self) -> bytes:
        """Returns the whole body."""
        return b"".join(self._pieces)

    def close(self) -> None:
        """Ends the reading; may be called again."""
        done, self._done = self._done, lambda: None
        done()


class Transport(httpx2.BaseTransport, ABC):
    """Way to one endpoint, also for an `httpx2.Client`."""

    @abstractmethod
    def send(self, method: str, target: str, headers: Iterable[Field], content: bytes) -> Incoming:
        """Sends one request.

        Args:
            method: Its method.
            target: Path and query.
            headers: All of its headers.
            content: The body.

        Raises:
            httpx2.TransportError: There is no connection, it broke, or the time is over.
        """

    def handle_request(self, request: httpx2.Request) -> httpx2.Response:
        """Sends a request; its body is read later, from the response's stream."""
        target = request.url.raw_path.decode("ascii")
        answer = self.send(request.method, target, request.headers.raw, request.read())
        return httpx2.Response(answer.status, headers=answer.headers, stream=answer)


class NetworkTransport(Transport):
    """Way over the network; requests keep to their `Flight`.

    It rests on `http.client`. Connections are kept: the one used last is used first, and nothing
    waits for one, because the slots limit how many there are. It heeds the environment's proxies,
    and reads no more of an answer than `EVO_MAX_REPLY_MB`.
    """

    def __init__(self, base_url: str) -> None:
        self._url = url = httpx2.URL(base_url)
        self._context = httpx2.create_ssl_context() if url.scheme == "https" else None
        self._proxy = None if proxy_bypass(url.host) else _proxy_for(url.scheme)
        self._idle: list[_Connection] = []
        self._over = False

    def send(self, method: str, target: str, headers: Iterable[Field], content: bytes) -> Incoming:
        """Sends one request."""
        if self._proxy is not None and self._context is None:  # it sees the request
            target = f"http://{self._url.netloc.decode('ascii')}{target}"
            headers = [*headers, *_login(self._proxy).items()]
        connection = self._take() or self._connect()
        try:
            answer = connection.ask(method, target, headers, content)
        except BaseException as error:
            connection.end()
            raise _translated(error) from error
        found = {name.lower(): value for name, value in answer.getheaders()}
        coding = found.pop("content-encoding", "identity").lower()
        # Without its parameters: a strange charset would fail wherever the text is asked for.
        found["content-type"] = found.get("content-type", "").partition(";")[0].strip().lower()
        pieces = _within_cap(connection.body(answer), coding)
        return Incoming(answer.status, found, pieces, partial(self._give_back, connection, answer))

    def close(self) -> None:
        """Closes idle connections, and those in use once their answers end."""
        self._over = True
        while self._idle:
            self._idle.pop().end()

    def _take(self) -> _Connection | None:
        """Returns an idle connection, if there is one."""
        while True:
            try:
                connection = self._idle.pop()  # atomic: many threads share the stack
            except IndexError:
                return None
            if not connection.stale:
                return connection
            connection.end()

    def _connect(self) -> _Connection:
        if self._proxy is not None and self._proxy.scheme != "http":
            words = f"expected an http:// proxy in the environment, got {self._proxy.scheme}://"
            raise httpx2.ProxyError(words)
        connection = _Connection(self._url, self._context, self._proxy)
        try:
            connection.connect()
        except BaseException as error:
            connection.end()
            raise _translated(error, connecting=True) from error
        return connection

    def _give_back(self, connection: _Connection, answer: http.client.HTTPResponse) -> None:
        """Keeps a connection whose answer was read to its end, unless it was the last."""
        whole = (answer.isclosed() or answer.length == 0) and connection.sock is not None
        answer.close()
        if whole and not self._over:
            connection.used = time.monotonic()
            self._idle.append(connection)
        else:
            connection.end()


def _translated(error: BaseException, *, connecting: bool = False) -> BaseException:
    """Returns an error of sockets or of `http.client` as one of httpx2, and others as they are."""
    if isinstance(error, TimeoutError):
        if connecting:
            return httpx2.ConnectTimeout("connecting took too long")
        return httpx2.ReadTimeout("the time for the whole request is over")
    words = str(error) or type(error).__name__
    if isinstance(error, OSError | UnicodeError) and connecting:  # UnicodeError: of a host's name
        return httpx2.ConnectError(words)
    if isinstance(error, OSError):
        return httpx2.ReadError(words)
    if isinstance(error, http.client.HTTPException | ValueError):
        return httpx2.RemoteProtocolError(words)
    return error


def _within_cap(blocks: Iterator[bytes], coding: str) -> Iterator[bytes]:
    """Yields a body, decompressed here so that it cannot grow without bound."""
    left = cap("EVO_MAX_REPLY_MB") << 20
    for piece in blocks if coding == "identity" else _unpacked(blocks, coding):
        left -= len(piece)
        if left < 0:
            raise TooMuch(f"the answer has {above('EVO_MAX_REPLY_MB')}")
        yield piece


def _unpacked(blocks: Iterator[bytes], coding: str) -> Iterator[bytes]:
    if coding not in ("gzip", "x-gzip", "deflate"):
        raise TooMuch(f"the answer is encoded as {coding!r}, which was not asked for")
    unpack = zlib.decompressobj(47)
    for block in blocks:
        left = block
        while left and not unpack.eof:
            try:
                yield unpack.decompress(left, _PIECE)
            except zlib.error as error:
                raise httpx2.DecodingError(str(error)) from None
            left = unpack.unconsumed_tail


class OfflineTransport(Transport):
    """Way to the offline model (no LLM), in this process."""

    def send(self, method: str, target: str, headers: Iterable[Field], content: bytes) -> Incoming:
        """Answers one request."""
        from evo.models.offline.endpoint import respond

        response = respond(method, target.partition("?")[0], content)
        return Incoming(response.status, {"content-type": response.kind}, [response.content])


def open_transport(base_url: str) -> Transport:
    """Returns the way to an endpoint: the network, or this process for the offline model."""
    return OfflineTransport() if base_url == OFFLINE_URL else NetworkTransport(base_url)


class EndpointClient(httpx2.Client):
    """The HTTP client of one endpoint, beneath the `openai` library.

    A general client merges base URLs, cookies and parameters into a request, and asks of an answer
    whether it redirects, wants a login or sets a cookie. An endpoint needs none of this, and it is
    a third of the processor time of a call. A request is sent as the library wrote it, and an
    answer is returned as it came, redirects included. Only an address that holds a login is served
    as in the base class, which sends it.
    """

    def __init__(self, transport: httpx2.BaseTransport) -> None:
        super().__init__(transport=transport, trust_env=False)
        self._way = transport
        self._urls: dict[str, httpx2.URL] = {}

    def build_request(self, method: str, url: httpx2.URL | str, **given: Any) -> httpx2.Request:
        """Returns the request that the arguments describe, with nothing added to it."""
        given.pop("timeout", None)  # the flight has it
        parsed = self._urls.get(str(url)) or self._urls.setdefault(str(url), httpx2.URL(url))
        return httpx2.Request(method, parsed, **given)

    def send(self, request: httpx2.Request, **given: Any) -> httpx2.Response:
        """Sends a request once, and reads the whole answer."""
        if request.url.userinfo:
            return super().send(request, **given)
        response = self._way.handle_request(request)
        response.request = request
        with contextlib.closing(response):
            response.read()
        return response


def _proxy_for(scheme: str) -> httpx2.URL | None:
    proxies = getproxies()
    address = proxies.get(scheme) or proxies.get("all")
    if not address:
        return None
    return httpx2.URL(address if "://" in address else f"http://{address}")


def _login(proxy: httpx2.URL) -> dict[str, str]:
    """Returns the headers with which a proxy lets one through."""
    if not proxy.username:
        return {}
    login = base64.b64encode(f"{proxy.username}:{proxy.password}".encode()).decode()
    return {"Proxy-Authorization": f"Basic {login}"}
