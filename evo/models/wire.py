"""Ways to a model: the `openai` library over aiohttp, a function, or the offline model.

A run with the offline model or with a function loads neither of these libraries.
"""

from __future__ import annotations

from collections.abc import Awaitable
from typing import TYPE_CHECKING, Protocol

import msgspec

from evo.models.answer import CHAT, EMBEDDINGS, Exchange, Service
from evo.models.blocking import Blocking
from evo.models.offline import OFFLINE_URL

if TYPE_CHECKING:
    from evo.logs.records import Model


class Wire(Protocol):
    """Sends requests of one kind to one endpoint; many threads may share it."""

    def post(self, body: dict[str, object]) -> Exchange | Awaitable[Exchange] | Blocking:
        """Sends one request and returns the endpoint's answer, whatever its status.

        What can be awaited is awaited on the event loop, and cancelled at the deadline. What blocks
        is done by a helper thread, and given up at the deadline. `NotSent`: there is no connection;
        `TooMuch`: the answer is too large.
        """

    def close(self) -> None:
        """Closes connections."""


def open_wire(
    model: Model, base_url: str, key: str, seconds: float, service: Service = CHAT
) -> Wire:
    """Returns the way to a model; `seconds` is the time of an attempt, for what has its own."""
    if model.function is not None:
        from evo.models.functions import EmbeddingFunctionWire, FunctionWire

        kind = EmbeddingFunctionWire if service is EMBEDDINGS else FunctionWire
        return kind(model.function)
    if base_url == OFFLINE_URL:
        return OfflineWire()
    from evo.models.library import LibraryWire, wire_of

    if model.client_object is not None:
        return wire_of(model.client_object, seconds, service.path, share=model.shares)
    return LibraryWire(base_url, key, service.path)


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
