"""How a program is evaluated outside of a run, whatever its task needs for that."""

from __future__ import annotations

import msgspec
import pytest

import evo
from evo.logs.records import Limits, TaskRecord
from evo.runs import judge
from evo.runs.configuration import make_header
from evo.runs.judge import (
    QUICK_SECONDS,
    draw_of,
    evaluate_alone,
    has_harness,
    needs_no_session,
    noise_words,
)
from evo.runs.resources import open_resources
from evo.runs.settings import Settings
from evo.sandbox import EVALUATOR_FAILED

PROGRAM = "def value():\n    return {}\n"
QUIET = Settings(progress=False)


def task(evaluate: object, **more: object) -> evo.Task:
    options = {"initial_program": PROGRAM.format(0.5), "statement": "More.", **more}
    return evo.task("value", evaluate=evaluate, **options)  # type: ignore[arg-type]


PLAIN = task("def score(value):\n    return value\n")
NOISY = task("import random\ndef score(value):\n    return value + random.random()\n")
UNIT = task("def score(value):\n    return value\n", scale="unit")
IN_PROCESS = task(float, where="here")


def cheap(value: float) -> float:
    return value


def thorough(value: float) -> float:
    return value / 2


STAGED = task([cheap, thorough], thresholds=[0.1])


def drawn(of: evo.Task, program: str) -> evo.Evaluation:
    """The evaluation of a program as a session makes it."""
    with open_resources(QUIET) as resources:
        draw, instances = draw_of(make_header(of), resources)
        assert (instances is None) == (not of.record.instances_file)
        more = {"bars": ()} if of.record.stages else {}
        return draw(of.record, program, of.limits, **more)


def timeless(found: evo.Evaluation) -> evo.Evaluation:
    return msgspec.structs.replace(found, seconds=None)


@pytest.mark.parametrize("of", [PLAIN, UNIT, IN_PROCESS, STAGED], ids=lambda each: each.record.hash)
@pytest.mark.parametrize("value", ["0.25", "'x'", "1 / 0"])
def test_one_program_has_one_evaluation_alone_and_in_a_session(of: evo.Task, value: str) -> None:
    program = PROGRAM.format(value)
    assert timeless(evo.evaluate(of, program)) == timeless(drawn(of, program))


def test_a_task_needs_a_session_for_what_one_call_of_its_evaluator_does_not_do() -> None:
    harness = task(float, harness=lambda program: program(), where="sandbox")
    rows = task(
        lambda value, row: 1.0, initial_program="def value(x):\n    return x\n",
        instances=[{"input": 1}], statement="More.",
    )  # fmt: skip
    assert needs_no_session(PLAIN.record)
    for each in (IN_PROCESS, STAGED, harness, rows):
        assert not needs_no_session(each.record)
    assert has_harness(harness.record)
    assert not has_harness(PLAIN.record)


@pytest.mark.parametrize("value", [0, 0.5, 1])
def test_a_fitness_on_the_unit_scale_passes_as_it_is(value: float) -> None:
    program = PROGRAM.format(value)
    assert evo.evaluate(UNIT, program).fitness == evo.evaluate(PLAIN, program).fitness == value


@pytest.mark.parametrize("value", [-0.001, 1.001])
def test_a_fitness_outside_of_the_unit_scale_is_a_mistake_and_no_fitness(value: float) -> None:
    program = PROGRAM.format(value)
    alone = evaluate_alone(UNIT.record, program, UNIT.limits)
    for found in (alone, drawn(UNIT, program)):
        assert (found.status, found.fitness) == ("error", None)
        assert (found.error or "").startswith(f"{EVALUATOR_FAILED}: expected 0 to 1, got {value}")
        assert found.seconds is not None
    assert evo.evaluate(PLAIN, program).fitness == value


@pytest.mark.parametrize("given", [3, None, b"x"])
def test_what_is_no_program_is_refused(given: object) -> None:
    with pytest.raises(TypeError, match="program: expected source text, got"):
        evo.evaluate(PLAIN, given)  # type: ignore[arg-type]


def test_limits_and_both_names_of_the_time_limit_reach_the_evaluation(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    seen = list[Limits]()

    def note(record: TaskRecord, program: str, limits: Limits) -> evo.Evaluation:
        seen.append(limits)
        return evo.Evaluation(status="ok", fitness=0.0)

    monkeypatch.setattr(judge, "evaluate_alone", note)
    for how in ({"timeout": 3}, {"evaluation_timeout": 3}, {"limits": {"seconds": 3}}, {}):
        evo.evaluate(PLAIN, PLAIN.initial_program, **how)  # type: ignore[arg-type]
    assert [each.seconds for each in seen] == [3, 3, 3, PLAIN.limits.seconds]
    with pytest.raises(ValueError, match="evaluation_timeout"):
        evo.evaluate(PLAIN, PLAIN.initial_program, timeout=3, evaluation_timeout=4)


def test_noise_is_told_by_a_second_draw_where_a_run_would_not_allow_for_it() -> None:
    program = NOISY.initial_program
    found = evo.evaluate(NOISY, program)
    words = noise_words(make_header(NOISY), QUIET, program, found)
    assert words.startswith("evaluations are noisy: this program has")
    assert f"{found.fitness:.5g}" in words
    for careful in ({"draws": 2}, {"confirm": 2}):
        assert noise_words(make_header(NOISY, **careful), QUIET, program, found) == ""  # type: ignore[arg-type]
    plain = evo.evaluate(PLAIN, program)
    assert noise_words(make_header(PLAIN), QUIET, program, plain) == ""


@pytest.mark.parametrize(
    ("found", "words"),
    [
        (evo.Evaluation(status="error", error="it failed"), ""),
        (evo.Evaluation(status="ok", fitness=0.5, seconds=QUICK_SECONDS * 1.01), "evaluated once"),
        (evo.Evaluation(status="ok", fitness=0.5, seconds=None), "evaluated once"),
    ],
)
def test_a_failure_or_a_long_evaluation_is_not_made_again(
    found: evo.Evaluation, words: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(judge, "open_resources", None)  # nothing may be evaluated
    said = noise_words(make_header(NOISY), QUIET, NOISY.initial_program, found)
    assert said.partition(":")[0] == words
