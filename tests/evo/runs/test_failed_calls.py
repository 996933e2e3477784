"""Calls that a run stops for are in its log and in its costs, and are made again."""

from __future__ import annotations

import functools
import json
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from typing import Any

import pytest
from endpoints import Endpoint, say

import evo
import replay
from evo.logs.records import Model
from evo.models.client import EndpointDown
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
