import functools
import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from slow_evidence import slow_interval

import replay
from evo.policies import Draws
from evo.studies.selection import SELECTORS, BaseSelector, Terms, find_selector, neighbours
from evo.studies.selection.confidence import log_evidence
from evo.studies.selection.race import ENDS, LoggedSamples, Races, race
from evo.studies.selection.rules import ArmElimination

NEEDS = {"threshold": {"threshold": -math.inf}}
BY_DELTA = sorted(set(SELECTORS) - {"successive_halving"})


def play(
    values: np.ndarray,
    selector: Any,
    *,
    seed: int = 0,
    parameters: dict[str, Any] | None = None,
    costs: dict[str, np.ndarray] | None = None,
    **terms: Any,
) -> Races:
    values = values if values.ndim == 3 else values[None]
    own = parameters if parameters is not None else NEEDS.get(selector, {})
    chosen = find_selector(selector, **own)(
        values.shape[:2], Terms(size=values.shape[2], **terms), rng=Draws(seed, len(values))
    )
    return race(chosen, LoggedSamples(values, costs=costs))


def bernoulli(means: list[float], size: int, *, replicates: int = 1, seed: int = 0) -> np.ndarray:
    draws = np.random.default_rng(seed).random((replicates, len(means), size))
    return (draws < np.array(means)[:, None]).astype(float)


@pytest.mark.parametrize("selector", sorted(SELECTORS))
@pytest.mark.parametrize("arms", [2, 5, 70])
def test_every_selector_ends_with_a_winner_among_the_survivors(selector: str, arms: int) -> None:
    values = np.random.default_rng(arms).random((3, arms, 6))
    found = play(values, selector)
    rows = np.arange(3)
    assert found.survivors[rows, found.winner].all()
    mean = np.where(found.survivors, found.standing.mean, -np.inf)
    assert (mean[rows, found.winner] == mean.max(axis=1)).all()
    assert (found.standing.count <= 6).all()
    assert found.spent["samples"].tolist() == found.standing.count.tolist()


@pytest.mark.parametrize("selector", sorted({*SELECTORS} - {"threshold"}))
def test_a_lone_configuration_wins_without_a_sample(selector: str) -> None:
    found = play(np.full((3, 1, 6), 0.5), selector)
    assert found.winner.tolist() == [0, 0, 0]
    assert found.survivors.all()
    assert found.standing.count.sum() == 0


@pytest.mark.parametrize("selector", BY_DELTA)
def test_without_a_chance_to_err_the_answer_is_that_of_brute_force(selector: str) -> None:
    values = np.random.default_rng(3).random((20, 6, 30))
    own = {"epsilon": 0.0} if selector == "epsilon_lucb" else None
    found = play(values, selector, delta=1e-300, parameters=own)
    assert found.winner.tolist() == values.mean(axis=2).argmax(axis=1).tolist()
    if selector not in ("bayesian", "epsilon_lucb"):  # these pass over those far behind
        assert (found.standing.count == 30).all()
    assert not (found.end == ENDS.index("certain")).any()


def test_threshold() -> None:
    values = bernoulli([0.05, 0.6, 0.9], 400, replicates=20)
    kept = play(values, "threshold", parameters={"threshold": -math.inf})
    assert kept.survivors.all()
    assert (kept.standing.count == 400).all()
    none = play(values, "threshold", parameters={"threshold": 1.5})
    assert (none.winner == -1).all()
    assert not none.survivors.any()
    middle = play(values, "threshold", parameters={"threshold": 0.35})
    assert middle.survivors.tolist() == [[False, True, True]] * 20
    assert (middle.standing.count[:, 0] < 400).all()


@pytest.mark.parametrize("selector", ["arm_elimination", "bayesian", "epsilon_lucb"])
def test_a_clear_gap_needs_half_of_brute_force_or_less(selector: str) -> None:
    values = bernoulli([0.8] + [0.5] * 7, 500, replicates=50)
    found = play(values, selector, batch=10)
    assert (found.winner == 0).all()
    assert found.standing.count.sum() < values.size / 2
    assert (found.end == ENDS.index("certain")).mean() > 0.9


@pytest.mark.slow
@pytest.mark.parametrize("selector", sorted(SELECTORS))
@pytest.mark.thorough
def test_wrong_in_five_percent_at_most(selector: str) -> None:
    values = bernoulli([0.6] + [0.5] * 7, 2000, replicates=50, seed=5)
    own = {"threshold": 0.55} if selector == "threshold" else {}
    found = play(values, selector, batch=10, parameters=own)
    # All err far less often than delta: so few replicates tell that from five percent.
    assert (found.winner != 0).mean() <= 0.02
    assert (~found.survivors[:, 0]).mean() <= 0.02


def test_compat_loses_the_best_far_more_often() -> None:
    values = bernoulli([0.6] + [0.5] * 7, 100, replicates=200, seed=1)
    anytime = play(values, "arm_elimination", batch=10)
    compat = play(values, "arm_elimination", batch=10, interval="compat")
    assert (~anytime.survivors[:, 0]).mean() <= 0.05
    assert (~compat.survivors[:, 0]).mean() > 0.1


