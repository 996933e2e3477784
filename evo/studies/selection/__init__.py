"""Selectors that find the best configuration in few samples, live and post hoc alike.

    selector = ArmElimination((1, configurations), Terms(size=100), rng=Draws(seed, 1))
    while (take := selector.ask()).any():
        selector.tell(take, rewards_of(take), costs_of(take))
    selector.winner()

`evo.studies.selection.race.race` is that loop. A sample is one seed of a search, or one problem of
a data set. What a selector of your own looks like: `BaseSelector`.
"""

from __future__ import annotations

from evo.plugins import find_named, name_in
from evo.studies.selection import rules
from evo.studies.selection.base import BaseSelector, IntervalKind, SelectorClass, Terms
from evo.studies.selection.rules import neighbours

SELECTORS: dict[str, type[BaseSelector]] = {
    "brute_force": rules.BruteForce,
    "random_search": rules.RandomSearch,
    "hill_climbing": rules.HillClimbing,
    "arm_elimination": rules.ArmElimination,
    "threshold": rules.Threshold,
    "epsilon_lucb": rules.EpsilonLUCB,
    "bayesian": rules.TopTwo,
    "successive_halving": rules.Halving,
}
"""Every selector by name."""


def find_selector(selector: str | SelectorClass, **parameters: object) -> SelectorClass:
    """The selector of a name, or as it is, with parameters set; see `evo.plugins.find_named`."""
    return find_named("selector", selector, SELECTORS, parameters, ("shape", "terms", "rng"))


def selector_name(build: SelectorClass) -> str:
    """The name of a selector as results state it."""
    return name_in(SELECTORS, build)


__all__ = [
    "SELECTORS",
    "BaseSelector",
    "IntervalKind",
    "SelectorClass",
    "Terms",
    "find_selector",
    "neighbours",
    "selector_name",
]
