"""Calls that a run stops for are in its log and in its costs, and are made again."""

from __future__ import annotations

import contextlib
import functools
import json
import signal
import sys
import threading
import time
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from typing import Any

import openai
import pytest
from endpoints import Endpoint, say
from tiers import thorough_after

import evo
import replay
from evo.logs.records import Model
from evo.models.client import EndpointDown, EndpointRefused
from evo.runs.verification import verify

USAGE = {"prompt_tokens": 3, "completion_tokens": 2}
CHOICE = {"message": {"content": "```python\npass\n```"}, "finish_reason": "stop"}


def test_what_an_endpoint_got_before_it_counts_as_down_is_logged_and_paid_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    broken = True

    def handle(handler: BaseHTTPRequestHandler, body: dict[str, Any], number: int) -> None:
        good = {"choices": [CHOICE], "usage": USAGE}
        say(handler, 200, json.dumps({"usage": USAGE} if broken else good).encode())

    path = tmp_path / "a.jsonl"
    with Endpoint(handle) as server:
        model = Model(name="m", base_url=server.url)
        settings = evo.Settings(retries=1, progress=False, max_concurrent=1)
        options: dict[str, Any] = {"model": model, "settings": settings}
        sizes: dict[str, Any] = {"generations": 1, "children": 2, "log": path}
        first = functools.partial(evo.run, "cp", **sizes, **options)
        again = functools.partial(evo.resume, path, **options)
        for sessions, work in ((1, first), (2, again)):
            with pytest.raises(EndpointDown):
                work()
            log = evo.read_log(path)
            assert sum(len(call.attempts) for call in log.calls) == len(server.requests)
            assert len(log.calls) == sessions
        broken = False
        log = again()
        assert len(log.outcomes) == 2
        assert sum(len(call.attempts) for call in log.calls) == len(server.requests)
    assert not verify(path).faults
    assert evo.rerun(path).same
    assert replay.load(path)["n_calls"].sum() == 4


@pytest.mark.parametrize("way", ["address", "sync", "function"])
def test_a_call_of_the_main_thread_that_ctrl_c_ends_is_logged_and_made_again(
    tmp_path: Path, way: str
) -> None:
    interrupting, path = True, tmp_path / "a.jsonl"
    good = {"choices": [CHOICE], "usage": USAGE}

    def interrupt() -> None:
        if interrupting:
            signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGINT)
            time.sleep(0.5)

    def answer(messages: object) -> dict[str, Any]:
        interrupt()
        return good

    def handle(handler: BaseHTTPRequestHandler, body: dict[str, Any], number: int) -> None:
        interrupt()
        with contextlib.suppress(OSError):  # nobody waits for it
            say(handler, 200, json.dumps(good).encode())

    with Endpoint(handle) as server, openai.OpenAI(api_key="k", base_url=server.url) as client:
        model = {
            "address": Model(name="m", base_url=server.url),
            "sync": Model(name="m", client=client),
            "function": Model(name="m", call=answer),
        }[way]
        options: dict[str, Any] = {"model": model, "max_concurrent": 1, "progress": False}
        with pytest.raises(KeyboardInterrupt) as raised:
            evo.run("cp", generations=1, children=2, log=path, **options)
        assert raised.value.__cause__ is None
        (call,) = evo.read_log(path).calls
        (attempt,) = call.attempts
        assert (attempt.status, attempt.sent) == ("error", True)
        assert (attempt.error or "").startswith("the call was cancelled")
        assert ("goes on by itself" in (attempt.error or "")) == (way == "sync")
        interrupting = False
        log = evo.resume(path, **options)
    assert len(log.outcomes) == 2
    assert sum(len(call.attempts) for call in log.calls) == 3


@pytest.mark.parametrize("status", [200, 503])
@pytest.mark.parametrize("fails", thorough_after(1, [1, 2]))
def test_tokens_of_attempts_without_a_reply_are_in_the_log_its_costs_and_budgets(
    tmp_path: Path, status: int, fails: int
) -> None:
    """Of each call one attempt of two fails, or both do; every one states its tokens."""

    def handle(handler: BaseHTTPRequestHandler, body: dict[str, Any], number: int) -> None:
        good = number == 1 or number % 2 >= fails
        answer = {"choices": [CHOICE] if good else [], "usage": USAGE}
        say(handler, 200 if good else status, json.dumps(answer).encode())

    with Endpoint(handle) as server:
        model = Model(name="m", base_url=server.url, input_price=1e5, output_price=1e5)
        settings = evo.Settings(retries=1, progress=False, max_concurrent=1)
        log = evo.run(
            "cp", model=model, generations=9, children=2, log=tmp_path / "a.jsonl",
            settings=settings, budget={"dollars": 2.5},
        )  # fmt: skip
        asked = len(server.requests)
    assert log.ends[-1].stats["tokens"] == 5 * asked
    assert log.ends[-1].stats["dollars"] == pytest.approx(0.5 * asked)
    assert log.ends[-1].reason == "budget"
    dearest = 2 * 2 * 0.5
    assert 2.5 <= log.ends[-1].stats["dollars"] < 2.5 + dearest
    frame = replay.load(log.path)
    assert frame["tokens"].sum() == 5 * asked
    assert frame["dollars"].sum() == pytest.approx(0.5 * asked)
    assert frame["n_without_usage"].sum() == 0


@pytest.mark.parametrize("seed", range(5))
def test_many_failing_drafts_of_a_child_all_stay_in_the_ledger(tmp_path: Path, seed: int) -> None:
    """Threads take turns at every chance, so that a number that two drafts share would show."""
    path = tmp_path / "a.jsonl"

    def handle(handler: BaseHTTPRequestHandler, body: dict[str, Any], number: int) -> None:
        good = {"choices": [CHOICE], "usage": USAGE}
        say(handler, 200, json.dumps(good if number % 5 == 0 else {"usage": USAGE}).encode())

    interval = sys.getswitchinterval()
    with Endpoint(handle) as server:
        model = Model(name="m", base_url=server.url)
        settings = evo.Settings(retries=0, progress=False, max_concurrent=64, workers=1)
        again = functools.partial(evo.resume, path, model=model, settings=settings)
        work = functools.partial(
            evo.run, "mmd", generations=1, children=4, drafts=12, critic="offline-2", seed=seed,
            log=path, model=model, settings=settings,
        )  # fmt: skip
        for _ in range(4):
            sys.setswitchinterval(1e-6)
            try:
                work()
            except (EndpointDown, EndpointRefused):
                pass
            finally:
                sys.setswitchinterval(interval)
            log = evo.read_log(path)
            attempts = sum(len(call.attempts) for call in log.calls)
            attempts -= sum(len(call.attempts) for call in log.critic_calls)
            assert attempts == len(server.requests)
            work = again
    assert not verify(path).faults
