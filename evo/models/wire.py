"""Ways to an endpoint: the `openai` library over the network, or the offline model in this process.

An offline run loads neither that library nor anything of the network.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

import msgspec

from evo.models.answer import Exchange
from evo.models.offline import OFFLINE_URL

if TYPE_CHECKING:
    import httpx2


class Wire(Protocol):
    """Sends requests for chat completions to one endpoint; many threads may share it."""

    def post(self, body: dict[str, object]) -> Exchange:
        """Sends one request and returns the endpoint's answer, whatever its status."""

    def close(self) -> None:
        """Closes idle connections."""


def open_wire(
    base_url: str, key: str, *, seconds: float, transport: httpx2.BaseTransport | None = None
) -> Wire:
    """Returns the way to an endpoint; a `transport` replaces the network."""
    if base_url == OFFLINE_URL and transport is None:
        return OfflineWire()
    return LibraryWire(base_url, key, seconds=seconds, transport=transport)


class OfflineWire:
    """The offline model (no LLM), which answers in this process."""

    def __init__(self) -> None:
        from evo.models.offline.endpoint import respond

        self._respond = respond

    def post(self, body: dict[str, object]) -> Exchange:
        """Sends one request."""
        response = self._respond("POST", "/v1/chat/completions", msgspec.json.encode(body))
        return Exchange(response.status, {}, response.content)

    def close(self) -> None:
        """Closes nothing: there are no connections."""


class LibraryWire:
    """The official `openai` library with its retries switched off: one request is one attempt."""

    def __init__(
        self, base_url: str, key: str, *, seconds: float, transport: httpx2.BaseTransport | None
    ) -> None:
        import openai

        from evo.models.network import EndpointClient, open_transport

        self._client = openai.OpenAI(
            api_key=key,
            base_url=base_url,
            max_retries=0,
            timeout=seconds,
            default_headers={"Accept-Encoding": "identity"},
            http_client=EndpointClient(transport or open_transport(base_url)),
        )
        self._url = f"{base_url.rstrip('/')}/chat/completions"

    def post(self, body: dict[str, object]) -> Exchange:
        """Sends one request; errors of the connection are those of `httpx2`."""
        import httpx2
        import openai

        try:
            answer = self._client.post(self._url, cast_to=httpx2.Response, body=body)
        except openai.APIStatusError as error:
            answer = error.response
        except openai.APIConnectionError as error:
            if error.__cause__ is None:
                raise
            raise error.__cause__ from None
        return Exchange(answer.status_code, answer.headers, answer.content)

    def close(self) -> None:
        """Closes idle connections."""
        self._client.close()
