"""Settings and goals: what is taken, what is refused, and when a run ends."""

from __future__ import annotations

import itertools
import math
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace as replace_record
from samples import sample_child, sample_header

import evo
from evo.cli import tables
from evo.cli.entry import main
from evo.logs.records import Evaluation, Generation, Initial
from evo.plugins import MistakenType
from evo.runs.concurrency import find_preset
from evo.runs.configuration import settings_of
from evo.runs.settings import MOST_CONCURRENT, MOST_SECONDS, Event, Goal, Settings, every_goal
from evo.runs.state import State


@pytest.mark.parametrize(
    ("name", "edges"),
    [
        ("max_concurrent", (1, MOST_CONCURRENT)),
        ("texts_at_once", (1, MOST_CONCURRENT)),
        ("workers", (1, 1000)),
        ("retries", (0, 1000)),
        ("requests_per_minute", (1, 10**9)),
        ("tokens_per_minute", (1, 10**9)),
    ],
)
def test_numbers_have_both_their_ends(name: str, edges: tuple[int, int]) -> None:
    for edge in edges:
        assert getattr(Settings(**{name: edge}), name) == edge
    wrong = [edges[0] - 1, 1.5, *([edges[1] + 1] if edges[1] < 10**9 else [])]
    for value in wrong:
        with pytest.raises((ValueError, TypeError), match=name):
            Settings(**{name: value})


def test_numbers_of_numpy_run_as_plain_ones_do(tmp_path: Path) -> None:
    """A log holds plain numbers."""
    numbers = {"max_concurrent": 2, "retries": 1, "workers": 1, "patience": 3, "target": 99.0}
    numbers |= {"requests_per_minute": 10_000, "tokens_per_minute": 10_000_000}
    how: dict[str, Any] = {"generations": 1, "children": 1, "progress": False}
    logs = [
        evo.run("mmd", log=tmp_path / f"{np.dtype(whole)}.jsonl", **how, **given)
        for whole, given in (
            (int, numbers),
            (np.int32, {name: np.int64(value) for name, value in numbers.items()}),
            (np.float32, {**numbers, "target": np.float64(99.0)}),
        )
    ]
    first, *others = [log.sessions[-1] for log in logs]
    for other in others:
        assert replace_record(other, started=first.started) == first


@pytest.mark.parametrize("name", ["retries", "max_concurrent", "generations", "patience"])
def test_an_array_and_a_missing_number_are_no_whole_numbers(name: str, tmp_path: Path) -> None:
    wrong = [np.array([1]), *([None] if name == "retries" else [])]
    for value in wrong:
        how: dict[str, Any] = {"children": 1, "log": tmp_path / "a.jsonl", name: value}
        with pytest.raises(MistakenType, match=f"{name}.*: expected a whole number, got"):
            evo.run("mmd", **how)


@pytest.mark.parametrize("seconds", [0, -1, MOST_SECONDS + 0.001, math.nan, math.inf])
def test_an_attempt_is_waited_for_some_time_and_not_for_ever(seconds: float) -> None:
    assert Settings(timeout=MOST_SECONDS).timeout == MOST_SECONDS
    assert Settings(timeout=1e-3).timeout == 1e-3
    with pytest.raises(ValueError, match="timeout: expected seconds above 0"):
        Settings(timeout=seconds)


def test_a_preset_fills_what_is_left_out_and_nothing_else() -> None:
    preset = find_preset("conservative")
    plain, filled = Settings(), Settings(preset="conservative")
    assert (plain.max_concurrent, plain.requests_per_minute) == (20, None)
    assert filled.max_concurrent == preset.max_concurrent != 20
    assert filled.requests_per_minute == preset.requests_per_minute
    own = Settings(preset="conservative", max_concurrent=3, requests_per_minute=7)
    assert (own.max_concurrent, own.requests_per_minute) == (3, 7)


def test_a_cache_is_where_it_was_when_it_was_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert Settings(cache="replies.sqlite").cache == tmp_path / "replies.sqlite"
    assert Settings(cache="redis://host:6379/0").cache == "redis://host:6379/0"
    assert Settings().cache is None
    with pytest.raises(ValueError, match="control: expected the address of a Redis server"):
        Settings(control="replies.sqlite")


def test_listeners_are_functions_and_on_event_is_the_last_of_them() -> None:
    assert Settings().all_listeners == ()
    assert Settings(listeners=[print], on_event=repr).all_listeners == (print, repr)
    wrong: Any
    for wrong in (print, [print, "mlflow"], 3):
        with pytest.raises(MistakenType, match="listeners: expected a list of functions"):
            Settings(listeners=wrong)
    with pytest.raises(MistakenType, match="on_event: expected a function"):
        Settings(on_event="print")  # type: ignore[arg-type]


