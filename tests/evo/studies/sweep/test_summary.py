"""What a run, an allocation and a sweep came to and cost, from logs alone."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import msgspec
import pytest
from samples import sample_lines, write_sample

from evo.logs.journal import encode_line
from evo.logs.log import Log, read_log
from evo.logs.records import Generation
from evo.studies.sweep.summary import Summary, cost_of_log, cost_of_pool, measure, measure_pool


def summary(**changes: Any) -> Summary:
    fields: dict[str, Any] = {
        "total": 6, "completed": 4, "failed": 1, "cancelled": 0, "pending": 1,
        "prompt_tokens": 1234.0, "completion_tokens": None, "ended": "paused",
        "folder": Path("there"), "trials": 3, "configurations": 3,
    }  # fmt: skip
    return Summary(**{**fields, **changes})


def test_a_summary_is_a_line() -> None:
    assert repr(summary()) == str(summary())
    assert str(summary()) == (
        "paused: 4 of 6 runs completed, 1 failed, 0 cancelled, 1 pending; "
        "1,234 + unknown tokens; there"
    )


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"ended": "completed", "configurations": 2}, True),
        ({"ended": "completed", "configurations": 3}, False),
        ({"ended": "paused", "configurations": 2}, False),  # others may be to come
    ],
)
def test_it_says_that_fewer_configurations_were_found_once_all_is_done(
    changes: dict[str, Any], said: bool
) -> None:
    assert ("; 2 configurations, although 3 trials were asked" in str(summary(**changes))) == said
    assert ("although" in str(summary(**changes))) == said


@pytest.fixture
def log(tmp_path: Path) -> Log:
    return read_log(write_sample(tmp_path / "a.jsonl", generations=3, seed=7))


def test_a_shorter_part_of_a_run_costs_what_its_generations_cost(log: Log) -> None:
    parts = [measure(log, generations) for generations in range(4)]
    assert [each["n_calls"] for each in parts] == [0.0, 3.0, 6.0, 9.0]
    assert parts[3] == measure(log, 99)
    assert [each["seconds"] for each in parts] == [0, 1.5, 3.0, 4.5]
    assert [each["fitness"] for each in parts[1:]] == [*log.trajectory[1:]]
    assert parts[0]["fitness"] == log.trajectory[0]
    assert {each["initial_fitness"] for each in parts} == {0.1}
    ok = [
        sum(c.evaluation.status == "ok" for c in log.children if c.generation <= t)
        for t in range(4)
    ]
    assert [each["n_ok"] for each in parts] == ok
    assert cost_of_log(log) == cost_of_log(log, 3)
    assert cost_of_log(log, 1).calls == 3


def test_the_time_of_a_run_is_unknown_where_that_of_a_generation_is(tmp_path: Path) -> None:
    lines = sample_lines(generations=2)
    unknown = [
        msgspec.structs.replace(each, seconds=None)
        if isinstance(each, Generation) and each.generation == 2 else each
        for each in lines
    ]  # fmt: skip
    path = tmp_path / "a.jsonl"
    path.write_bytes(b"".join(map(encode_line, unknown)))
    log = read_log(path)
    assert measure(log, 1)["seconds"] == 1.5
    assert measure(log, 2)["seconds"] is None


def test_an_allocation_has_the_best_of_its_arms_and_costs_their_sum(tmp_path: Path) -> None:
    logs = [read_log(write_sample(tmp_path / f"{s}.jsonl", generations=2, seed=s)) for s in (1, 2)]
    one, two = (measure(each, 2) for each in logs)
    both = measure_pool(logs)
    assert both["fitness"] == max(one["fitness"] or 0, two["fitness"] or 0)
    for name in ("n_calls", "prompt_tokens", "completion_tokens", "seconds", "n_ok"):
        assert both[name] == (one[name] or 0) + (two[name] or 0)
    begun = tmp_path / "begun.jsonl"
    begun.write_bytes(b"".join(map(encode_line, sample_lines()[:3])))
    assert measure_pool([*logs, read_log(begun)]) == both  # it was never pulled


def test_what_is_unknown_of_an_allocation_is_no_number() -> None:
    data = {"prompt_tokens": 10.0, "completion_tokens": 5.0, "n_calls": 3.0, "dollars": None}
    cost = cost_of_pool(data)
    assert (cost["calls"], cost["tokens"], cost["seconds"]) == (3.0, 15.0, 0.0)
    assert math.isnan(cost["dollars"])
    assert math.isnan(cost_of_pool({**data, "completion_tokens": None})["tokens"])
