"""The way from a gate to its endpoint: what is sent there, and an answer as it comes."""

from __future__ import annotations

import contextlib
import json
import threading
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler
from typing import Any

import msgspec
import pytest
from endpoints import Answer, Endpoint, closed_port, noting_the_end
from offline_requests import PARENTS, showing

from evo.gate.upstream import Upstream, open_upstream
from evo.models import background
from evo.models import client as models
from evo.models.answer import NotSent
from evo.models.offline import OFFLINE_URL
from evo.models.offline.endpoint import respond

CONTENT = msgspec.json.encode({"model": "offline", "messages": showing(PARENTS["mmd"]), "seed": 3})


@contextlib.contextmanager
def way_to(url: str) -> Iterator[Upstream]:
    made = open_upstream(models.Endpoint(url, "sk-upstream"))
    with contextlib.closing(made):
        yield made


def ask(way: Upstream, content: bytes = CONTENT) -> tuple[int, Any, list[bytes]]:
    """The whole answer to one request."""

    async def whole() -> tuple[int, Any, list[bytes]]:
        answer = await way.ask(content)
        try:
            return answer.status, answer.headers, [piece async for piece in answer.pieces]
        finally:
            answer.close()

    return background.wait(whole())


@pytest.mark.parametrize("content", [CONTENT, b"no json", CONTENT.replace(b"offline", b"other")])
def test_the_offline_model_answers_as_its_endpoint_does(content: bytes) -> None:
    with way_to(OFFLINE_URL) as way:
        status, headers, pieces = ask(way, content)
    expected = respond("POST", "/v1/chat/completions", content)
    assert (status, b"".join(pieces)) == (expected.status, expected.content)
    assert headers == {"content-type": expected.kind}


@pytest.mark.parametrize("status", [200, 429, 500])
def test_a_request_goes_out_as_it_is_and_comes_back_as_it_is(status: int) -> None:
    with Endpoint() as server:
        server.script = lambda _: Answer(status, {"a": 1}, {"x-mine": "1"})
        with way_to(server.url) as way:
            found = [ask(way) for _ in range(2)]
    for code, headers, pieces in found:
        assert (code, json.loads(b"".join(pieces))) == (status, {"a": 1})
        assert headers["x-mine"] == "1"
    assert server.requests == [json.loads(CONTENT)] * 2  # and nothing is tried again
    for sent in server.headers:
        assert sent["authorization"] == "Bearer sk-upstream"
        assert sent["accept-encoding"] == "identity"
        assert sent["content-type"] == "application/json"


@pytest.mark.parametrize("end", ["", "/", "/%7Ea"])
def test_a_login_in_the_address_is_sent_in_place_of_the_key_and_a_slash_at_its_end_is_none(
    end: str,
) -> None:
    def answer(handler: BaseHTTPRequestHandler, body: object, number: int) -> None:
        paths.append(handler.path)
        server.answer(handler, Answer(body={}))

    paths = list[str]()
    with Endpoint(answer) as server:
        address = server.url.replace("http://", "http://me:secret@")
        with way_to(f"{address}{end}") as way:
            assert ask(way)[0] == 200
    assert paths == [f"/v1{end.rstrip('/')}/chat/completions"]
    (sent,) = server.headers
    assert sent["authorization"] == "Basic bWU6c2VjcmV0"


def test_an_answer_is_there_before_its_body_and_closing_it_lets_the_endpoint_go() -> None:
    async def begin(way: Upstream) -> int:
        answer = await way.ask(CONTENT)
        answer.close()
        return answer.status

    with Endpoint() as server:
        server.script = lambda _: Answer(body={"a": "x" * 1000}, trickle=0.05)  # some 50 s in all
        began = time.monotonic()
        with way_to(server.url) as way:
            assert background.wait(begin(way)) == 200
            assert server.dropped.wait(30)
        assert time.monotonic() - began < 30


def test_without_a_connection_nothing_was_sent() -> None:
    with way_to(closed_port()) as way, pytest.raises(NotSent):
        ask(way)


def test_closing_the_way_lets_the_endpoint_go() -> None:
    gone = threading.Event()
    with Endpoint(noting_the_end(gone)) as server:
        with way_to(server.url) as way:
            assert ask(way)[0] == 200
            assert not gone.is_set()
        assert gone.wait(10)
