"""Each program once, as the mean of its draws; the limit that a run fixes."""

from __future__ import annotations

import math
import random
import statistics
from pathlib import Path

import msgspec
import pytest
from evo_runs import write_task

import evo
from evo.logs.records import Evaluation, Initial, Instance
from evo.runs.configuration import make_header
from evo.runs.evaluate import DrawEvaluator, Evaluate, fixed_limit, mean_of, plain
from evo.runs.items import complete
from evo.runs.state import State

PROGRAM = """import random


def value():
    return {gain} + random.gauss(0, 1) + 0 * {mark}
"""


@pytest.fixture
def noisy(tmp_path: Path) -> Path:
    """A task whose fitness is a draw."""
    judge = "def score(value):\n    return {'fitness': value}\n"
    program = PROGRAM.format(gain=0, mark=0)
    return write_task(tmp_path / "noisy", program, judge, "entry = ['value']\n")


class Lottery:
    """Stands in for the sandbox: a program's name states its mean; luck is its own or common."""

    def __init__(self, common: float = 0.0) -> None:
        self.common, self.seen = common, []

    def evaluate(self, task, program, limits, *, draw=0, seed=0) -> Evaluation:
        self.seen.append(draw)
        own = random.Random(f"{program}/{seed}/{draw}").gauss(0, 1)
        shared = random.Random(f"{seed}/{draw}").gauss(0, 1)
        luck = math.sqrt(1 - self.common) * own + math.sqrt(self.common) * shared
        return Evaluation(status="ok", fitness=float(program.partition("/")[0]) + luck)


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
