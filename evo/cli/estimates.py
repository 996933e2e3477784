"""Estimates of what work may cost, printed before its first call."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

from evo.plugins import MistakenType

if TYPE_CHECKING:
    from evo.logs.records import CriticRecord, Header
    from evo.runs.bounds import CostBound
    from evo.studies.sweep.design import Design
    from evo.studies.sweep.fields import Configuration

FEWEST = 5
"""Runs below which no interval is shown, see `replay.interval`."""


def outlook(
    runs: Iterable[tuple[Header, int]],
    budget: Mapping[str, float] | None = None,
    *,
    in_waves: bool = False,
) -> str:
    """Returns in one line what some runs may cost together, without retries.

    Args:
        runs: Header and T of each run.
        budget: Limits by unit of all runs together.
        in_waves: Whether the budget lets all runs get equally far.
    """
    from evo.runs.bounds import cost_bound

    calls, tokens, dollars = 0.0, 0.0, 0.0
    known = [(header, cost_bound(header, generations, retries=0)) for header, generations in runs]
    count = len(known)
    for header, bound in known:
        own = bound.total["calls"]
        most = [_most_of_reply(each) for each in _asked(header)]
        calls += own
        tokens += own * _largest(completion for completion, _ in most)
        dollars += own * _largest(paid for _, paid in most)
    text = f"{count} {'run' if count == 1 else 'runs'}, "
    text += f"at most {calls:,.0f} {'call' if calls == 1 else 'calls'}"
    if not math.isnan(tokens):
        paid = "" if math.isnan(dollars) else f" ({dollars:,.2f} dollars)"
        text += f", {tokens:,.0f} completion tokens{paid}, and their prompts"
    within = bought([bound for _, bound in known], budget, in_waves=in_waves)
    return f"{text}; {within}" if within else text


def bought(
    bounds: Sequence[CostBound], budget: Mapping[str, float] | None, *, in_waves: bool = False
) -> str:
    """Returns in words what a budget pays for of some runs; empty without one.

    Args:
        bounds: What each run may cost at most.
        budget: Limits by unit of all runs together.
        in_waves: Whether the budget lets all runs get equally far.
    """
    from evo.runs.bounds import affordable

    if not budget:
        return ""
    limits = ", ".join(f"{limit:,g} {unit}" for unit, limit in budget.items())
    text = f"no further generation begins once {limits} are spent"
    longest = max((bound.generations for bound in bounds), default=0)
    count = affordable(bounds, budget) if in_waves or len(bounds) == 1 else None
    if count is None or count >= longest:
        return text
    each = " of each run" if len(bounds) > 1 else ""
    return f"{text}, which is enough for {count} of {longest} generations{each}"


def _asked(header: Header) -> list[Header | CriticRecord]:
    """Returns whatever a call of a run may ask: each of its models, and its critic."""
    models: list[Header | CriticRecord] = [
        header.with_model(each.model.name) for each in header.models
    ]
    return [*(models or [header]), *([header.critic] if header.critic else [])]


def _most_of_reply(asked: Header | CriticRecord) -> tuple[float, float]:
    """Returns the tokens of a reply at most, and the dollars that these cost; NaN: unknown."""
    from evo.logs.cost import longest_reply, price_of_tokens

    longest = longest_reply(asked.model, asked.sampling.max_tokens)
    tokens = math.nan if longest is None else float(longest)
    priced = price_of_tokens(0.0, 0.0, tokens, model=asked.model)
    return tokens, priced if asked.model.is_llm else math.nan  # the stand-in's are invented


def _largest(amounts: Iterable[float]) -> float:
    """Returns the largest of some amounts; NaN where one is unknown."""
    known = list(amounts)
    return math.nan if any(map(math.isnan, known)) else max(known)


def outlook_of_sweep(design: Design, budget: Mapping[str, float] | None = None) -> str:
    """Returns the same of a sweep; of one that is no grid, at its costliest single values."""
    try:
        made = [design.configure(values) for values in design.parsed_space().grid()]
    except (ValueError, MistakenType):
        made = design.tried_values()
    planned = design.build_strategy().planned
    if design.strategy != "grid" or len(made) != planned:
        costliest = max(made, key=lambda each: each.header.children * each.generations)
        made = [costliest] * planned
    runs = [run for each in made for run in runs_of(each)]
    return outlook(runs * len(design.seeds), budget, in_waves=True)


def runs_of(configuration: Configuration) -> list[tuple[Header, int]]:
    """Returns header and T of a configuration's run; an allocation's rounds as if one arm's."""
    others = configuration.pool.get("arms", 1) - 1
    first = (configuration.header, configuration.generations)
    return [first, *[(configuration.header, 0)] * others]


def too_few(seeds: int, calls_a_seed: int, budget: Mapping[str, float] | None) -> str | None:
    """Returns a warning where a grid has fewer runs than an interval needs, or is cut short."""
    limit, total = (budget or {}).get("calls", math.inf), seeds * calls_a_seed
    if seeds < FEWEST:
        return (
            f"note: {seeds} runs of each split: too few to tell splits apart, since intervals "
            f"begin at {FEWEST} runs ({FEWEST * calls_a_seed:,} calls)"
        )
    if limit < total:
        return (
            f"note: the whole grid takes {total:,} calls; with fewer the longest runs, those of "
            "few children, end early, so give fewer calls to each run"
        )
    return None
