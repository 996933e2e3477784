"""HTTP to endpoints, by aiohttp: sessions, proxies, and what their errors mean.

Everything here runs on the event loop of `evo.models.background`.
"""

from __future__ import annotations

import asyncio
import atexit
import base64
import contextlib
import functools
import io
import os
import ssl
import weakref
from collections.abc import AsyncIterator
from typing import Any
from urllib.parse import unquote
from urllib.request import getproxies, proxy_bypass

import aiohttp
from yarl import URL

from evo.logs.caps import above, cap
from evo.models import background
from evo.models.answer import Exchange, NotSent, TooMuch

KEEP_ALIVE = 60.0  # seconds that an idle connection is kept
_PIECEMEAL = 1 << 20  # bytes of a request beyond which it is sent in pieces
_NOT_SENT = (
    aiohttp.ClientConnectorError,  # no address, no connection, no TLS; also of a proxy
    aiohttp.ClientHttpProxyError,  # the proxy opens no tunnel
    aiohttp.InvalidURL,
    UnicodeError,  # no name of a host
)


class _Response(aiohttp.ClientResponse):
    """An answer; one that switches protocols, which nobody asked for, ends its connection."""

    async def start(self, connection: Any) -> aiohttp.ClientResponse:
        protocol = connection.protocol
        answer = await super().start(connection)
        if self.status < 200:
            protocol.close()
        return answer


class _Connector(aiohttp.TCPConnector):
    """Connections, of which one on which something came that nobody asked for is not used again."""

    async def connect(self, *request: Any, **how: Any) -> Any:
        while True:
            connection = await super().connect(*request, **how)
            if connection.protocol is not None and not connection.protocol.should_close:
                return connection
            connection.close()


class NetworkSession:
    """Connections to one endpoint, by way of the environment's proxy if there is one.

    It is made on the event loop. Nothing waits for a connection: other limits say how many requests
    there are. There is no timeout; the caller has one for the whole request.

    Args:
        base_url: Address of the endpoint.
    """

    def __init__(self, base_url: str) -> None:
        url = URL(base_url)
        self._proxy = _proxy_of(url)
        self._tunnels = url.scheme == "https"  # else the proxy sees the request, its login too
        self._session = aiohttp.ClientSession(
            connector=_Connector(
                limit=0, keepalive_timeout=KEEP_ALIVE, ssl=_context() if _is_tls(url) else True
            ),
            response_class=_Response,
            timeout=aiohttp.ClientTimeout(),
            cookie_jar=aiohttp.DummyCookieJar(),
        )

        _open.add(self)
        loop = asyncio.get_running_loop()
        self._left = weakref.finalize(self, _close_later, self._session, loop)
        self._left.atexit = False  # then `_close_all` waits for it

    async def send(
        self, method: str, url: str | URL, headers: Any, content: bytes | None
    ) -> aiohttp.ClientResponse:
        """Sends a request; returns the answer, whose body is still to be read, then released.

        Raises:
            NotSent: There is no connection.
            aiohttp.ClientError: The connection broke.
        """
        proxy, login = self._proxy
        if proxy is not None and proxy.scheme not in ("http", "https"):
            raise NotSent(f"expected an http:// proxy in the environment, got {proxy.scheme}://")
        if login and not self._tunnels:
            headers = {**headers, **login}
        data = io.BytesIO(content) if content and len(content) > _PIECEMEAL else content
        try:
            return await self._session.request(
                method, url, headers=headers, data=data, allow_redirects=False,
                proxy=proxy, proxy_headers=login,
            )  # fmt: skip
        except _NOT_SENT as error:
            raise NotSent(str(error) or type(error).__name__) from error

    async def exchange(
        self, method: str, url: str | URL, headers: Any, content: bytes | None
    ) -> Exchange:
        """Sends a request and reads the whole answer, up to `EVO_MAX_REPLY_MB`; see `send`."""
        async with await self.send(method, url, headers, content) as answer:
            pieces = [piece async for piece in body_of(answer)]
            return Exchange(answer.status, answer.headers, b"".join(pieces))

    async def close(self) -> None:
        """Closes all connections."""
        self._left.detach()
        await self._session.close()


_open: weakref.WeakSet[NetworkSession] = weakref.WeakSet()


def _close_later(session: aiohttp.ClientSession, loop: asyncio.AbstractEventLoop) -> None:
    """Closes what nobody closed, once nobody has it any more."""
    if loop.is_running():
        asyncio.run_coroutine_threadsafe(session.close(), loop)


@atexit.register
def _close_all() -> None:
    """Closes what nobody closed before the process ends, else aiohttp complains."""
    for session in list(_open):
        with contextlib.suppress(TimeoutError):
            background.start(session.close()).result(1.0)


async def body_of(answer: aiohttp.ClientResponse) -> AsyncIterator[bytes]:
    """Yields the body of an answer up to `EVO_MAX_REPLY_MB`; TooMuch: there is more."""
    left = cap("EVO_MAX_REPLY_MB") << 20
    async for piece in answer.content.iter_any():
        left -= len(piece)
        if left < 0:
            raise TooMuch(f"the answer has {above('EVO_MAX_REPLY_MB')}")
        yield piece


def _is_tls(url: URL) -> bool:
    return url.scheme == "https" or any(
        address.startswith("https:") for address in getproxies().values()
    )


def _context() -> ssl.SSLContext:
    return _context_of(os.environ.get("SSL_CERT_FILE"), os.environ.get("SSL_CERT_DIR"))


@functools.cache
def _context_of(*_: str | None) -> ssl.SSLContext:
    """Returns which certificates count, as for the openai client; reading them takes a while."""
    import httpx2

    return httpx2.create_ssl_context()


def _proxy_of(url: URL) -> tuple[URL | None, dict[str, str] | None]:
    """Returns the environment's proxy for an address, and the headers with which one logs in."""
    if proxy_bypass(url.host or ""):
        return None, None
    proxies = getproxies()
    address = proxies.get(url.scheme) or proxies.get("all")
    if not address:
        return None, None
    proxy = URL(address if "://" in address else f"http://{address}")
    if not proxy.user:
        return proxy, None
    login = base64.b64encode(f"{unquote(proxy.user)}:{unquote(proxy.password or '')}".encode())
    return proxy.with_user(None), {"Proxy-Authorization": f"Basic {login.decode()}"}
