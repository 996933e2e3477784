"""Whatever an endpoint answers: every call is settled once, and the log can be read again."""

from __future__ import annotations

import json
import os
from http.server import BaseHTTPRequestHandler
from typing import Any, NamedTuple

import pytest
from endpoints import Endpoint, say
from evo_runs import write_task
from gates import KEY, USAGE, Upstream, logged, posting
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

import evo
import replay
from evo.gate.gate import Gate
from evo.logs.cost import usage_tokens
from evo.logs.records import Model
from evo.models import client as client_module
from evo.models.client import EndpointError


def few(examples: int) -> settings:
    """So many examples (the first is always a plain one); they are not made smaller: too slow."""
    return settings(
        max_examples=examples * int(os.environ.get("EVO_TORTURE", "1")),
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )


PROGRAM = "def value():\n    return 2\n"
JUDGE = "def score(value):\n    return {'fitness': value / 5}\n"
REPLY = f"```python\n{PROGRAM}```"


class Odd(NamedTuple):
    """One answer."""

    status: int
    content: bytes
    headers: dict[str, str]

    def __repr__(self) -> str:
        return f"Odd({self.status}, {self.content[:300]!r}, {self.headers})"


LONG = "1" + "0" * 400
NUMBERS = st.one_of(
    st.integers(min_value=0, max_value=2000).map(str),
    st.integers().map(str),
    st.floats().map(json.dumps),
    st.sampled_from([LONG, f"-{LONG}", "1e400", "1e15", "NaN", "-0.0", "true", "null"]),
)
TEXTS = st.sampled_from(['"hi"', '"\\ud800"', '"\\u0000\\u001b[2J"', '"' + "x" * 300_000 + '"'])
NESTED = st.sampled_from(
    ["[" * deep + "]" * deep for deep in (1, 33, 900, 100_000)]
    + ['{"a":' * deep + "0" + "}" * deep for deep in (1, 33, 900)]
    + ["[" + "1," * 200_000 + "1]", "{" + ",".join(f'"{k}":{k}' for k in range(9999)) + "}"]
)
VALUES = st.one_of(NUMBERS, TEXTS, NESTED)
NAMES = st.sampled_from(
    (
        *("prompt_tokens", "completion_tokens", "input_tokens", "output_tokens", "total_tokens"),
        *("prompt_tokens_details", "cached_tokens", "\\ud800"),
    )
)


def as_object(entries: list[tuple[str, str]]) -> str:
    return "{" + ",".join(f'"{name}": {value}' for name, value in entries) + "}"


USAGES = st.one_of(
    VALUES,
    st.lists(st.tuples(NAMES, st.one_of(NUMBERS, VALUES)), max_size=4).map(as_object),
    st.tuples(NUMBERS, NUMBERS).map(
        lambda pair: as_object([("prompt_tokens", pair[0]), ("completion_tokens", pair[1])])
    ),
)
CONTENTS = st.one_of(st.just(json.dumps(REPLY)), VALUES)
COMPLETIONS = st.builds(
    '{{"choices": [{{"message": {{"content": {}}}, "finish_reason": {}}}], "usage": {}}}'.format,
    CONTENTS,
    st.one_of(st.just('"stop"'), VALUES),
    USAGES,
).map(str.encode)
BODIES = st.one_of(
    COMPLETIONS,
    COMPLETIONS,
    VALUES.map(str.encode),
    VALUES.map('{{"choices": {}}}'.format).map(str.encode),
    VALUES.map('{{"error": {{"message": {0}, "code": {0}}}}}'.format).map(str.encode),
    st.binary(max_size=50),
    st.just(b'{"choices": [' + b" " * 3_000_000),
)
DATES = ("Wed, 21 Oct 999999999999 07:28:00 GMT", "Thu, 01 Jan 0000 00:00:00 -9999")
WAITS = st.sampled_from(("", "0", "-1", "1e308", "nan", "inf", LONG, "\x85", "\xff" * 9, *DATES))
GOOD = json.dumps({"choices": [{"message": {"content": REPLY}}], "usage": USAGE}).encode()
ANSWERS = st.builds(
    Odd,
    st.sampled_from([200, 200, 200, 200, 299, 400, 408, 429, 500, 503, 999]),
    BODIES,
    st.fixed_dictionaries({}, optional={"Retry-After": WAITS, "Retry-After-Ms": WAITS}),
)


