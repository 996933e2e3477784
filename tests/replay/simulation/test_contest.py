"""Policies on one pool: no scale of fitness changes what tables say, and they say what they are."""

import functools
import itertools

import numpy as np
import pytest
from synthetic_runs import as_frame

import evo
from replay.claims.judging import judge
from replay.simulation.contest import compete, usual_tau
from replay.simulation.pools import Played, Pools, play
from replay.simulation.simulate import Replay, simulate, simulate_many
from replay.statistics.intervals import NOTHING, interval

SMALL = {"replicates": 60, "reward": "rank"}


def runs(seed, n=10, rounds=8):
    steps = np.random.default_rng(seed).exponential(0.05, (n, rounds)).cumsum(axis=1)
    return as_frame(np.c_[np.zeros(n), 1 - np.exp(-steps)], children=2, seeds=range(n))


def test_tables_carry_the_coverage_that_was_measured_and_pulls_add_up():
    found = compete(runs(1), {"ucb1": "ucb1"}, **SMALL)
    for table in (found.curves, found.effects, found.regrets, found.pulls, found.times):
        known = table["low"].notna()
        assert known.any()
        assert table.loc[known, "coverage"].between(0.7, 0.95).all()
    shares = found.pulls.groupby("policy")["value"].sum()
    np.testing.assert_allclose(shares, 1.0)
    assert found.pulls.set_index(["policy", "rank"]).loc[("single", 1), "value"] < 1


def test_a_contest_shows_its_numbers():
    found = compete(runs(1), {"ucb1": "ucb1"}, **SMALL)
    heading, columns, *rows = repr(found).splitlines()
    assert heading == f"Contest: {found.setting}"
    shown = ("best fitness after 8 pulls", "above single", "null p", "above random")
    assert columns.split() == " ".join(shown).split()
    assert [row.split()[0] for row in rows] == ["single", "random", "ucb1"]
    effect = found.effects.set_index("effect").loc["allocation"]
    assert f"{effect['value']:.4g} [{effect['low']:.4g}, {effect['high']:.4g}]" in rows[2]
    same = compete(runs(1), [], **SMALL, rounds=16, arms=2)
    assert "above random" not in repr(same)


def limits(found):
    return [found.value, found.low, found.high]


@pytest.mark.parametrize(("n", "arms"), [(10, 2), (11, 3)])
def test_a_single_run_has_the_number_that_the_runs_themselves_have(n, arms):
    """However few the replicates, and although a pool pulls one arm of it alone."""
    frame = runs(4, n=n)
    found = compete(frame, {"ucb1": "ucb1"}, replicates=30, arms=arms)
    finals = found.finals.set_index("policy")
    own = interval(frame.loc[frame["generation"] == 8, "best_fitness"])
    single = finals.loc["single", ["value", "low", "high", "coverage"]].astype(float)
    np.testing.assert_allclose(single, [*limits(own), own.coverage])
    pool = found.effects.set_index("effect").loc["pool", "value"]
    assert pool == pytest.approx(finals.loc["random", "value"] - own.value)


def test_one_question_has_one_answer_in_a_contest_and_in_a_verdict():
    frame = runs(5)
    settings = {"rounds": 6, "arms": 3, "reward": "rank", "seed": 2}
    found = compete(frame, ["ucb1"], **settings)
    for effect, a, b in (
        ("pool", "random", "single"),
        ("allocation", "ucb1", "random"),
        ("policy", "ucb1", "single"),
    ):
        row = found.effects.set_index("effect").loc[effect]
        verdict = judge(frame, a, b, **settings)
        np.testing.assert_array_equal(row[["value", "low", "high"]], limits(verdict.interval))
        assert row["coverage"] == verdict.interval.coverage
        turned = judge(frame, b, a, **settings)
        np.testing.assert_allclose(
            limits(turned.interval), -np.array(limits(verdict.interval))[[0, 2, 1]]
        )
    ends = Pools(frame, **settings).ends("single")
    last = frame.loc[frame["generation"] == 6, "best_fitness"]
    assert ends.mean() == pytest.approx(last.mean())


def test_arms_rank_by_what_they_reach_within_the_rounds():
    fitness = np.array([[0, 0.5, 0.5], [0, 0.1, 0.9]])
    for rounds, best in ((1, 0), (2, 1)):
        found = play(fitness, "single", lengths=np.array([2, 2]), rounds=rounds, arms=2)
        assert ((found.place == 0) == (found.replay.pulls == best)).all()


