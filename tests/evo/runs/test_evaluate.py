"""Each program once, as the mean of its draws; the limit that a run fixes."""

from __future__ import annotations

import math
import statistics
import warnings
from pathlib import Path

import msgspec
import pytest
from lottery import Lottery

import evo
from evo.logs.records import Evaluation, Initial, Instance
from evo.runs.configuration import make_header
from evo.runs.evaluate import (
    FINAL,
    DrawEvaluator,
    Evaluate,
    check_initial,
    check_noise,
    final_report,
    fixed_limit,
    mean_of,
    plain,
)
from evo.runs.items import complete
from evo.runs.state import State
from evo.sandbox import EVALUATOR_FAILED
from evo.sandbox.compiled import MISSING
from evo.tasks.task import EvaluatorFailed, TaskError


def test_a_program_is_ok_only_if_all_its_draws_are(noisy: Path) -> None:
    class Fails(Lottery):
        def evaluate(self, task, program, limits, *, draw=0, seed=0) -> Evaluation:
            if draw == 2:
                return Evaluation(status="timeout", error="too slow")
            return super().evaluate(task, program, limits, draw=draw, seed=seed)

    header = make_header(noisy, draws=4, confirm=2)
    failed = DrawEvaluator(header, Fails().evaluate).mean("0/a")
    assert (failed.status, failed.fitness, failed.error) == ("timeout", None, "in draw 2: too slow")


def test_the_mean_of_draws() -> None:
    def draw(fitness: float, *scores: float | None) -> Evaluation:
        instances = tuple(
            Instance(id=str(i), status="error" if score is None else "ok", score=score)
            for i, score in enumerate(scores)
        )
        metrics = {"objective": 2 * fitness}
        return Evaluation(
            status="ok", fitness=fitness, metrics=metrics, seconds=1.0, instances=instances
        )

    mean = mean_of([draw(0.2, 0.1, 0.3), draw(0.4, 0.5, None)])
    assert mean.fitness == pytest.approx(0.3)
    assert mean.fitness_sd == pytest.approx(statistics.stdev([0.2, 0.4]))
    assert (mean.draws, mean.seconds, mean.metrics) == (2, 2.0, {"objective": pytest.approx(0.6)})
    assert [each.score for each in mean.instances] == pytest.approx([0.3, 0.15])


AUTO = evo.Limits(auto=True)


def test_the_factor_the_least_and_the_most() -> None:
    def limit(*seconds: float, draws: int = 1, most: float = 60.0) -> float | None:
        made = [Evaluation(status="ok", fitness=0.0, seconds=s, draws=draws) for s in seconds]
        return fixed_limit(evo.Limits(seconds=most, auto=True), *made, None)

    assert limit(0.01) == 2.0
    assert limit(0.1) == 5.0
    assert limit(0.4, 0.1) == 5.0
    assert limit(0.4, draws=4) == 5.0
    assert limit(9.0) == 60.0
    assert limit(0.01, most=0.5) == 0.5
    failed = Evaluation(status="error", error="boom", seconds=0.001)
    assert fixed_limit(AUTO, failed) == 60.0
    assert fixed_limit(evo.Limits(), Evaluation(status="ok", fitness=0.0, seconds=0.1)) is None


def test_constructions_are_let_go_once_their_generation_is_complete() -> None:
    task = evo.load_task("mmd")
    with evo.sandbox.Evaluator(1) as evaluator:
        header = make_header(task)
        draws = DrawEvaluator(header, evaluator.evaluate)
        evaluate, state = Evaluate(draws), State(header)
        first = complete(evaluate(task.initial_program, state), draws.perform)
        assert first.value is not None
        assert complete(evaluate(task.initial_program, state), draws.perform) is first
        state.take(Initial(evaluation=plain(first), value=first.value))
        evaluate.known.clear()
        again = complete(evaluate(task.initial_program, state), draws.perform)
    assert again == msgspec.structs.replace(first, value=None)


def failed(error: str, status: str = "error") -> Evaluation:
    return Evaluation(status=status, error=error)


