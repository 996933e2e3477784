"""The official `openai` library as the way to an endpoint, over connections of aiohttp."""

from __future__ import annotations

import functools
from typing import Any

import httpx2
import openai

from evo.models import background
from evo.models.answer import CHAT, Exchange, NotSent
from evo.models.blocking import Blocking
from evo.models.network import NetworkSession

_OUT_OF_DATE = frozenset({"content-encoding", "content-length", "transfer-encoding"})
"""Headers that are not true of a body any more that was read."""

_GRACE = 0.1
"""Seconds that a sync client has to end by its own timeout, so that its words are kept."""


class Transport(httpx2.AsyncBaseTransport):
    """Connections to an endpoint beneath a client of httpx2; a whole answer is read, to its cap."""

    def __init__(self, base_url: str) -> None:
        self._base_url = base_url
        self._session: NetworkSession | None = None

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        """Sends a request and returns the answer with its body."""
        if self._session is None:
            self._session = NetworkSession(self._base_url)
        url = str(request.url.copy_with(username=None, password=None))
        status, headers, content = await self._session.exchange(
            request.method, url, request.headers, await request.aread() or None
        )
        kept = [
            (name, value) for name, value in headers.items() if name.lower() not in _OUT_OF_DATE
        ]
        return httpx2.Response(status, headers=kept, content=content, request=request)

    async def aclose(self) -> None:
        """Closes all connections."""
        session, self._session = self._session, None
        if session is not None:
            await session.close()


class _EndpointClient(httpx2.AsyncClient):
    """The HTTP client of one endpoint, beneath the `openai` library.

    A general client merges base URLs, cookies and parameters into a request, and asks of an answer
    whether it redirects, wants a login or sets a cookie. An endpoint needs none of this, and it is
    a third of the processor time of a call. Only an address that holds a login is served as in the
    base class, which sends it.
    """

    def __init__(self, transport: Transport) -> None:
        super().__init__(transport=transport, trust_env=False, timeout=None)
        self._way = transport
        self._urls: dict[str, httpx2.URL] = {}

    def build_request(self, method: str, url: httpx2.URL | str, **given: Any) -> httpx2.Request:
        """Returns the request that the arguments describe, with nothing added to it."""
        given.pop("timeout", None)
        parsed = self._urls.get(str(url)) or self._urls.setdefault(str(url), httpx2.URL(url))
        return httpx2.Request(method, parsed, **given)

    async def send(self, request: httpx2.Request, **given: Any) -> httpx2.Response:
        """Sends a request once, and reads the whole answer."""
        if request.url.userinfo:
            return await super().send(request, **given)
        return await self._way.handle_async_request(request)


class _ClientWire:
    """An async client of the `openai` library with its retries switched off."""

    def __init__(self, client: openai.AsyncOpenAI, url: str) -> None:
        self._client, self._url = client, url

    async def post(self, body: dict[str, object]) -> Exchange:
        """Sends one request; errors of the connection are those of `NetworkSession`."""
        try:
            answer = await self._client.post(self._url, cast_to=httpx2.Response, body=body)
        except openai.APIStatusError as error:
            answer = error.response
        except openai.APIConnectionError as error:  # of a client with its own connections
            raise _failure_of(error) from error
        return Exchange(answer.status_code, answer.headers, answer.content)

    def close(self) -> None:
        """Closes all connections of ours."""
        background.wait(self._client.close())


class LibraryWire(_ClientWire):
    """The way to an endpoint that is known by its address: one request is one attempt."""

    def __init__(self, base_url: str, key: str, path: str = CHAT.path) -> None:
        client = openai.AsyncOpenAI(
            api_key=key,
            base_url=base_url,
            max_retries=0,
            timeout=None,
            default_headers={"Accept-Encoding": "identity"},
            http_client=_EndpointClient(Transport(base_url)),
        )
        super().__init__(client, f"{base_url.rstrip('/')}{path}")


class _SharedWire(_ClientWire):
    """A user's own async client, connections included, which stay open."""

    def close(self) -> None:
        """Closes nothing."""


class _SyncWire:
    """A user's own sync client, which is used in helper threads."""

    def __init__(self, client: openai.OpenAI, path: str) -> None:
        self._client, self._path = client, path

    def post(self, body: dict[str, object]) -> Blocking:
        """Says how to send one request."""
        return Blocking(functools.partial(self._send, body), "the client", grace=_GRACE)

    def _send(self, body: dict[str, object]) -> Exchange:
        try:
            answer = self._client.post(self._path, cast_to=httpx2.Response, body=body)
        except openai.APIStatusError as error:
            answer = error.response
        except openai.APIConnectionError as error:
            raise _failure_of(error) from error
        return Exchange(answer.status_code, answer.headers, answer.content)

    def close(self) -> None:
        """Closes nothing."""


def wire_of(
    client: Any, seconds: float, path: str = CHAT.path, *, share: bool
) -> _ClientWire | _SyncWire:
    """Returns the way through a client object of the user's to a path, one attempt for a request.

    An async client that was awaited elsewhere is bound to the event loop there, so a copy with
    connections of ours is used, unless it is to be shared.
    """
    if isinstance(client, openai.OpenAI):
        return _SyncWire(client.with_options(max_retries=0, timeout=seconds), path)
    if share:
        return _SharedWire(client.with_options(max_retries=0, timeout=seconds), path)
    http = httpx2.AsyncClient(
        transport=Transport(str(client.base_url)), trust_env=False, timeout=None
    )
    return _ClientWire(client.with_options(max_retries=0, timeout=None, http_client=http), path)


def _failure_of(error: openai.APIConnectionError) -> Exception:
    """Returns an error of a client with its own connections as one that `read_failure` knows."""
    if isinstance(error.__cause__, httpx2.ConnectError | httpx2.ConnectTimeout):
        return NotSent(str(error.__cause__) or "no connection")
    if isinstance(error, openai.APITimeoutError):
        return TimeoutError(str(error))
    return ConnectionError(str(error.__cause__ or error))
