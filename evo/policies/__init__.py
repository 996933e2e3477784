"""Policies that allocate pulls to arms, by ask and tell, live and replayed alike.

    policy = UCB1((replicates, arms), rounds=64, rng=Draws(seed, replicates))
    for _ in range(64):
        arm = policy.ask(open_arms)
        policy.tell(arm, reward_of(arm))

`evo.studies.allocation.loop.allocate` is that loop. What a policy of your own looks like:
`IndexPolicy`.
"""

from __future__ import annotations

from evo.plugins import MistakenType, Registry, find_named, loaded, name_in, plugged_in
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
from evo.policies.learned import (
    FreezeThaw,
    LearnedPolicy,
    OptimalStopping,
    freeze_thaw,
    learns,
    optimal_stopping,
)

ALIASES = {"ucb": "ucb1"}
"""Other names that are understood."""

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
        "optimal_stopping": OptimalStopping,
        "freeze_thaw": FreezeThaw,
    },
    reserved={"all": "every policy", **ALIASES},
    kind="class",
    group="evo.policies",
)
"""Every policy by name. `functools.partial(POLICIES["ucb1"], c=0.1)` sets a parameter."""

SETS = (
    "functools.partial(POLICIES[name], ...) sets the parameters of a policy, as does `--set "
    "ucb1.c=0.1` of `replay report --policies ucb1`"
)
"""How parameters are given, at the end of messages."""


def find_policy(policy: str | PolicyClass, **parameters: object) -> PolicyClass:
    """Returns a policy class by its name, with parameters set.

    Args:
        policy: A name in `evo.policies.POLICIES`, or a class, which is taken as it is.
        **parameters: Parameters of the policy, such as `epsilon=0.3`.

    Returns:
        A callable that builds the policy: `build(shape, rounds=..., rng=...)`.

    Raises:
        ValueError: No policy has that name; the message lists all names.
        TypeError: `policy` is neither a name nor callable, or has no such parameter.

    Example:
        >>> build = evo.policies.find_policy("epsilon_greedy", epsilon=0.3)
        >>> replay.simulate(fitness, build, rounds=4, arms=2, replicates=10).pulls.shape
        (10, 4)
    """
    name = ALIASES.get(policy, policy) if isinstance(policy, str) else policy
    if not isinstance(name, str) and not callable(name):
        raise MistakenType(
            "expected the name of a policy or a callable (shape, rounds, rng) -> policy, got "
            f"{policy!r}; {SETS}"
        )
    own = not isinstance(name, str) or name in POLICIES
    known = POLICIES if own else plugged_in("evo.policies", POLICIES)
    return find_named("policy", name, known, parameters, ("shape", "rounds", "rng"), ALIASES)


def name_of(build: PolicyClass) -> str:
    """Returns the name under which journals and tables list a policy.

    Args:
        build: A policy class, or a `functools.partial` of one.

    Returns:
        Its name in `evo.policies.POLICIES`, or its own name in lower case if it is not registered.

    Example:
        >>> evo.policies.name_of(evo.policies.UCB1)
        'ucb1'
    """
    if (found := name_in(POLICIES, build)) in POLICIES.data:
        return found
    known = loaded(plugged_in("evo.policies"))
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
    "FreezeThaw",
    "IndexPolicy",
    "LearnedPolicy",
    "MeanPolicy",
    "OptimalStopping",
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
    "freeze_thaw",
    "learns",
    "name_of",
    "optimal_stopping",
]
