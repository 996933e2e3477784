"""Endpoints that fail, lie or flood: no call is lost, no key is told, nothing else is asked."""

from __future__ import annotations

import contextlib
import gzip
import json
import os
import random
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from typing import Any

import pytest
from endpoints import Endpoint, say

import evo
from evo.logs.records import Model
from evo.models.client import Call, EndpointError, ModelClient, find_endpoint
from evo.models.limits import Slots
from evo.models.registry import ModelError, own_model, resolve_sampling

pytestmark = pytest.mark.slow

TIMES = int(os.environ.get("EVO_TORTURE", "1"))
KEY = "sk-torture-0123456789"
COMPLETION = json.dumps(
    {
        "choices": [{"message": {"content": "a reply"}, "finish_reason": "stop"}],
        "usage": {"prompt_tokens": 3, "completion_tokens": 2},
    }
).encode()


class Server(Endpoint):
    """Answers each POST with the next of its (status, headers, body), then with a completion."""

    def __init__(self) -> None:
        super().__init__(self.say_next)
        self.answers: list[tuple[int, dict[str, str], bytes]] = []

    def say_next(self, handler: BaseHTTPRequestHandler, *_: object) -> None:
        answer = self.answers.pop(0) if self.answers else (200, {}, COMPLETION)
        status, headers, content = answer
        if status:
            say(handler, status, content, **headers)
        else:
            handler.close_connection = True
            handler.wfile.write(content)


@pytest.fixture
def server() -> Iterator[Server]:
    with Server() as made:
        yield made


other = server  # a second one


@pytest.fixture(autouse=True)
def environment(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for name in ("OPENAI_BASE_URL", "LLM_API_BASE", "LLM_API_KEY", "EVO_MODELS"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    monkeypatch.setattr("evo.models.registry.USER_FILE", tmp_path / "absent.toml")


def ask(server: Server, **options: Any) -> Call:
    model = Model(name="m", base_url=server.url)
    how = {"back_off": 0.001, "timeout": 5.0, "retries": 2, **options}
    client = ModelClient(model, resolve_sampling(model), slots=Slots(4), **how)
    with contextlib.closing(client):
        return client.call([{"role": "user", "content": "hi"}], seed=1)


def test_a_redirect_is_not_followed(server: Server, other: Server) -> None:
    for status in (301, 302, 307, 308):
        server.answers = [(status, {"Location": other.url + "/chat/completions"}, b"")]
        with pytest.raises(EndpointError, match=r"redirects to .* not followed"):
            ask(server)
    assert other.requests == []


@pytest.mark.parametrize("packed", [False, True])
def test_a_flood_is_cut_off(server: Server, monkeypatch: pytest.MonkeyPatch, packed: bool) -> None:
    monkeypatch.setenv("EVO_MAX_REPLY_MB", "1")
    flood = COMPLETION + b" " * (8 << 20)
    headers = {"Content-Encoding": "gzip"} if packed else {}
    server.answers = [(200, headers, gzip.compress(flood) if packed else flood)]
    call = ask(server)
    assert call.reply is None
    assert "EVO_MAX_REPLY_MB" in str(call.rejected)
    server.answers = [(200, headers, gzip.compress(COMPLETION) if packed else COMPLETION)]
    assert ask(server).reply == "a reply"


FAULTS: list[tuple[int, dict[str, str], bytes]] = [
    (500, {}, b"oops"),
    (503, {"Retry-After": "0"}, b""),
    (429, {"retry-after-ms": "1"}, b'{"error": {"message": "slow down"}}'),
    (200, {}, b""),
    (200, {}, b"{"),
    (200, {}, b"[" * 100_000),
    (200, {}, b'{"choices": []}'),
    (200, {}, b'{"choices": [{"message": null}]}'),
    (200, {}, b"\xff\xfe\x00"),
    (200, {"Content-Encoding": "gzip"}, b"no gzip"),
    (200, {"Content-Encoding": "br"}, b"?"),
    (200, {"Content-Length": "10000"}, COMPLETION),
    (0, {}, b""),
    (0, {}, b"HTTP/1.1 200"),
    (0, {}, b"\r\n\r\n"),
    (401, {}, f"bad key {KEY}".encode()),
    (403, {}, json.dumps({"error": {"message": f"no {KEY}"}}).encode()),
    (400, {}, f"{KEY} is too long".encode()),
    (408, {}, KEY.encode()),
    (999, {}, KEY.encode()),
]


def test_every_fault_is_recorded_and_no_key_told(server: Server) -> None:
    draws = random.Random(5)
    for _ in range(20 * TIMES):
        server.answers = draws.sample(FAULTS, 3)
        before = len(server.requests)
        try:
            call = ask(server, timeout=1.0)
        except EndpointError as error:
            said = str(error)
        else:
            assert len(call.attempts) == len(server.requests) - before
            said = repr(call)
        assert KEY not in said


LYING = [
    {"base_url": "http://127.0.0.1:9/v1"},
    {"key_variable": "AWS_SECRET_ACCESS_KEY"},
    {"extra_body": {"tools": []}},
    {"id": "dearer"},
]


@pytest.mark.parametrize("lie", LYING, ids=lambda lie: next(iter(lie)))
@pytest.mark.parametrize("name", ["qwen3-8b", "offline", "unheard-of"])
def test_a_log_does_not_say_where_calls_go(name: str, lie: dict[str, Any]) -> None:
    logged = Model(name=name, **lie)
    (value,) = lie.values()
    with pytest.raises(ModelError) as raised:
        own_model(logged, "a.jsonl")
    said = str(raised.value)
    assert repr(value) in said
    assert f"evo resume a.jsonl --model {name}" in said
    assert "\n" not in said
    if name != "unheard-of":
        own = own_model(logged, "a.jsonl", name)
        assert (own.base_url, own.key_variable, own.extra_body) == (None, None, {})


def test_prices_and_sizes_are_nobodys_destination() -> None:
    logged = Model(name="qwen3-8b", active_parameters=1, input_price=99.0, context=5)
    assert own_model(logged, "a.jsonl").active_parameters == 8_190_726_144


@pytest.mark.parametrize(
    "url", ["http://h/v1\n", "http://h/v1 is it", "http://h:99999999/v1", "ftp://h", "h/v1", "//h"]
)
def test_an_address_that_is_none_is_named(monkeypatch: pytest.MonkeyPatch, url: str) -> None:
    monkeypatch.setenv("OPENAI_BASE_URL", url)
    with pytest.raises(EndpointError, match="looks like https://host/v1"):
        find_endpoint(Model(name="m"))
    monkeypatch.setenv("OPENAI_BASE_URL", "http://h/v1")
    monkeypatch.setenv("OPENAI_API_KEY", "sk\r\nHost: elsewhere")
    with pytest.raises(EndpointError, match="OPENAI_API_KEY: expected a key on one line"):
        find_endpoint(Model(name="m"))


@pytest.mark.filterwarnings("ignore:none of the first 8 replies holds a program")
def test_a_run_through_faults_loses_no_call(tmp_path: Path, server: Server) -> None:
    model = Model(name="m", base_url=server.url)
    server.answers = [FAULTS[draw] for draw in (0, 3, 6, 12, 1, 9)]
    sizes = {"generations": 2, "children": 4}
    settings = evo.Settings(timeout=2, retries=8, progress=False)
    log = evo.run("cp", model=model, log=tmp_path / "a.jsonl", settings=settings, **sizes)
    assert sum(len(o.attempts) for o in log.outcomes) == len(server.requests)
    assert len(log.outcomes) == 8
    assert KEY.encode() not in log.path.read_bytes()