@pytest.mark.parametrize("selector", sorted(SELECTORS))
def test_replicates_are_independent_and_repeat(selector: str) -> None:
    values = bernoulli([0.3, 0.6, 0.7, 0.9], 60, replicates=70)
    whole = play(values, selector, seed=2)
    again = play(values, selector, seed=2)
    few = play(values[:3], selector, seed=2)
    for name in ("winner", "survivors", "end"):
        assert getattr(whole, name).tolist() == getattr(again, name).tolist()
        assert getattr(whole, name)[:3].tolist() == getattr(few, name).tolist()
    assert whole.standing.count[:3].tolist() == few.standing.count.tolist()


def test_pairs_gain_where_seeds_matter() -> None:
    rng = np.random.default_rng(0)
    luck = rng.uniform(0, 0.8, 600)
    paired = luck + np.array([[0.0], [0.1]]) + rng.uniform(0, 0.05, (2, 600))
    apart = np.stack([paired[0], rng.permutation(paired[1])])
    one, other = play(paired, "arm_elimination"), play(apart, "arm_elimination")
    assert one.winner == other.winner == 1
    assert one.standing.count.sum() < 0.8 * other.standing.count.sum()


def test_ties_go_by_lower_bound_then_cost_then_order() -> None:
    spread, even = [0.0, 1.0] * 20, [0.5] * 40
    values = np.array([spread, even, even, even])
    costs = {"calls": np.array([[1.0], [3.0], [2.0], [2.0]])}
    assert play(values, "brute_force", costs=costs).winner == 2
    assert play(values, "brute_force").winner == 1


def test_random_search_tries_so_many() -> None:
    values = np.random.default_rng(1).random((10, 9, 4))
    found = play(values, "random_search", parameters={"trials": 3})
    assert ((found.standing.count > 0).sum(axis=1) == 3).all()
    assert len({tuple(row) for row in (found.standing.count > 0).tolist()}) > 1


def test_climb_follows_the_slope() -> None:
    hill = 0.9 - 0.05 * np.abs(np.arange(12) - 9.0)
    values = np.repeat(hill[:, None], 50, axis=1)
    climbed = play(values, "hill_climbing", parameters={"restarts": 0})
    assert climbed.winner == 9
    two_tops = np.maximum(hill, 0.95 - 0.1 * np.abs(np.arange(12) - 1.0))
    values = np.repeat(two_tops[:, None], 50, axis=1)
    assert play(values, "hill_climbing").winner == 1
    stuck = [
        int(play(values, "hill_climbing", seed=s, parameters={"restarts": 0}).winner[0])
        for s in range(6)
    ]
    assert set(stuck) == {1, 9}


@pytest.mark.parametrize("restarts", [0, 1, 3])
def test_so_many_climbs_follow_the_first(restarts: int) -> None:
    values, alone = np.random.default_rng(0).random((4, 6, 5)), np.zeros((6, 6), dtype=bool)
    found = play(
        values, "hill_climbing", parameters={"restarts": restarts}, neighbours=alone, delta=1e-9
    )
    assert ((found.standing.count > 0).sum(axis=1) == 1 + restarts).all()


def test_compat_is_the_mean_and_its_standard_errors() -> None:
    values = np.random.default_rng(0).random((3, 12))
    found = play(values, "brute_force", interval="compat", c=2.0).standing
    half = 2 * values.std(axis=1, ddof=1) / math.sqrt(12)
    assert found.lower[0] == pytest.approx(values.mean(axis=1) - half)
    assert found.upper[0] == pytest.approx(values.mean(axis=1) + half)


def test_neighbours() -> None:
    grid = [{"n": n, "model": m} for n in (1, 4, 16) for m in ("a", "b", "c")]
    near = neighbours(grid)
    assert (near == near.T).all()
    assert near[0].tolist() == [False, True, True, True, False, False, False, False, False]
    ordered = neighbours(grid, {"model": ["b", "a", "c"]})
    assert ordered[1].nonzero()[0].tolist() == [0, 4]
    with pytest.raises(ValueError, match="lacks 'c'"):
        neighbours(grid, {"model": ["a", "b"]})
    with pytest.raises(ValueError, match="no field 'nonsense'"):
        neighbours(grid, {"nonsense": [1]})


def test_halving_halves() -> None:
    values = np.random.default_rng(1).random((4, 8, 16))
    found = play(values, "successive_halving")
    assert sorted(found.standing.count[0].tolist()) == [4, 4, 4, 4, 8, 8, 16, 16]
    assert (found.survivors.sum(axis=1) == 1).all()


