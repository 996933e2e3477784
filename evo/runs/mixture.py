"""Several models in one run: a policy chooses which of them each child is asked of.

It chooses when a generation is planned, from complete generations alone, so that neither the order
of answers nor a kill decides. The choice is part of the logged plan, and each child's line names
its model. What a model has returned is the gain of its children over the best fitness before them,
per dollar where all prices are known, else per call. A price of 0 counts as a very small one, so
that what a free model gains outweighs all that is paid for.

Version 1, that of the first logs, took free models and unknown costs for worthless, and forgot
drafts that were not chosen; up to version 2 a child that a filter kept out gained, too.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

import msgspec

from evo.keyed import KeyedStream
from evo.logs.cost import cost_of_calls
from evo.logs.records import Header, Outcome, Planned, ReplyLine

PRICED_VERSION = 2  # from this one on, free models, unknown costs and all drafts count as they do
MIXTURE_VERSION = 3
"""How the returns of models are compared in new runs."""

SMALL = 1e-30
"""Dollars that a token of a free model counts as."""


@dataclass(frozen=True)
class Returns:
    """Costs and gains of the children of one model.

    Attributes:
        calls: How many there are.
        cost: What they cost, in dollars or calls.
        gain: By how much they exceeded the best fitness before their generation, in sum.
        asked: Calls made for them, drafts that were not chosen included; 0 in version 1.
        unpriced: How many of these calls cost an unknown number of dollars.
    """

    calls: int = 0
    cost: float = 0.0
    gain: float = 0.0
    asked: int = 0
    unpriced: int = 0

    @property
    def rate(self) -> float:
        """Gain by cost; 0 while nothing was spent."""
        return self.gain / self.cost if self.cost > 0 else 0.0

    @property
    def awaited(self) -> Returns:
        """The same with one more child, which has cost what they do and gained nothing yet."""
        usual = self.cost / self.calls if self.calls else 0.0
        return replace(self, calls=self.calls + 1, cost=self.cost + usual)


def ucb1(returns: Sequence[Returns], rng: KeyedStream) -> int:
    """Returns each model once, then the one with the largest upper confidence bound.

    Rates are divided by the largest, so that neither the scale of the fitness nor the price level
    decides.
    """
    for index, known in enumerate(returns):
        if not known.calls:
            return index
    largest = max(known.rate for known in returns) or 1.0
    total = math.log(sum(known.calls for known in returns))
    bounds = [known.rate / largest + math.sqrt(2 * total / known.calls) for known in returns]
    return bounds.index(max(bounds))


def round_robin(returns: Sequence[Returns], rng: KeyedStream) -> int:
    """Returns the model with the fewest calls, of equal ones the first."""
    calls = [known.calls for known in returns]
    return calls.index(min(calls))


def at_random(returns: Sequence[Returns], rng: KeyedStream) -> int:
    """Returns a model drawn at random, all with equal probability."""
    return rng.integer(0, len(returns) - 1)


MODEL_POLICIES: dict[str, Callable[[Sequence[Returns], KeyedStream], int]] = {
    "ucb1": ucb1,
    "round_robin": round_robin,
    "random": at_random,
}
"""Policies by name: functions of what each model returned so far, which return its index."""


def with_models(
    planned: Sequence[Planned],
    header: Header,
    number: int,
    returns: Mapping[str, Returns],
    waiting: Iterable[str] = (),
) -> tuple[Planned, ...]:
    """Returns the requests of a generation, each with the model that it is asked of.

    Args:
        planned: The requests.
        header: The run's configuration.
        number: The generation, or the request, which keys the draws.
        returns: What each model has returned so far, by its name.
        waiting: The models of children that are under way.
    """
    names = [each.model.name for each in header.models]
    known = comparable([returns.get(name, Returns()) for name in names])
    for name in waiting:
        known[names.index(name)] = known[names.index(name)].awaited
    rng = KeyedStream("model", header.seed, header.children, number)
    weights = dict(enumerate(header.model_weights))
    policy, chosen = MODEL_POLICIES[header.model_policy], []
    for request in planned:
        index = rng.weighted(weights) if weights else policy(known, rng)
        known[index] = known[index].awaited
        chosen.append(msgspec.structs.replace(request, model=names[index]))
    return tuple(chosen)


def comparable(returns: Sequence[Returns]) -> list[Returns]:
    """Returns the same with costs in one unit: calls, where nothing is known of a model's prices.

    A call whose cost is unknown counts as the model's other calls do.
    """
    if any(each.asked and each.unpriced == each.asked for each in returns):
        return [replace(each, cost=float(each.asked)) for each in returns]
    return [
        replace(each, cost=each.cost * each.asked / (each.asked - each.unpriced))
        if each.unpriced
        else each
        for each in returns
    ]


def added(
    returns: Mapping[str, Returns],
    children: Sequence[Outcome],
    header: Header,
    best_before: float | None,
    unchosen: Sequence[ReplyLine] = (),
) -> dict[str, Returns]:
    """Returns what each model has returned after a complete generation.

    Args:
        returns: What each had returned before it, by its name.
        children: The children of the generation.
        header: The configuration that it was made under.
        best_before: The best fitness before it.
        unchosen: Drafts of its children that were not evaluated, which cost and gain nothing.
    """
    found = dict(returns)
    in_dollars = all(
        each.model.is_llm and None not in (each.model.input_price, each.model.output_price)
        for each in header.models
    )
    all_gain = header.mixture_version < MIXTURE_VERSION  # also what a filter kept out
    for child in children:
        before = found.get(child.model, Returns())
        fitness = child.evaluation.fitness
        gain = 0.0
        if fitness is not None and best_before is not None and (all_gain or not child.kept_out):
            gain = max(0.0, fitness - best_before)
        if header.mixture_version < PRICED_VERSION:
            paid = cost_of_calls([child], header).dollars if in_dollars else 1.0
            found[child.model] = Returns(
                before.calls + 1, before.cost + (paid or 0.0), before.gain + gain
            )
        else:
            known_child = replace(before, calls=before.calls + 1, gain=before.gain + gain)
            found[child.model] = _charged(known_child, child, header, in_dollars=in_dollars)
    if header.mixture_version >= PRICED_VERSION:
        for draft in unchosen:
            before = found.get(draft.model, Returns())
            found[draft.model] = _charged(before, draft, header, in_dollars=in_dollars)
    return found


def _charged(
    returns: Returns, call: Outcome | ReplyLine, header: Header, *, in_dollars: bool
) -> Returns:
    """Returns the same after one more call."""
    cost = cost_of_calls([call], header)
    paid = cost.dollars if in_dollars else None
    if paid == 0:
        paid = SMALL * max(cost.tokens or 0.0, 1.0)
    return replace(
        returns,
        cost=returns.cost + (paid or 0.0),
        asked=returns.asked + 1,
        unpriced=returns.unpriced + (paid is None),
    )