def test_tau_is_what_nine_in_ten_pools_reach():
    frame = runs(2)
    found = compete(frame, {}, **SMALL)
    random = simulate(frame, "random", rounds=8, arms=2, replace=False, **SMALL)
    assert found.tau == usual_tau(random)
    final = random.best_fitness[:, -1]
    assert (final >= found.tau).mean() >= 0.9
    assert (final >= 1.02 * found.tau).mean() < 0.9
    assert any("90 %" in note for note in found.notes)


def test_runs_that_exchange_programs_are_cut_and_the_table_says_so():
    found = compete(runs(3).assign(mixed=4.0), {}, **SMALL)
    assert found.rounds == 3
    assert any("exchange programs" in note for note in found.notes)
    with pytest.raises(ValueError, match="at least 3 runs of one task"):
        compete(runs(3, n=2), {}, **SMALL)


def test_policies_that_use_up_every_arm_are_identical_by_construction_and_have_no_effects():
    found = compete(runs(4), {"ucb1": "ucb1"}, rounds=16, arms=2, **SMALL)
    assert found.identical
    assert found.effects.empty
    assert found.regrets.empty
    assert "identical by construction" in found.notes[0]
    assert found.finals["value"].nunique() == 1
    shorter = compete(runs(4), {"ucb1": "ucb1"}, rounds=15, arms=2, **SMALL)
    assert not shorter.identical
    assert set(shorter.effects["effect"]) == {"pool", "allocation"}
    assert any("random is the baseline" in note for note in shorter.notes)
    assert any("8 generations" in note and "closed" in note for note in shorter.notes)
    assert not any("closed" in note for note in compete(runs(4), [], **SMALL).notes)


def test_with_one_pull_there_is_nothing_to_choose_and_no_effect():
    found = compete(runs(4), {"ucb1": "ucb1"}, rounds=1, arms=2, **SMALL)
    assert found.identical
    assert found.effects.empty
    assert found.notes[0].startswith("nothing to choose: with one pull")
    with pytest.raises(ValueError, match=r"nothing to choose: with one pull.*at least 2 rounds"):
        judge(runs(4, rounds=1), "ucb1", "single", arms=2)
    assert not compete(runs(4), {"ucb1": "ucb1"}, rounds=2, arms=2, **SMALL).identical


def test_with_one_arm_there_is_nothing_to_choose_and_no_effect():
    found = compete(runs(4), {"ucb1": "ucb1"}, rounds=6, arms=1, **SMALL)
    assert "K = 1 arm of n = 10 runs" in found.setting
    assert found.identical
    assert found.effects.empty
    assert found.notes[0].startswith("nothing to choose: with one arm")
    assert found.finals["value"].nunique() == 1
    with pytest.raises(ValueError, match=r"nothing to choose: with one arm.*at least 2 arms"):
        judge(runs(4), "ucb1", "single", arms=1)


@pytest.mark.parametrize("K", [3, 4])
def test_effects_have_intervals_from_as_many_runs_on_as_a_verdict_asks_for(K):
    enough, fewer = (compete(runs(5, n=n), ["ucb1"], arms=K, **SMALL) for n in (2 * K, 2 * K - 1))
    for table in (enough.effects, enough.regrets):
        assert table["low"].notna().all()
    for table in (fewer.effects, fewer.regrets):
        assert table["low"].isna().all()
    with pytest.raises(ValueError, match=f"for K = {K} there are {2 * K - 1}: 1 more is needed"):
        judge(runs(5, n=2 * K - 1), "ucb1", "single", arms=K)


def test_a_single_run_pulls_each_of_equal_arms_as_often():
    equal = as_frame(np.tile([0.0, 0.5, 0.6], (6, 1)), children=2, seeds=range(6))
    found = compete(equal, [], arms=3, replicates=3000)
    shares = found.pulls.set_index("policy").loc["single", "value"]
    np.testing.assert_allclose(shares, 1 / 3, atol=0.04)


def test_a_fifth_of_the_runs_are_arms_by_default():
    assert compete(runs(5, n=16), [], **SMALL).arms == 3
    assert compete(runs(5, n=3), [], **SMALL).arms == 2


class Last(evo.policies.BasePolicy):
    """A user's policy: it pulls the last open arm."""

    def ask(self, open_arms):
        return open_arms.shape[1] - 1 - open_arms[:, ::-1].argmax(axis=1)

    def tell(self, arm, reward, cost):
        pass


def test_names_and_policies_of_ones_own_compete_in_one_list():
    slow = functools.partial(evo.policies.UCB1, c=0.1)
    found = compete(runs(6), ["ucb", Last, slow], **SMALL)
    names = ["single", "random", "ucb1", "last", "ucb1 c=0.1"]
    assert found.finals["policy"].tolist() == names
    assert set(found.effects["policy"]) == set(names[2:])
    named = compete(runs(6), {"mine": Last, "ucb1": "ucb1"}, **SMALL)
    own = found.finals.set_index("policy").loc["last", "value"]
    assert named.finals.set_index("policy").loc["mine", "value"] == own
    made = simulate_many(np.c_[np.zeros(6), np.ones(6)], ["random", Last], rounds=1, replicates=3)
    assert list(made) == ["random", "last"]


