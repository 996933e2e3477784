"""An endpoint that fails and limits: every call is answered, within the limits, all logged."""

import contextlib
import json

import pytest
from endpoints import together
from faulty_server import FaultyServer

from evo.logs.records import Model, Sampling
from evo.models.client import ModelClient
from evo.models.limits import Slots

MESSAGES = [{"role": "user", "content": "Improve this program: ```python\nx = 1\n```"}]
SAMPLING = Sampling(temperature=0.6, top_p=0.95, max_tokens=500)


@pytest.mark.parametrize("limit", ["requests", "tokens"])
def test_all_calls_are_answered_within_the_limits_despite_faults(tmp_path, limit):
    log, window = tmp_path / "requests.jsonl", 1.0
    rpm, tpm = (15, 100_000) if limit == "requests" else (1000, 9000)
    slots = Slots(10, requests_per_minute=rpm, tokens_per_minute=tpm, window=window)
    with FaultyServer({"rate_limit": 0.1, "server_error": 0.05}, log) as server:
        client = ModelClient(Model(name="offline", base_url=server.url), SAMPLING, slots=slots)

        with contextlib.closing(client):
            calls = together(40, lambda seed: client.call(MESSAGES, seed=seed, index=seed))
    assert all(call.reply is not None for call in calls)
    attempts = [attempt for call in calls for attempt in call.attempts]
    lines = [json.loads(line) for line in log.read_text().splitlines()]
    statuses = [attempt.http_status for attempt in attempts]
    assert sorted(statuses) == sorted(line["status"] for line in lines)
    assert {200, 429} <= set(statuses)
    for start in (line["received"] for line in lines):
        inside = [line for line in lines if start <= line["received"] < start + window - 1e-3]
        assert len(inside) <= rpm
        assert sum((line["usage"] or {}).get("total_tokens", 0) for line in inside) <= tpm
    assert (slots.in_flight, slots.waiting) == (0, 0)
