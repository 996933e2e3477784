"""The log of a gate is shown by the commands that show a run's."""

from __future__ import annotations

from pathlib import Path

import pytest
from gates import KEY, Upstream, posting

import replay
from evo.cli.entry import main
from evo.gate.gate import Gate
from evo.gate.log import is_gate_log, read_gate_log


@pytest.fixture(autouse=True)
def _environment(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("GATE_KEY", KEY)
    monkeypatch.chdir(tmp_path)


def test_show_and_stats_read_what_passed(capsys: pytest.CaptureFixture[str]) -> None:
    path = Path("g.jsonl")
    with (
        Upstream() as upstream,
        Gate(upstream.model, log=path, cache=Path("c.sqlite"), budget={"calls": 9}) as gate,
        posting(gate) as post,
    ):
        for client, seed in (("a", 1), ("a", 2), ("b", 1)):
            assert post(client, seed=seed)[0] == 200
    with Upstream() as upstream, Gate(upstream.model, log=path, budget={"calls": 9}) as gate:
        assert gate.account.spent["calls"] == 3
    log = read_gate_log(path)
    assert (log.model.name, len(log.passed), log.kept) == ("m", 3, [])
    assert {each.attempt.status for each in log.passed if each.attempt} == {"ok"}
    assert is_gate_log(path)
    assert main(["show", str(path)]) == 0
    said = capsys.readouterr().out
    assert "a gate before m: 3 calls were sent" in said
    assert [line.split()[:5] for line in said.splitlines()[3:]] == [
        ["a", "2", "2", "0", "0"],
        ["b", "1", "1", "0", "0"],
    ]
    table = replay.gate_calls(path)
    assert table["client"].tolist() == ["a", "a", "b"]
    assert set(table["status"]) == {"ok"}
    assert (table["completion_tokens"] > 0).all()
    assert table["at"].is_monotonic_increasing
    assert main(["stats", str(path)]) == 0
    assert capsys.readouterr().out.splitlines()[1].split()[:3] == ["g.jsonl", "3", "3"]


def test_a_kill_leaves_a_call_that_is_not_settled(capsys: pytest.CaptureFixture[str]) -> None:
    path = Path("g.jsonl")
    with Upstream() as upstream, Gate(upstream.model, log=path) as gate, posting(gate) as post:
        assert post("a")[0] == 200
    lines = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(b"".join(lines[:-1]))
    assert [each.attempt for each in read_gate_log(path).passed] == [None]
    assert main(["show", str(path)]) == 0
    assert capsys.readouterr().out.splitlines()[-1].split()[:5] == ["a", "1", "0", "0", "1"]
    [row] = replay.gate_calls(path).to_dict("records")
    assert (row["client"], row["status"]) == ("a", "not settled")
    assert row["completion_tokens"] != row["completion_tokens"]
