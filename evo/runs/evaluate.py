"""Evaluates the programs of a run: each once, as the mean of its draws.

Draw 0 is keyed by the program's text, later ones by the task, the run's seed and their number, so
that programs meet the same luck. Evaluations use draws 0 to R - 1. Confirmations use later ones,
see `evo.runs.accept`, and what is reported in the end rests on draws of its own.
"""

from __future__ import annotations

import functools
import math
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass

import msgspec

from evo.logs.means import deviation, mean
from evo.logs.noise import can_confirm, differ, way_out
from evo.logs.records import Evaluation, Header, Instance, Limits
from evo.prompt import last_line
from evo.runs.items import DrawItem, Item, Once, Prompt, Step, complete
from evo.runs.state import State, program_digest
from evo.sandbox import EVALUATOR_FAILED
from evo.sandbox.compiled import MISSING
from evo.tasks.folder import TaskError
from evo.tasks.task import EvaluatorFailed
from evo.tasks.their_config import untaken
from evo.warning import warn

DrawFunction = Callable[..., Evaluation]
"""Evaluates one draw of a program or text, (task, program, limits, *, draw, seed)."""

TOLERANCE = 1e-9  # fitnesses so close to each other count as equal

FINAL = 1 << 20
"""Draws from here on are for what is reported: no decision sees them."""


def plain(evaluation: Evaluation) -> Evaluation:
    """Returns an evaluation without the construction, which has a place of its own in a line."""
    if evaluation.value is None:
        return evaluation
    return msgspec.structs.replace(evaluation, value=None)


@dataclass(frozen=True)
class DrawEvaluator:
    """Evaluates programs on numbered draws of chance.

    Attributes:
        header: Says the task, the limits, the seed and the number of draws.
        draw: Evaluates one draw.
    """

    header: Header
    draw: DrawFunction

    def mean(self, program: str) -> Evaluation:
        """Evaluates draws 0 to R - 1 of a program, which is ok only if it is in all of them."""
        return complete(self.evaluation(program), self.perform)

    def evaluation(self, program: str, bars: tuple[float, ...] | None = None) -> Step[Evaluation]:
        """Returns what `mean` does, as a step.

        Args:
            program: The program.
            bars: On a task with stages, its parent's score in each; draw 0 decides whether they
                admit it. None: they all do.
        """
        found = []
        for draw in range(self.header.draws):
            one: Evaluation = yield DrawItem(program, draw, None if draw else bars)
            if self.header.draws == 1:
                return one
            if one.status != "ok":
                error = f"in draw {draw}: {one.error}" if draw else one.error
                return msgspec.structs.replace(one, error=error, draws=draw + 1)
            found.append(one)
        return mean_of(found)

    def on(self, program: str, draws: Iterable[int]) -> list[float | None]:
        """Returns the fitness in each of some draws; None where it failed."""
        return [self.one(program, draw).fitness for draw in draws]

    def perform(self, item: Item) -> Evaluation:
        """Evaluates a draw that a step asks for."""
        assert isinstance(item, DrawItem)
        return self.one(item.program, item.draw, item.bars)

    def one(self, program: str, draw: int, bars: tuple[float, ...] | None = None) -> Evaluation:
        """Evaluates one draw of a program."""
        header = self.header
        more = {} if bars is None else {"bars": bars}
        return self.draw(header.task, program, header.limits, draw=draw, seed=header.seed, **more)


class Evaluate:
    """The step that evaluates each program of a run once.

    Attributes:
        draws: Evaluates draws of programs.
        known: Evaluations that are not in the log yet, by the digest of the program; those of the
            generation under way are kept with their constructions.
    """

    def __init__(self, draws: DrawEvaluator) -> None:
        self.draws = draws
        self.known: dict[bytes, Evaluation] = {}

    def __call__(
        self, program: str, state: State, prompt: Prompt | None = None
    ) -> Step[Evaluation]:
        """Returns the program's evaluation; the state holds those that are logged."""
        digest = program_digest(program)
        found = self.known.get(digest) or state.evaluations.get(digest)
        if found is None:
            found = yield Once(digest, functools.partial(self.draws.evaluation, program))
            self.known[digest] = found
        return found


def check_noise(draws: DrawEvaluator, program: str, before: Evaluation) -> Evaluation | None:
    """Warns if the initial program's fitness differs between draws and nothing allows for it.

    Returns the evaluation of a second draw, where one had to be made for this. None is made where
    the run confirms, has several draws anyway, or an evaluation makes calls. A run that cannot
    confirm, which has no barrier or whose evaluator is in this process, has its draws alone.
    """
    header = draws.header
    if not can_confirm(header) and header.draws > 1:
        return None
    if header.task.asks_model or before.fitness is None or header.confirm:
        return None
    second = draws.one(program, 1) if header.draws == 1 else None
    spread = before.fitness_sd or 0.0
    if spread > TOLERANCE if second is None else differ(before, second):
        warn(  # the same words for all seeds, so that they are said once
            f"{header.task.name}: the initial program's fitness differs between draws of chance: "
            f"evaluations are noisy, and luck will be taken for gain; {way_out(header)}"
        )
    return None if second is None else plain(second)


