"""Accepts or rejects a child that is better than the best so far, by fresh draws of both.

The confirmation in generation g uses K draws that nothing used before, so that luck is not taken
for gain. Without it, a better child replaces its parent at once.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from evo.logs.means import deviation, mean
from evo.logs.records import Confirmation, Header, Outcome
from evo.runs.evaluate import DrawEvaluator
from evo.runs.items import DrawItem, Step, complete
from evo.runs.state import State, program_of

ALPHA = 0.05
"""Chance that a test accepts a rival that is no better; of a whole run where it is spent."""


@dataclass(frozen=True)
class Confirm:
    """Tries a better child and its parent on fresh draws, once in a generation.

    Attributes:
        header: Configuration of the run.
        log: Appends a line to the run's log.
    """

    header: Header
    log: Callable[[Confirmation], None]

    def __call__(self, rival: Outcome, state: State) -> Step[bool]:
        """Returns whether the rival replaces the best program so far."""
        parent, program = state.best.program, program_of(rival)
        if state.best_fitness is None or parent is None or program is None:
            return True
        if state.confirmation is None:
            generation, index = rival.generation, rival.index
            found = yield from confirmation(self.header, generation, index, parent, program)
            self.log(found)  # from here on the state knows it
        assert state.confirmation is not None
        return state.confirmation.accepted


def confirm(
    draws: DrawEvaluator, generation: int, index: int, parent: str, rival: str
) -> Confirmation:
    """Tests a rival, a child that is better so far, on draws that nothing used before."""
    step = confirmation(draws.header, generation, index, parent, rival)
    return complete(step, draws.perform)


def confirmation(
    header: Header, generation: int, index: int, parent: str, rival: str
) -> Step[Confirmation]:
    """Returns what `confirm` does, as a step."""
    first = header.draws + (generation - 1) * header.confirm
    fresh = range(first, first + header.confirm)
    tried = yield [DrawItem(program, draw) for program in (parent, rival) for draw in fresh]
    fitness = [each.fitness for each in tried]
    standing, challenging = fitness[: len(fresh)], fitness[len(fresh) :]
    alpha = ALPHA / (generation * (generation + 1)) if header.spending else ALPHA
    bound, accepted = None, None not in challenging
    pairs = zip(standing, challenging, strict=True)
    gains = [new - old for old, new in pairs if old is not None and new is not None]
    if len(gains) == len(fresh) and not all(map(math.isfinite, gains)):  # beyond any float
        accepted = min(gains) > header.min_improvement
    elif len(gains) == len(fresh):
        bound = lower_bound(gains, alpha)
        accepted = bound > header.min_improvement
    return Confirmation(
        generation=generation, index=index, draw=first, parent=tuple(standing),
        rival=tuple(challenging), alpha=alpha, bound=bound, accepted=accepted,
    )  # fmt: skip


def lower_bound(differences: Sequence[float], alpha: float = ALPHA) -> float:
    """Returns the one-sided lower limit of a mean paired difference (Student's t).

    There are at least 2 differences; without spread they count as they are.
    """
    from scipy.special import stdtrit

    middle, spread = mean(differences), deviation(differences)
    if spread == 0:
        return middle
    count = len(differences)
    return middle - float(stdtrit(count - 1, 1 - alpha)) * spread / math.sqrt(count)
