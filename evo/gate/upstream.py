"""The way from a gate to its endpoint: over the network, or the offline model in this process."""

from __future__ import annotations

import base64
from collections.abc import AsyncIterator, Callable, Mapping
from typing import NamedTuple, Protocol

from evo.models import background
from evo.models.client import Endpoint
from evo.models.offline import OFFLINE_URL


class Incoming(NamedTuple):
    """An endpoint's answer, whose body is still to come; closing it cuts off what has not come."""

    status: int
    headers: Mapping[str, str]
    pieces: AsyncIterator[bytes]
    close: Callable[[], object]


class Upstream(Protocol):
    """Sends requests for chat completions."""

    async def ask(self, content: bytes) -> Incoming:
        """Sends one request; its answer is to be closed."""

    def close(self) -> None:
        """Closes connections."""


def open_upstream(endpoint: Endpoint) -> Upstream:
    """Returns the way to an endpoint."""
    return _Offline() if endpoint.base_url == OFFLINE_URL else _Network(endpoint)


class _Offline:
    def __init__(self) -> None:
        from evo.models.offline.endpoint import respond

        self._respond = respond

    async def ask(self, content: bytes) -> Incoming:
        response = self._respond("POST", "/v1/chat/completions", content)

        async def whole() -> AsyncIterator[bytes]:
            yield response.content

        headers = {"content-type": response.kind}
        return Incoming(response.status, headers, whole(), lambda: None)

    def close(self) -> None:
        pass


class _Network:
    def __init__(self, endpoint: Endpoint) -> None:
        from yarl import URL

        from evo.models.network import NetworkSession, body_of

        self._body_of = body_of

        async def opened() -> NetworkSession:
            return NetworkSession(endpoint.base_url)

        self._session = background.wait(opened())
        url = URL(f"{endpoint.base_url.rstrip('/')}/chat/completions", encoded=True)
        self._url = url.with_user(None)
        authorization = f"Bearer {endpoint.key}"
        if url.user or url.password:  # as the `openai` library sends a login in the address
            login = f"{url.user or ''}:{url.password or ''}"
            authorization = f"Basic {base64.b64encode(login.encode()).decode()}"
        self._headers = {
            "Authorization": authorization,
            "Content-Type": "application/json",
            "Accept": "*/*",
            "Accept-Encoding": "identity",
            "User-Agent": "evo",
        }

    async def ask(self, content: bytes) -> Incoming:
        answer = await self._session.send("POST", self._url, self._headers, content)
        return Incoming(answer.status, answer.headers, self._body_of(answer), answer.close)

    def close(self) -> None:
        background.wait(self._session.close())
