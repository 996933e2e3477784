"""Endpoints that break HTTP behind a gate: each request is settled, none gets another's answer."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from faults import RIGHT, WRONG, faulty
from gates import logged, posting

from evo.gate.gate import Gate
from evo.logs.records import Model

TEXTS = [f"request {number}" for number in range(4)]


@pytest.mark.parametrize("name", [*RIGHT, *WRONG])
def test_whatever_the_endpoint_does_each_request_is_settled_and_its_answer_its_own(
    name: str, tmp_path: Path
) -> None:
    fault, log = (RIGHT | WRONG)[name], tmp_path / "gate.jsonl"
    with (
        faulty(fault, *TEXTS[1::2]) as server,
        Gate(Model(name="m", base_url=server.url), log=log, timeout=5.0) as gate,
        posting(gate) as post,
    ):
        for number, text in enumerate(TEXTS):
            status, content, _ = post(messages=[{"role": "user", "content": text}])
            if name in WRONG and number % 2:
                assert (status, json.loads(content)["error"]["code"]) == (502, "upstream")
            else:
                assert status == 200
                assert json.loads(content)["choices"][0]["message"]["content"] == text
        assert gate.account.in_flight == 0
        assert gate.account.spent["calls"] == len(TEXTS)
    attempts = [line["attempt"] for line in logged(log)["settled"]]
    assert len(attempts) == len(TEXTS)
    for number, attempt in enumerate(attempts):
        failed = name in WRONG and bool(number % 2)
        assert (attempt["status"] == "error", bool(attempt.get("error"))) == (failed, failed)
