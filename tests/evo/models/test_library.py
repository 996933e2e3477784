"""Calls through the `openai` library: its own requests, a user's clients, and one attempt each."""

from __future__ import annotations

import asyncio
import contextlib
import gzip
import inspect
import json
import threading
import time
from collections.abc import Iterator
from typing import Any

import aiohttp
import msgspec
import openai
import pytest
from endpoints import Answer, Endpoint, closed_port, noting_the_end, say
from model_calls import COMPLETION, MESSAGES, ask

import evo
from evo.logs.records import Model, Sampling
from evo.models import background
from evo.models.answer import Exchange, NotSent
from evo.models.blocking import Blocking
from evo.models.client import EndpointDown, ModelClient
from evo.models.library import LibraryWire, wire_of
from evo.models.limits import Slots

KEY = "sk-very-secret-0123456789"
KINDS = ("address", "async", "shared", "sync")


@pytest.fixture
def endpoint() -> Iterator[Endpoint]:
    with Endpoint() as server:
        server.script = lambda _: Answer(body=COMPLETION)
        yield server


@contextlib.contextmanager
def client_of(kind: str, url: str) -> Iterator[Any]:
    """A user's client, which by itself would try twice more."""
    cls = openai.OpenAI if kind == "sync" else openai.AsyncOpenAI
    client = cls(base_url=url, api_key=KEY, max_retries=2, timeout=30.0)
    yield client
    closed = client.close()
    if closed is not None:
        background.wait(closed)


def post(way: Any) -> Exchange:
    """Sends one request as the client does, then closes the way."""
    with contextlib.closing(way):
        sent = way.post({"model": "m", "messages": MESSAGES})
        sent = sent.send() if isinstance(sent, Blocking) else sent
        found: Exchange = background.wait(sent) if inspect.isawaitable(sent) else sent  # type: ignore[arg-type]
    return found


def post_by(kind: str, url: str, seconds: float = 30.0) -> Exchange:
    """Sends one request to an address, or through a client object of a kind."""
    if kind == "address":
        return post(LibraryWire(url, KEY))
    with client_of(kind, url) as client:
        return post(wire_of(client, seconds, share=kind == "shared"))


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("status", [200, 404, 429, 503])
def test_every_answer_is_returned_as_it_is_after_one_request(
    kind: str, status: int, endpoint: Endpoint
) -> None:
    endpoint.script = lambda _: Answer(status, COMPLETION, {"x-mine": "1", "retry-after": "0"})
    found = post_by(kind, endpoint.url)
    assert found.status == status
    assert msgspec.json.decode(found.content) == COMPLETION
    assert (found.headers["x-mine"], found.headers["retry-after"]) == ("1", "0")
    assert len(endpoint.requests) == 1


@pytest.mark.parametrize("kind", KINDS)
def test_no_connection_is_no_request_sent(kind: str) -> None:
    with pytest.raises(NotSent):
        post_by(kind, closed_port())


@pytest.mark.parametrize("kind", KINDS)
def test_a_connection_that_breaks_off_is_a_request_that_was_sent(kind: str) -> None:
    def hang_up(handler: Any, body: object, number: int) -> None:
        handler.close_connection = True

    kinds = (ConnectionError, aiohttp.ClientError)  # the latter of connections of ours
    with Endpoint(hang_up) as server, pytest.raises(kinds) as raised:
        post_by(kind, server.url)
    assert isinstance(raised.value, ConnectionError) == (kind in ("shared", "sync"))


@pytest.mark.parametrize("kind", ["shared", "sync"])
def test_a_client_with_connections_of_its_own_keeps_to_the_time_of_an_attempt(
    kind: str, endpoint: Endpoint
) -> None:
    endpoint.script = lambda _: Answer(wait=30)
    began = time.monotonic()
    with pytest.raises(TimeoutError):
        post_by(kind, endpoint.url, seconds=0.1)
    assert 0.1 <= time.monotonic() - began < 10


def test_a_packed_body_is_unpacked_and_its_headers_speak_of_what_it_is(endpoint: Endpoint) -> None:
    packed = gzip.compress(json.dumps(COMPLETION).encode())
    endpoint.script = lambda _: Answer(body=packed, headers={"content-encoding": "gzip"})
    found = post_by("address", endpoint.url)
    assert json.loads(found.content) == COMPLETION
    assert "content-encoding" not in found.headers
    assert int(found.headers["content-length"]) == len(found.content)


@pytest.mark.parametrize("kind", ["async", "shared", "sync"])
def test_a_users_client_outlives_the_way_through_it(kind: str, endpoint: Endpoint) -> None:
    with client_of(kind, endpoint.url) as client:
        for _ in range(2):
            assert post(wire_of(client, 9.0, share=kind == "shared")).status == 200
            assert not client.is_closed()
        assert (client.max_retries, client.timeout) == (2, 30.0)


