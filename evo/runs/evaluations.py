"""A run's evaluations: each made once, as the mean of its draws, and confirmed on fresh ones.

Draw 0 is keyed by the program's text, later ones by the task, the run's seed and their number, so
that programs meet the same luck. Evaluations use draws 0 to R - 1, the confirmation in generation
g the K next ones that nothing used before, and what is reported in the end draws of its own.
"""

from __future__ import annotations

import hashlib
import math
import re
import statistics
import threading
import warnings
from collections.abc import Callable, Iterable, Sequence

import msgspec

from evo.logs.records import Confirmation, Evaluation, Header, Instance
from evo.prompt import last_line
from evo.sandbox import EVALUATOR_FAILED
from evo.tasks.folder import TaskError
from evo.tasks.task import EvaluatorFailed

Draw = Callable[..., Evaluation]
"""Evaluates one draw of a program or text, (task, program, limits, *, draw, seed)."""

ALPHA = 0.05
"""Chance that a test accepts a rival that is no better; of a whole run where it is spent."""

TOLERANCE = 1e-9  # fitnesses so close to each other count as equal

FINAL = 1 << 20
"""Draws from here on are for what is reported: no decision sees them."""


def program_digest(program: str) -> bytes:
    """Returns SHA-256 of a program."""
    return hashlib.sha256(program.encode("utf-8", "surrogatepass")).digest()


def plain(evaluation: Evaluation) -> Evaluation:
    """Returns an evaluation without the construction, which has a place of its own in a line."""
    if evaluation.value is None:
        return evaluation
    return msgspec.structs.replace(evaluation, value=None)


class Evaluations:
    """Evaluates each program once in a run; threads that want the same one wait for it."""

    def __init__(self, header: Header, draw: Draw) -> None:
        self.header, self.draw = header, draw
        self._known: dict[bytes, Evaluation] = {}
        self._turns: dict[bytes, threading.Lock] = {}

    def learn(self, program: str, evaluation: Evaluation) -> None:
        """Takes over an evaluation from the log."""
        self._known.setdefault(program_digest(program), evaluation)

    def of(self, program: str) -> Evaluation:
        """Returns the program's evaluation; waits if another thread is at it."""
        digest = program_digest(program)
        with self._turns.setdefault(digest, threading.Lock()):
            if (known := self._known.get(digest)) is None:
                known = self._known[digest] = self.again(program)
            return known

    def again(self, program: str) -> Evaluation:
        """Evaluates draws 0 to R - 1 of a program, whatever is known of it."""
        found = []
        for draw in range(self.header.draws):
            one = self._one(program, draw)
            if one.status != "ok":  # a program is ok only if all its draws are
                said = f"in draw {draw}: {one.error}" if draw else one.error
                return msgspec.structs.replace(one, error=said, draws=draw + 1)
            found.append(one)
        return mean_of(found)

    def forget_values(self) -> None:
        """Lets go of constructions: those of a complete generation are logged, or not wanted."""
        for digest in self._turns.keys() & self._known.keys():
            self._known[digest] = plain(self._known[digest])
        self._turns.clear()

    def on(self, program: str, draws: Iterable[int]) -> list[float | None]:
        """Returns the fitness of some draws; None where one failed."""
        return [self._one(program, draw).fitness for draw in draws]

    def _one(self, program: str, draw: int) -> Evaluation:
        header = self.header
        return self.draw(header.task, program, header.limits, draw=draw, seed=header.seed)

    def confirm(self, generation: int, index: int, parent: str, rival: str) -> Confirmation:
        """Tests a rival, a child that is better so far, on draws that nothing used before."""
        header = self.header
        first = header.draws + (generation - 1) * header.confirm
        draws = range(first, first + header.confirm)
        standing, challenging = self.on(parent, draws), self.on(rival, draws)
        alpha = ALPHA / (generation * (generation + 1)) if header.spending else ALPHA
        bound, accepted = None, None not in challenging
        pairs = zip(standing, challenging, strict=True)
        gains = [new - old for old, new in pairs if old is not None and new is not None]
        if len(gains) == len(draws):
            bound = lower_bound(gains, alpha)
            accepted = bound > header.min_improvement
        return Confirmation(
            generation=generation, index=index, draw=first, parent=tuple(standing),
            rival=tuple(challenging), alpha=alpha, bound=bound, accepted=accepted,
        )  # fmt: skip

    def tell_of_noise(self, program: str, before: Evaluation) -> None:
        """Says if a program's fitness differs between two draws while nothing allows for it."""
        if self.header.task.asks_model or before.fitness is None or self.header.confirm:
            return
        other = self.on(program, [1])[0]
        if other is None or abs(other - before.fitness) > TOLERANCE:
            said = "fails" if other is None else f"is {other:.6g}"
            warnings.warn(
                f"{self.header.task.name}: the initial program's fitness is {before.fitness:.6g} "
                f"in one draw and {said} in another: evaluations are noisy, and luck will be taken "
                "for gain; give draws=4 and confirm=8 (--draws 4 --confirm 8)",
                stacklevel=2,
            )

    def report(self, initial: str, best: str) -> dict[str, float]:
        """Returns the fitness of the first and the best program on draws of their own, by name."""
        count = max(self.header.draws, self.header.confirm)
        said = {"final_draws": float(count)}
        for name, program in (("initial", initial), ("final", best)):
            values = self.on(program, range(FINAL, FINAL + count))
            known = [value for value in values if value is not None]
            if len(known) == count:
                said[f"{name}_fitness"] = statistics.fmean(known)
                said |= {f"{name}_sd": statistics.stdev(known)} if count > 1 else {}
        return said


