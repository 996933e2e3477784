"""Estimates before the first call, held against what runs then take."""

import math
from pathlib import Path

import pytest

import evo
from evo.logs.cost import usage_tokens
from evo.runs.bounds import cost_bound
from evo.runs.state import costs_of_log

ROOT = Path(__file__).resolve().parents[3]
CORPUS = ROOT / "logs" / "corpus" / "local-tsp"


@pytest.mark.parametrize(
    "options",
    [
        {"task": "cp", "generations": 2, "children": 3},
        {"task": "packing_table", "generations": 2, "children": 2},
        {"task": "mmd", "generations": 2, "children": 2, "drafts": 2, "critic": "offline-2"},
        {"task": "wp", "generations": 1, "children": 2},
    ],
    ids=lambda options: options["task"],
)
def test_a_run_makes_the_calls_that_were_estimated(options, tmp_path) -> None:
    task = options["task"]
    rest = {name: value for name, value in options.items() if name != "task"}
    known = evo.estimate(task, seeds=[3], **rest)
    log = evo.run(task, seed=3, log=tmp_path / "a.jsonl", progress=False, **rest)
    made = sum(each["calls"] for each in costs_of_log(log))
    assert known.calls == cost_bound(log.header, len(log.generations), retries=0).total["calls"]
    # Drafts without a program are not scored, texts that are equal are evaluated once, and the best
    # is checked only if it is a new one.
    assert (
        made == known.calls
        if task in ("cp", "packing_table")
        else known.calls / 4 < made <= known.calls
    )
    assert not math.isnan(known.completion_tokens.high)


def matches(reply, row):
    return float(reply == row["want"])


def test_rows_that_only_check_are_asked_of_the_first_and_the_best_text() -> None:
    rows = [{"prompt": f"{k} + 1?", "want": str(k + 1)} for k in range(7)]
    asks = evo.task(
        "sums",
        initial_program="Answer with a number.",
        evolves="text",
        evaluate=matches,
        instances=rows[:4],
        held_out=rows[4:],
        statement="Add one.",
    )
    known = evo.estimate(asks, generations=2, children=3)
    assert known.calls == 6 + (1 + 6) * 4 + 2 * 3  # rewrites, evaluations, checks


def test_changes_may_be_shorter_than_a_rewrite() -> None:
    whole, changes = (
        evo.estimate("cp", model="gpt-4.1-mini", edits=edits).completion_tokens
        for edits in ("rewrite", "diff")
    )
    assert changes.low < whole.low
    assert changes.high == whole.high


def test_a_logged_corpus_lies_within_the_brackets() -> None:
    """Runs with a real model, whose replies no estimate has seen."""
    log = evo.read_log(min(CORPUS.glob("deep-*.jsonl.gz")))
    header = log.header
    known = evo.estimate(
        header.task.name,
        model=header.model_name,
        generations=len(log.generations),
        children=header.children,
        max_tokens=header.sampling.max_tokens,
    )
    counts = [usage_tokens(each.usage) for out in log.outcomes for each in out.attempts]
    prompt = sum(each.prompt for each in counts if each)
    completion = sum(each.completion for each in counts if each)
    assert known.calls == len(log.outcomes)
    assert known.prompt_tokens.low <= prompt <= known.prompt_tokens.high
    assert known.completion_tokens.low <= completion <= known.completion_tokens.high


def test_a_log_of_earlier_calls_narrows_the_brackets() -> None:
    one, other = sorted(CORPUS.glob("deep-*.jsonl.gz"))[:2]
    logged = evo.read_log(one).header
    asked = {"model": logged.model_name, "generations": 8, "children": 1}
    wide = evo.estimate(logged.task.name, **asked)
    narrow = evo.estimate(logged.task.name, like=other, **asked)
    for name in ("prompt_tokens", "completion_tokens", "seconds"):
        was, now = getattr(wide, name), getattr(narrow, name)
        assert 0 < now.low < now.high
        assert now.high - now.low < was.high - was.low


def test_twice_as_many_seeds_cost_twice_as_much() -> None:
    one = evo.estimate("cp", model="gpt-4.1-mini", seeds=[1])
    two = evo.estimate("cp", model="gpt-4.1-mini", seeds="1:3")
    assert (two.runs, two.calls) == (2, 2 * one.calls)
    for name in ("prompt_tokens", "completion_tokens", "dollars"):
        assert getattr(two, name) == pytest.approx([2 * each for each in getattr(one, name)])


def test_more_calls_in_flight_take_no_longer() -> None:
    slow = evo.estimate("cp", model="gpt-4.1-mini", max_concurrent=1).seconds
    fast = evo.estimate("cp", model="gpt-4.1-mini", max_concurrent=64).seconds
    assert fast.low < slow.low
    assert fast.high < slow.high


def test_what_is_unknown_is_said_to_be() -> None:
    text = str(
        evo.estimate("cp", model=evo.Model("nobodys-model", base_url="http://127.0.0.1:9/v1"))
    )
    assert "dollars           unknown" in text


def test_a_stand_in_costs_nothing_and_says_so() -> None:
    known = evo.estimate("cp")
    assert known.dollars == (0, 0)
    assert "costs nothing" in known.basis


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"like": 3}, TypeError, "like: expected a log"),
        ({"children": 0}, ValueError, "children"),
        ({"seeds": []}, ValueError, "seeds"),
        ({"nonsense": 1}, TypeError, "nonsense"),
    ],
)
def test_wrong_arguments_are_answered_in_words(options, error, message) -> None:
    with pytest.raises(error, match=message):
        evo.estimate("cp", **options)


def test_a_dry_run_leaves_nothing_behind(tmp_path, monkeypatch, capsys) -> None:
    from evo.cli import main

    monkeypatch.chdir(tmp_path)
    assert main(["run", "cp", "--seeds", "1:4", "-T", "2", "-N", "2", "--dry-run"]) == 0
    shown = capsys.readouterr().out
    assert "3 runs, nothing was called" in shown
    assert "further" not in shown
    args = ["-T", "2", "-N", "2", "--budget", "calls=6", "--dry-run"]
    assert main(["run", "cp", "--seeds", "1:4", *args]) == 0
    assert "6 calls are spent, which is enough for 1 of 2 generations" in capsys.readouterr().out
    assert list(tmp_path.iterdir()) == []
