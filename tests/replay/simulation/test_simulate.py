"""Replays: what a replicate is, when it is over, and that it repeats the live allocation."""

import itertools
import warnings

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from evo.policies import POLICIES
from evo.policies.draws import BLOCK
from replay.logs.frames import ReplayWarning
from replay.simulation.arms import HINDSIGHT
from replay.simulation.simulate import simulate, simulate_many
from replay.simulation.sizes import default_arms

pytestmark = [
    pytest.mark.filterwarnings("ignore::evo.policies.PolicyWarning"),
    pytest.mark.filterwarnings("ignore::replay.logs.frames.ReplayWarning"),
]

NAN = np.nan


def trajectories(runs, generations, seed=0):
    """Random non-decreasing rows, multiples of 1/64, some above 1."""
    rng = np.random.default_rng(seed)
    jumps = rng.integers(0, 20, (runs, generations)) * (rng.random((runs, generations)) < 0.2)
    return np.c_[np.full(runs, 0.25), 0.25 + jumps.cumsum(axis=1) / 64]


def with_ends(fitness, lengths):
    columns = np.arange(fitness.shape[1])
    return np.where(columns <= np.asarray(lengths)[:, None], fitness, NAN)


def assert_same(a, b):
    for name in ("pulls", "best_fitness", "arms", "rewards"):
        np.testing.assert_array_equal(getattr(a, name), getattr(b, name))


def test_a_replay_holds_what_the_pulls_revealed():
    fitness = with_ends(trajectories(6, 20), [20, 3, 8, 20, 1, 12])
    replay = simulate(fitness, "random", rounds=40, replicates=50, arms=4, seed=1)
    assert replay.pulls.shape == replay.best_fitness.shape == replay.rewards.shape == (50, 40)
    assert replay.arms.shape == (50, 4)
    assert repr(replay).startswith("Replay(pulls=(50, 40), best_fitness=(50, 40), arms=(50, 4)")
    for i in range(50):
        depth, best = dict.fromkeys(replay.arms[i].tolist(), 0), fitness[replay.arms[i], 0].max()
        duplicates = len(set(replay.arms[i].tolist())) < 4
        for round_, row in enumerate(replay.pulls[i]):
            if row >= 0 and not duplicates:
                depth[row] += 1
                assert replay.rewards[i, round_] == fitness[row, depth[row]]
                best = max(best, fitness[row, depth[row]])
            if not duplicates:
                assert replay.best_fitness[i, round_] == best


@given(
    name=st.sampled_from(sorted([*POLICIES, *HINDSIGHT])),
    runs=st.integers(1, 6),
    generations=st.integers(1, 12),
    rounds=st.integers(1, 30),
    missing=st.sampled_from(["close", "stop"]),
    seed=st.integers(0, 1000),
)
def test_no_run_is_pulled_beyond_its_end(name, runs, generations, rounds, missing, seed):
    lengths = np.random.default_rng(seed).integers(0, generations + 1, runs)
    fitness = with_ends(trajectories(runs, generations, seed), lengths)
    replay = simulate(fitness, name, rounds=rounds, replicates=9, missing=missing, seed=seed)
    for pulls in replay.pulls:
        over = pulls < 0
        assert (np.diff(over.astype(int)) >= 0).all()  # once over, over
        assert (np.bincount(pulls[~over], minlength=runs) <= lengths).all()
        if missing == "close":
            assert (~over).sum() == min(rounds, lengths.sum())
    assert (np.diff(replay.best_fitness, axis=1) >= 0).all()


@pytest.mark.parametrize("name", [*POLICIES, *HINDSIGHT])
def test_a_replicate_depends_on_the_seed_and_its_number_alone(name):
    fitness = trajectories(8, 12)
    setting = {"rounds": 20, "arms": 4, "seed": 3}
    few = simulate(fitness, name, replicates=3, **setting)
    many = simulate(fitness, name, replicates=1100, **setting)  # more than one chunk
    for part in ("pulls", "best_fitness", "arms", "rewards"):
        np.testing.assert_array_equal(getattr(few, part), getattr(many, part)[:3])
    if name in ("random", "exp3p", "thompson"):
        assert len(np.unique(many.pulls, axis=0)) > 1000