def reached(goal: Goal, *rows: list[float | None], initial: float | None = 0.5) -> str | None:
    """Returns why a greedy run ends after some generations, if it does."""
    state, best, place = State(sample_header(len(rows[0]) if rows else 1)), initial, (0, 0)
    failed = Evaluation(status="error", error="no")
    state.take(
        Initial(evaluation=failed if initial is None else Evaluation(status="ok", fitness=initial))
    )
    for number, row in enumerate(rows, start=1):
        improved = False
        for index, value in enumerate(row):
            state.take(sample_child(number, index, value))
            if value is not None and (best is None or value > best):
                best, place, improved = value, (number, index), True
        line = Generation(
            generation=number, best_fitness=best, best=place, improved=improved, seconds=0.0
        )
        state.take(line)
    return goal.reached(state)


def test_a_run_is_complete_at_its_last_generation_and_not_before() -> None:
    assert reached(Goal(generations=2), [0.6]) is None
    assert reached(Goal(generations=2), [0.6], [0.6]) == "completed"
    assert reached(Goal(generations=1), [0.6], [0.6]) == "completed"
    assert reached(Goal(generations=0)) == "completed"


def test_a_target_is_reached_once_it_is_met() -> None:
    goal = Goal(generations=2, target=0.75)
    assert reached(goal, [math.nextafter(0.75, 0)]) is None
    assert reached(goal, [0.75]) == "target"
    assert reached(goal, [0.75], [0.1]) == "target"  # rather than complete
    assert reached(goal, initial=0.75) == "target"
    assert reached(goal, [None], initial=None) is None
    assert reached(Goal(generations=2, target=-1.0), [None], initial=None) is None


def test_patience_ends_with_as_many_generations_in_a_row_without_an_improvement() -> None:
    goal = Goal(generations=9, patience=2)
    assert reached(goal) is None
    assert reached(goal, [0.1]) is None
    assert reached(goal, [0.1], [0.1]) == "patience"
    assert reached(goal, [0.1], [0.6], [0.1]) is None
    assert reached(goal, [0.1], [0.6], [0.1], [0.6]) == "patience"
    assert reached(Goal(generations=2, patience=2), [0.1], [0.1]) == "completed"


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"generations": -1}, r"generations \(T\)"),
        ({"generations": 1.5}, r"generations \(T\)"),
        ({"patience": 0}, "patience"),
        ({"target": math.nan}, "target: expected a finite fitness"),
        ({"target": math.inf}, "target: expected a finite fitness"),
        ({"target": "high"}, "target: expected a finite fitness, got 'high'"),
    ],
)
def test_goals_that_cannot_be_are_refused(wrong: dict[str, Any], message: str) -> None:
    with pytest.raises((ValueError, TypeError), match=message):
        Goal(**wrong)
    assert Goal(generations=0, patience=1, target=-1e300).generations == 0


def test_an_event_says_in_a_line_how_far_a_run_is() -> None:
    event = Event("child", Path("logs/a.jsonl"), sample_header(), 3, None, sample_child(4, 0, 0.5))
    assert repr(event) == "<Event child: a.jsonl, generation 3, best fitness none>"
    better = Event(
        "start", Path("a.jsonl"), sample_header(), 0, 0.123456789, sample_child(4, 0, 0.5)
    )
    assert repr(better) == "<Event start: a.jsonl, generation 0, best fitness 0.123457>"


def test_a_rule_that_raises_is_named_and_the_run_goes_on_once_it_is_mended(tmp_path: Path) -> None:
    class Rule:
        name, mended = "quiet", False

        def reached(self, state: State) -> bool:
            if not self.mended:
                raise KeyError("gone")
            return False

    rule = Rule()
    how: dict[str, Any] = {"generations": 1, "children": 1, "log": tmp_path / "a.jsonl"}
    with pytest.raises(ValueError, match="the rule 'quiet': `reached` raised KeyError: 'gone'"):
        evo.run("mmd", stops=[rule], progress=False, **how)
    rule.mended = True
    assert len(evo.run("mmd", stops=[rule], progress=False, **how).generations) == 1


@pytest.mark.parametrize("answer", [None, "yes", math.nan, 1])
def test_a_rule_that_answers_neither_yes_nor_no_is_named(answer: object, tmp_path: Path) -> None:
    class Rule:
        name = "quiet"

        def reached(self, state: State) -> Any:
            return answer

    with pytest.raises(TypeError, match="'quiet': expected `reached` to return True or False, got"):
        evo.run(
            "mmd",
            stops=[Rule()],
            generations=1,
            children=1,
            log=tmp_path / "a.jsonl",
            progress=False,
        )


