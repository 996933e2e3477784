"""Selectors that find the best configuration in few samples, live and post hoc alike.

    selector = ArmElimination((1, configurations), Terms(size=100), rng=Draws(seed, 1))
    while (take := selector.ask()).any():
        selector.tell(take, rewards_of(take), costs_of(take))
    selector.winner()

`evo.selectors.race.race` is that loop. A sample is one seed of a search, or one problem of a data
set. What a selector of your own looks like: `BaseSelector`.
"""

from __future__ import annotations

from typing import Any

from evo.plugins import with_parameters
from evo.selectors.adaptive import EpsilonLUCB, HillClimbing, TopTwo, neighbours
from evo.selectors.base import BaseSelector, Kind, SelectorClass, Terms
from evo.selectors.elimination import ArmElimination, BruteForce, Halving, RandomSearch, Threshold

SELECTORS: dict[str, type[BaseSelector]] = {
    "brute_force": BruteForce,
    "random_search": RandomSearch,
    "hill_climbing": HillClimbing,
    "arm_elimination": ArmElimination,
    "threshold": Threshold,
    "epsilon_lucb": EpsilonLUCB,
    "bayesian": TopTwo,
    "successive_halving": Halving,
}
"""Every selector by name."""


def find_selector(selector: str | SelectorClass, **parameters: Any) -> SelectorClass:
    """The selector of a name, with parameters set; anything that can be called is taken as it is.

    Raises:
        ValueError: No selector has that name.
        TypeError: Neither a name nor callable, or a parameter that it does not have or needs.
    """
    if not isinstance(selector, str) and not callable(selector):
        raise TypeError(
            f"expected the name of a selector or a callable (shape, terms, *, rng) -> selector, "
            f"got {selector!r}"
        )
    if isinstance(selector, str) and selector not in SELECTORS:
        raise ValueError(f"expected a selector out of {sorted(SELECTORS)}, got {selector!r}")
    build: SelectorClass = SELECTORS[selector] if isinstance(selector, str) else selector
    return with_parameters(selector_name(build), build, parameters, ("shape", "terms", "rng"))


def selector_name(build: SelectorClass) -> str:
    """The name of a selector as results state it."""
    kind = getattr(build, "func", build)
    named: dict[Any, str] = {known: name for name, known in SELECTORS.items()}
    return named.get(kind) or str(getattr(kind, "__name__", type(kind).__name__))


__all__ = [
    "SELECTORS",
    "BaseSelector",
    "Kind",
    "SelectorClass",
    "Terms",
    "find_selector",
    "neighbours",
    "selector_name",
]
