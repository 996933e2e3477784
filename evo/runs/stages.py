"""Evaluates in stages, from cheap to thorough; a program that one refuses costs no later one.

What a stage scored comes out of the sandbox; whether that admits to the next one is decided here. A
refused program is `partial`: it has no fitness, so it never is a parent.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Sequence
from dataclasses import dataclass

import msgspec

from evo.logs.records import Bar, Evaluation, Header, Limits, TaskRecord
from evo.runs.ask import child_seed
from evo.runs.evaluate import DrawEvaluator, DrawFunction, Evaluate, plain
from evo.runs.items import Once, Prompt, Step
from evo.runs.state import State, program_digest
from evo.sandbox.foreign import NO_COMBINED_SCORE
from evo.searches.base import Place


@dataclass(frozen=True)
class Staged:
    """Evaluates one draw of a program, stage by stage.

    Attributes:
        tasks: The task of each stage alone.
        draws: What evaluates it.
    """

    tasks: Sequence[TaskRecord]
    draws: Sequence[DrawFunction]

    def __call__(
        self,
        task: TaskRecord,
        program: str,
        limits: Limits,
        *,
        draw: int = 0,
        seed: int = 0,
        bars: Sequence[float] | None = None,
    ) -> Evaluation:
        """Returns the evaluation.

        Args:
            task: The task.
            program: The program.
            limits: Limits of stages that have none of their own.
            draw: Which draw of randomness.
            seed: Of the run.
            bars: The parent's score in each stage, as far as it is known; None: all stages are run,
                whatever they score.
        """
        count, so_far = len(self.tasks), None
        for place, stage in enumerate(task.stages):
            found = self.draws[place](
                self.tasks[place], program, stage.limits or limits, draw=draw, seed=seed
            )
            so_far = merged(so_far, found)
            if found.status != "ok":
                where = f"in stage {place + 1} of {count}: {found.error or ''}"
                return msgspec.structs.replace(so_far, error=where)
            if bars is None or stage.threshold is None:
                continue
            if (reason := refusal(so_far.stages[place], stage.threshold, bars[place:])) is not None:
                words = f"stage {place + 1} of {count}: {reason}"
                return msgspec.structs.replace(so_far, status="partial", fitness=None, error=words)
        assert so_far is not None
        return so_far


def refusal(score: float, threshold: Bar, parent: Sequence[float]) -> str | None:
    """Returns why a score does not admit to the next stage, or None.

    Args:
        score: The stage's.
        threshold: What it must reach.
        parent: The parent's score in this stage, if it is known, and in later ones.
    """
    if threshold == "parent":
        if not parent or score > parent[0]:
            return None
        return f"{score:g} is not better than its parent's {parent[0]:g}"
    return None if score >= threshold else f"{score:g} is below {threshold:g}"


def merged(before: Evaluation | None, now: Evaluation) -> Evaluation:
    """Returns what is known after one more stage; a metric of a later stage takes its place.

    Where none of OpenEvolve's metrics is called `combined_score` yet, the score is the mean of all.
    """
    earlier = before or Evaluation(status="ok", fitness=0.0)
    metrics = {**earlier.metrics, **now.metrics}
    fitness, error = now.fitness, now.error
    if before is not None and (now.error or "").startswith(NO_COMBINED_SCORE):
        if (before.error or "").startswith(NO_COMBINED_SCORE):
            fitness = math.fsum(metrics.values()) / len(metrics)
        else:
            fitness, error = before.fitness, None
    notes = dict.fromkeys(each for each in (earlier.notes, now.notes) if each)
    return msgspec.structs.replace(
        now,
        fitness=fitness,
        metrics=metrics,
        error=error,
        notes="\n".join(notes),
        seconds=None if now.seconds is None else (earlier.seconds or 0.0) + now.seconds,
        stages=(*earlier.stages, *([fitness] if fitness is not None else [])),
    )


class EvaluateInStages(Evaluate):
    """Evaluates each program of a run once, a child as far as its stages admit it.

    Where its parent's scores decide, equal programs of other parents are other cases, and what the
    log holds of one is not taken, so that a run which was stopped comes out the same.
    """

    def __call__(
        self, program: str, state: State, prompt: Prompt | None = None
    ) -> Step[Evaluation]:
        """Returns the program's evaluation: the initial one's is whole, whatever its stages."""
        if prompt is None:
            return (yield from super().__call__(program, state))
        header, bars = self.draws.header, tuple[float, ...]()
        relative = any(each.threshold == "parent" for each in header.task.stages)
        if relative:
            parents = prompt.planned.parents or (state.best.place,)
            entry = state.entry(parents[0])
            bars = entry.evaluation.stages if entry is not None else ()
        digest = program_digest(program)
        key = digest + repr(bars).encode()
        found = self.known.get(key) or (None if relative else state.evaluations.get(digest))
        if found is None:
            found = yield Once(key, functools.partial(self.draws.evaluation, program, bars))
            self.known[key] = found
        found = msgspec.structs.replace(found, audit=None)
        if found.status != "partial" or not is_audited(header, prompt.place):
            return found
        whole = yield Once(digest + b"audit", functools.partial(self.draws.evaluation, program))
        return msgspec.structs.replace(found, audit=plain(whole))


def evaluate_step(draws: DrawEvaluator) -> Evaluate:
    """Returns the step that evaluates the programs of a run, in stages where its task has some."""
    return EvaluateInStages(draws) if draws.header.task.stages else Evaluate(draws)


def is_audited(header: Header, place: Place) -> bool:
    """Whether a child is evaluated in full though a stage refused it: one in `audit`, by place."""
    seed = child_seed(header.seed, header.children, *place)
    return header.audit > 0 and seed % header.audit == 0
