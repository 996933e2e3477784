"""What work may cost, said before its first call."""

from pathlib import Path

import numpy as np
import pytest
from commands import call

import evo


def test_what_it_may_cost_is_said_before_the_first_call(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    place = ["-q", "--log-dir", str(tmp_path)]
    assert (
        call("run", "mmd", "-T", "2", "-N", "3", "--seeds", "1:3", "--max-tokens", "900", *place)
        == 0
    )
    first = capsys.readouterr().out.splitlines()[0]
    assert "2 runs, at most 12 calls, 10,800 completion tokens" in first
    assert call("grid", "mmd", "--calls", "2", "--seeds", "1:3", *place) == 0
    said = capsys.readouterr().out.splitlines()
    assert "4 runs, at most 8 calls" in said[0]
    assert "note: 2 runs of each split: too few to tell splits apart" in said[1]
    logs = [evo.read_log(path) for path in tmp_path.glob("*.jsonl")]
    assert sum(len(log.calls) for log in logs) == 12 + 8
    finals = [log.trajectory[-1] for log in logs if log.header.children == 1]
    assert said[-2].split() == ["2", "1", "2", *(f"{f(finals):.4f}" for f in (np.median, max))]
    wp = ["run", "wp", "--instances", "3", "-T", "1", "-N", "1", "--budget", "calls=3", *place]
    assert call(*wp) == 0
    first = capsys.readouterr().out.splitlines()[0]
    assert "1 run, at most 7 calls" in first
    words = "no further generation begins once 3 calls are spent, which is enough for"
    assert first.endswith(f"{words} 0 of 1 generations")


def test_a_budget_of_several_runs_says_first_what_it_buys_and_last_what_is_missing(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    place = ["-T", "2", "-N", "4", "-q", "--log-dir", str(tmp_path)]
    assert call("run", "mmd", "--seeds", "40:44", "--budget", "calls=16", *place) == 0
    said = capsys.readouterr().out.splitlines()
    assert said[0].endswith("which is enough for 1 of 2 generations of each run")
    depths = [len(evo.read_log(path).generations) for path in tmp_path.iterdir()]
    assert depths == [1, 1, 1, 1]
    wp = ["run", "wp", "--instances", "3", "--seeds", "50:53", "--budget", "calls=6", *place]
    assert call(*wp) == 0
    said = capsys.readouterr().out.splitlines()
    assert "enough for 0 of 2 generations of each run" in said[0]
    assert "1 of 3 runs was not begun: " in said[-1]
    assert [f"s{seed}.jsonl" in said[-1] for seed in range(50, 53)] == [False, False, True]
    assert call("run", "mmd", "--seeds", "60:62", "--budget", "calls=16", *place) == 0
    said = capsys.readouterr().out
    assert "enough for" not in said
    assert "not begun" not in said


def test_what_runs_may_still_cost_is_said_where_logs_go_on(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    def first_of(*command: str) -> str:
        assert call(*command, "-q") == 0
        return capsys.readouterr().out.splitlines()[0]

    path = str(tmp_path / "a.jsonl")
    run = ["run", "mmd", "-N", "4", "--log", path]
    assert first_of(*run, "-T", "2").startswith("1 run, at most 8 calls, ")
    limits = first_of("resume", path, "-T", "5", "--budget", "calls=12")
    assert limits.startswith("1 run, at most 12 further calls, ")
    assert limits.endswith("once 12 calls are spent, which is enough for 3 of 5 generations")
    assert first_of("resume", path, "-T", "5").startswith("1 run, at most 8 further calls, ")
    assert len(evo.read_log(path).outcomes) == 20
    assert first_of(*run, "-T", "5") == "1 run, nothing is left to call"
    beyond = "nothing is left to call; it goes beyond T=3 already and stays as logged"
    assert first_of(*run, "-T", "3") == f"1 run, {beyond}"


def test_generations_that_a_budget_pays_for_at_the_worst_are_said_to_be_the_least(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run = ["run", "mmd", "-T", "5", "-N", "2", "-q", "--log", str(tmp_path / "a.jsonl")]
    assert call(*run, "--budget", "tokens=2000") == 0
    words = "which is enough for at least 1 of 5 generations"
    assert capsys.readouterr().out.splitlines()[0].endswith(words)
    assert len(evo.read_log(tmp_path / "a.jsonl").generations) > 1


@pytest.mark.parametrize("calls", [1, 4, 5, 8, 99])
def test_a_dry_run_says_what_the_budget_of_one_run_buys_and_the_run_makes_that(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], calls: int
) -> None:
    run = ["run", "mmd", "-T", "3", "-N", "4", "--budget", f"calls={calls}"]
    assert call(*run, "--dry-run") == 0
    told = capsys.readouterr().out
    assert call(*run, "-q", "--log", str(tmp_path / "a.jsonl")) == 0
    said = capsys.readouterr().out.splitlines()[0]
    log = evo.read_log(tmp_path / "a.jsonl")
    assert f"calls, at most    {len(log.calls)}\n" in told
    words = f"which is enough for {len(log.generations)} of 3 generations"
    assert (words in told) == (words in said) == (calls < 9)