@pytest.mark.parametrize(
    ("policies", "error", "message"),
    [
        ("ucb1", TypeError, "expected a list of policies"),
        (Last, TypeError, "expected a list of policies"),
        ([Last, functools.partial(Last)], ValueError, "two policies are called 'last'"),
        (["ucb1", "nonsense"], ValueError, "nonsense"),
        (("epsilon_greedy", {"epsilon": 0.2}), TypeError, r"got \{.*functools\.partial\(POLICIES"),
        ({"mine": ("ucb1", {})}, TypeError, r"got \('ucb1', \{\}\); functools\.partial"),
    ],
)
def test_what_is_no_list_of_policies_is_refused(policies, error, message):
    with pytest.raises(error, match=message):
        compete(runs(6), policies, **SMALL)


@pytest.mark.parametrize(("low", "width"), [(5.0, 0.01), (0.2, 0.6), (-3e6, 40.0), (0.0, 1e-7)])
def test_the_usual_tau_is_rounded_by_the_range_of_fitness_and_not_by_its_size(low, width):
    rng = np.random.default_rng(0)
    best = low + width * np.sort(rng.random((20, 9)), axis=1)
    random = simulate(best, "random", rounds=8, arms=4, replicates=200)
    value = np.quantile(random.best_fitness[:, -1], 0.1, method="lower")
    tau = usual_tau(random)
    assert value - 0.011 * width <= tau <= value
    assert (random.best_fitness[:, 0] < tau).any()


def replay_of(best, arms, pulls=None):
    """A replay with this best fitness, (replicates, rounds)."""
    best, arms = np.asarray(best, dtype=float), np.asarray(arms)
    pulls = np.zeros(best.shape, dtype=int) if pulls is None else pulls
    return Replay(pulls=pulls, best_fitness=best, arms=arms, rewards=best, spent={})


@pytest.mark.parametrize(("low", "tau"), [(0.0, 0.91), (5.0, 5.91), (-300.0, -299.09)])
def test_the_usual_tau_has_three_digits_of_the_range(low, tau):
    best = low + np.array([[0.0, 0.9178], [0.0, 2.0]])
    assert usual_tau(replay_of(best, [[0], [1]])) == pytest.approx(tau, abs=1e-12)


def test_limits_of_shares_of_pulls_lie_between_zero_and_one():
    """Run 0 alone decides which arm is pulled, so the interval would reach beyond both."""
    arms = np.array(list(itertools.combinations(range(6), 2)))
    worse = np.where(arms[:, 0] == 0, arms[:, 0], arms[:, 1])  # runs rank by their number
    fitness = np.c_[np.zeros(6), np.arange(6) / 6]
    made = replay_of(fitness[worse, 1:], arms, worse[:, None])
    played = Played(
        replay=made, fitness=fitness, lengths=np.ones(6, dtype=int), means=made.best_fitness,
        warnings=(),
    )  # fmt: skip
    assert played.pulls.value == pytest.approx([2 / 3, 1 / 3])
    assert (played.pulls.low[1], played.pulls.high[0]) == (0.0, 1.0)


def test_shares_of_pulls_count_those_that_were_made_alone():
    """Two arms of three generations end long before twelve rounds do."""
    fitness = np.cumsum(np.random.default_rng(2).random((8, 4)), axis=1) / 4
    played = play(
        fitness, "ucb1", lengths=np.full(8, 3), rounds=12, arms=2, replicates=200, reward="rank"
    )
    assert ((played.replay.pulls >= 0).sum(axis=1) == 6).all()
    assert played.pulls.value.tolist() == [0.5, 0.5]
    assert played.ranks.sum(axis=0).tolist() == [1.0] * 6 + [0.0] * 6


def test_policies_compete_where_a_single_run_may_find_nothing_and_say_so_once():
    frame = runs(1)
    lost = frame["run"] == frame["run"].iloc[0]
    known = frame["best_fitness"].where(~lost & (frame["generation"] > 0))  # as of a table
    frame = frame.assign(best_fitness=known)
    found = compete(frame, {"round_robin": "round_robin"}, **SMALL)
    assert found.effects["null_p"].isna().all()
    assert found.finals.set_index("policy").loc["round_robin"].notna().all()
    assert sum(NOTHING in note for note in found.notes) == 1
