import re
from pathlib import Path

import numpy as np
import pytest
from synthetic_runs import as_frame

import replay
from replay.planning.diagnosis import ARMS
from replay.simulation.pools import Pools
from replay.simulation.sizes import (
    POOL_RULE,
    default_arms,
    more_runs,
    needed_runs,
    pool_kind,
    usual_runs,
)

REPLAY = Path(replay.__file__).parent


def runs(n, T=24):
    rng = np.random.default_rng(n)
    return as_frame(np.sort(rng.random((n, T + 1)), axis=1), children=1, seeds=range(n))


def test_pools_of_exactly_a_fifth_or_half_of_the_runs_have_the_coverage_of_smaller_ones():
    kinds = [pool_kind("pool", n, 2) for n in (10, 9, 4, 3)]
    assert kinds == ["pool", "pool above n/5", "pool above n/5", "pool above n/2"]


@pytest.mark.parametrize("n", [*range(1, 13), 24, 48])
def test_the_default_pool_is_the_largest_of_the_usual_size_or_has_two_arms(n):
    K = default_arms(n)
    assert 1 <= K <= n
    if K > 2:
        assert usual_runs(K) <= n < usual_runs(K + 1)
    if n >= usual_runs(2):
        assert pool_kind("pool", n, K) == "pool"


@pytest.mark.parametrize("K", [2, 3, 4])
def test_pools_judge_from_the_needed_runs_on_and_say_how_many_are_missing(K):
    needed = needed_runs(K)
    found = Pools(runs(needed), arms=K, replicates=200).effect("ucb1", "single")
    assert np.isfinite([found.low, found.high]).all()
    with pytest.raises(ValueError, match=f"{POOL_RULE}.*there are 3.* needed"):
        Pools(runs(3), arms=K)
    assert more_runs(needed - 1, needed) == f"there are {needed - 1}: 1 more is needed"


@pytest.mark.parametrize("n", [6, 8, 24])
def test_a_diagnosis_tries_the_arms_that_pools_accept(n):
    tried = set(replay.diagnose(runs(n, T=32)).ways["arms"])
    assert tried == {K for K in ARMS if needed_runs(K) <= n}


def test_the_rule_is_stated_in_one_place():
    numbers = re.compile(r"\b(?:n|runs|len\(\w+\))\)? (?:>=|<) [25] \* |runs // 5|max\(LEAST, 2 ")
    stated = [
        path.relative_to(REPLAY).as_posix()
        for path in REPLAY.rglob("*.py")
        for line in path.read_text().splitlines()
        if numbers.search(line)
    ]
    assert stated == []
