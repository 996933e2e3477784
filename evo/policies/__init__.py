"""Policies that allocate pulls to arms, by ask and tell, live and replayed alike.

    policy = UCB1((replicates, arms), rounds=64, rng=Draws(seed, replicates))
    for _ in range(64):
        arm = policy.ask(open_arms)
        policy.tell(arm, reward_of(arm))

`evo.studies.allocation.loop.allocate` is that loop. What a policy of your own looks like:
`IndexPolicy`.
"""

from __future__ import annotations

from evo.plugins import Registry, find_named, name_in, plugged_in
from evo.policies.bandits import (
    UCB1,
    BestArm,
    DiscountedUCB,
    EpsilonGreedy,
    Random,
    RoundRobin,
    Single,
    SuccessiveHalving,
    Thompson,
    ThompsonNIG,
)
from evo.policies.base import (
    BasePolicy,
    IndexPolicy,
    MeanPolicy,
    Policy,
    PolicyClass,
    PolicyWarning,
    Rng,
)
from evo.policies.draws import Draws
from evo.policies.exp3 import EXP3IX, EXP3P, EXP3Mixed

POLICIES: Registry[PolicyClass] = Registry(
    "policy",
    {
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
    },
)
"""Every policy by name. `functools.partial(POLICIES["ucb1"], c=0.1)` sets a parameter."""

SETS = "functools.partial(POLICIES[name], ...) sets the parameters of a policy"
"""How parameters are given, at the end of messages."""

ALIASES = {"ucb": "ucb1"}
"""Other names that are understood."""


def find_policy(policy: str | PolicyClass, **parameters: object) -> PolicyClass:
    """The policy class of a name, or as it is, with parameters set; `evo.plugins.find_named`."""
    name = ALIASES.get(policy, policy) if isinstance(policy, str) else policy
    if not isinstance(name, str) and not callable(name):
        raise TypeError(
            "expected the name of a policy or a callable (shape, rounds, rng) -> policy, got "
            f"{policy!r}; {SETS}"
        )
    own = not isinstance(name, str) or name in POLICIES
    known = POLICIES if own else {**plugged_in("evo.policies"), **POLICIES}
    return find_named("policy", name, known, parameters, ("shape", "rounds", "rng"))


def name_of(build: PolicyClass) -> str:
    """The name of a policy as journals state it."""
    known = {**plugged_in("evo.policies"), **POLICIES}
    found = name_in(known, build)
    return found if found in known else found.lower()


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
    "MeanPolicy",
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
    "find_policy",
    "name_of",
]