def test_chunks_of_replicates_change_nothing(monkeypatch):
    """Also of those that wait for a run's end while others go on, and are simulated alone."""
    fitness = with_ends(trajectories(8, 12), [12, 3, 8, 5, 2, 12, 1, 6])
    setting = {"rounds": 20, "arms": 4, "seed": 3, "replicates": 3 * BLOCK, "in_flight": 3}
    whole = simulate(fitness, "thompson", **setting)
    monkeypatch.setattr("replay.simulation.simulate._CHUNK", BLOCK)
    assert_same(whole, simulate(fitness, "thompson", **setting))


@pytest.mark.parametrize("name", sorted(POLICIES))
@pytest.mark.parametrize("seed", range(5))
def test_replaying_an_allocation_over_its_own_arms_repeats_it(name, seed):
    """The logs of a live allocation hold no generation that it did not pull."""
    fitness = trajectories(5, 40, seed)
    for cap in (None, 12):
        setting = {"rounds": 40, "seed": seed, "cap": cap}
        live = simulate(fitness, name, replicates=1, **setting)
        own = with_ends(fitness, np.bincount(live.pulls[0], minlength=5))
        again = simulate(own, name, replicates=1, missing="stop", **setting)
        assert_same(live, again)
        first = simulate(own, name, replicates=80, missing="stop", **setting)
        np.testing.assert_array_equal(first.pulls[0], live.pulls[0])


class TestArms:
    def test_every_row_in_order_by_default(self):
        replay = simulate(trajectories(4, 5), "random", rounds=3, replicates=7)
        np.testing.assert_array_equal(replay.arms, np.tile(np.arange(4), (7, 1)))

    def test_all_policies_see_the_same_draws(self):
        replays = simulate_many(
            trajectories(9, 8), ["random", "ucb", "oracle_arm"], rounds=9, arms=3, seed=4
        )
        assert list(replays) == ["random", "ucb", "oracle_arm"]
        for replay in replays.values():
            np.testing.assert_array_equal(replay.arms, replays["random"].arms)
        assert len(np.unique(replays["random"].arms, axis=0)) > 400

    def test_draws_are_uniform_over_runs(self):
        for replace in (True, False):
            arms = simulate(
                trajectories(6, 2), "single", rounds=1, arms=3, replicates=4000, replace=replace
            ).arms
            counts = np.bincount(arms.reshape(-1), minlength=6)
            assert abs(counts - 2000).max() < 200
            assert (np.sort(arms, axis=1)[:, 1:] == np.sort(arms, axis=1)[:, :-1]).any() == replace

    def test_no_run_is_an_arm_twice_unless_asked(self):
        """The best of 5 of 10 runs is what combinatorics say, and not the bootstrap's."""
        final = np.arange(10.0)
        fitness = np.c_[np.zeros(10), final]
        rows = {}
        for replace in (False, True):
            replay = simulate(fitness, "single", rounds=1, arms=5, replicates=4000, replace=replace)
            rows[replace] = final[replay.arms].max(axis=1).mean()
        every = [max(each) for each in itertools.combinations(final, 5)]
        assert rows[False] == pytest.approx(np.mean(every), abs=0.06)
        assert rows[True] < rows[False] - 0.3
        default = simulate(fitness, "single", rounds=1, arms=5, replicates=50)
        assert all(len(set(row)) == 5 for row in default.arms.tolist())
        with pytest.raises(ValueError, match="expected from 1 to 10 arms without replacement"):
            simulate(fitness, "single", rounds=1, arms=11)

    @pytest.mark.parametrize(
        ("runs", "arms"), [(2, 2), (3, 2), (10, 2), (14, 2), (15, 3), (72, 14)]
    )
    def test_a_fifth_of_the_runs_are_arms_where_nobody_says_how_many(self, runs, arms):
        assert default_arms(runs) == arms

    def test_rows_can_be_given(self):
        rows = np.array([[0, 2], [3, 3]])
        replay = simulate(trajectories(4, 5), "round_robin", rounds=2, replicates=2, arms=rows)
        assert replay.pulls.tolist() == [[0, 2], [3, 3]]