def tell_of_initial(task: str, evaluation: Evaluation) -> None:
    """Says what is wrong with a task before the model is paid for children that cannot do better.

    TaskError: a package is missing, and the run goes on once it is there; EvaluatorFailed: the
    evaluator fails for a reason of its own.
    """
    said = re.split(r"^--- std", evaluation.error or "", flags=re.MULTILINE)[0].strip()
    last = last_line(evaluation.error)
    if "the package " in last and "pip install" in last:
        raise TaskError(f"{task}: {last}; then `evo resume` goes on with the log")
    # Many evaluators catch what they raise and return it as their word for a failure.
    misses_file = "No such file or directory" in said and '"program.py"' not in said
    if evaluation.status == "error" and (said.startswith(EVALUATOR_FAILED) or misses_file):
        lines = re.findall(r'File "([^"]+)", line (\d+)', said)
        where = " ({}, line {})".format(*lines[-1]) if lines else ""
        reason = last.removeprefix(EVALUATOR_FAILED).lstrip(": ")
        raise EvaluatorFailed(
            f"{task}: the evaluator fails on the initial program{where}: {reason}; no call was "
            "made: mend the task and run it again"
        )
    if evaluation.status != "ok":
        said = (
            f"the initial program is {evaluation.status!r} ({last}); the search begins without a "
            "fitness"
        )
    if said:
        warnings.warn(f"{task}: {said}", stacklevel=2)


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
    """Returns an evaluation with the mean of fresh draws, unless one failed, as its fitness."""
    known = [value for value in values if value is not None]
    if len(known) < len(values):
        return before
    mean, spread = statistics.fmean(known), statistics.stdev(known)
    return msgspec.structs.replace(before, fitness=mean, draws=len(known), fitness_sd=spread)


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
        instances=tuple(map(_mean_instance, *(each.instances for each in draws))),
        draws=len(draws),
        fitness_sd=statistics.stdev(fitness),
    )


def _mean_instance(*draws: Instance) -> Instance:
    """Where it failed in some draws alone, these count as 0."""
    first = next((each for each in draws if each.status == "ok"), None)
    if first is None:
        return draws[0]
    score = statistics.fmean(each.score or 0.0 for each in draws)
    return msgspec.structs.replace(first, score=score)