def test_closing_the_way_lets_the_endpoint_go() -> None:
    gone = threading.Event()
    with Endpoint(noting_the_end(gone)) as server:
        way = LibraryWire(server.url, KEY)
        assert background.wait(way.post({"model": "m"})).status == 200
        assert not gone.is_set()
        way.close()
        assert gone.wait(10)


@pytest.mark.parametrize("end", ["", "/", "//"])
def test_slashes_at_the_end_of_an_address_are_none(end: str) -> None:
    def say_path(handler: Any, body: object, number: int) -> None:
        say(handler, 200, handler.path.encode())

    with Endpoint(say_path) as server:
        assert post(LibraryWire(f"{server.url}{end}", KEY)).content == b"/v1/chat/completions"


def test_a_request_is_the_one_that_the_library_itself_sends(
    endpoint: Endpoint, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TEST_KEY", KEY)
    endpoint.script = lambda _: Answer(body=COMPLETION, headers={"set-cookie": "a=b"})
    model = Model(name="m", base_url=endpoint.url, key_variable="TEST_KEY")
    sampling = Sampling(temperature=0.6, top_p=0.95, max_tokens=100)
    with contextlib.closing(ModelClient(model, sampling, slots=Slots(4))) as ours:
        assert [ours.call(MESSAGES, seed=5).reply for _ in range(2)] == ["hi", "hi"]

    async def general() -> None:
        http = openai.DefaultAioHttpClient(headers={"accept-encoding": "identity"})
        how: dict[str, Any] = {"api_key": KEY, "base_url": endpoint.url, "timeout": None}
        async with openai.AsyncOpenAI(**how, http_client=http) as library:
            await library.chat.completions.create(**endpoint.requests[0])

    background.wait(general())
    assert endpoint.requests[0] == endpoint.requests[1] == endpoint.requests[2]
    own, again, usual = endpoint.headers
    assert own == again
    differing = {name for name in usual.keys() | own if usual.get(name) != own.get(name)}
    assert differing <= {"accept", "connection", "x-stainless-raw-response"}


def test_a_login_in_the_address_is_sent(endpoint: Endpoint) -> None:
    address = endpoint.url.replace("http://", "http://me:secret@")
    assert ask(evo.Model("m", base_url=address)).reply == "hi"
    (headers,) = endpoint.headers
    assert headers["authorization"] == "Basic bWU6c2VjcmV0"


@pytest.mark.parametrize("kind", ["async", "sync", "shared", "azure"])
def test_a_client_object_is_a_model(kind: str) -> None:
    with Endpoint() as endpoint:
        endpoint.script = lambda number: (
            Answer(body=COMPLETION) if number % 2 else Answer(503, headers={"retry-after-ms": "1"})
        )
        if kind == "azure":
            address = endpoint.url.removesuffix("/v1")
            client: Any = openai.AsyncAzureOpenAI(
                azure_endpoint=address, api_key="secret-key", api_version="2024-01"
            )
        else:
            cls = openai.OpenAI if kind == "sync" else openai.AsyncOpenAI
            client = cls(base_url=endpoint.url, api_key="secret-key", default_headers={"x-me": "1"})
        model = evo.Model("gpt-4o", client=client, share=kind == "shared")
        call = ask(model)
        assert [attempt.http_status for attempt in call.attempts] == [503, 200]
        assert call.reply == "hi"
        assert endpoint.requests[0]["model"] == "gpt-4o"
        headers = endpoint.headers[0]
        assert headers["api-key" if kind == "azure" else "authorization"].endswith("secret-key")
        assert kind == "azure" or headers["x-me"] == "1"
        endpoint.script = lambda _: Answer(400, b"bad secret-key here")
        refused = ask(model)
        assert "[key]" in str(refused.rejected)
    written = msgspec.json.encode(model)
    assert b"secret" not in written
    assert b'"way":"client"' in written
    gone = client.copy(base_url=closed_port())
    with pytest.raises(EndpointDown, match="no connection"):
        ask(evo.Model("gpt-4o", client=gone, share=kind == "shared"), retries=0)
    with contextlib.suppress(AttributeError):
        client.close() if kind == "sync" else asyncio.run(client.close())


def test_a_client_object_keeps_to_the_deadline() -> None:
    with Endpoint() as endpoint:
        endpoint.script = lambda _: Answer(wait=30)
        for cls in (openai.AsyncOpenAI, openai.OpenAI):
            client = cls(base_url=endpoint.url, api_key="k")
            started = time.monotonic()
            call = ask(evo.Model("m", client=client), timeout=0.3, retries=0)
            assert call.attempts[0].status == "timeout"
            assert time.monotonic() - started < 10