FACTOR, LEAST_SECONDS = 50, 2.0
"""What a run's time limit is, in evaluations of the initial program and at least, seconds."""


def fixed_limit(limits: Limits, *initial: Evaluation | None) -> float | None:
    """Returns the time limit that a run fixes for all programs, seconds; None: it fixes none.

    The shortest counts, since what starts up in a first evaluation is not there in later ones. The
    limit stays as it is where the initial program is not ok: how long it took says nothing then.

    Args:
        limits: The limits under which the initial program was evaluated.
        initial: Evaluations of the initial program; None where one was not made.
    """
    if not limits.auto:
        return None
    took = [
        each.seconds / each.draws
        for each in initial
        if each is not None and each.status == "ok" and each.seconds is not None
    ]
    if not took:
        return limits.seconds
    return min(limits.seconds, max(LEAST_SECONDS, round(FACTOR * min(took), 1)))


def final_report(draws: DrawEvaluator, initial: str, best: str) -> dict[str, float]:
    """Returns the fitness of the first and the best program on draws of their own, by name."""
    count = max(draws.header.draws, draws.header.confirm)
    report = {"final_draws": float(count)}
    for name, program in (("initial", initial), ("final", best)):
        values = draws.on(program, range(FINAL, FINAL + count))
        known = [value for value in values if value is not None]
        if len(known) == count:
            report[f"{name}_fitness"] = mean(known)
            spread = deviation(known) if count > 1 else math.inf
            report |= {f"{name}_sd": spread} if math.isfinite(spread) else {}
    return report


def check_initial(task: str, evaluation: Evaluation) -> None:
    """Reports what is wrong with a task before the model is paid for children.

    Warns if the search has to begin without a fitness.

    Raises:
        TaskError: A package is missing; the run can go on once it is installed.
        EvaluatorFailed: The evaluator fails for a reason of its own.
    """
    error = re.split(r"^--- std", evaluation.error or "", flags=re.MULTILINE)[0].strip()
    last = last_line(evaluation.error)
    if "the package " in last and "pip install" in last:
        raise TaskError(f"{task}: {last}; then `evo resume` goes on with the log")
    # Many evaluators catch what they raise and return it as their word for a failure.
    if MISSING in last:
        raise TaskError(f"{task}: {last}; then `evo resume` goes on with the log")
    misses_file = "No such file or directory" in error and '"program.py"' not in error
    if evaluation.status == "error" and (error.startswith(EVALUATOR_FAILED) or misses_file):
        lines = re.findall(r'File "([^"]+)", line (\d+)', error)
        where = " ({}, line {})".format(*lines[-1]) if lines else ""
        reason = last.removeprefix(EVALUATOR_FAILED).lstrip(": ")
        raise EvaluatorFailed(
            f"{task}: the evaluator fails on the initial program{where}: {reason}; no call was "
            "made: mend the task and run it again"
        )
    if evaluation.status != "ok":
        error = (
            f"the initial program is {evaluation.status!r} ({last}); the search begins without a "
            "fitness"
        )
    if error:
        warn(f"{task}: {error}")


def remarks(header: Header, initial: Evaluation) -> Iterator[str]:
    """Yields what a user should know of a task once its initial program is evaluated."""
    task = header.task
    if initial.notes and not header.feedback:
        yield (
            f"{task.name}: its evaluations bring notes; feedback=True (--feedback) shows them to "
            "the model"
        )
    if words := untaken(task.files):
        yield f"{task.name}: {words}"


def mean_of(draws: Sequence[Evaluation]) -> Evaluation:
    """Returns the mean of two or more evaluations that are ok: one per draw, of equal instances."""
    fitness = [each.fitness for each in draws if each.fitness is not None]
    shared = [name for name in draws[0].metrics if all(name in each.metrics for each in draws)]
    seconds = [each.seconds for each in draws if each.seconds is not None]
    spread = deviation(fitness)
    return msgspec.structs.replace(
        draws[0],
        fitness=mean(fitness),
        metrics={name: mean(each.metrics[name] for each in draws) for name in shared},
        stages=tuple(map(_mean_of_stage, *(each.stages for each in draws))),
        error=next((each.error for each in draws if each.error), None),
        seconds=sum(seconds) if len(seconds) == len(draws) else None,
        instances=tuple(map(_mean_instance, *(each.instances for each in draws))),
        draws=len(draws),
        fitness_sd=spread if math.isfinite(spread) else None,
    )


def _mean_of_stage(*scores: float) -> float:
    return mean(scores)


def _mean_instance(*draws: Instance) -> Instance:
    """Returns the mean of an instance over draws; where it failed in some, these count as 0."""
    first = next((each for each in draws if each.status == "ok"), None)
    if first is None:
        return draws[0]
    score = mean(each.score or 0.0 for each in draws)
    return msgspec.structs.replace(first, score=score)
