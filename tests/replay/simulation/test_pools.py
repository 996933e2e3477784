"""Pools of logged runs, and worlds in which nothing can be chosen."""

import numpy as np
import pytest
from benchmarks.worlds import paths
from scipy.stats import binom
from synthetic_runs import as_frame

import replay
from evo.policies import IndexPolicy
from replay.simulation.pools import ENOUGH, MOST, Pools, _exchanged


def pools(world, seed, *, n=20, rounds=16, K=4):
    fitness = paths(world, np.random.default_rng([seed, n]), n, rounds)
    return Pools.of(fitness, np.full(n, rounds), arms=K, rounds=rounds, replicates=2000)


def test_increments_are_exchanged_within_their_generation_and_nothing_else_changes():
    fitness = np.random.default_rng(0).random((7, 5))
    best = np.fmax.accumulate(fitness, axis=1)
    worlds = _exchanged(fitness, 30, np.random.default_rng(1))
    assert worlds.shape == (30, 7, 5)
    own = np.sort(np.diff(best, axis=1, prepend=0.0), axis=0)
    for world in worlds:
        steps = np.sort(np.diff(world, axis=1, prepend=0.0), axis=0)
        np.testing.assert_allclose(steps, own, atol=1e-12)
    np.testing.assert_allclose(worlds.mean(axis=1), np.tile(best.mean(axis=0), (30, 1)))
    assert not np.allclose(worlds[0], worlds[1])


def test_where_nothing_can_be_chosen_null_p_is_seldom_small():
    found = np.array([pools("null", k).null_p("thompson", "single") for k in range(40)])
    assert (found <= 0.1).sum() <= binom.ppf(0.999, 40, 0.1)
    assert (found <= 0.5).sum() <= binom.ppf(0.999, 40, 0.5)
    assert ((found > 0) & (found <= 1)).all()


def test_where_some_runs_climb_for_ever_choosing_is_seen():
    """What an arm gained predicts what it gains: the half that climbs goes on doing so."""
    climb = np.linspace(0.1, 0.9, 25) * (np.arange(20) % 2)[:, None]
    fitness = np.maximum(climb, 0.1) + 0.001 * np.random.default_rng(0).random((20, 1))
    made = Pools.of(fitness, np.full(20, 24), arms=4, rounds=24, replicates=2000)
    for policy in ("thompson", "successive_halving"):
        for baseline in ("single", "random"):
            assert made.null_p(policy, baseline) <= 0.05
    assert made.null_p("round_robin", "random") > 0.1  # it does not choose


def test_no_gain_is_no_evidence_of_a_choice():
    made = pools("ceilings", 0)
    assert made.null_p("thompson", "thompson") == 1
    assert made.null_p("single", "thompson") > 0.5
    assert len(made.permuted_effects("thompson", "thompson", 0.0)) < MOST
    assert (made.permuted_effects("thompson", "thompson", 0.0) >= 0).sum() >= ENOUGH


@pytest.mark.parametrize("level", [0.6, 1e6 / 3])
def test_between_runs_that_are_alike_policies_have_no_effect_and_no_evidence(level):
    """The rounding of a sum over pools is no effect, and none that chance never brings."""
    alike = Pools.of(np.full((6, 3), level), np.full(6, 2), arms=2, rounds=2)
    for policy in ("thompson", "ucb1", "random"):
        assert alike.effect(policy, "single").value == 0
        assert alike.null_p(policy, "single") == alike.null_p("single", policy) == 1


class First(IndexPolicy):
    """Pulls the first arm that is open."""

    def index(self):
        return np.zeros(self.pulls.shape)


def test_a_policy_that_stays_with_any_one_arm_chooses_as_well_as_chance():
    found = [pools("ceilings", k).null_p(First, "single") for k in range(12)]
    assert np.mean(np.array(found) > 0.1) > 0.7
    assert min(found) > 0.01


def test_judge_reports_and_contests_state_one_null_p():
    best = paths("ceilings", np.random.default_rng(3), 12, 8)
    frame = as_frame(best, children=1, seeds=range(12))
    judged = replay.judge(frame, "thompson", "single")
    contest = replay.compete(frame, ["thompson"]).effects
    [row] = contest[contest["effect"] == "policy"].itertuples()
    assert (judged.effect, judged.null_p) == pytest.approx((row.value, row.null_p))
    assert f"has probability {judged.null_p:.3g}" in judged.paragraph
    sides = replay.judge(frame.assign(side=frame["seed"] % 2), {"side": 0}, {"side": 1})
    assert np.isnan(sides.null_p)
    assert "exchanged, at least" not in sides.paragraph


def test_arms_rank_by_what_they_reach_alone_and_their_shares_add_up():
    fitness = np.linspace(0.1, 0.9, 12)[:, None] * np.linspace(0.2, 1.0, 13)
    made = Pools.of(fitness, np.full(12, 12), arms=4, rounds=12, replicates=200)
    even = made.play("round_robin").pulls.value
    assert even == pytest.approx([0.25] * 4)
    chosen = made.play("successive_halving")
    assert chosen.pulls.value.sum() == pytest.approx(1)
    assert (np.diff(chosen.pulls.value) <= 0).all()
    assert chosen.pulls.value[0] == pytest.approx(0.5)
    assert (chosen.ranks[:, -1] == [1, 0, 0, 0]).all()  # the last rounds are those of the best


def test_a_single_run_is_on_average_the_runs_that_were_logged():
    made = pools("ceilings", 2)
    single = made.play("single")
    assert single.means.mean(axis=0) == pytest.approx(single.curve.value)
    assert single.curve.value == pytest.approx(made.fitness[:, 1 : made.rounds + 1].mean(axis=0))


def test_pools_are_drawn_from_twice_as_many_runs_at_least():
    best = paths("ceilings", np.random.default_rng(3), 8, 4)
    assert Pools(as_frame(best, children=1, seeds=range(8)), arms=4).K == 4
    with pytest.raises(ValueError, match="for K = 4"):
        Pools(as_frame(best[:7], children=1, seeds=range(7)), arms=4)


@pytest.mark.parametrize(("low", "high"), [(0.0, 1.0), (-0.1, 0.5), (0.5, 1.1), (-1.0, 2.0)])
def test_raw_fitness_is_off_its_scale_on_either_side(low: float, high: float):
    fitness = np.tile(np.linspace(low, high, 5), (4, 1))
    made = Pools.of(fitness, np.full(4, 4), arms=2, rounds=4)
    assert made.off_scale == (low < 0 or high > 1)
    ranked = Pools.of(fitness, np.full(4, 4), arms=2, rounds=4, reward="rank")
    assert not ranked.off_scale


def test_what_has_no_fitness_yet_is_exchanged_as_the_least():
    fitness = np.array([[np.nan, 0.5, 0.7], [0.2, 0.2, 0.9]])
    least = np.where(np.isnan(fitness), 0.2, fitness)
    one, other = (_exchanged(each, 3, np.random.default_rng(1)) for each in (fitness, least))
    assert (one == other).all()
