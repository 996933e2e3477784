"""Selectors that find the best configuration in few samples, live and post hoc alike.

    selector = ArmElimination((1, configurations), Terms(size=100), rng=Draws(seed, 1))
    while (take := selector.ask()).any():
        selector.tell(take, rewards_of(take), costs_of(take))
    selector.winner()

`evo.selectors.race.race` is that loop. A sample is one seed of a search, or one problem of a data
set. What a selector of your own looks like: `BaseSelector`.
"""

from __future__ import annotations

import functools
import inspect
from typing import Any

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
    if isinstance(selector, str):
        if selector not in SELECTORS:
            raise ValueError(f"expected a selector out of {sorted(SELECTORS)}, got {selector!r}")
        build: SelectorClass = SELECTORS[selector]
    elif callable(selector):
        build = selector
    else:
        raise TypeError(
            f"expected the name of a selector or a callable (shape, terms, *, rng) -> selector, "
            f"got {selector!r}"
        )
    given = {**getattr(build, "keywords", {}), **parameters}
    known = inspect.signature(getattr(build, "func", build)).parameters
    own = {name: p for name, p in known.items() if name not in ("shape", "terms", "rng")}
    name = selector_name(build)
    if wrong := [key for key in given if key not in own]:
        raise TypeError(
            f"{name}: unknown parameter {wrong[0]!r} (known: {', '.join(own) or 'none'})"
        )
    for key, parameter in own.items():
        if parameter.default is parameter.empty and key not in given:
            raise TypeError(f"{name}: needs {key}=...")
    return functools.partial(build, **parameters) if parameters else build


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
