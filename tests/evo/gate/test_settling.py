"""A gate counts what it sends, settles whatever comes back, and never works without its log."""

from __future__ import annotations

import json
import os
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from typing import Any

import msgspec
import pytest
from endpoints import say
from gates import KEY, Upstream, logged, posting

from evo.gate.gate import Gate, worst_case
from evo.logs.records import Model
from evo.models import connections

CHOICE = {"message": {"content": "hi"}, "finish_reason": "stop"}
LONG = "1" + "0" * 400


@pytest.fixture(autouse=True)
def _environment(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("GATE_KEY", KEY)
    monkeypatch.chdir(tmp_path)


def answering(content: bytes, **headers: str) -> Upstream:
    """An endpoint that gives every request the same answer."""

    def handle(handler: BaseHTTPRequestHandler, body: dict[str, Any], number: int) -> None:
        say(handler, 200, content, **headers)

    return Upstream(handle)


def completion(usage: str) -> bytes:
    return f'{{"choices": [{json.dumps(CHOICE)}], "usage": {usage}}}'.encode()


@pytest.mark.parametrize(
    "usage",
    [
        f'{{"prompt_tokens": {LONG}, "completion_tokens": 2}}',
        '{"prompt_tokens": 1, "completion_tokens": 2, "x": [' + "1," * 2_000_000 + "1]}",
        '{"prompt_tokens": NaN, "completion_tokens": Infinity}',
        '{"a": ' + "[" * 900 + "]" * 900 + "}",
        f'[{LONG}, "\\ud800"]',
    ],
    ids=["astronomic", "long", "no number", "deep", "no object"],
)
def test_every_answer_is_settled_and_no_budget_is_passed(usage: str) -> None:
    with answering(completion(usage)) as upstream:
        budget = {"calls": 3, "tokens": 1e9}
        with Gate(upstream.model, budget=budget) as gate, posting(gate) as post:
            statuses = [post(seed=seed)[0] for seed in range(6)]
            assert statuses == [200] * 3 + [429] * 3
            assert len(upstream.requests) == 3
            assert gate.account.in_flight == 0
            spent, log = gate.account.spent, gate.log
        with Gate(upstream.model, budget=budget, log=log) as again:
            assert again.account.spent == pytest.approx(spent, nan_ok=True)
            assert again.account.used_up == "calls"


@pytest.mark.parametrize("reason", ['{"a": 1}', "[7]", LONG, "null", '"' + "x" * 5000 + '"'])
def test_a_stream_of_odd_events_is_settled(reason: str) -> None:
    events = f'data: {{"choices": [{{"finish_reason": {reason}}}], "usage": {LONG}}}\n\n'
    events += f'data: {{"choices": {LONG}, "usage": {{"prompt_tokens": {LONG}}}}}\n\n'
    events += 'data: [1]\n\ndata: "usage"\n\ndata: [DONE]\n\n'
    with answering(events.encode(), Content_Type="text/event-stream") as upstream:
        with Gate(upstream.model, budget={"calls": 2}) as gate, posting(gate) as post:
            assert [post(seed=k, stream=True)[0] for k in range(3)] == [200, 200, 429]
            log = gate.log
        with Gate(upstream.model, budget={"calls": 2}, log=log) as again:
            assert again.account.spent["calls"] == 2


@pytest.mark.parametrize("name", ["max_tokens", "max_completion_tokens"])
def test_the_worst_case_is_that_of_the_request_as_it_is_sent(name: str) -> None:
    with Upstream() as upstream:
        model = msgspec.structs.replace(upstream.model, context=None, extra_body={name: 4000})
        with Gate(model, budget={"tokens": 1000}) as gate, posting(gate) as post:
            assert post(max_tokens=10)[0] == 429
        model = msgspec.structs.replace(model, extra_body={name: None})
        with Gate(model, budget={"tokens": 1000}) as gate, posting(gate) as post:
            assert post(**{name: 10})[0] == 400  # nothing bounds what is sent
        model = msgspec.structs.replace(model, extra_body={"n": 2})
        with Gate(model, budget={"tokens": 1000}) as gate, posting(gate) as post:
            assert post(max_tokens=10)[0] == 400
    assert upstream.requests == []


def test_the_larger_of_two_limits_counts() -> None:
    model = Model(name="m")
    body = {"messages": [], "max_tokens": 4000, "max_completion_tokens": 10}
    assert worst_case(body, 100, model)["tokens"] > 4000
    assert worst_case(body | {"max_tokens": int(LONG)}, 100, model)["tokens"] == float("inf")


def test_gates_of_one_process_have_logs_of_their_own() -> None:
    with Upstream() as upstream, ExitStack() as opened:
        gates = [Gate(upstream.model, budget={"calls": 5}) for _ in range(3)]
        for gate in gates:
            opened.enter_context(gate)
        assert len({gate.log for gate in gates}) == 3
        with posting(gates[1]) as post:
            post()
        assert [len(logged(gate.log).get("sent", [])) for gate in gates] == [0, 1, 0]


def test_a_client_learns_one_of_a_few_types_of_content() -> None:
    for stated, told in (
        (f"text/x; boundary={KEY}", "text/plain"),
        ("APPLICATION/JSON; charset=base64", "application/json"),
    ):
        with (
            answering(completion("{}"), Content_Type=stated) as upstream,
            Gate(upstream.model) as gate,
            posting(gate) as post,
        ):
            status, _, headers = post()
            assert (status, headers["content-type"]) == (200, told)


@contextmanager
def full_disk(gate: Gate) -> Iterator[None]:
    """Whatever the gate writes to its log finds no space on the device."""
    writer = gate.account._writer
    assert writer is not None
    before, full = os.dup(writer._descriptor), os.open("/dev/full", os.O_RDWR)
    os.dup2(full, writer._descriptor)
    try:
        yield
    finally:
        os.dup2(before, writer._descriptor)
        os.close(before)
        os.close(full)


def test_on_a_full_disk_nothing_is_forwarded_and_no_cached_answer_is_used_up() -> None:
    numbers = iter(range(100))

    def count(handler: BaseHTTPRequestHandler, body: dict[str, Any], number: int) -> None:
        choice = {"message": {"content": str(next(numbers))}, "finish_reason": "stop"}
        say(handler, 200, json.dumps({"choices": [choice], "usage": {}}).encode())

    log, cache = Path("g.jsonl"), Path("c.sqlite")
    with Upstream(count) as upstream:
        with Gate(upstream.model, log=log, cache=cache) as gate, posting(gate) as post:
            first = [post()[1] for _ in range(2)]
        log.unlink()  # another session: the same answers, in the same order
        with Gate(upstream.model, log=log, cache=cache) as gate, posting(gate) as post:
            with full_disk(gate):
                assert [post()[0] for _ in range(3)] == [507] * 3  # known answers
                assert post(seed=9)[0] == 507  # an unknown one
            assert [post()[1] for _ in range(2)] == first
        assert len(upstream.requests) == 2


def test_half_requests_hold_no_threads_and_are_cut_off(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connections, "REQUEST_SECONDS", 1.0)
    with Upstream() as upstream, Gate(upstream.model) as gate, ExitStack() as opened:
        host, port = gate.url.removeprefix("http://").removesuffix("/v1").split(":")
        before = threading.active_count()
        half = []
        for number in range(150):
            client = opened.enter_context(socket.create_connection((host, int(port))))
            head = b"POST /v1/chat/completions HTTP/1.1\r\nHost: x\r\nContent-Length: 50\r\n"
            client.sendall(head if number % 2 else head + b"\r\n{")
            half.append(client)
        with posting(gate) as post:
            assert post()[0] == 200  # others are served meanwhile
        assert threading.active_count() <= before + 2
        deadline = time.monotonic() + 30
        for client in half:
            client.settimeout(max(0.1, deadline - time.monotonic()))
            with suppress(ConnectionResetError):  # of a head that does not end
                answer = client.recv(1000)
                assert answer == b"" or answer.startswith(b"HTTP/1.1 408 ")


def test_only_a_text_is_bounded_by_its_bytes() -> None:
    """An image of few bytes may be many tokens: nothing but the context window bounds it."""
    model = Model(name="m", context=5_000)
    text, image = {"type": "text", "text": "hi"}, {"type": "image_url", "image_url": {"url": "u"}}
    for content, bounded in (("hi", True), ([text], True), ([text, image], False), (7, False)):
        messages = [{"role": "user", "content": "hi"}, {"role": "user", "content": content}]
        worst = worst_case({"messages": messages, "max_tokens": 10}, 100, model)["tokens"]
        assert (worst < 1_000) == bounded
        assert bounded or worst == 5_010
