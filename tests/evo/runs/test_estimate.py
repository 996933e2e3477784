"""Estimates before the first call, held against what runs then take."""

import math
from pathlib import Path

import numpy as np
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


ROWS = [{"prompt": f"{k} + 1?", "want": str(k + 1)} for k in range(7)]
SUMS = evo.task(
    "sums",
    initial_program="Answer with a number.",
    evolves="text",
    evaluate=matches,
    instances=ROWS[:4],
    held_out=ROWS[4:],
    statement="Add one.",
)


def test_rows_that_only_check_are_asked_of_the_first_and_the_best_text() -> None:
    known = evo.estimate(SUMS, generations=2, children=3)
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


FIGURES = ("calls", "prompt_tokens", "completion_tokens", "dollars", "seconds")


@pytest.mark.parametrize("unit", ["calls", "tokens", "dollars", "seconds", "flops"])
@pytest.mark.parametrize("seeds", [range(1), range(3)])
def test_a_budget_is_passed_by_one_generation_at_most(unit, seeds) -> None:
    model = evo.Model(
        "priced", base_url="http://127.0.0.1:9/v1", input_price=1, output_price=4,
        context=16384, active_parameters=1e9,
    )  # fmt: skip
    given = {"seeds": seeds, "model": model, "generations": 10, "children": 16}
    whole, one = (evo.estimate("cp", **given | {"generations": T}) for T in (10, 1))

    def spent(known: evo.Estimate) -> tuple[float, float]:
        """The least and the most in the unit."""
        both = zip(known.prompt_tokens, known.completion_tokens, strict=True)
        low, high = (prompt + completion for prompt, completion in both)
        known_of = {"tokens": (low, high), "flops": (2e9 * low, 2e9 * high)}
        return {**known_of, "calls": (known.calls,) * 2}.get(unit) or getattr(known, unit)

    least, most = spent(whole)
    before = None
    for limit in (0.1 * least, least, (least + most) / 2, most, 2 * most):
        known = evo.estimate("cp", **given, budget={unit: limit})
        assert spent(known)[1] <= min(most, limit + spent(one)[1]) * (1 + 1e-9)
        assert spent(known)[0] <= limit
        for name in FIGURES:
            now, then, ever = (
                np.atleast_1d(getattr(each, name)) for each in (known, before or known, whole)
            )
            assert (then <= now * (1 + 1e-9)).all()
            assert (now <= ever * (1 + 1e-9)).all()
        before = known
    assert before == whole


@pytest.mark.parametrize("limit", [1, 3, 7, 30, 10**6])
@pytest.mark.parametrize(
    "options",
    [
        {"task": "cp", "generations": 4, "children": 3},
        {"task": SUMS, "generations": 3, "children": 1},
        {"task": "mmd", "generations": 3, "children": 2, "drafts": 2, "critic": "offline-2"},
    ],
    ids=["plain", "asking", "drafts"],
)
def test_a_run_makes_no_more_calls_than_are_estimated_within_its_budget(
    limit, options, tmp_path
) -> None:
    given = {**options, "budget": {"calls": limit}}
    log = evo.run(**given, log=tmp_path / "a.jsonl", progress=False)
    made, known = len(log.calls), evo.estimate(**given)
    assert made == known.calls if options["task"] == "cp" else made <= known.calls


def test_a_budget_that_cannot_be_counted_is_refused_before_anything_is_estimated() -> None:
    with pytest.raises(ValueError, match="budget: dollars cannot be counted"):
        evo.estimate(
            "cp", model=evo.Model("m", base_url="http://127.0.0.1:9/v1"), budget={"dollars": 1}
        )


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


def test_a_log_of_a_function_that_states_no_usage_says_how_one_does(tmp_path) -> None:
    def silent(messages):
        return "no program"

    log = evo.run("mmd", model=silent, generations=1, children=1, log=tmp_path / "a.jsonl")
    with pytest.raises(ValueError, match=r"like: .* evo\.Reply\(text, usage=.* without like="):
        evo.estimate("mmd", like=log)


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
