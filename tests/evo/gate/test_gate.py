"""The gate: nothing passes uncounted, nothing is asked twice, no budget is overshot."""

from __future__ import annotations

import contextlib
import http.client
import json
import math
import signal
import socket
import struct
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from typing import Any

import msgspec
import openai
import pytest
from endpoints import closed_port, connected, say, serving
from gates import KEY, USAGE, Upstream, logged, posting, reply
from hypothesis import given
from hypothesis import strategies as st
from offline_requests import PARENTS, ask, showing

from evo.gate.account import Account, Refused, cost_of_tokens
from evo.gate.gate import Gate, Supervision, client_name
from evo.gate.log import Sent, read_gate_log
from evo.gate.server import OfflineServer
from evo.logs import journal
from evo.logs.records import Attempt, Model

MESSAGES = showing(PARENTS["mmd"])
EVENT = b'data: {"choices": [{"delta": {"content": "a"}}]}\n\n'


@pytest.fixture(autouse=True)
def _environment(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("GATE_KEY", KEY)
    monkeypatch.chdir(tmp_path)


@contextlib.contextmanager
def asking(url: str, **fields: Any) -> Iterator[http.client.HTTPConnection]:
    """A connection over which a request was sent that nobody has answered yet."""
    with connected(url) as connection:
        body = {"messages": [{"role": "user", "content": "hi"}], **fields}
        connection.request("POST", "/v1/chat/completions", json.dumps(body))
        yield connection


def stream(handler: BaseHTTPRequestHandler, content: bytes) -> None:
    """Begins a stream of events that promises more."""
    handler.send_response(200)
    handler.send_header("Content-Type", "text/event-stream")
    handler.send_header("Content-Length", "1000000")
    handler.end_headers()
    handler.wfile.write(content)
    handler.wfile.flush()


def eventually(holds: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 60
    while not holds():
        assert time.monotonic() < deadline
        time.sleep(0.01)


# --- passing on


def test_the_library_gets_the_models_own_answers_and_the_budget_ends_them(tmp_path: Path) -> None:
    with (
        Gate("offline", budget={"calls": 5}) as gate,
        openai.OpenAI(base_url=gate.url, api_key="tool", max_retries=3) as client,
    ):
        assert [model.id for model in client.models.list()] == ["offline"]
        for seed in range(5):
            completion = client.chat.completions.create(model="x", messages=MESSAGES, seed=seed)
            assert completion.choices[0].message.content == ask(MESSAGES, seed=seed).text
        with pytest.raises(openai.RateLimitError) as refused:
            client.chat.completions.create(model="x", messages=MESSAGES)
    assert refused.value.code == "insufficient_quota"
    assert "5 of 5 calls" in str(refused.value)
    assert gate.account.used_up == "calls"
    assert gate.log is not None
    assert gate.log.parent == Path("logs/local")
    lines = logged(gate.log)
    assert [each["client"] for each in lines["sent"]] == ["tool"] * 5
    assert len(lines["settled"]) == 5


def test_the_endpoint_gets_its_own_name_its_key_and_what_the_registry_says() -> None:
    with Upstream() as upstream:
        extra = {"seed": None, "think": False}
        model = msgspec.structs.replace(upstream.model, extra_body=extra)
        with Gate(model) as gate, posting(gate) as post:
            assert post(seed=3, temperature=0.5)[0] == 200
    (body,), (headers,) = upstream.seen, upstream.headers
    assert body["model"] == "real-name"
    assert body["think"] is False
    assert "seed" not in body
    assert body["temperature"] == 0.5
    assert headers["authorization"] == f"Bearer {KEY}"
    assert "tool" not in str(headers)


def test_a_gate_with_a_seed_gives_each_request_its_own_and_goes_on_so(tmp_path: Path) -> None:
    log, told = tmp_path / "gate.jsonl", []
    with Upstream() as upstream:
        for _ in range(2):
            with (
                Gate(
                    upstream.model, seed=7, log=log, supervision=Supervision(on_passage=told.append)
                ) as gate,
                posting(gate) as post,
            ):
                assert [post(seed=3)[0], post(seed=3)[0], post()[0]] == [200] * 3
        seeds = [body["seed"] for body in upstream.seen]
        other = tmp_path / "other.jsonl"
        with Gate(upstream.model, seed=7, log=other) as gate, posting(gate) as post:
            post(seed=5)
        no_seed = msgspec.structs.replace(upstream.model, extra_body={"seed": None})
        with Gate(no_seed, seed=7, log=tmp_path / "none.jsonl") as gate, posting(gate) as post:
            post(seed=5)
    assert len(set(seeds)) == 6
    assert seeds == [passage.seed for passage in told]
    assert upstream.seen[-2]["seed"] == seeds[0]
    assert "seed" not in upstream.seen[-1]


@pytest.mark.parametrize("asked", [True, False])
@pytest.mark.parametrize("inside", [True, False])
def test_a_streams_usage_is_counted_and_shown_only_to_who_asked(asked: bool, inside: bool) -> None:
    options = {"stream_options": {"include_usage": True}} if asked else {}
    with (
        OfflineServer() as server,
        Gate(
            Model(name="offline", base_url=None if inside else server.url), budget={"tokens": 1e6}
        ) as gate,
        openai.OpenAI(base_url=gate.url, api_key="tool", max_retries=0) as client,
    ):
        chunks = list(
            client.chat.completions.create(
                model="x", messages=MESSAGES, seed=4, max_tokens=4000, stream=True, **options
            )
        )
        wanted = ask(MESSAGES, seed=4, max_tokens=4000)
        said = [c.choices[0].delta.content or "" for c in chunks if c.choices]
        assert "".join(said) == wanted.text
        assert [c.usage is not None for c in chunks].count(True) == int(asked)
        assert all(c.choices for c in chunks) is not asked
        assert gate.account.spent["tokens"] == wanted.usage["total_tokens"]


def test_a_stream_comes_as_it_is_made_and_one_that_breaks_costs_the_worst() -> None:
    made = threading.Event()

    def slowly(handler: BaseHTTPRequestHandler, body: dict[str, Any], number: int) -> None:
        assert body["stream_options"] == {"include_usage": True}
        stream(handler, EVENT)
        made.wait(60)
        handler.close_connection = True

    with Upstream(slowly) as upstream, Gate(upstream.model, budget={"tokens": 5000}) as gate:
        with asking(gate.url, stream=True, max_tokens=50) as connection:
            answer = connection.getresponse()
            assert b'"a"' in answer.readline()
            made.set()
            with pytest.raises((http.client.IncompleteRead, ConnectionError)):
                answer.read()
        (sent,) = logged(gate.log)["sent"]
        assert gate.account.spent["tokens"] == sent["worst"]["tokens"] > 50


def test_what_is_no_call_is_refused_and_costs_nothing() -> None:
    with Upstream() as upstream, Gate(upstream.model, budget={"tokens": 900}) as gate:
        with posting(gate) as post:
            assert post(n=2)[0] == post(stream=True, stream_options=[1])[0] == 400
            assert post(n=1, max_tokens=10)[0] == 200
            status, content, _ = post(
                messages=[{"role": "user", "content": [{"type": "image_url"}]}]
            )
            assert (status, b"insufficient_quota" in content) == (429, True)  # the whole context
        for body, headers, path, status in (
            (b"no json", {}, "/v1/chat/completions", 400),
            (b"[1]", {}, "/v1/chat/completions", 400),
            (b"{}", {"Origin": "http://evil"}, "/v1/chat/completions", 403),
            (b"{}", {}, "/v1/embeddings", 404),
        ):
            with connected(gate.url) as connection:
                connection.request("POST", path, body, headers)
                assert connection.getresponse().status == status
    assert len(upstream.seen) == 1


def test_without_any_bound_a_budget_of_tokens_asks_for_one() -> None:
    with Upstream() as upstream:
        unbounded = Model(name="m", base_url=upstream.model.base_url)
        with Gate(unbounded, budget={"tokens": 9000}) as gate, posting(gate) as post:
            status, content, _ = post()
            assert (status, b"max_tokens" in content) == (400, True)
            assert post(max_tokens=100)[0] == 200
        assert gate.log is not None
        assert "1 request was refused for it" in read_gate_log(gate.log).of_budget
        with Gate(unbounded) as gate, posting(gate) as post:
            assert post()[0] == 200
        given = Model(name="m", base_url=unbounded.base_url, extra_body={"max_tokens": 100})
        with Gate(given, budget={"tokens": 9000}) as gate, posting(gate) as post:
            assert post()[0] == 200


# --- secrets


def test_the_key_reaches_no_client_and_no_log() -> None:
    told = json.dumps({"error": {"message": f"bad key {KEY}", "code": "invalid_api_key"}})

    def quote(handler: BaseHTTPRequestHandler, body: dict[str, Any], number: int) -> None:
        if body.get("stream"):
            event = f'data: {{"choices": [], "error": "{KEY}"}}\n\n'.encode()
            say(handler, 200, event, Content_Type="text/event-stream")
        else:
            say(handler, 401, told.replace("/", "\\/").encode() if number > 1 else told.encode())

    with (
        Upstream(quote) as upstream,
        Gate(upstream.model, log=Path("g.jsonl")) as gate,
        posting(gate) as post,
    ):
        answers = [post(), post(), post(stream=True), post(KEY), post("x" * 33)]
    assert [status for status, _, _ in answers] == [401, 401, 200, 401, 401]
    for _, content, headers in answers:
        assert KEY.encode() not in content.replace(b"\\", b"")
        assert KEY not in str(headers)
    assert KEY not in Path("g.jsonl").read_text()
    assert "x" * 33 not in Path("g.jsonl").read_text()


def test_only_what_can_be_no_secret_is_a_name(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SOME_TOKEN", "hunter2")
    monkeypatch.setenv("UNSET_TOKEN", "")
    assert client_name("openevolve-3") == "openevolve-3"
    assert client_name("") == ""
    for secret in ("hunter2", "sk-a", "k" * 33, "a\nb", KEY):
        assert client_name(secret).startswith("sha256:")
    assert client_name("hunter2") != client_name("hunter3 ")


# --- counting


def faulty(handler: BaseHTTPRequestHandler, body: dict[str, Any], number: int) -> None:
    """A third of each: answered, an error, a reset."""
    if number % 6 in (0, 1):
        reply(handler, body, number)
    elif number % 6 in (2, 3):
        say(handler, (429, 500, 503)[number % 3], b'{"error": {"message": "busy"}}')
    else:  # a reset, before anything or half-way
        if number % 6 == 4:
            handler.wfile.write(b"HTTP/1.1 200 OK\r\nContent-Length: 500\r\n\r\n{")
            handler.wfile.flush()
        handler.close_connection = True
        reset = struct.pack("ii", 1, 0)
        handler.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, reset)


def test_two_hundred_clients_on_a_faulty_endpoint_spend_the_budget_exactly() -> None:
    budget, clients, finals = 400, 200, Counter[int]()

    def work(name: int) -> None:
        with posting(gate) as post:
            while True:
                with contextlib.suppress(http.client.HTTPException, ConnectionError):
                    status, content, headers = post(f"tool-{name}")
                    finals[status] += 1
                    if status == 429 and b"insufficient_quota" in content:
                        assert headers["x-should-retry"] == "false"
                        return

    with Upstream(faulty) as upstream, Gate(upstream.model, budget={"calls": budget}) as gate:
        with ThreadPoolExecutor(clients) as pool:
            list(pool.map(work, range(clients)))
        assert gate.account.in_flight == 0
    assert len(upstream.seen) == budget
    lines = logged(gate.log)
    assert sorted(line["number"] for line in lines["sent"]) == list(range(budget))
    assert sorted(line["number"] for line in lines["settled"]) == list(range(budget))
    assert finals.keys() <= {200, 429, 500, 502, 503}
    known = [line["attempt"].get("usage") for line in lines["settled"]]
    assert sum(usage is not None for usage in known) == finals[200]
    assert gate.account.spent["calls"] == budget


@given(
    limit=st.integers(100, 3000),
    requests=st.lists(
        st.tuples(st.integers(1, 400), st.integers(1, 400), st.booleans()), max_size=40
    ),
    seed=st.randoms(use_true_random=False),
)
def test_no_order_of_requests_overshoots_tokens(
    limit: int, requests: list[tuple[int, int, bool]], seed: Any
) -> None:
    account = Account(Model(name="m"), {"tokens": limit}, None, None)
    flying: list[tuple[Sent, int, bool]] = []
    paid = 0
    for prompt, completion, known in requests:
        worst = prompt + completion
        try:
            sent = account.admit("", "", cost_of_tokens((prompt, 0, completion), Model(name="m")))
            flying.append((sent, worst, known))
        except Refused as no:
            rest = limit - paid - worst
            assert rest < sum(each[1] for each in flying)  # it would fit otherwise
            assert (no.wait is None) == (rest < 0)  # noqa: PT017
        while flying and seed.random() < 0.5:
            sent, most, told = flying.pop(seed.randrange(len(flying)))
            used = seed.randint(1, most)
            usage = {"prompt_tokens": used, "completion_tokens": 0} if told else None
            account.settle(sent, Attempt(status="ok", latency=0.0, usage=usage))
            paid += used if told else most
        assert paid <= account.spent["tokens"] <= limit


def test_a_client_that_leaves_costs_the_worst_case_and_the_endpoint_is_let_go() -> None:
    gone = threading.Event()

    def wait(handler: BaseHTTPRequestHandler, body: dict[str, Any], number: int) -> None:
        handler.connection.settimeout(60)
        if handler.connection.recv(1) == b"":
            gone.set()

    with Upstream(wait) as upstream, Gate(upstream.model, budget={"tokens": 5000}) as gate:
        with asking(gate.url, max_tokens=70):
            eventually(lambda: len(upstream.seen) == 1)
        assert gone.wait(60)
        eventually(lambda: gate.account.in_flight == 0)
        (sent,) = logged(gate.log)["sent"]
        for unit in ("calls", "tokens", "dollars"):
            assert gate.account.spent[unit] == sent["worst"][unit] > 0


def test_who_leaves_a_stream_costs_what_it_states_else_an_estimate_of_what_came() -> None:
    """The estimate is a token for each piece at least, and the restarted gate counts the same."""
    last = b'data: {"choices": [], "usage": {"prompt_tokens": 3, "completion_tokens": 4}}\n\n'

    def endless(handler: BaseHTTPRequestHandler, body: dict[str, Any], number: int) -> None:
        ends = {0: b"", 1: last + b"data: [DONE]\n\n", 2: last}
        stream(handler, 5 * EVENT + ends[body["seed"]] + b": the end\n\n")
        handler.connection.recv(1)  # the endpoint itself never ends

    with Upstream(endless) as upstream, Gate(upstream.model, budget={"tokens": 5000}) as gate:
        spent = 0.0
        for seed, until in ((0, b": the end"), (1, b"[DONE]"), (2, b": the end")):
            with asking(gate.url, max_tokens=70, stream=True, seed=seed) as connection:
                answer = connection.getresponse()
                while until not in answer.readline():
                    pass
                answer.close()
            eventually(lambda: gate.account.in_flight == 0)
            spent, before = gate.account.spent["tokens"], spent
            sent, settled = (logged(gate.log)[kind][seed] for kind in ("sent", "settled"))
            usage = settled["attempt"]["usage"]
            assert spent - before == usage["prompt_tokens"] + usage["completion_tokens"]
            if seed:
                assert (spent - before, "estimated" in usage) == (7, False)
            else:
                assert (usage["completion_tokens"], usage["estimated"]) == (5, True)
                assert 5 < spent < sent["worst"]["tokens"]
                assert "estimated" in settled["attempt"]["error"]
    with Gate(upstream.model, budget={"tokens": 5000}, log=gate.log) as again:
        assert again.account.spent == pytest.approx(gate.account.spent, nan_ok=True)


def test_what_never_arrived_costs_nothing_and_what_was_turned_away_no_tokens() -> None:
    absent = Model(name="m", base_url=closed_port())
    with Gate(absent, budget={"calls": 1}) as gate, posting(gate) as post:
        assert [post()[0] for _ in range(3)] == [502] * 3
        assert (gate.account.spent["calls"], gate.account.used_up) == (0, None)

    def away(handler: BaseHTTPRequestHandler, body: dict[str, Any], number: int) -> None:
        if number == 1:
            say(handler, 429, b'{"error": {"message": "slow down"}}', Retry_After="7")
        else:  # a redirect, which is not followed
            say(handler, 307, b"", Location="/v2/chat/completions")

    with (
        Upstream(away) as upstream,
        Gate(upstream.model, budget={"tokens": 5000}) as gate,
        posting(gate) as post,
    ):
        status, _, headers = post(max_tokens=10)
        assert (status, headers["Retry-After"]) == (429, "7")
        assert gate.account.spent["calls"] == 1
        assert gate.account.spent["tokens"] == gate.account.spent["dollars"] == 0
        assert post(max_tokens=10)[0] == 502
    assert len(upstream.seen) == 2


def test_tokens_and_dollars_are_those_that_were_used() -> None:
    with Upstream() as upstream, Gate(upstream.model, tokens_per_minute=400) as gate:
        with posting(gate) as post:  # at worst some 300 each, of which 50 are used
            assert [post(max_tokens=100)[0] for _ in range(3)] == [200, 200, 429]
        assert gate.account.spent["dollars"] == pytest.approx(2 * (30 * 1 + 20 * 2) / 1e6)
    priceless = Model(name="m", base_url=upstream.model.base_url)
    with pytest.raises(ValueError, match="prices"):
        Gate(priceless, budget={"dollars": 1.0})
    with pytest.raises(ValueError, match="calls, tokens, flops, dollars, got 'seconds'"):
        Gate("offline", budget={"seconds": 1.0})


# --- going on


KILLS = 3


@pytest.mark.slow
def test_after_a_kill_the_counts_go_on() -> None:
    options = ("--budget", "calls=60", "--log", "gate.jsonl", "--latency", "0.05,1")
    seen, statuses = 0, Counter[int]()

    def work(url: str, stop: threading.Event) -> None:
        while not stop.is_set():
            with contextlib.suppress(http.client.HTTPException, OSError), posting(url) as post:
                while True:
                    statuses[post()[0]] += 1
                    if statuses[429]:
                        return

    for _ in range(KILLS):
        with serving(*options, "--request-log", f"seen-{seen}.jsonl") as (process, url):
            seen += 1
            stop = threading.Event()
            with ThreadPoolExecutor(8) as pool:
                work_done = [pool.submit(work, url, stop) for _ in range(8)]
                time.sleep(0.5)
                process.send_signal(signal.SIGKILL)
                process.wait()
                stop.set()
            for each in work_done:
                each.result()
    with serving(*options) as (_, url), posting(url) as post:
        for _ in range(61):
            status, content, _ = post()
            statuses[status] += 1
    assert b"insufficient_quota" in content
    lines = logged(Path("gate.jsonl"))
    assert len(lines["gate"]) == 1
    assert [line["number"] for line in lines["sent"]] == list(range(60))
    assert statuses[200] <= 60
    assert statuses[200] >= len(lines["settled"]) - 8 * KILLS - 1  # settled before it is answered


def test_what_was_under_way_counts_at_its_worst_and_the_last_minute_again() -> None:
    def never(handler: BaseHTTPRequestHandler, body: dict[str, Any], number: int) -> None:
        handler.connection.settimeout(60)
        handler.connection.recv(1)

    path = Path("gate.jsonl")
    with (
        Upstream(never) as upstream,
        Gate(upstream.model, log=path) as gate,
        asking(gate.url, max_tokens=70),
    ):
        eventually(lambda: len(upstream.seen) == 1)
        kept = path.read_bytes()  # as a kill leaves it
    path.write_bytes(kept + b'{"crc":"torn')
    with Upstream() as upstream:
        again = Gate(upstream.model, budget={"tokens": 9000}, log=path, requests_per_minute=3)
        with again, posting(again) as post:
            (sent,) = logged(path)["sent"]
            assert again.account.spent["tokens"] == sent["worst"]["tokens"]
            assert [post(max_tokens=10)[0] for _ in range(3)] == [200, 200, 429]
            _, content, headers = post(max_tokens=10)
            assert b"rate_limit_exceeded" in content
            wait = float(headers["retry-after-ms"]) / 1000
            assert 0 < wait <= math.ceil(wait) == int(headers["retry-after"]) <= 60
        assert [line["number"] for line in logged(path)["sent"]] == [0, 1, 2]
        other = Model(name="other", base_url=upstream.model.base_url)
        with (
            pytest.raises(ValueError, match="calls of model 'm', not of 'other'"),
            Gate(other, log=path),
        ):
            pass


def test_a_log_that_is_another_files_is_refused() -> None:
    Path("notes.txt").write_text("dear diary\n")
    with pytest.raises(ValueError, match="not a log of a gate"), Gate(log=Path("notes.txt")):
        pass
    assert Path("notes.txt").read_text() == "dear diary\n"


def test_a_full_disk_stops_the_gate_and_not_the_count(monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object) -> int:
        raise OSError(28, "No space left on device")

    with (
        Upstream() as upstream,
        Gate(upstream.model, log=Path("g.jsonl")) as gate,
        posting(gate) as post,
    ):
        assert post()[0] == 200
        with monkeypatch.context() as broken:
            broken.setattr(journal, "write_at", full)
            assert post()[0] == 507
        assert post()[0] == 200
    assert len(upstream.seen) == len(logged(Path("g.jsonl"))["settled"]) == 2


@pytest.mark.parametrize("how", ["moved", "deleted", "replaced"])
def test_a_gate_whose_log_is_gone_forwards_nothing_until_it_is_back(how: str) -> None:
    path, other = Path("g.jsonl"), Path("moved.jsonl")
    with Upstream() as upstream:
        with Gate(upstream.model, log=path) as gate, posting(gate) as post:
            assert post(seed=1)[0] == 200
            if how == "deleted":
                path.unlink()
            else:
                path.rename(other)
            if how == "replaced":
                path.write_bytes(other.read_bytes())
            for seed in (2, 3):
                status, body, _ = post(seed=seed)
                assert status == 507
                assert b"was moved, deleted or replaced" in body
            assert len(upstream.seen) == 1
            if how == "deleted":
                other = Path("g-kept.jsonl")
                assert not Path("g-kept-2.jsonl").exists()
            assert other.name.encode() in body
            if how == "moved":
                other.rename(path)
                assert post(seed=2)[0] == 200
        if how != "moved":
            other.replace(path)
            with Gate(upstream.model, log=path) as again:
                assert again.account.spent["calls"] == 1


# --- the cache


def test_the_kth_time_a_client_sends_a_body_it_gets_the_kth_answer() -> None:
    def number(handler: BaseHTTPRequestHandler, body: dict[str, Any], count: int) -> None:
        if count == 2:
            return say(handler, 200, b"{}")  # no completion
        message = {"message": {"content": str(count)}, "finish_reason": "stop"}
        return say(handler, 200, json.dumps({"choices": [message], "usage": USAGE}).encode())

    def text(answer: tuple[int, Any, Any]) -> str:
        return str(json.loads(answer[1])["choices"][0]["message"]["content"])

    options: dict[str, Any] = {"cache": Path("c.sqlite"), "budget": {"calls": 5}}
    limited: dict[str, Any] = {"cache": Path("l.sqlite"), "requests_per_minute": 1}
    with Upstream(number) as upstream:
        with Gate(upstream.model, log=Path("1.jsonl"), **options) as gate, posting(gate) as post:
            assert text(post()) == "1"
            assert post()[1] == b"{}"  # and is not kept
            assert [text(post()), text(post("other")), text(post(seed=1))] == ["3", "4", "5"]
        with Gate(upstream.model, log=Path("2.jsonl"), **options) as gate, posting(gate) as post:
            assert [text(post()), text(post()), text(post())] == ["1", "6", "3"]
            assert text(post("other")) == "4"
            assert gate.account.spent["calls"] == 1
        with Gate(upstream.model, log=Path("2.jsonl"), **options) as gate, posting(gate) as post:
            assert text(post()) == "7"  # the fourth time: a log goes on
        assert len(upstream.seen) == 7
        with Gate(upstream.model, **limited) as gate, posting(gate) as post:
            assert [post()[0] for _ in range(3)] == [200, 429, 429]
            assert list(gate.account.repeats.values()) == [1]  # the others went nowhere
    assert len(logged(Path("2.jsonl"))["cached"]) == 3
    assert len(upstream.seen) == 8


def test_streams_are_kept_as_they_were_sent() -> None:
    said = []
    for _ in range(2):
        with Gate(cache=Path("c.sqlite")) as gate, posting(gate) as post:
            said.append(post(messages=MESSAGES, stream=True, model="offline")[1])
            assert gate.account.spent["calls"] == 1 - len(said[1:])
    assert said[0] == said[1]
    assert said[0].endswith(b"data: [DONE]\n\n")
