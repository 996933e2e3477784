"""How many runs a pool of K arms needs: the one rule, which all that draws arms follows.

There are at least five runs, and two for each arm: a pool takes at most half of them. By default it
takes a fifth, at least two arms, since intervals over runs were measured to hold best there.
Intervals of larger pools are labelled by the coverage that was measured for these.
"""

from __future__ import annotations

from replay.statistics.intervals import LEAST

FEWEST, USUAL = 2, 5
"""Runs for each arm: the fewest that a comparison of policies accepts, and the default."""

POOL_RULE = "policies need at least five runs, and at least twice as many as arms"


def needed_runs(arms: int) -> int:
    """The fewest runs for an interval of what a policy does with so many arms."""
    return max(LEAST, FEWEST * arms)


def usual_runs(arms: int) -> int:
    """Runs from which on so many arms are a pool of the usual size."""
    return USUAL * arms


def default_arms(runs: int) -> int:
    """The default K where arms are drawn; there are never more arms than runs."""
    return min(runs, max(2, runs // USUAL))


def pool_kind(kind: str, n: int, K: int) -> str:
    """Name of the measured coverage: pools of more than the usual size have one of their own.

    No coverage was measured for pools of more than half of the runs.
    """
    if n >= usual_runs(K):
        return kind
    return f"{kind} above n/{USUAL}" if n >= FEWEST * K else f"{kind} above n/{FEWEST}"


def lack_of_runs(runs: int, arms: int) -> str:
    """Says that pools of so many arms need more runs than there are."""
    return f"{POOL_RULE}; for K = {arms} {more_runs(runs, needed_runs(arms))}"


def more_runs(runs: int, needed: int) -> str:
    """Says how many runs there are, and how many more are needed."""
    lack = needed - runs
    have = "there is 1" if runs == 1 else f"there are {runs}"
    return f"{have}: {lack} more {'is' if lack == 1 else 'are'} needed"
