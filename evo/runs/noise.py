"""Noisy evaluations: several draws of each, and confirmation on fresh draws before a rival wins.

Draw 0 is keyed by the program's text, later ones by the task, the run's seed and their number, so
that programs meet the same luck. Evaluations use draws 0 to R - 1, the confirmation in generation
g the K next ones that nothing used before, and what is reported in the end draws of its own.
"""

from __future__ import annotations

import math
import statistics
import warnings
from collections.abc import Iterable, Sequence

import msgspec

from evo.records import Confirmation, Evaluation, Header, Instance, Limits, TaskRecord
from evo.runs.evaluations import Draw

ALPHA = 0.05
"""Chance that a test accepts a rival that is no better; of a whole run where it is spent."""

TOLERANCE = 1e-9  # fitnesses so close to each other count as equal

FINAL = 1 << 20
"""Draws from here on are for what is reported: no decision sees them."""


class DrawnEvaluator:
    """Evaluates programs as the mean of a run's draws."""

    def __init__(self, header: Header, draw: Draw) -> None:
        self._header, self._draw = header, draw

    def evaluate(self, task: TaskRecord, program: str, limits: Limits) -> Evaluation:
        """Evaluates draws 0 to R - 1 of a program."""
        found = []
        for draw in range(self._header.draws):
            one = self._draw(task, program, limits, draw=draw, seed=self._header.seed)
            if one.status != "ok":  # a program is ok only if all its draws are
                said = f"in draw {draw}: {one.error}" if draw else one.error
                return msgspec.structs.replace(one, error=said, draws=draw + 1)
            found.append(one)
        return mean_of(found)

    def on(self, program: str, draws: Iterable[int]) -> list[float | None]:
        """Returns the fitness of some draws; None where one failed."""
        header = self._header
        task, limits, seed = header.task, header.limits, header.seed
        return [self._draw(task, program, limits, draw=draw, seed=seed).fitness for draw in draws]

    def confirm(self, generation: int, index: int, parent: str, rival: str) -> Confirmation:
        """Tests a rival, a child that is better so far, on draws that nothing used before."""
        header = self._header
        first = header.draws + (generation - 1) * header.confirm
        draws = range(first, first + header.confirm)
        standing, challenging = self.on(parent, draws), self.on(rival, draws)
        alpha = ALPHA / (generation * (generation + 1)) if header.spending else ALPHA
        bound, accepted = None, None not in challenging
        pairs = list(zip(standing, challenging, strict=True))
        gains = [new - old for old, new in pairs if old is not None and new is not None]
        if len(gains) == len(pairs):
            bound = lower_bound(gains, alpha)
            accepted = bound > header.min_improvement
        return Confirmation(
            generation=generation,
            index=index,
            draw=first,
            parent=tuple(standing),
            rival=tuple(challenging),
            alpha=alpha,
            bound=bound,
            accepted=accepted,
        )

    def tell_of_noise(self, program: str, before: Evaluation) -> None:
        """Says if a program's fitness differs between two draws while nothing allows for it."""
        header = self._header
        if header.task.asks_model or before.fitness is None or header.confirm:
            return
        other = self.on(program, [1])[0]
        if other is None or abs(other - before.fitness) > TOLERANCE:
            said = "fails" if other is None else f"is {other:.6g}"
            warnings.warn(
                f"{header.task.name}: the initial program's fitness is {before.fitness:.6g} in one "
                f"draw and {said} in another: evaluations are noisy, and luck will be taken for "
                "gain; give draws=4 and confirm=8 (--draws 4 --confirm 8)",
                stacklevel=2,
            )

    def report(self, initial: str, best: str) -> dict[str, float]:
        """Returns the fitness of the first and the best program on draws of their own, by name."""
        count = max(self._header.draws, self._header.confirm)
        said: dict[str, float] = {}
        for name, program in (("initial", initial), ("final", best)):
            values = self.on(program, range(FINAL, FINAL + count))
            known = [value for value in values if value is not None]
            if len(known) == count:
                said[f"{name}_fitness"] = statistics.fmean(known)
                said |= {f"{name}_sd": statistics.stdev(known)} if count > 1 else {}
        return {"final_draws": float(count), **said}


def lower_bound(differences: Sequence[float], alpha: float = ALPHA) -> float:
    """Returns the one-sided lower limit of a mean paired difference (Student's t).

    There are at least 2 differences; without spread they count as they are.
    """
    from scipy.special import stdtrit

    mean, spread = statistics.fmean(differences), statistics.stdev(differences)
    if spread == 0:
        return mean
    count = len(differences)
    return mean - float(stdtrit(count - 1, 1 - alpha)) * spread / math.sqrt(count)


def confirmed(before: Evaluation, values: Sequence[float | None]) -> Evaluation:
    """Returns an evaluation with the mean of fresh draws as its fitness."""
    known = [value for value in values if value is not None]
    if len(known) < len(values):
        return before
    return msgspec.structs.replace(
        before,
        fitness=statistics.fmean(known),
        draws=len(known),
        fitness_sd=statistics.stdev(known),
    )


def mean_of(draws: Sequence[Evaluation]) -> Evaluation:
    """Returns the mean of evaluations that are ok: one per draw, with the same instances."""
    if len(draws) == 1:
        return draws[0]
    fitness = [each.fitness for each in draws if each.fitness is not None]
    shared = [name for name in draws[0].metrics if all(name in each.metrics for each in draws)]
    seconds = [each.seconds for each in draws if each.seconds is not None]
    return msgspec.structs.replace(
        draws[0],
        fitness=statistics.fmean(fitness),
        metrics={name: statistics.fmean(each.metrics[name] for each in draws) for name in shared},
        error=next((each.error for each in draws if each.error), None),
        seconds=sum(seconds) if len(seconds) == len(draws) else None,
        instances=tuple(
            _mean_instance(each) for each in zip(*(d.instances for d in draws), strict=True)
        ),
        draws=len(draws),
        fitness_sd=statistics.stdev(fitness),
    )


def _mean_instance(draws: Sequence[Instance]) -> Instance:
    """Where it failed in some draws alone, these count as 0."""
    first = next((each for each in draws if each.status == "ok"), None)
    if first is None:
        return draws[0]
    score = statistics.fmean(each.score or 0.0 for each in draws)
    return msgspec.structs.replace(first, score=score)
