"""Ways to an endpoint: the `openai` library over aiohttp, or the offline model in this process.

An offline run loads neither of these libraries.
"""

from __future__ import annotations

from collections.abc import Awaitable
from typing import Protocol

import msgspec

from evo.models.answer import Exchange
from evo.models.offline import OFFLINE_URL


class Wire(Protocol):
    """Sends requests for chat completions to one endpoint; many threads may share it."""

    def post(self, body: dict[str, object]) -> Exchange | Awaitable[Exchange]:
        """Sends one request and returns the endpoint's answer, whatever its status.

        What can be awaited is awaited on the event loop, and cancelled at the deadline. `NotSent`:
        there is no connection; `TooMuch`: the answer is too large.
        """

    def close(self) -> None:
        """Closes connections."""


def open_wire(base_url: str, key: str) -> Wire:
    """Returns the way to an endpoint."""
    if base_url == OFFLINE_URL:
        return OfflineWire()
    from evo.models.library import LibraryWire

    return LibraryWire(base_url, key)


class OfflineWire:
    """The offline model (no LLM), which answers in this process, in the thread that asks."""

    def __init__(self) -> None:
        from evo.models.offline.endpoint import respond

        self._respond = respond

    def post(self, body: dict[str, object]) -> Exchange:
        """Sends one request."""
        response = self._respond("POST", "/v1/chat/completions", msgspec.json.encode(body))
        return Exchange(response.status, {}, response.content)

    def close(self) -> None:
        """Closes nothing: there are no connections."""