@pytest.mark.parametrize("arms", [2, 3, 9, 30])
@pytest.mark.parametrize("delta", [0.05, 0.2])
def test_delta_is_shared_among_rivals_and_among_arms(arms: int, delta: float) -> None:
    values = np.zeros((arms, 40))
    values[-1] = 1.0
    found = play(values, "arm_elimination", delta=delta)
    needed = next(
        n for n in range(1, 40)
        if log_evidence(np.ones((1, n)), np.array([n]))[0] >= math.log((arms - 1) / delta)
    )  # fmt: skip
    assert found.standing.count.tolist() == [[needed] * arms]
    assert found.winner == arms - 1
    drawn = np.random.default_rng(arms).random((arms, 40))
    whole = play(drawn, "brute_force", delta=delta)
    for k in range(arms):
        low, high = slow_interval([*drawn[k]], delta / arms)
        assert whole.standing.lower[0, k] == pytest.approx(low)
        assert whole.standing.upper[0, k] == pytest.approx(high)


def test_epsilon_is_what_may_be_lost_and_no_more() -> None:
    values = np.repeat([[0.50], [0.53], [0.58]], 400, axis=1)
    near = play(values, "epsilon_lucb", parameters={"epsilon": 0.2})
    far = play(values, "epsilon_lucb", parameters={"epsilon": 0.0})
    assert near.winner == far.winner == 2
    assert near.end == ENDS.index("certain")
    assert near.standing.count.sum() < far.standing.count.sum()
    tenfold = play(10 * values, "epsilon_lucb", parameters={"epsilon": 2.0}, high=10.0)
    assert tenfold.standing.count.tolist() == near.standing.count.tolist()


@settings(max_examples=25)
@given(
    st.integers(0, 2**31), st.sampled_from(sorted(SELECTORS)),
    st.sampled_from([1 / 128, 1.0, 128.0]), st.sampled_from([-5.0, 0.0, 5.0]),
)  # fmt: skip
def test_any_outcomes_on_any_scale_give_the_same_choice(
    seed: int, selector: str, a: float, b: float
) -> None:
    rng = np.random.default_rng(seed)
    outcomes = rng.integers(0, 65, (rng.integers(1, 6), rng.integers(1, 40))) / 64.0  # exact
    outcomes[rng.random(outcomes.shape) < 0.1] = np.nan
    own = {"threshold": {"threshold": 0.5}, "epsilon_lucb": {"epsilon": 0.125}}.get(selector, {})
    moved = {k: v * a + (b if k == "threshold" else 0.0) for k, v in own.items()}
    one = replay.select(outcomes, selector=selector, parameters=own, bounds=(0.0, 1.0))
    other = replay.select(outcomes * a + b, selector=selector, parameters=moved, bounds=(b, a + b))
    assert (one.winner, one.survivors, one.end) == (other.winner, other.survivors, other.end)
    assert one.samples.tolist() == other.samples.tolist()
    assert one.failures.tolist() == other.failures.tolist()
    assert other.lower == pytest.approx(a * one.lower + b)


def test_a_scale_that_nobody_stated_is_a_mistake_where_it_does_not_fit() -> None:
    for outcomes in (np.full((2, 3), -4.0), np.full((2, 3), 60.0)):
        with pytest.raises(ValueError, match=r"in \[0.0, 1.0\], but most do not.*give bounds"):
            replay.select(outcomes)
        assert replay.select(outcomes, bounds=(0.0, 1.0)).clipped.sum() == 6
    assert replay.select(np.full((2, 3), 1.02)).clipped.sum() == 6


def test_mistakes_are_named() -> None:
    with pytest.raises(ValueError, match=r"out of .*arm_elimination.* got 'ucb'"):
        find_selector("ucb")
    with pytest.raises(TypeError, match=r"unknown parameter 'eps' .known: epsilon"):
        find_selector("epsilon_lucb", eps=1)
    with pytest.raises(TypeError, match="needs threshold"):
        find_selector("threshold")
    with pytest.raises(TypeError, match="name of a selector or a callable"):
        find_selector(3)  # type: ignore[arg-type]
    wrong: list[tuple[dict[str, Any], str]] = [
        ({"size": 0}, "size"),
        ({"delta": 0.0}, "delta"),
        ({"low": 1.0}, "bounds"),
        ({"interval": "normal"}, "interval"),
        ({"c": 0.0}, "c: "),
    ]
    for terms, said in wrong:
        with pytest.raises(ValueError, match=said):
            Terms(**{"size": 3, **terms})
    with pytest.raises(ValueError, match="within the bounds"):
        play(np.array([[0.5, 1.2], [0.5, 0.5]]), "brute_force")


def test_a_selector_of_ones_own() -> None:
    class Pairs(BaseSelector):
        def targets(self) -> np.ndarray:
            standing = np.where(self.alive, self.upper, -np.inf)
            second = np.sort(standing, axis=1)[:, -2:-1]
            return np.where(standing >= second, self.grown(self.count), 0)

        def retire(self) -> None:
            self.alive &= ~self.beaten_by(self.winner())

    values = bernoulli([0.2, 0.4, 0.95], 100)
    assert play(values, Pairs).winner == 2
    assert play(values, functools.partial(ArmElimination)).winner == 2
