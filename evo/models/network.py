"""HTTP with a deadline for the whole request, and with cancellation from another thread.

The timeouts of an HTTP client bound each read, so a server that trickles bytes can hold a request
for ever. Here every socket operation gets what is left of the request's time, and cancelling shuts
the socket down, so that a blocked read ends and the server sees that nobody waits.
"""

from __future__ import annotations

import contextlib
import socket
import ssl
import threading
import time
import zlib
from collections.abc import Iterator
from typing import Any, Self
from urllib.request import getproxies, proxy_bypass

import httpcore2
import httpx2

from evo.logs.caps import above, cap
from evo.models.offline import OFFLINE_URL

CONNECT_SECONDS = 10.0  # connecting for longer is an error of the network, not a slow answer
KEEP_ALIVE = 60.0  # seconds that an idle connection is kept
_PIECE = 1 << 20  # bytes that are decompressed at a time


class TooMuch(httpx2.TransportError):
    """The answer is larger than its cap, or in no encoding that was asked for."""


class Flight:
    """One request under way, for so many seconds; a context of the thread that makes it."""

    def __init__(self, seconds: float) -> None:
        self.cancelled = False
        self._deadline = time.monotonic() + seconds
        self._socket: socket.socket | None = None

    def __enter__(self) -> Self:
        _thread.flight = self
        return self

    def __exit__(self, *_: object) -> None:
        _thread.flight = None
        self._socket = None

    def board(self, used: socket.socket) -> float:
        """Notes the socket that is about to block; returns the seconds left, 0 once it is over."""
        # The socket is noted before `cancelled` is read, and `cancel` goes in the reverse order,
        # so one of the two sees the other.
        self._socket = used
        if self.cancelled:
            raise httpcore2.ReadError("cancelled")
        return max(0.0, self._deadline - time.monotonic())

    def cancel(self) -> None:
        """Ends the request as soon as possible."""
        self.cancelled = True
        used = self._socket
        if used is not None:
            with contextlib.suppress(OSError):
                socket.socket.shutdown(used, socket.SHUT_RDWR)  # past the TLS layer, if any


class _Thread(threading.local):
    flight: Flight | None = None


_thread = _Thread()


class _Stream(httpcore2.NetworkStream):
    """A network stream whose operations end with the flight of the calling thread."""

    def __init__(self, stream: httpcore2.NetworkStream) -> None:
        self._stream = stream

    def read(self, max_bytes: int, timeout: float | None = None) -> bytes:
        return self._stream.read(max_bytes, self._left(timeout, httpcore2.ReadTimeout))

    def write(self, buffer: bytes, timeout: float | None = None) -> None:
        self._stream.write(buffer, self._left(timeout, httpcore2.WriteTimeout))

    def start_tls(
        self,
        ssl_context: ssl.SSLContext,
        server_hostname: str | None = None,
        timeout: float | None = None,
    ) -> httpcore2.NetworkStream:
        left = self._left(timeout, httpcore2.ConnectTimeout)
        return _Stream(self._stream.start_tls(ssl_context, server_hostname, left))

    def close(self) -> None:
        self._stream.close()

    def get_extra_info(self, info: str) -> Any:
        return self._stream.get_extra_info(info)

    def _left(self, timeout: float | None, too_late: type[Exception]) -> float | None:
        """Returns the time for the next operation on the socket."""
        flight = _thread.flight
        if flight is None:
            return timeout
        left = flight.board(self._stream.get_extra_info("socket"))
        if not left:
            raise too_late("the time for the whole request is over")
        return left if timeout is None else min(left, timeout)


class _Backend(httpcore2.SyncBackend):
    """Makes connections whose streams keep to the deadline."""

    def connect_tcp(self, *arguments: Any, **named: Any) -> httpcore2.NetworkStream:
        return _Stream(super().connect_tcp(*arguments, **named))


class Transport(httpx2.HTTPTransport):
    """Transport of an `httpx2.Client` for one endpoint; requests keep to their `Flight`.

    It heeds the environment's proxies, and reads no more of an answer than `EVO_MAX_REPLY_MB`.
    """

    def __init__(self, base_url: str) -> None:
        url = httpx2.URL(base_url)
        self._pool = httpcore2.ConnectionPool(  # as in the base class, but with our backend
            ssl_context=httpx2.create_ssl_context() if url.scheme == "https" else None,
            proxy=None if proxy_bypass(url.host) else _proxy_for(url.scheme),
            max_connections=None,  # the slots limit them
            keepalive_expiry=KEEP_ALIVE,
            network_backend=_Backend(),
        )

    def handle_request(self, request: httpx2.Request) -> httpx2.Response:
        """Sends a request; its body is read later, from the response's stream."""
        response = super().handle_request(request)
        assert isinstance(response.stream, httpx2.SyncByteStream)
        coding = response.headers.pop("content-encoding", "identity").lower()
        response.stream = _Body(response.stream, coding)
        return response


class OfflineTransport(httpx2.BaseTransport):
    """Answers an httpx2 client as the offline model (no LLM), in this process."""

    def handle_request(self, request: httpx2.Request) -> httpx2.Response:
        """Answers one request."""
        from evo.models.offline.endpoint import respond

        response = respond(request.method, request.url.path, request.read())
        headers = {"content-type": response.kind}
        return httpx2.Response(response.status, headers=headers, content=response.content)


class _Body(httpx2.SyncByteStream):
    """The body of an answer, decompressed here so that it cannot grow without bound."""

    def __init__(self, stream: httpx2.SyncByteStream, coding: str) -> None:
        self._stream, self._coding = stream, coding

    def __iter__(self) -> Iterator[bytes]:
        left = cap("EVO_MAX_REPLY_MB") << 20
        for piece in self._stream if self._coding == "identity" else self._unpacked():
            left -= len(piece)
            if left < 0:
                raise TooMuch(f"the answer has {above('EVO_MAX_REPLY_MB')}")
            yield piece

    def _unpacked(self) -> Iterator[bytes]:
        if self._coding not in ("gzip", "x-gzip", "deflate"):
            raise TooMuch(f"the answer is encoded as {self._coding!r}, which was not asked for")
        unpack = zlib.decompressobj(47)
        for block in self._stream:
            left = block
            while left and not unpack.eof:
                try:
                    yield unpack.decompress(left, _PIECE)
                except zlib.error as error:
                    raise httpx2.DecodingError(str(error)) from None
                left = unpack.unconsumed_tail

    def close(self) -> None:
        self._stream.close()


def patience(seconds: float) -> httpx2.Timeout:
    """Returns how long to wait for one step of a request that may take so long as a whole."""
    return httpx2.Timeout(seconds, connect=min(seconds, CONNECT_SECONDS))


def http_client(
    base_url: str, *, seconds: float, transport: httpx2.BaseTransport | None = None
) -> httpx2.Client:
    """Returns a client for one endpoint; that of the offline model is answered in this process."""
    if transport is None:
        transport = OfflineTransport() if base_url == OFFLINE_URL else Transport(base_url)
    return httpx2.Client(
        transport=transport,
        trust_env=False,
        timeout=patience(seconds),
        headers={"accept-encoding": "identity"},
    )


def _proxy_for(scheme: str) -> httpcore2.Proxy | None:
    proxies = getproxies()
    address = proxies.get(scheme) or proxies.get("all")
    if not address:
        return None
    url = httpx2.URL(address if "://" in address else f"http://{address}")
    auth = (url.username, url.password) if url.username else None
    return httpcore2.Proxy(str(url.copy_with(username=None, password=None)), auth=auth)
