"""HTTP with a deadline for the whole request, and with cancellation from another thread.

The timeouts of an HTTP client bound each read on its own, so a server that trickles bytes can
hold a request for ever. Here every socket operation gets what is left of the request's time, and
cancelling shuts the socket down, which ends a blocked read at once. Either way the connection is
closed, so the server sees that nobody waits any more.
"""

from __future__ import annotations

import contextlib
import socket
import ssl
import threading
import time
import zlib
from collections.abc import Iterable, Iterator
from typing import Any, cast
from urllib.request import getproxies, proxy_bypass

import httpcore2
import httpx2

from evo.caps import above, cap
from evo.llm.offline import OFFLINE_URL

CONNECT_SECONDS = 10.0  # connecting for longer is an error of the network, not a slow answer
KEEP_ALIVE = 60.0  # seconds that an idle connection is kept
_PIECE = 1 << 20  # bytes that are decompressed at a time


class Elsewhere(httpx2.TransportError):
    """The endpoint redirects to another host, which nobody pointed to."""


class TooMuch(httpx2.TransportError):
    """The answer is larger than its cap, or in no encoding that was asked for."""


class Flight:
    """One request under way, for so many seconds.

    Used as a context manager by the thread that makes the request; `cancel` may come from any.
    """

    def __init__(self, seconds: float) -> None:
        self.cancelled = False
        self._deadline = time.monotonic() + seconds
        self._socket: socket.socket | None = None

    def __enter__(self) -> Flight:
        _thread.flight = self
        return self

    def __exit__(self, *_: object) -> None:
        _thread.flight = None
        self._socket = None

    def left(self) -> float:
        """Seconds left of the request's time; not above 0 once it is over."""
        return self._deadline - time.monotonic()

    def holds(self, used: socket.socket) -> None:
        """Notes the socket that the request is about to block on."""
        self._socket = used

    def cancel(self) -> None:
        """Ends the request as soon as possible."""
        # `holds` comes before the check of `cancelled` in the other thread, and this comes in
        # the reverse order, so one of the two sees the other.
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
        left = self._board(timeout, httpcore2.ReadTimeout)
        return self._stream.read(max_bytes, left)

    def write(self, buffer: bytes, timeout: float | None = None) -> None:
        left = self._board(timeout, httpcore2.WriteTimeout)
        self._stream.write(buffer, left)

    def start_tls(
        self,
        ssl_context: ssl.SSLContext,
        server_hostname: str | None = None,
        timeout: float | None = None,
    ) -> httpcore2.NetworkStream:
        left = self._board(timeout, httpcore2.ConnectTimeout)
        return _Stream(self._stream.start_tls(ssl_context, server_hostname, left))

    def close(self) -> None:
        self._stream.close()

    def get_extra_info(self, info: str) -> Any:
        return self._stream.get_extra_info(info)

    def _board(self, timeout: float | None, too_late: type[Exception]) -> float | None:
        """Returns the time for the next operation on the socket."""
        flight = _thread.flight
        if flight is None:
            return timeout
        flight.holds(self._stream.get_extra_info("socket"))
        if flight.cancelled:
            raise httpcore2.ReadError("cancelled")
        left = flight.left()
        if left <= 0:
            raise too_late("the time for the whole request is over")
        return left if timeout is None else min(left, timeout)


class _Backend(httpcore2.SyncBackend):
    """Makes connections whose streams keep to the deadline."""

    def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,
        local_address: str | None = None,
        socket_options: Iterable[httpcore2.SOCKET_OPTION] | None = None,
    ) -> httpcore2.NetworkStream:
        return _Stream(super().connect_tcp(host, port, timeout, local_address, socket_options))


