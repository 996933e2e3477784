import numpy as np
import pandas as pd
import pytest
from synthetic_runs import as_frame

import replay
from replay.logs.frames import distinct_runs


def group(mean, n, model, seed=0, generations=4):
    """Runs that end around a mean."""
    ends = mean + 0.05 * np.random.default_rng(seed).normal(size=n)
    best = np.linspace(0, 1, generations + 1) * ends[:, None]
    frame = as_frame(best, children=8, seeds=range(n)).assign(model=model)
    frame["run"] = model + " " + frame["run"]
    return frame


def two(difference, n):
    return pd.concat([group(0.5 + difference, n, "new", seed=1), group(0.5, n, "old", seed=2)])


NEW, OLD = {"model": "new"}, {"model": "old"}


def arms(n=20, rounds=20):
    """Runs of which every second climbs while the others stay."""
    best = np.full((n, rounds + 1), 0.1)
    best[::2] = np.linspace(0.1, 0.9, rounds + 1)
    best += 0.01 * np.random.default_rng(0).random((n, 1))
    return as_frame(best, children=1, seeds=range(n))


def test_groups_are_told_apart_where_runs_suffice():
    frame = two(0.2, 12)
    better, worse = replay.judge(frame, NEW, OLD), replay.judge(frame, OLD, NEW)
    assert (better.verdict, worse.verdict) == ("supported", "refuted")
    assert better.effect == pytest.approx(-worse.effect)
    assert better.p < 0.01
    assert worse.p > 0.9
    assert better.runs_needed == 0
    assert better.interval.low < better.effect < better.interval.high
    few = replay.judge(two(0.2, 4), NEW, OLD)
    assert few.verdict == "undetermined"
    assert "too small" in few.interval.note
    assert "undetermined" in few.paragraph
    assert repr(few) == str(few)


def test_an_undetermined_comparison_says_what_would_settle_it():
    found = replay.judge(two(0.01, 8).assign(n_calls=8.0), NEW, OLD, margin=0.0)
    assert found.verdict == "undetermined"
    assert 0 < found.runs_needed < np.inf
    assert found.cost["calls"] == pytest.approx(found.runs_needed * 32)
    assert f"{found.runs_needed:,.0f} more runs" in found.paragraph
    assert found.detectable > abs(found.effect)
    total = found.n * (found.detectable / abs(found.effect)) ** 2
    assert found.n + found.runs_needed == np.ceil(total)
    axes = found.plot()
    assert axes.get_title(loc="left") == "undetermined"


def test_a_margin_makes_equals_no_worse():
    frame = two(0.0, 30)
    assert replay.judge(frame, NEW, OLD, margin=0.0).verdict != "supported"
    assert replay.judge(frame, NEW, OLD, margin=0.1).verdict == "supported"


def test_a_policy_that_finds_the_good_arm_beats_chance_and_the_null():
    found = replay.judge(arms(), "best_arm", "random", margin=0.0)
    assert found.effect > 0.05
    assert found.p < 0.05
    assert found.interval.n == 20
    assert "K = 4" in found.setting
    same = replay.judge(arms(), "random", "random")
    assert same.verdict == "undetermined"


def test_one_run_is_judged_against_pools():
    found = replay.judge(arms(), "single", "random", margin=0.0)
    assert "disjoint pools" in found.null
    assert 0 <= found.p <= 1


def test_where_arms_are_alike_the_null_is_seldom_rejected():
    rng = np.random.default_rng(0)
    ps = []
    for _ in range(12):
        best = rng.exponential(size=(10, 13)).cumsum(axis=1)
        ps.append(replay.judge(as_frame(best, children=1, seeds=range(10)), "ucb1", "random").p)
    assert np.mean(np.array(ps) < 0.1) <= 0.34
    assert np.max(ps) > 0.3