class TestTheEndOfTheLogs:
    """Replays whose pulls could go beyond the end of a log say so; no policy is needed for it."""

    FITNESS = with_ends(trajectories(6, 8), [8, 8, 5, 8, 8, 8])

    @staticmethod
    def messages(**settings):
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            simulate(TestTheEndOfTheLogs.FITNESS, "random", replicates=6, **settings)
        return [str(each.message) for each in caught if each.category is ReplayWarning]

    def test_arms_that_close_early_are_announced(self):
        (message,) = self.messages(rounds=6, arms=2)
        assert "5 generations" in message
        assert "closed" in message
        assert self.messages(rounds=5, arms=2) == []

    def test_rounds_that_use_up_every_arm_make_all_policies_identical_by_construction(self):
        (message,) = self.messages(rounds=16, arms=2)
        assert "identical by construction" in message
        races = simulate_many(self.FITNESS, ["random", "ucb1", "single"], rounds=16, arms=2)
        for race in races.values():
            np.testing.assert_array_equal(
                race.best_fitness[:, -1], races["random"].best_fitness[:, -1]
            )
        (message,) = self.messages(rounds=15, arms=2)
        assert "identical" not in message

    def test_a_cap_or_a_budget_that_ends_first_needs_no_message(self):
        costs = {"calls": np.ones_like(self.FITNESS)}
        assert self.messages(rounds=30, arms=2, cap=5) == []
        assert self.messages(rounds=30, arms=2, costs=costs, budget={"calls": 5}) == []
        assert self.messages(rounds=30, arms=2, missing="stop") == []
        assert self.messages(rounds=30, arms=2, costs=costs, budget={"calls": 12})


class TestMissing:
    def test_a_run_is_over_after_its_last_number(self):
        fitness = with_ends(trajectories(2, 6), [2, 4])
        close = simulate(fitness, "single", rounds=8, replicates=1)
        assert close.pulls.tolist() == [[0, 0, 1, 1, 1, 1, -1, -1]]
        stop = simulate(fitness, "single", rounds=8, replicates=1, missing="stop")
        assert stop.pulls.tolist() == [[0, 0, -1, -1, -1, -1, -1, -1]]
        assert stop.best_fitness[0, -1] == stop.best_fitness[0, 1]

    def test_nothing_ok_yet_does_not_end_a_run(self):
        fitness = np.array([[NAN, NAN, NAN, 0.5, 0.5], [NAN, NAN, NAN, NAN, NAN]])
        replay = simulate(fitness, "single", rounds=8, replicates=1)
        assert replay.pulls.tolist() == [[0] * 4 + [1] * 4]
        np.testing.assert_array_equal(replay.best_fitness[0, :3], [NAN, NAN, 0.5])
        assert replay.rewards.tolist() == [[0.0, 0.0, 0.5, 0.5, 0.0, 0.0, 0.0, 0.0]]

    def test_lengths_tell_how_long_a_run_without_any_number_was(self):
        fitness = np.array([[NAN, NAN, NAN, 0.5, 0.5], [NAN, NAN, NAN, NAN, NAN]])
        replay = simulate(fitness, "single", rounds=8, replicates=1, lengths=[4, 1])
        assert replay.pulls.tolist() == [[0] * 4 + [1] + [-1] * 3]
        with pytest.raises(ValueError, match="expected lengths"):
            simulate(fitness, "single", rounds=8, lengths=[3, 1])


class TestCap:
    @pytest.mark.parametrize("name", ["single", "oracle_arm"])
    @pytest.mark.parametrize("missing", ["close", "stop"])
    def test_an_arm_is_closed_at_the_cap(self, name, missing):
        fitness = trajectories(3, 9)
        replay = simulate(fitness, name, rounds=9, replicates=1, cap=2, missing=missing)
        assert np.bincount(replay.pulls[0] + 1).tolist() == [3, 2, 2, 2]
        same = simulate(fitness[:, :3], name, rounds=9, replicates=1)
        assert_same(replay, same)


def test_the_oracle_looks_no_further_than_the_cap():
    fitness = np.array([[0, 0.5, 0.5, 0.5], [0, 0.1, 0.2, 0.9]])
    for cap, arm in ((2, 0), (3, 1)):
        replay = simulate(fitness, "oracle_arm", rounds=3, replicates=1, cap=cap)
        assert replay.pulls[0, 0] == arm


