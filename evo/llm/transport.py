"""The offline model behind the openai client without a network: an in-process transport."""

from __future__ import annotations

import time

import httpx2

from evo.llm.offline.endpoint import respond
from evo.llm.offline.latency import Latency


class OfflineTransport(httpx2.BaseTransport):
    """Answers an httpx2 client as the offline model (no LLM), in the latency's time if any."""

    def __init__(self, *, latency: Latency | None = None) -> None:
        self._latency = latency

    def handle_request(self, request: httpx2.Request) -> httpx2.Response:
        """Answers one request."""
        body = request.read()
        if self._latency is not None:
            seconds = self._latency.seconds(body)
            patience = request.extensions.get("timeout", {}).get("read")
            if patience is not None and seconds > patience:
                time.sleep(patience)
                raise httpx2.ReadTimeout("simulated latency", request=request)
            time.sleep(seconds)
        response = respond(request.method, request.url.path, body)
        headers = {"content-type": response.kind}
        return httpx2.Response(response.status, headers=headers, content=response.content)
