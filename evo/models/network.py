"""HTTP with a deadline for the whole request, and with cancellation from another thread.

The timeouts of an HTTP client bound each read, so a server that trickles bytes can hold a request
for ever. Here every socket operation gets what is left of the request's time, and cancelling shuts
the socket down, so that a blocked read ends and the server sees that nobody waits.
"""

from __future__ import annotations

import contextlib
import ssl
import zlib
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from typing import Any
from urllib.request import getproxies, proxy_bypass

import httpcore2
import httpx2

from evo.logs.caps import above, cap
from evo.models.flight import flight_of_thread
from evo.models.offline import OFFLINE_URL

CONNECT_SECONDS = 10.0  # connecting for longer is an error of the network, not a slow answer
KEEP_ALIVE = 60.0  # seconds that an idle connection is kept
_PIECE = 1 << 20  # bytes that are decompressed at a time


class TooMuch(httpx2.TransportError):
    """The answer is larger than its cap, or in no encoding that was asked for."""


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
        flight = flight_of_thread()
        if flight is None:
            return timeout
        left = flight.board(self._stream.get_extra_info("socket"))
        if flight.cancelled:
            raise httpcore2.ReadError("cancelled")
        if not left:
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


class Transport(httpx2.HTTPTransport):
    """Transport of an `httpx2.Client` for one endpoint; requests keep to their `Flight`.

    It heeds the environment's proxies, and reads no more of an answer than `EVO_MAX_REPLY_MB`.
    """

    def __init__(self, base_url: str) -> None:
        url = httpx2.URL(base_url)
        self._pool = _Pool(  # as in the base class, but with our backend
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
        # Without its parameters: a strange charset would fail wherever the text is asked for.
        kind = response.headers.pop("content-type", "").partition(";")[0].strip().lower()
        response.headers["content-type"] = kind
        return response


class _Pool(httpcore2.ConnectionPool):
    """Connections to one endpoint; the one used last is used first.

    The library's own pool looks at every connection for every request. Here an idle one is taken
    from a stack, and nothing waits, because the slots limit how many there are.
    """

    def __init__(self, **settings: Any) -> None:
        super().__init__(**settings)
        self._idle: list[httpcore2.ConnectionInterface] = []
        self._over = False

    def handle_request(self, request: httpcore2.Request) -> httpcore2.Response:
        """Sends a request over an idle connection, or over a new one."""
        while True:
            connection = self._take() or self.create_connection(request.url.origin)
            try:
                response = connection.handle_request(request)
            except httpcore2.ConnectionNotAvailable:  # it was closed just now
                continue
            assert isinstance(response.stream, Iterable)
            stream = _Returning(response.stream, partial(self._give_back, connection))
            return httpcore2.Response(
                response.status,
                headers=response.headers,
                content=stream,
                extensions=response.extensions,
            )

    def close(self) -> None:
        """Closes idle connections, and those in use once their answers end."""
        self._over = True
        while self._idle:
            self._idle.pop().close()

    def _take(self) -> httpcore2.ConnectionInterface | None:
        while True:
            try:
                connection = self._idle.pop()  # atomic: many threads share the stack
            except IndexError:
                return None
            if not connection.has_expired():
                return connection
            connection.close()

    def _give_back(self, connection: httpcore2.ConnectionInterface) -> None:
        if self._over or not connection.is_idle():
            connection.close()
        else:
            self._idle.append(connection)


class _Returning:
    """The stream of an answer that gives its connection back once it is closed."""

    def __init__(self, stream: Iterable[bytes], give_back: Callable[[], None]) -> None:
        self._stream, self._give_back = stream, give_back
        self._closed = False

    def __iter__(self) -> Iterator[bytes]:
        yield from self._stream

    def close(self) -> None:
        if not self._closed:
            self._closed = True
            if close := getattr(self._stream, "close", None):
                close()
            self._give_back()


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


def open_transport(base_url: str) -> httpx2.BaseTransport:
    """Returns the way to an endpoint: the network, or this process for the offline model."""
    return OfflineTransport() if base_url == OFFLINE_URL else Transport(base_url)


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
        timeout = given.pop("timeout", None)
        if isinstance(timeout, httpx2.Timeout):
            given["extensions"] = {"timeout": timeout.as_dict()}
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


def _proxy_for(scheme: str) -> httpcore2.Proxy | None:
    proxies = getproxies()
    address = proxies.get(scheme) or proxies.get("all")
    if not address:
        return None
    url = httpx2.URL(address if "://" in address else f"http://{address}")
    auth = (url.username, url.password) if url.username else None
    return httpcore2.Proxy(str(url.copy_with(username=None, password=None)), auth=auth)
