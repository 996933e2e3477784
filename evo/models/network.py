"""Ways to an endpoint: over the network, and to the offline model in this process."""

from __future__ import annotations

import contextlib
import http.client
import time
import zlib
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial
from typing import Any
from urllib.request import getproxies, proxy_bypass

import httpx2

from evo.logs.caps import above, cap
from evo.models.connection import ERRORS, PIECE, Connection, Field, login_of, translated
from evo.models.offline import OFFLINE_URL


class TooMuch(httpx2.TransportError):
    """The answer is larger than its cap, or in no encoding that was asked for."""


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
        headers = [(n.encode("latin-1"), v.encode("latin-1")) for n, v in answer.headers.items()]
        return httpx2.Response(answer.status, headers=headers, stream=answer)


class NetworkTransport(Transport):
    """Way over the network; requests keep to their `Flight`.

    It rests on `http.client`. Connections are kept: the one used last is used first, and nothing
    waits for one, because the slots limit how many there are. It heeds the environment's proxies,
    and reads no more of an answer than `EVO_MAX_REPLY_MB`.
    """

    def __init__(self, base_url: str) -> None:
        self._url = url = httpx2.URL(base_url)
        self._context = None
        if url.scheme == "https":
            self._context = httpx2.create_ssl_context()
            self._context.set_alpn_protocols(["http/1.1"])
        self._proxy = None if proxy_bypass(url.host) else _proxy_for(url.scheme)
        self._idle: list[Connection] = []
        self._over = False

    def send(self, method: str, target: str, headers: Iterable[Field], content: bytes) -> Incoming:
        """Sends one request."""
        if self._proxy is not None and self._context is None:  # it sees the request
            target = f"http://{self._url.netloc.decode('ascii')}{target}"
            headers = [*headers, *login_of(self._proxy).items()]
        connection = self._take() or self._connect()
        with _closing_on_errors(connection):
            answer = connection.ask(method, target, headers, content)
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

    def _take(self) -> Connection | None:
        """Returns an idle connection, if there is one."""
        while True:
            try:
                connection = self._idle.pop()  # atomic: many threads share the stack
            except IndexError:
                return None
            if not connection.stale:
                return connection
            connection.end()

    def _connect(self) -> Connection:
        if self._proxy is not None and self._proxy.scheme != "http":
            words = f"expected an http:// proxy in the environment, got {self._proxy.scheme}://"
            raise httpx2.ProxyError(words)
        connection = Connection(self._url, self._context, self._proxy)
        with _closing_on_errors(connection, connecting=True):
            connection.connect()
        return connection

    def _give_back(self, connection: Connection, answer: http.client.HTTPResponse) -> None:
        """Keeps a connection whose answer was read to its end, unless it was the last."""
        whole = (answer.isclosed() or answer.length == 0) and not answer.will_close
        answer.close()
        if whole and connection.clean and not self._over:
            connection.used = time.monotonic()
            self._idle.append(connection)
        else:
            connection.end()


@contextlib.contextmanager
def _closing_on_errors(connection: Connection, *, connecting: bool = False) -> Iterator[None]:
    """Closes a connection that is of no use any more; its errors become those of httpx2."""
    try:
        yield
    except ERRORS as error:
        connection.end()
        raise translated(error, connecting=connecting) from error
    except BaseException:
        connection.end()
        raise


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
                yield unpack.decompress(left, PIECE)
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