def copies(model, roots, each, gain=0.0, seed=0):
    """Forks of some runs; copies of one run share its luck, copy k of any side its own."""
    rng, parts = np.random.default_rng(5), []
    for root in range(roots):
        luck = rng.normal(0, 0.1)
        for copy in range(each):
            end = 0.5 + luck + rng.normal(0, 0.01) + gain
            noise = np.random.default_rng([seed, root, copy]).normal(0, 0.001)
            frame = as_frame(np.array([[0.1, end + noise]]), children=4, seeds=[copy])
            frame["run"] = f"{model}-{root}-{copy}"
            parts.append(frame.assign(model=model, root=f"r{root}", copy=copy, forked_from="x"))
    return pd.concat(parts)


def test_copies_of_forks_pair_and_runs_that_they_left_are_what_counts():
    many = pd.concat([copies("new", 6, 4, 0.01), copies("old", 6, 4, seed=1)])
    found = replay.judge(many, NEW, OLD, margin=0.0)
    assert found.n == 6
    means = many[many["generation"] == 1].groupby("model")["best_fitness"].mean()
    assert found.effect == pytest.approx(means["new"] - means["old"], abs=1e-12)
    assert "paired by root and copy, copies of a run taken together" in found.setting
    assert found.verdict == "supported"  # their luck, of ten times the effect, is shared
    one = pd.concat([copies("new", 1, 8, 0.01), copies("old", 1, 8, seed=1)])
    found = replay.judge(one, NEW, OLD, margin=0.0)
    assert found.n == 8
    assert found.setting.endswith("paired by root and copy, given this state")
    apart = replay.judge(many.assign(copy=-1, root=many["run"]), NEW, OLD, margin=0.0)
    assert apart.n == 48
    assert "paired" not in apart.setting


@pytest.mark.parametrize(
    ("a", "b", "message"),
    [
        ("ucb1", NEW, "two policies or two"),
        ({"model": "x"}, OLD, "no run has"),
        ({"colour": 1}, OLD, "expected columns"),
        ({"children": 8}, OLD, "runs of one model"),
        ("ucb1", "random", "runs of one model"),
    ],
)
def test_what_cannot_be_compared_is_refused(a, b, message):
    with pytest.raises(ValueError, match=message):
        replay.judge(two(0.1, 6), a, b)


def test_equal_names_of_two_loads_are_two_runs():
    one = group(0.5, 3, "m").assign(header="0")
    one, other = (one.assign(source=folder + one["run"]) for folder in "ab")
    both = pd.concat([one, other])
    assert distinct_runs(both)["run"].nunique() == 6
    assert replay.fitness_matrix(both).shape == (6, 5)
    assert replay.fitness_matrix(pd.concat([one, one])).shape == (3, 5)
    told = both.drop(columns="header")  # a table's own names are taken at their word
    assert replay.fitness_matrix(told).shape == (3, 5)
    for refused in (
        lambda frame: replay.simulate(frame, "random", rounds=2),
        lambda frame: replay.time_to_threshold(frame, 0.4),
    ):
        with pytest.raises(ValueError, match="runs of one model, got new, old"):
            refused(two(0.1, 6))
    assert replay.simulate(one, "random", rounds=2).pulls.shape == (1000, 2)


def test_runs_of_the_stand_in_cost_no_dollars() -> None:
    rng = np.random.default_rng(0)
    rows = [
        {"run": f"{n}-{k}", "task": "t", "model": "m", "seed": k, "children": n,
         "generation": t, "best_fitness": 0.1 * t + 0.05 * n + 0.2 * rng.random(),
         "n_calls": n, "tokens": 100.0, "flops": 1e9, "dollars": 0.5}
        for n in (1, 2) for k in range(6) for t in range(3)
    ]  # fmt: skip
    frame = pd.DataFrame(rows)
    paid = replay.judge(frame, {"children": 1}, {"children": 2}, 0.01).cost
    free = replay.judge(frame.assign(model="offline-2"), {"children": 1}, {"children": 2}, 0.01)
    assert {"dollars", "flops"} <= set(paid)
    assert set(free.cost) == set(paid) - {"dollars", "flops"}
