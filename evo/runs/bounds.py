"""The most that runs may cost, which is said before the first call, and what a budget buys then."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple

from evo.logs.cost import cost_of_tokens, longest_reply
from evo.logs.records import NO_REPLY, AskedModel, CriticRecord, Header
from evo.models.critics import rubrics_of
from evo.runs.screening import embedding_models
from evo.runs.state import State
from evo.tasks.instances import calls_of_evaluation, checks_of


@dataclass(frozen=True)
class CostBound:
    """The most that a run of T generations may cost, by unit; maybe infinite.

    Attributes:
        initial: Of generation 0.
        generation: Of each other generation.
        generations: T.
        final: Of the test at the end.
        shared: Generations that a fork inherits, 0 included; they cost nothing.
        advised: The generations before which a model is asked for advice.
        advice: Of that call.
        divided: Whether a budget may end it within a generation, if it has that for itself.
    """

    initial: Mapping[str, float]
    generation: Mapping[str, float]
    generations: int
    final: Mapping[str, float] = field(default_factory=dict)
    shared: int = 0
    advised: tuple[int, ...] = ()
    advice: Mapping[str, float] = field(default_factory=dict)
    divided: bool = False

    def of(self, generation: int) -> Mapping[str, float]:
        """Returns the most that a generation may cost, by unit."""
        if generation not in self.advised:
            return self.generation if generation else self.initial
        return {unit: most + self.advice[unit] for unit, most in self.generation.items()}

    def beyond(self, generation: int) -> CostBound:
        """Returns the most that the run may cost after a generation that is logged."""
        shared = 1 + min(generation, self.generations)
        return replace(self, shared=max(self.shared, shared))

    @property
    def total(self) -> dict[str, float]:
        """The most that all of the run may cost, by unit."""
        parts = [self.initial] * (not self.shared) + [self.final] * bool(self.final)
        parts += [self.advice for number in self.advised if number >= self.shared]
        number = self.generations + 1 - max(self.shared, 1)
        return {
            unit: math.fsum([number * most if number else 0.0, *(each[unit] for each in parts)])
            for unit, most in self.generation.items()
        }


class Bracket(NamedTuple):
    """The least and the most of a figure; NaN: unknown."""

    low: float
    high: float


@dataclass(frozen=True)
class Within:
    """What is left of the costs of some runs where a budget ends them.

    A generation begins while what is spent is below every limit. Its amounts lie in brackets, and
    are taken to be low together and high together.

    Attributes:
        limits: Of all runs, by unit; empty: none.
        amounts: What all generations would take, by unit.
        generations: Their number.
        calls: The most calls that the limits allow.
    """

    limits: Mapping[str, float]
    amounts: Mapping[str, Bracket]
    generations: int
    calls: float

    def of(self, amount: Bracket) -> Bracket:
        """Returns what the generations take within the limits of what all of them would take."""
        lows, highs = [amount.low], []
        for at in self._places():
            here = _between(amount, at)
            few, many = self._shares(at)
            lows.append(few * here)
            highs.append(many * here)
        known = [low for low in lows if not math.isnan(low)]
        low = min(known) if known else math.nan
        return Bracket(low, math.nan if any(map(math.isnan, highs)) else max(highs))

    def _places(self) -> list[float]:
        """Returns where the most may be: both ends, and where a limit is just reached."""
        shared = {unit: self.amounts[unit] for unit in self.limits if unit in self.amounts}
        inside = [
            (self.limits[unit] - low) / (high - low)
            for unit, (low, high) in shared.items()
            if low < self.limits[unit] < high
        ]
        return [0.0, 1.0, *inside]

    def _shares(self, at: float) -> tuple[float, float]:
        """Returns the least and the largest share of the generations that are made."""
        few = many = 1.0
        for unit, limit in self.limits.items():
            total = _between(self.amounts.get(unit, Bracket(math.nan, math.nan)), at)
            if math.isnan(total):
                few = 0.0
            elif total > 0:
                few = min(few, limit / total)
                many = min(many, limit / total + 1 / self.generations)
        most = self.amounts["calls"].high
        return few, min(many, self.calls / most if most else 1.0)


def _between(bracket: Bracket, at: float) -> float:
    """Returns the figure that lies at a place in a bracket, from 0, its least, to 1, its most."""
    ends = {0.0: bracket.low, 1.0: bracket.high}
    return ends[at] if at in ends else bracket.low + at * (bracket.high - bracket.low)


def affordable(runs: Sequence[CostBound], limits: Mapping[str, float]) -> int | None:
    """Returns the number of generations that a budget buys for each run that wants so many.

    Every generation is assumed to cost the most that it may. None: that has no bound in a unit of
    the budget, or the budget counts seconds, which nobody knows beforehand.
    """
    most = [run.total[unit] for run in runs for unit in limits]
    if "seconds" in limits or not all(map(math.isfinite, most)):
        return None
    spent = dict.fromkeys(limits, 0.0)
    longest = max((run.generations for run in runs), default=0)
    for generation in range(longest + 1):
        for run in runs:
            if not run.shared <= generation <= run.generations:
                continue
            before, cost = spent, run.of(generation)
            spent = {unit: amount + cost[unit] for unit, amount in spent.items()}
            if any(before[unit] >= limit for unit, limit in limits.items()) or (
                run.divided
                and len(runs) == 1
                and any(spent[unit] > limit for unit, limit in limits.items())
            ):
                return max(0, generation - 1)
    return longest


def cost_bound(header: Header, generations: int, *, retries: int) -> CostBound:
    """Returns the most that T generations, and the test of their best text, may cost."""
    asked, held = calls_of_evaluation(header.task), 2 * checks_of(header.task)
    scored = asked if header.task.score == "critic" else 0
    chosen = header.drafts if header.drafts > 1 else 0
    rubrics = len(rubrics_of(header.critic)) if header.critic else 0
    own, critic = _most_of_call(header, retries), _most_of_call(header.critic, retries)
    for each in header.models:  # any of them may be asked
        other = _most_of_call(header.with_model(each.model.name), retries)
        own = {unit: max(most, other[unit]) for unit, most in own.items()}
    embeddings = _most_of_embeddings(header, retries)
    children, drafts = header.children, header.drafts
    instance = _most_of_call(header.asks, retries) if header.asks else own

    def total(calls: int, scores: int, children: int = 0) -> dict[str, float]:
        embedded = int(bool(embeddings and children))
        counts = (
            *((children, own), (calls, instance), (scores * rubrics, critic)),
            (embedded, embeddings),
        )
        return {u: math.fsum(k * most[u] for k, most in counts if k) for u in own}

    return CostBound(
        initial=total(asked, scored),
        generation=total(children * asked, children * (chosen + scored), children * drafts),
        generations=generations,
        final=total(held, held if scored else 0),
        shared=header.fork.at + 1 if header.fork else 0,
        advised=tuple(filter(header.advises, range(generations + 1))),
        advice=_most_of_call(header, retries),
        divided=header.asynchronous,
    )


def _most_of_call(of: Header | CriticRecord | AskedModel | None, retries: int) -> dict[str, float]:
    if of is None:
        return {}
    model, attempts = of.model, 1 + retries
    most = longest_reply(model, of.sampling.max_tokens)
    # Tokens of prompt and reply: together they are within the context window.
    prompt = math.inf if model.context is None else float(model.context)
    completion = prompt if most is None else min(prompt, float(most))
    amounts = cost_of_tokens((prompt, 0.0, completion), model)
    known = {u: math.inf if math.isnan(most) else attempts * most for u, most in amounts.items()}
    return {**known, "calls": 1.0, "seconds": 0.0}


def _most_of_embeddings(header: Header, retries: int) -> dict[str, float]:
    """Returns the most that the embeddings of a generation may cost, by unit; empty: none.

    Each program is embedded once, besides the initial one and what a fork inherits, and each child
    may wait for one call that fails; a race on batches does so before. A function costs nothing.
    """
    inherited = header.fork.at * header.children if header.fork else 0
    texts = (2 + bool(header.batches)) * header.children + 1 + inherited
    every = [
        _most_of_call(AskedModel(model=model, sampling=NO_REPLY), retries)
        for model in embedding_models(header)
        if model.way != "function"
    ]
    most = {unit: texts * math.fsum(each[unit] for each in every) for unit in (every or [{}])[0]}
    return {unit: 0.0 if unit == "calls" else amount for unit, amount in most.items()}


def kept_for_checks(state: State) -> dict[str, float]:
    """Returns what the test of a run's final text is expected to cost, by unit; empty: nothing."""
    task = state.header.task
    if not (held := checks_of(task)):
        return {}
    share = 2 * held / calls_of_evaluation(task)
    return {u: share * cost for u, cost in state.initial_cost.items() if u != "seconds"}


def powers_of_two(budget: int) -> list[int]:
    """Returns 1, 2, 4, ... up to the budget."""
    return [1 << k for k in range(budget.bit_length())]
