"""The log of a gate is shown by the commands that show a run's."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from gates import KEY, Upstream, posting

import evo
import replay
from evo.cli.entry import main
from evo.gate.gate import Gate
from evo.gate.log import is_gate_log, read_gate_log
from evo.logs.journal import LogError


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
    assert [line.split()[:5] for line in said.splitlines()[4:]] == [
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


def test_a_log_ends_with_the_budget_and_how_many_requests_were_refused_for_it(
    capsys: pytest.CaptureFixture[str],
) -> None:
    path = Path("g.jsonl")
    for budget, asked, said in (
        ({"calls": 2}, 5, "budget: calls=2; 3 requests were refused for it"),
        ({"calls": 3}, 1, "budget: calls=3; no requests were refused for it, 3 in all sessions"),
        ({"calls": 3, "tokens": 1e9}, 1, "budget: calls=3, tokens=1000000000; 1 request was"),
    ):
        with (
            Upstream() as upstream,
            Gate(upstream.model, log=path, budget=budget) as gate,
            posting(gate) as post,
        ):
            answers = [post("a", seed=seed)[0] for seed in range(asked)]
        assert said in read_gate_log(path).of_budget
        assert read_gate_log(path).closed[-1].refused == answers.count(429)
        assert main(["show", str(path)]) == 0
        assert said in capsys.readouterr().out
    with Upstream() as upstream, Gate(upstream.model, log=Path("free.jsonl")):
        pass
    assert read_gate_log(Path("free.jsonl")).of_budget == ""


@pytest.mark.parametrize("read", [replay.load, evo.read_log, evo.resume, evo.rerun])
def test_where_a_run_is_expected_it_is_called_the_log_of_a_gate(
    read: Callable[[Path], object],
) -> None:
    path = Path("logs") / "g.jsonl"
    path.parent.mkdir()
    with Upstream() as upstream, Gate(upstream.model, log=path):
        pass
    for given in (path, path.parent) if read is replay.load else (path,):
        with pytest.raises(LogError, match=r"the log of a gate, not of a run: .*gate_calls"):
            read(given)
