"""How many things happen at once: presets, and a fixed split of slots for comparison."""

from __future__ import annotations

from typing import NamedTuple

CALL_SECONDS = 600.0
"""How long a call may take unless something else is said."""


class Preset(NamedTuple):
    """How hard a session goes at an endpoint; requests per minute count in any sliding minute."""

    max_concurrent: int
    requests_per_minute: int
    problems_per_batch: int  # on which a selection tries a text in a round, at least
    configurations_per_batch: int  # trials that a `bayesian` sweep proposes at once
    configurations_in_flight: int  # runs of a sweep at once, unless `max_concurrent` is given


PRESETS = {
    "conservative": Preset(5, 2000, 10, 5, 3),
    "balanced": Preset(10, 3500, 20, 10, 5),
    "aggressive": Preset(15, 3500, 30, 15, 8),
}


def find_preset(name: str) -> Preset:
    """Returns the preset of a name; raises a ValueError that lists them if there is none."""
    if not isinstance(name, str) or name not in PRESETS:
        raise ValueError(f"preset: expected one of {', '.join(PRESETS)}, got {name!r}")
    return PRESETS[name]


class ConcurrencyPlan(NamedTuple):
    """A fixed split of slots: so many arms (or configurations) at once, so many children of each.

    Attributes:
        arms: Arms or configurations at once.
        children: Children, or problems of a batch, at once in each of them.

    Example:
        >>> evo.ConcurrencyPlan(arms=4, children=16).arms
        4
    """

    arms: int
    children: int


def plan_concurrency(max_concurrent: int, batch_size: int) -> ConcurrencyPlan:
    """Returns the split of slots between arms and the children of one of them.

    As many children work at once as a batch has, and as many such batches as fit: 20 slots and
    batches of 11 make 1 x 11. `evo.select_best(evaluate=agent, data=rows)` begins its calls so: the
    rows of a round go to one configuration, then to the next. There no slot stays empty: what is
    left over, here 9, and each slot that falls free goes to the next row in this order. The calls
    of runs go to whichever slot is free.

    Args:
        max_concurrent: Slots, at least 1.
        batch_size: Children of a generation or problems of a batch, at least 1.

    Raises:
        ValueError: A number below 1.

    Example:
        >>> evo.plan_concurrency(64, 16)
        ConcurrencyPlan(arms=4, children=16)
    """
    from evo.logs.inputs import at_least  # help on the command line needs no msgspec

    for name, value in (("max_concurrent", max_concurrent), ("batch_size", batch_size)):
        at_least(name, value, 1)
    children = min(batch_size, max_concurrent)
    return ConcurrencyPlan(max_concurrent // children, children)