@pytest.mark.parametrize(
    ("evaluation", "raised", "message"),
    [
        (failed("the package foo: pip install foo"), TaskError, "then `evo resume` goes on"),
        (failed(f"{MISSING} gcc"), TaskError, "then `evo resume` goes on"),
        (failed(f'File "e.py", line 3\n{EVALUATOR_FAILED}: KeyError'), None, ""),
        (failed(f'{EVALUATOR_FAILED}: Traceback\n File "e.py", line 3\nKeyError: 1'),
         EvaluatorFailed, r"fails on the initial program \(e\.py, line 3\): KeyError: 1; no call"),
        (failed("OSError: No such file or directory: 'x'"), EvaluatorFailed, "No such file"),
        (failed('File "program.py", line 1\nNo such file or directory'), None, ""),
        (failed(f"{EVALUATOR_FAILED}: late", "invalid"), None, ""),
    ],
)  # fmt: skip
def test_a_task_that_cannot_work_is_said_before_any_call(evaluation, raised, message) -> None:
    if raised is not None:
        with pytest.raises(raised, match=f"^t: .*{message}"):
            check_initial("t", evaluation)
        return
    with pytest.warns(UserWarning, match="^t: the initial program is .* begins without a fitness"):
        check_initial("t", evaluation)


def test_a_warning_of_an_initial_program_that_is_ok_is_passed_on_without_its_output() -> None:
    fine = Evaluation(status="ok", fitness=0.5)
    check_initial("t", fine)  # nothing to say
    warned = msgspec.structs.replace(fine, error="slow\n--- stdout\nchatter")
    with pytest.warns(UserWarning, match="^t: slow$"):
        check_initial("t", warned)


class Draws(DrawEvaluator):
    """Stands in for the sandbox, by values for each program."""

    def __init__(self, header, **values: list[float | None]) -> None:
        super().__init__(header, lambda *_, **__: None)
        object.__setattr__(self, "values", values)

    def one(self, program, draw, bars=None) -> Evaluation:
        every = self.values[program]
        fitness = every[(draw - FINAL if draw >= FINAL else draw) % len(every)]
        return Evaluation(status="error" if fitness is None else "ok", fitness=fitness)


@pytest.mark.parametrize(
    ("values", "report"),
    [
        ([1.0, 3.0], {"final_fitness": 2.0, "final_sd": math.sqrt(2)}),
        ([1.0, None], {}),  # a mean over those that worked would be another number
    ],
)
def test_what_is_reported_rests_on_as_many_draws_as_were_decided_by(values, report) -> None:
    header = make_header("mmd", draws=2)
    found = final_report(Draws(header, a=[0.5], b=values), "a", "b")
    assert found == {"final_draws": 2.0, "initial_fitness": 0.5, "initial_sd": 0.0, **report}
    one = final_report(Draws(make_header("mmd"), a=[0.5], b=[0.25]), "a", "b")
    assert one == {"final_draws": 1.0, "initial_fitness": 0.5, "final_fitness": 0.25}


@pytest.mark.parametrize(
    ("options", "values", "noisy"),
    [
        ({}, [0.5, 0.5], False),
        ({}, [0.5, 0.5 + 5e-10], False),
        ({}, [0.5, 0.5 + 5e-9], True),
        ({}, [0.5, None], True),
        ({"confirm": 2}, [0.5, 9.0], None),
    ],
)
def test_a_second_draw_tells_whether_evaluations_are_noisy(options, values, noisy) -> None:
    draws = Draws(make_header("mmd", **options), p=values)
    before = Evaluation(status="ok", fitness=0.5)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        second = check_noise(draws, "p", before)
    assert [str(each.message) for each in caught if "are noisy" in str(each.message)] == (
        [str(each.message) for each in caught]
    )
    assert len(caught) == (1 if noisy else 0)
    assert (second is None) == (noisy is None)


def test_several_draws_tell_by_their_own_spread() -> None:
    draws = Draws(make_header("mmd", draws=2), p=[0.5])
    flat = Evaluation(status="ok", fitness=0.5, draws=2, fitness_sd=0.0)
    assert check_noise(draws, "p", flat) is None
    with pytest.warns(UserWarning, match="are noisy"):
        assert check_noise(draws, "p", msgspec.structs.replace(flat, fitness_sd=0.1)) is None
    assert check_noise(draws, "p", Evaluation(status="error", error="x")) is None


def test_the_mean_of_draws_keeps_what_all_have_and_the_first_warning() -> None:
    one = Evaluation(status="ok", fitness=0.0, metrics={"a": 1.0, "b": 2.0}, stages=(0.2, 0.4))
    other = Evaluation(
        status="ok", fitness=1.0, metrics={"a": 3.0}, stages=(0.4, 0.8), error="slow", seconds=None
    )
    found = mean_of([one, other])
    assert (found.metrics, found.error, found.seconds) == ({"a": 2.0}, "slow", None)
    assert found.stages == pytest.approx((0.3, 0.6))
    none = Instance(id="x", status="error")
    both = [msgspec.structs.replace(one, instances=(none,)) for _ in range(2)]
    assert mean_of(both).instances == (none,)
