"""Estimates of what work may cost, printed before its first call."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from evo.plugins import MistakenType

if TYPE_CHECKING:
    from evo.logs.records import CriticRecord, Header
    from evo.runs.bounds import CostBound
    from evo.runs.handle import Prepared
    from evo.studies.sweep.design import Design
    from evo.studies.sweep.fields import Configuration

FEWEST = 5
"""Runs below which no interval is shown, see `replay.interval`."""


def outlook_on_logs(
    prepared: Prepared[Any], budget: Mapping[str, float] | None, *, in_waves: bool = False
) -> str:
    """Returns `outlook` on what is left to do of runs that may be logged in part.

    Args:
        prepared: The runs, with the paths of their logs.
        budget: Limits by unit of all runs together, what is logged included.
        in_waves: Whether the budget lets all runs get equally far.
    """
    from evo.runs.handle import read_begun

    logs = map(read_begun, prepared.paths)
    done = [None if log is None or log.initial is None else len(log.generations) for log in logs]
    text = outlook(prepared.runs, budget, in_waves=in_waves, done=done)
    goals = [generations for _, generations in prepared.runs]
    beyond = [T for T, made in zip(goals, done, strict=True) if made is not None and made > T]
    if not beyond:
        return text
    which, stay = ("it goes", "stays") if len(done) == 1 else (f"{len(beyond)} of them go", "stay")
    return f"{text}; {which} beyond T={beyond[0]} already and {stay} as logged"


def outlook(
    runs: Iterable[tuple[Header, int]],
    budget: Mapping[str, float] | None = None,
    *,
    in_waves: bool = False,
    done: Sequence[int | None] = (),
) -> str:
    """Returns in one line what some runs may cost together, without retries.

    Args:
        runs: Header and T of each run.
        budget: Limits by unit of all runs together.
        in_waves: Whether the budget lets all runs get equally far.
        done: Generations of each run that are logged; None: not even the initial program.
    """
    from evo.runs.bounds import cost_bound

    calls, tokens, dollars = 0.0, 0.0, 0.0
    known = [(header, cost_bound(header, generations, retries=0)) for header, generations in runs]
    count = len(known)
    for (header, bound), made in itertools.zip_longest(known, done):
        own = (bound if made is None else bound.beyond(made)).total["calls"]
        most = [_most_of_reply(each) for each in _asked(header)]
        calls += own
        tokens += own * _largest(completion for completion, _ in most)
        dollars += own * _largest(paid for _, paid in most)
    further = any(made is not None for made in done)
    text = f"{count} {'run' if count == 1 else 'runs'}, "
    if further and not calls:
        return f"{text}nothing is left to call"
    more = "further " if further else ""
    text += f"at most {calls:,.0f} {more}{'call' if calls == 1 else 'calls'}"
    if not math.isnan(tokens):
        paid = "" if math.isnan(dollars) else f" ({dollars:,.2f} dollars)"
        text += f", {tokens:,.0f} completion tokens{paid}, and their prompts"
    within = bought([bound for _, bound in known], budget, in_waves=in_waves)
    return f"{text}; {within}" if within else text


def bought(
    bounds: Sequence[CostBound], budget: Mapping[str, float] | None, *, in_waves: bool
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
    least = "" if budget.keys() <= {"calls"} else "at least "  # replies are rarely the longest
    return f"{text}, which is enough for {least}{count} of {longest} generations{each}"


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


def outlook_of_sweep(design: Design, budget: Mapping[str, float] | None) -> str:
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
