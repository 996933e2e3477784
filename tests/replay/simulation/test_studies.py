"""Two policies in many studies at once."""

import numpy as np

from replay.simulation.pools import Pools
from replay.simulation.studies import drawn_effects


def policy_runs(seed, n=10):
    """Runs that jump now and then, so that a run that stands twice in a pool moves the effect."""
    from synthetic_runs import as_frame as runs

    rng = np.random.default_rng(seed)
    jumps = (rng.random((n, 16)) < 0.3).cumsum(axis=1) * rng.random((n, 1))
    return runs(np.c_[np.zeros(n), jumps], children=1, seeds=range(n))


def test_many_studies_at_once_are_judged_as_each_by_itself():
    pools = Pools(policy_runs(5, n=20), arms=4, seed=3)
    rng = np.random.default_rng(1)
    found = [*drawn_effects(pools, "ucb1", "single", 20, studies=70, level=0.95, rng=rng)]
    assert len(found) == 70
    rng, alone = np.random.default_rng(2), []
    for _ in range(70):
        rows = rng.integers(0, pools.n, 20)
        own = Pools.of(
            pools.fitness[rows],
            pools.lengths[rows],
            arms=4,
            rounds=pools.rounds,
            replicates=2000,
            seed=1,
        )
        alone.append(own.play("ucb1").end.less(own.play("single").end))
    for name in ("value", "low", "high"):
        one, other = (np.array([getattr(each, name) for each in made]) for made in (found, alone))
        error = np.hypot(one.std(), other.std()) / np.sqrt(70)
        assert abs(one.mean() - other.mean()) < 3 * error
        assert 0.7 < one.std() / other.std() < 1.45