class Transport(httpx2.BaseTransport):
    """Transport of an `httpx2.Client` for one endpoint; requests keep to their `Flight`.

    It sends nothing to any other host, heeds the environment's proxies, and reads no more of an
    answer than `EVO_MAX_REPLY_MB`.
    """

    def __init__(self, base_url: str) -> None:
        url = self._home = httpx2.URL(base_url)
        proxy = None if proxy_bypass(url.host) else _proxy_for(url.scheme)
        self._pool = httpcore2.ConnectionPool(
            ssl_context=httpx2.create_ssl_context() if url.scheme == "https" else None,
            proxy=proxy,
            max_connections=None,  # the slots limit them
            keepalive_expiry=KEEP_ALIVE,
            network_backend=_Backend(),
        )

    def handle_request(self, request: httpx2.Request) -> httpx2.Response:
        """Sends a request; its body is read later, from the response's stream."""
        url, home = request.url, self._home
        if (url.scheme, url.host, url.port) != (home.scheme, home.host, home.port):
            raise Elsewhere(
                f"it redirects to {url.scheme}://{url.netloc.decode()}, which is not followed; if "
                "that is the endpoint you mean, give it as the base URL"
            )
        with _errors_of_httpx2():
            answer = self._pool.handle_request(
                httpcore2.Request(
                    method=request.method,
                    url=httpcore2.URL(
                        scheme=url.raw_scheme, host=url.raw_host, port=url.port, target=url.raw_path
                    ),
                    headers=request.headers.raw,
                    content=cast(httpx2.SyncByteStream, request.stream),
                    extensions=request.extensions,
                )
            )
        headers = [each for each in answer.headers if each[0].lower() != b"content-encoding"]
        coding = httpx2.Headers(answer.headers).get("content-encoding", "identity").lower()
        return httpx2.Response(
            status_code=answer.status,
            headers=headers,
            stream=_Body(answer, coding),
            extensions=answer.extensions,
        )

    def close(self) -> None:
        """Closes idle connections."""
        self._pool.close()


def patience(seconds: float) -> httpx2.Timeout:
    """Returns how long to wait for one step of a request that may take so long as a whole."""
    return httpx2.Timeout(seconds, connect=min(seconds, CONNECT_SECONDS))


def http_client(
    base_url: str,
    *,
    seconds: float,
    transport: httpx2.BaseTransport | None = None,
    follow_redirects: bool = False,
) -> httpx2.Client:
    """Returns a client for one endpoint; that of the offline model is answered in this process."""
    if transport is None and base_url == OFFLINE_URL:
        from evo.llm.transport import OfflineTransport

        transport = OfflineTransport()
    return httpx2.Client(
        transport=Transport(base_url) if transport is None else transport,
        trust_env=False,
        timeout=patience(seconds),
        follow_redirects=follow_redirects,
        headers={"accept-encoding": "identity"},
    )


class _Body(httpx2.SyncByteStream):
    """The body of an answer, decompressed here so that it cannot grow without bound."""

    def __init__(self, answer: httpcore2.Response, coding: str) -> None:
        self._answer, self._coding = answer, coding

    def __iter__(self) -> Iterator[bytes]:
        most = cap("EVO_MAX_REPLY_MB") << 20
        total = 0
        with _errors_of_httpx2():
            for piece in self._pieces():
                total += len(piece)
                if total > most:
                    raise TooMuch(f"the answer has {above('EVO_MAX_REPLY_MB')}")
                yield piece

    def _pieces(self) -> Iterator[bytes]:
        stream = cast(Iterable[bytes], self._answer.stream)
        if self._coding == "identity":
            yield from stream
            return
        if self._coding not in ("gzip", "x-gzip", "deflate"):
            raise TooMuch(f"the answer is encoded as {self._coding!r}, which was not asked for")
        unpack = zlib.decompressobj(47)
        for block in stream:
            left = block
            while left and not unpack.eof:
                try:
                    yield unpack.decompress(left, _PIECE)
                except zlib.error as error:
                    raise httpx2.DecodingError(str(error)) from None
                left = unpack.unconsumed_tail

    def close(self) -> None:
        self._answer.close()


@contextlib.contextmanager
def _errors_of_httpx2() -> Iterator[None]:
    """Raises errors of httpcore2 as those of the same name in httpx2."""
    try:
        yield
    except Exception as error:
        name = type(error).__name__
        if type(error).__module__.split(".")[0] != "httpcore2" or not hasattr(httpx2, name):
            raise
        raise getattr(httpx2, name)(str(error)) from error


def _proxy_for(scheme: str) -> httpcore2.Proxy | None:
    proxies = getproxies()
    address = proxies.get(scheme) or proxies.get("all")
    if not address:
        return None
    url = httpx2.URL(address if "://" in address else f"http://{address}")
    auth = (url.username, url.password) if url.username else None
    return httpcore2.Proxy(str(url.copy_with(username=None, password=None)), auth=auth)