def test_a_fitness_of_minus_zero_is_shown_as_zero() -> None:
    event = Event("start", Path("a.jsonl"), sample_header(), 0, -0.0, sample_child(1, 0, -0.0))
    assert repr(event).endswith("best fitness 0>")
    assert tables.number(-0.0, ".6f") == "0.000000"
    assert tables.number(-0.0) == "0"
    assert tables.number(-1, ",d") == "-1"
    assert tables.number(float("nan"), unknown="none") == "none"


def test_the_time_limit_of_a_call_has_two_names(tmp_path: Path) -> None:
    for names in ({}, {"call_timeout": None}, {"timeout": None}):
        assert Settings(**names).call_timeout == 600.0
    for names in ({"call_timeout": 7}, {"timeout": 7}, {"call_timeout": 7, "timeout": 7.0}):
        made = Settings(**names)
        assert made.call_timeout == made.timeout == 7
        assert settings_of(names) == made == replace(made, progress=True)
    with pytest.raises(ValueError, match=r"two names of one option.*call_timeout=7 and timeout=8"):
        Settings(call_timeout=7, timeout=8)
    common: dict[str, Any] = {"generations": 1, "children": 1, "progress": False}
    with pytest.raises(ValueError, match="two names of one option"):
        evo.run("mmd", call_timeout=7, timeout=8, log=tmp_path / "a.jsonl", **common)
    with pytest.raises(ValueError, match="call_timeout: expected seconds above 0"):
        evo.sweep({"children": [1]}, task="mmd", call_timeout=-1)
    with pytest.raises(TypeError, match="call_timeout: expected a number, got 'soon'"):
        evo.run_many("mmd", seeds=[1], call_timeout="soon")  # type: ignore[arg-type]

    def slow(messages: object) -> str:
        time.sleep(1)
        return "no program"

    log = evo.run("mmd", model=slow, call_timeout=0.2, retries=0, log=tmp_path / "b", **common)
    assert log.children[0].attempts[0].status == "timeout"


def test_the_command_line_has_both_names(capsys: pytest.CaptureFixture[str]) -> None:
    for flag in ("--call-timeout", "--timeout"):
        assert main(["run", "mmd", flag, "1e30"]) == 2
        assert "call_timeout: expected seconds above 0" in capsys.readouterr().err
    assert main(["run", "mmd", "--timeout", "5", "--call-timeout", "6"]) == 2
    assert "specified multiple times" in capsys.readouterr().err


@given(
    rises=st.lists(st.sampled_from([0.0, 0.0, 0.125]), max_size=12),
    goals=st.lists(
        st.builds(
            Goal,
            st.integers(1, 12),
            st.sampled_from([None, 0.5, 0.75]),
            st.sampled_from([None, 1, 2, 4]),
        ),
        min_size=1,
        max_size=3,
    ),
)
def test_a_run_of_several_goals_ends_where_the_last_of_them_would(
    rises: list[float], goals: list[Goal]
) -> None:
    trajectory = [0.25, *(0.25 + total for total in itertools.accumulate(rises))]
    improved = [generation for generation, rise in enumerate(rises, start=1) if rise]
    every, first = every_goal(goals), None
    for generation in range(len(trajectory)):
        known = [each for each in improved if each <= generation]
        state = State(sample_header())
        state.trajectory, state.improved = trajectory[: generation + 1], known
        state.generation = generation
        ends = [each.end_of(trajectory[: generation + 1], known) for each in goals]
        if every.reached(state) is not None and first is None:
            first = generation
        assert (first is not None) == all(end is not None for end in ends)
    ends = [each.end_of(trajectory, improved) for each in goals]
    assert first == (None if None in ends else max(end[0] for end in ends if end is not None))


@pytest.mark.parametrize("goal", [Goal(5, patience=2), Goal(5, target=0.3), Goal(3), Goal(9)])
def test_a_log_says_where_it_first_reaches_a_goal_however_far_it_goes(
    goal: Goal, tmp_path: Path
) -> None:
    whole = evo.run("mmd", generations=5, children=1, log=tmp_path / "whole", progress=False)
    run = evo.run(
        "mmd", generations=goal.generations if goal.generations < 9 else 5, children=1,
        target=goal.target, patience=goal.patience, log=tmp_path / "run", progress=False,
    )  # fmt: skip
    assert goal.end_in(whole) == (None if goal.generations == 9 else len(run.generations))
