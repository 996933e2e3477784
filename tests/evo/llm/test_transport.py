"""The offline model through the openai library, in process, as through a network."""

from __future__ import annotations

import time
from typing import Any

import httpx2
import msgspec
import openai
import pytest
from offline_requests import PARENTS, SEARCH_REPLACE, TOY, showing

from evo.llm.offline.latency import Latency
from evo.llm.server import OfflineServer
from evo.llm.transport import OfflineTransport

URL = "http://localhost/v1"


def in_process(latency: Latency | None = None, *, timeout: float = 30) -> openai.OpenAI:
    transport = OfflineTransport(latency=latency)
    client = httpx2.Client(transport=transport)
    return openai.OpenAI(
        base_url=URL, api_key="none", max_retries=0, timeout=timeout, http_client=client
    )


def complete(client: openai.OpenAI, **fields: Any) -> Any:
    request = {"model": "offline", "messages": showing(PARENTS["mmd"]), "seed": 3}
    return client.chat.completions.create(**request | fields)  # type: ignore[call-overload]


BODIES: list[bytes] = [
    *(
        msgspec.json.encode({"model": "offline", "messages": messages, "seed": seed, **fields})
        for messages in (showing(PARENTS["cp"], system="Be brief."), showing(TOY))
        for seed in (1, 2, None)
        for fields in ({}, {"stream": True}, {"max_tokens": 30}, {"temperature": 9})
    ),
    msgspec.json.encode({"model": "offline", "messages": showing(TOY, system=SEARCH_REPLACE)}),
    msgspec.json.encode({"model": "another"}),
    b"",
    b"{",
    "{é}".encode("latin-1"),
]


def test_in_process_and_over_http_the_bytes_are_equal() -> None:
    requests = [("POST", "/chat/completions", body) for body in BODIES]
    requests += [("GET", "/models", b""), ("GET", "/other", b""), ("POST", "/other", b"{}")]
    with (
        OfflineServer() as server,
        httpx2.Client(trust_env=False) as network,
        httpx2.Client(transport=OfflineTransport()) as process,
    ):
        for method, path, body in requests:
            near = process.request(method, URL + path, content=body)
            far = network.request(method, server.url + path, content=body)
            assert (near.status_code, near.content) == (far.status_code, far.content)
            assert near.headers["content-type"] == far.headers["content-type"]


def test_latency_is_waited_for() -> None:
    with in_process(Latency(0.15)) as client:
        started = time.monotonic()
        complete(client)
        assert time.monotonic() - started >= 0.15


def test_a_shorter_patience_ends_as_a_timeout() -> None:
    with in_process(Latency(30), timeout=0.2) as client:
        started = time.monotonic()
        with pytest.raises(openai.APITimeoutError):
            complete(client)
        assert time.monotonic() - started >= 0.2
