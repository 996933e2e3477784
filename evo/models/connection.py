"""Connections to an endpoint, with a deadline for the whole request and with cancellation.

The timeouts of an HTTP client bound each read, so a server that trickles bytes can hold a request
for ever. Here every socket operation gets what is left of the request's time, and cancelling shuts
the socket down, so that a blocked read ends and the server sees that nobody waits.
"""

from __future__ import annotations

import base64
import http.client
import io
import socket
import ssl
import struct
import time
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

import httpx2

from evo.models.flight import flight_of_thread

if TYPE_CHECKING:
    from typing_extensions import Buffer

Field = tuple[str, str] | tuple[bytes, bytes]
"""A header's name and value."""

CONNECT_SECONDS = 10.0  # connecting for longer is an error of the network, not a slow answer
KEEP_ALIVE = 60.0  # seconds that an idle connection is kept
PIECE = 1 << 18
"""Bytes that are read at a time."""

ERRORS = (OSError, http.client.HTTPException, ValueError)
"""What sockets and `http.client` raise; ValueError: of a header or a host's name."""

_LONGEST = 1e6  # seconds that are asked of the operating system at a time


class _Socket:
    """A connected socket, as `http.client` uses one; its operations end with the thread's flight.

    `http.client` closes a socket as soon as it knows that no other answer will come, though this
    one is still to be read. So `close` does nothing here, and `end` closes it.
    """

    def __init__(self, connected: socket.socket) -> None:
        self._socket = connected
        self._secure = isinstance(connected, ssl.SSLSocket)
        self._unsent: list[bytes] = []
        self.incoming: _Incoming | None = None
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
        self.incoming = _Incoming(_Reader(self))
        return self.incoming

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
            left = min(flight.board(self._socket), _LONGEST)
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
        self.over = False

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Buffer, /) -> int | None:
        return None if self.over else self._source.receive_into(memoryview(buffer))


class _Incoming(io.BufferedReader):
    """One answer's bytes; `more` tells, once it is closed, whether others came behind them."""

    def __init__(self, raw: _Reader) -> None:
        super().__init__(raw)
        self._reader, self.more = raw, False

    def close(self) -> None:
        if not self.closed:
            self._reader.over = True
            self.more = bool(self.peek())
        super().close()


class Connection(http.client.HTTPConnection):
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
            self.set_tunnel(url.host, url.port or 443, login_of(proxy))

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
        answer = self.getresponse()
        while 100 <= answer.status < 200:  # `http.client` skips no informational answer but 100
            if answer.status == 101:
                raise http.client.HTTPException("it switches protocols, which was not asked for")
            answer.headers = None  # type: ignore[assignment]  # so that `begin` reads the next
            answer.begin()
        return answer

    def body(self, answer: http.client.HTTPResponse) -> Iterator[bytes]:
        """Yields the body of an answer as it arrives."""
        try:
            while piece := answer.read1(PIECE):
                yield piece
            if missing := answer.length:
                raise http.client.HTTPException(f"the answer ends {missing} bytes too early")
        except ERRORS as error:
            self.close()  # no other answer can be read from it
            raise translated(error) from error

    @property
    def clean(self) -> bool:
        """Whether it is open and nothing has come behind the answer that was read."""
        arrived = None if self.socket is None else self.socket.incoming
        return self.sock is not None and arrived is not None and not arrived.more

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


def translated(error: Exception, *, connecting: bool = False) -> httpx2.TransportError:
    """Returns one of `ERRORS` as an error of httpx2."""
    if isinstance(error, TimeoutError):
        if connecting:
            return httpx2.ConnectTimeout("connecting took too long")
        return httpx2.ReadTimeout("the time for the whole request is over")
    words = str(error) or type(error).__name__
    if connecting:
        return httpx2.ConnectError(words)
    if isinstance(error, OSError):
        return httpx2.ReadError(words)
    return httpx2.RemoteProtocolError(words)


def login_of(proxy: httpx2.URL) -> dict[str, str]:
    """Returns the headers with which a proxy lets one through."""
    if not proxy.username:
        return {}
    login = base64.b64encode(f"{proxy.username}:{proxy.password}".encode()).decode()
    return {"Proxy-Authorization": f"Basic {login}"}
