"""Policies that allocate pulls to arms, by ask and tell, live and replayed alike.

    policy = UCB1((replicates, arms), rounds=64, rng=Draws(seed, replicates))
    for _ in range(64):
        arm = policy.ask(open_arms)
        policy.tell(arm, reward_of(arm))

`evo.allocation.allocate` is that loop. What a policy of your own looks like: `IndexPolicy`.
"""

from __future__ import annotations

import functools
from typing import Any

from evo.plugins import plugged_in, with_parameters
from evo.policies.base import BasePolicy, IndexPolicy, Policy, PolicyClass, PolicyWarning, Rng
from evo.policies.draws import Draws
from evo.policies.exp3 import EXP3IX, EXP3P, EXP3Mixed
from evo.policies.halving import SuccessiveHalving
from evo.policies.simple import BestArm, EpsilonGreedy, Random, RoundRobin, Single
from evo.policies.thompson import Thompson, ThompsonNIG
from evo.policies.ucb import UCB1, DiscountedUCB

POLICIES: dict[str, PolicyClass] = {
    "random": Random,
    "round_robin": RoundRobin,
    "single": Single,
    "epsilon_greedy": EpsilonGreedy,
    "ucb1": UCB1,
    "discounted_ucb": DiscountedUCB,
    "exp3p": EXP3P,
    "exp3ix": EXP3IX,
    "exp3_mixed": EXP3Mixed,
    "thompson": Thompson,
    "thompson_nig": ThompsonNIG,
    "best_arm": BestArm,
    "successive_halving": SuccessiveHalving,
}
"""Every policy by name. `functools.partial(POLICIES["ucb1"], c=0.1)` sets a parameter."""

ALIASES = {"ucb": "ucb1"}
"""Other names that are understood."""


def find_policy(policy: str | PolicyClass, **parameters: Any) -> PolicyClass:
    """The policy class of a name, with parameters set; what can be called is taken as it is.

    Raises:
        ValueError: No policy has that name.
        TypeError: Neither a name nor callable, or a parameter that it does not have.
    """
    if not isinstance(policy, str) and not callable(policy):
        raise TypeError(
            f"expected the name of a policy or a callable (shape, *, rounds, rng) -> policy, "
            f"got {policy!r}"
        )
    if isinstance(policy, str):
        name = ALIASES.get(policy, policy)
        known = POLICIES if name in POLICIES else plugged_in("evo.policies")
        if name not in known:
            names = sorted({**POLICIES, **known})
            raise ValueError(f"expected a policy out of {names}, got {policy!r}")
    build: PolicyClass = known[name] if isinstance(policy, str) else policy
    if parameters or isinstance(build, functools.partial):
        common = ("shape", "rounds", "rng")
        return with_parameters(f"policy {name_of(build)}", build, parameters, common)
    return build


def name_of(build: PolicyClass) -> str:
    """The name of a policy as journals state it."""
    kind = getattr(build, "func", build)
    for group in (POLICIES, plugged_in("evo.policies")):
        for name, known in group.items():
            if known is kind:
                return name
    return class_name(build)


def class_name(build: PolicyClass) -> str:
    """The name of its class or function, as journals once stated it."""
    kind = getattr(build, "func", build)
    return str(getattr(kind, "__name__", type(kind).__name__)).lower()


__all__ = [
    "ALIASES",
    "EXP3IX",
    "EXP3P",
    "POLICIES",
    "UCB1",
    "BasePolicy",
    "BestArm",
    "DiscountedUCB",
    "Draws",
    "EXP3Mixed",
    "EpsilonGreedy",
    "IndexPolicy",
    "Policy",
    "PolicyClass",
    "PolicyWarning",
    "Random",
    "Rng",
    "RoundRobin",
    "Single",
    "SuccessiveHalving",
    "Thompson",
    "ThompsonNIG",
    "class_name",
    "find_policy",
    "name_of",
]