class TestBudget:
    def test_each_arm_pays_its_own_logged_costs(self):
        fitness = trajectories(2, 6)
        tokens = np.array([[5, 1, 2, 3, 4, 5, 6], [NAN, 10, 10, 10, 10, 10, 10]])
        calls = np.ones((2, 7))
        calls[1, 0] = 0  # generation 0 is paid with the first pull, as far as it cost anything
        replay = simulate(
            fitness,
            "round_robin",
            rounds=8,
            replicates=2,
            costs={"tokens": tokens, "calls": calls},
            budget={"tokens": 28},
        )
        assert replay.pulls[1].tolist() == [0, 1, 0, 1, -1, -1, -1, -1]
        assert replay.spent["tokens"][0].tolist() == [6, 16, 18, 28, 28, 28, 28, 28]
        assert replay.spent["calls"][0].tolist() == [2, 3, 4, 5, 5, 5, 5, 5]

    def test_a_budget_in_calls_of_one_each_equals_rounds(self):
        fitness = trajectories(5, 30)
        setting = {"replicates": 70, "arms": 3}
        calls = np.full(fitness.shape, 16.0)
        calls[:, 0] = 0
        budget = simulate(
            fitness, "thompson", rounds=20, costs={"calls": calls}, budget={"calls": 160}, **setting
        )
        rounds = simulate(fitness, "thompson", rounds=20, **setting)
        np.testing.assert_array_equal(budget.pulls[:, :10], rounds.pulls[:, :10])
        assert (budget.pulls[:, 10:] == -1).all()

    def test_replicates_end_apart(self):
        fitness = trajectories(5, 30)
        cost = np.random.default_rng(0).exponential(size=fitness.shape)
        replay = simulate(
            fitness, "random", rounds=30, costs={"dollars": cost}, budget={"dollars": 10.0}
        )
        spent = replay.spent["dollars"]
        made = replay.pulls >= 0
        before = np.c_[np.zeros(len(spent)), spent[:, :-1]]
        assert (before[made] < 10.0).all()
        assert (before[~made] >= 10.0).all()
        assert len(np.unique(made.sum(axis=1))) > 5


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"fitness": [0.5, 0.6]}, r"shape \(runs, generations \+ 1\), got shape \(2,\)"),
        ({"fitness": [[0.5, NAN, 0.6]]}, "row 0 of fitness has NaN between two numbers"),
        ({"policy": "ucb2"}, "'ucb1'.*got 'ucb2'.*in hindsight: .*'oracle_arm'"),
        ({"rounds": 0}, "rounds: expected at least 1, got 0"),
        ({"cap": -1}, "cap of 0 or more generations, got -1"),
        ({"missing": "open"}, r"'close' or 'stop', or .* each of the 2 runs, got 'open'"),
        ({"missing": ["stop"] * 3}, r"each of the 2 runs, got \['stop', 'stop', 'stop'\]"),
        ({"reward": "fit"}, "got 'fit'"),
        ({"arms": 0}, "1 or more with it.*got 0"),
        ({"arms": 3, "replace": False}, "from 1 to 2 arms without replacement"),
        ({"arms": [[0, 1]]}, r"shape \(5, K\)"),
        ({"arms": [[0, 2]] * 5}, "row numbers from 0 to 1"),
        ({"costs": {"calls": [[1, 1]]}}, "costs in calls of the shape of fitness"),
        ({"budget": {"calls": 3}}, r"units out of costs=, \[\], got \['calls'\].*cost_matrices"),
        ({"seed": -3, "policy": "random"}, "seed: expected at least 0, got -3"),
    ],
)
def test_what_is_wrong_is_named(change, message):
    setting = {"fitness": [[0.1, 0.2], [0.1, 0.3]], "policy": "single", "rounds": 2}
    with pytest.raises(ValueError, match=message):
        simulate(**{**setting, "replicates": 5, **change})


def test_a_warning_is_given_once_for_all_chunks(recwarn):
    import warnings

    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        simulate(trajectories(5, 4), "ucb1", rounds=3, replicates=3000)
    assert len(seen) == 1


@pytest.mark.parametrize("value", [np.inf, -np.inf])
def test_infinite_fitness_is_refused(value):
    fitness = trajectories(4, 5)
    fitness[2, 0] = value
    with pytest.raises(ValueError, match="expected finite fitness, got an infinite one in row 2"):
        simulate(fitness, "random", rounds=2)


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ({"budget": 5}, "budget: expected a dict by unit of cost, got a value of type int"),
        ({"costs": [1]}, "costs: expected a dict by unit of cost, got a value of type list"),
        ({"seed": None}, "seed: expected a whole number, got None"),
    ],
)
def test_settings_of_another_type_are_refused_in_words(given, says):
    with pytest.raises(TypeError, match=says):
        simulate(trajectories(4, 5), "ucb1", rounds=4, **given)
    with pytest.raises(TypeError, match="expected a list of policies or a policy by label, got 5"):
        simulate_many(trajectories(4, 5), 5, rounds=4)