@few(2)
@given(answers=st.lists(ANSWERS, min_size=60, max_size=60))
def test_a_run_settles_each_call_and_its_log_can_be_read(
    tmp_path_factory: pytest.TempPathFactory, answers: list[Odd]
) -> None:
    folder = tmp_path_factory.mktemp("run")
    task = write_task(folder / "toy", PROGRAM, JUDGE, "entry = ['value']\n")
    left = [*answers, Odd(200, GOOD, {})]

    def handle(handler: BaseHTTPRequestHandler, *_: object) -> None:
        odd = left.pop() if left else Odd(200, GOOD, {})
        say(handler, odd.status, odd.content, **odd.headers)

    with pytest.MonkeyPatch.context() as patch, Endpoint(handle) as server:
        for name in ("LONGEST_RETRY_AFTER", "LONGEST_BACK_OFF"):
            patch.setattr(client_module, name, 0.001)
        model = Model(name="m", base_url=server.url, input_price=1.0, output_price=1.0)
        how: dict[str, Any] = {"retries": 2, "timeout": 30, "progress": False, "workers": 1}
        path, lost = folder / "a.jsonl", 0
        try:
            evo.run(task, model=model, generations=2, children=20, log=path, **how)
        except EndpointError:  # one answer refused all; other requests were under way
            lost = len(server.requests) - sum(
                len(call.attempts) for call in evo.read_log(path).calls
            )
            assert 0 <= lost < 20
            left.clear()
            evo.resume(path, model=model, progress=False)
    log = evo.read_log(path)
    assert len(log.children) == 40
    assert sum(len(call.attempts) for call in log.calls) == len(server.requests) - lost
    assert replay.load(path, cache=False)["n_calls"].sum() == len(log.calls)


@few(4)
@given(
    answers=st.lists(st.tuples(ANSWERS, st.booleans()), min_size=60, max_size=60),
    budget=st.sampled_from([{"calls": 40}, {"tokens": 30_000}, {"dollars": 0.04, "calls": 40}]),
)
def test_a_gate_settles_each_call_and_its_log_can_be_read(
    tmp_path_factory: pytest.TempPathFactory,
    answers: list[tuple[Odd, bool]],
    budget: dict[str, float],
) -> None:
    path = tmp_path_factory.mktemp("gate") / "gate.jsonl"

    def handle(handler: BaseHTTPRequestHandler, body: dict[str, Any], number: int) -> None:
        odd, events = answers[body["seed"]]
        if events and body.get("stream"):
            lines = b"data: " + odd.content.replace(b"\n", b" ") + b"\n\ndata: [DONE]\n\n"
            odd = Odd(odd.status, lines, odd.headers | {"Content-Type": "text/event-stream"})
        say(handler, odd.status, odd.content, **odd.headers)

    with pytest.MonkeyPatch.context() as patch, Upstream(handle) as upstream:
        patch.setenv("GATE_KEY", KEY)
        with Gate(upstream.model, budget=budget, log=path) as gate:
            for seed, (odd, stream) in enumerate(answers):
                sent = len(upstream.requests)
                with posting(gate) as post:
                    status, *_ = post(seed=seed, stream=stream, max_tokens=100)
                assert gate.account.in_flight == 0
                forwarded = len(upstream.requests) - sent
                assert forwarded in (0, 1)
                assert status == (odd.status if forwarded else 429), (odd, status)
            spent = gate.account.spent
        for unit, limit in budget.items():
            assert not spent[unit] > limit or unit != "calls"
        lines = logged(path)
        numbers = [record["number"] for record in lines.get("sent", [])]
        assert len(numbers) == len(upstream.requests)
        assert numbers == [record["number"] for record in lines.get("settled", [])]
        with Gate(upstream.model, budget=budget, log=path) as gate:
            assert gate.account.spent == pytest.approx(spent, nan_ok=True)


@few(3)
@given(usages=st.lists(USAGES, min_size=12, max_size=12), room=st.sampled_from([0, 1, 99]))
def test_tokens_a_minute_hold_whatever_the_usage_says(
    tmp_path_factory: pytest.TempPathFactory, usages: list[str], room: int
) -> None:
    path = tmp_path_factory.mktemp("gate") / "gate.jsonl"

    def handle(handler: BaseHTTPRequestHandler, body: dict[str, Any], number: int) -> None:
        usage = usages[body["seed"] - 10] if body["seed"] >= 10 else "null"
        say(handler, 200, f'{{"choices": [{{"message": {{}}}}], "usage": {usage}}}'.encode())

    with pytest.MonkeyPatch.context() as patch, Upstream(handle) as upstream:
        patch.setenv("GATE_KEY", KEY)
        with Gate(upstream.model, tokens_per_minute=10**6, log=path) as gate, posting(gate) as post:
            post(seed=10, max_tokens=100)
        worst = int(logged(path)["sent"][0]["worst"]["tokens"])
        path.unlink()
        limit = 4 * worst + room
        with Gate(upstream.model, tokens_per_minute=limit, log=path) as gate:
            for seed in range(10, 10 + len(usages)):
                with posting(gate) as post:
                    status = post(seed=seed, max_tokens=100)[0]
                counted = [_counted(line, worst) for line in logged(path).get("settled", [])]
                if status == 200:
                    *earlier, _ = counted
                    assert sum(earlier) + worst <= limit or not earlier
                else:
                    assert (status, sum(counted) + worst > limit) == (429, True)


def _counted(line: dict[str, Any], worst: int) -> int:
    """Tokens of a settled request: those used, else all that it might have used."""
    used = usage_tokens(line["attempt"].get("usage"))
    return worst if used is None else used.prompt + used.completion
