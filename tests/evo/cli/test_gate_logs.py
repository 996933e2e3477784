"""What commands show of a gate's log: client by client, each call once."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from evo.cli.gate_logs import show_gate, tally_of_gate
from evo.gate.log import GateLog, Kept, Opened, Sent, Settled, read_gate_log
from evo.logs.journal import encode_line
from evo.logs.records import Attempt, Model

MODEL = Model(name="m", active_parameters=10, input_price=1.0, output_price=2.0)
USAGE = {"prompt_tokens": 30, "completion_tokens": 20}


def sent(number: int, client: str, status: Any = "") -> list[Any]:
    """A request, and what became of it; no status: the gate was killed before that."""
    lines: list[Any] = [Sent(number=number, at=number, client=client, body="b", worst={})]
    if status:
        usage = USAGE if status == "ok" else None
        attempt = Attempt(status=status, latency=1.0, usage=usage, error=None if usage else "no")
        lines.append(Settled(number=number, at=number, attempt=attempt))
    return lines


def log_of(path: Path, *lines: list[Any]) -> GateLog:
    every = [Opened(model=MODEL, began=0.0), *(each for group in lines for each in group)]
    path.write_bytes(b"".join(map(encode_line, every)))
    return read_gate_log(path)


@pytest.fixture
def log(tmp_path: Path) -> GateLog:
    cached = [Kept(at=9.0, client=client, body="b") for client in ("b", "c")]
    calls = (sent(0, "a", "ok"), sent(1, "b", "ok"), sent(2, "a", "error"), sent(3, "b"))
    return log_of(tmp_path / "g.jsonl", *calls, cached)


def test_each_client_has_a_row_also_if_the_cache_alone_answered_it(
    log: GateLog, capsys: pytest.CaptureFixture[str]
) -> None:
    show_gate(log.path)
    said = capsys.readouterr().out
    assert "a gate before m: 4 calls were sent" in said
    rows = [line.split() for line in said.splitlines() if re.match(r"[abc] +\d", line)]
    assert [row[:6] for row in rows] == [
        ["a", "2", "1", "1", "0", "0"],
        ["b", "2", "1", "0", "1", "1"],
        ["c", "0", "0", "0", "0", "1"],
    ]
    assert "is not an LLM" not in said


@pytest.mark.parametrize("count", [0, 1, 2])
def test_one_call_is_one_call(
    count: int, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = log_of(tmp_path / "g.jsonl", *(sent(k, "a", "ok") for k in range(count))).path
    show_gate(path)
    words = "1 call was sent" if count == 1 else f"{count} calls were sent"
    assert f": {words}\n" in capsys.readouterr().out


def test_what_all_clients_cost_is_the_sum_of_theirs_and_the_cache_costs_nothing(
    log: GateLog,
) -> None:
    whole, parts = tally_of_gate(log), [tally_of_gate(log, client) for client in "abc"]
    assert whole.calls == sum(each.calls for each in parts) == 6
    assert parts[2].tokens == 0
    ok = log_of(log.path.with_name("ok.jsonl"), sent(0, "a", "ok"), sent(1, "b", "ok"))
    assert tally_of_gate(ok).tokens == 2 * sum(USAGE.values())
    assert tally_of_gate(ok, "a").tokens == sum(USAGE.values())
