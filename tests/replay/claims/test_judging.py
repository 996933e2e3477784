import functools
import html

import numpy as np
import pandas as pd
import pytest
from scipy import stats
from synthetic_runs import as_frame

import evo
import replay
from evo.policies import EpsilonGreedy
from replay.claims.decision import power_band, still_needed
from replay.claims.sides import Sides
from replay.logs.frames import ReplayWarning, distinct_runs
from replay.statistics.sequential import pairs_to_settle


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
    assert (better.verdict, worse.verdict) == ("greater", "less")
    assert better.effect == pytest.approx(-worse.effect)
    assert better.p == worse.p < 0.01
    assert better.p_greater == worse.p_less
    assert better.runs_needed == 0
    assert better.power > 0.99
    assert better.interval.low < better.effect < better.interval.high
    few = replay.judge(two(0.2, 4), NEW, OLD)
    assert few.verdict == "undetermined"
    assert np.isnan(few.p)
    assert "undetermined, that is, neither is shown to be better." in few.paragraph
    for found, word in ((better, "greater"), (worse, "less")):
        ahead, behind = (better.a, better.b)  # whichever side was named first
        assert f"is: {word}, that is, {ahead} is better than {behind}." in found.paragraph


def test_a_verdict_begins_with_two_lines_and_shows_itself_in_a_cell():
    clear, open_, few = (
        replay.judge(two(lead, seeds), NEW, OLD) for lead, seeds in ((0.2, 12), (0.01, 8), (0.2, 4))
    )
    margin = replay.judge(two(0.0, 12), NEW, OLD, margin=0.5)
    sequential = replay.judge(two(0.2, 12), NEW, OLD, sequential=True)
    for found in (clear, open_, few, margin, sequential):
        first, then, nothing, paragraph = str(found).split("\n")
        assert (first, then) == found.summary == tuple(repr(found).split("\n"))
        assert first.startswith(f"{found.verdict.capitalize()}: ")
        assert then.startswith(f"n = {found.n} {found.unit}")
        assert (nothing, paragraph) == ("", found.paragraph)
        shown = found._repr_html_()
        assert html.escape(first) in shown
        assert shown.index(html.escape(then)) < shown.index(html.escape(paragraph))
    assert f"p = {clear.p:.3g} for this comparison alone. What would change that" in repr(clear)
    assert f"{open_.runs_needed:,.0f} more runs" in repr(open_)
    assert few.interval.note in repr(few)
    assert "a smaller margin" in repr(margin)
    assert "valid at every look" in repr(sequential)


def test_an_undetermined_comparison_says_what_would_settle_it():
    """Runs are single ones, of both sides, and priced as such."""
    found = replay.judge(two(0.01, 8).assign(n_calls=8.0), NEW, OLD)
    assert (found.verdict, found.n, found.unit) == ("undetermined", 8, "pairs")
    assert 0 < found.runs_needed < np.inf
    assert found.cost["calls"] == pytest.approx(found.runs_needed * 32)
    sides = f"{found.runs_needed / 2:,.0f} on each side"
    assert f"{found.runs_needed:,.0f} more runs, {sides} (" in found.paragraph
    assert found.detectable > abs(found.effect)
    # At seven degrees of freedom an effect is detectable that is larger than at those of more.
    at_seven = found.n * (found.detectable / abs(found.effect)) ** 2
    assert 0.7 * at_seven < found.n + found.runs_needed / 2 < at_seven
    assert found.power_then[0] < 0.8 < found.power_then[1]
    low, high = (f"{limit:.0%}" for limit in found.power_then)
    assert "with a power of about 80%; over the effects and spreads" in found.paragraph
    assert f"that power is {low} to {high} (nominal 80% band)" in found.paragraph
    assert "What fewer than one run in 3 does" in found.paragraph  # of eight pairs
    axes = found.plot()
    assert axes.get_title(loc="left") == "undetermined"


def test_there_is_a_margin_only_if_one_was_given():
    frame = two(0.0, 30)
    plain = replay.judge(frame, NEW, OLD)
    assert (plain.verdict, plain.margin) == ("undetermined", 0.0)
    assert "counts as none" not in plain.paragraph
    assert "margin" not in str(plain)
    within = replay.judge(frame, NEW, OLD, margin=0.1)
    assert within.verdict == "within margin"
    assert within.p_within < 0.05
    near = replay.judge(two(0.02, 30), NEW, OLD, margin=0.03)
    assert near.interval.low > -0.03  # only the near side of the margin is left open
    assert (near.verdict, near.p_within > 0.05) == ("undetermined", True)
    assert str(within.interval) == str(plain.interval)
    assert "up to 0.1 counts as none" in within.paragraph
    assert "within margin, that is, they differ by less than the margin." in within.paragraph
    for found in (plain, within):
        assert "beforehand" not in found.paragraph
    with pytest.raises(ValueError, match="margin of 0 or more"):
        replay.judge(frame, NEW, OLD, margin=-0.1)


@pytest.mark.parametrize("shift", np.linspace(-0.08, 0.08, 9))
@pytest.mark.parametrize("sizes", [(9, 9), (14, 6)])
def test_verdict_interval_and_p_agree(shift, sizes):
    frame = pd.concat(
        [group(0.5 + shift, sizes[0], "new", seed=3), group(0.5, sizes[1], "old", seed=4)]
    )
    found = replay.judge(frame, NEW, OLD)
    low, high = found.interval.low, found.interval.high
    assert (found.verdict == "greater") == (low > 0) == (found.p_greater <= 0.025)
    assert (found.verdict == "less") == (high < 0) == (found.p_less <= 0.025)
    assert (found.verdict == "undetermined") == (found.p > 0.05)


def test_policies_are_judged_by_the_jackknife_over_runs():
    found = replay.judge(arms(), "best_arm", "random")
    assert found.verdict == "greater"
    assert found.effect > 0.05
    assert found.p < 0.05
    assert found.interval.n == found.n == 20
    assert "K = 4" in found.setting
    assert "Student's t with 19" in found.null
    error = (found.interval.high - found.interval.low) / 2 / stats.t.ppf(0.975, 19)
    assert found.p == pytest.approx(2 * stats.t.sf(found.effect / error, 19), rel=1e-6, abs=0)
    assert found.detectable == pytest.approx(stats.t.ppf([0.975, 0.8], 19).sum() * error)
    same = replay.judge(arms(), "random", "random")
    assert same.verdict == "undetermined"


def test_a_verdict_that_is_held_back_needs_as_many_runs_as_release_it():
    held = replay.judge(arms(12), "thompson", "random", arms=4)
    assert held.interval.low > 0
    assert held.verdict == "undetermined"
    assert "fewer than 20 runs" in held.held_back
    assert held.runs_needed >= 20 - held.n


def test_an_interval_within_the_margin_that_few_runs_do_not_decide_is_held_back_too():
    found = replay.judge(arms(12), "thompson", "random", arms=4)
    wide = max(abs(found.interval.low), abs(found.interval.high))
    held = replay.judge(arms(12), "thompson", "random", arms=4, margin=1.05 * wide)
    assert held.verdict == "undetermined"
    assert held.held_back.startswith("The interval lies within the margin, but there are fewer")
    assert held.held_back in held.paragraph
    decided = replay.judge(arms(12), "thompson", "random", arms=4, margin=4 * wide)
    assert (decided.verdict, decided.held_back) == ("within margin", "")


def test_policies_are_judged_by_class_as_by_name():
    given = {"arms": 4, "rounds": 5}
    named = replay.judge(arms(8, 5), "epsilon_greedy", "thompson", **given)
    found = replay.judge(arms(8, 5), EpsilonGreedy, "thompson", **given)
    assert (found.a, found.b, str(found.interval)) == (named.a, named.b, str(named.interval))
    often = functools.partial(EpsilonGreedy, epsilon=0.9)
    assert replay.judge(arms(8, 5), often, EpsilonGreedy, **given).a == "epsilon_greedy epsilon=0.9"


@pytest.mark.parametrize("equal", ["policies", "groups"])
def test_of_values_that_are_all_equal_no_number_of_runs_is_said_to_decide(equal):
    if equal == "policies":
        found = replay.judge(arms(8, 5), "ucb1", "ucb1", arms=2)
    else:
        found = replay.judge(two(0.0, 8).assign(best_fitness=0.5), NEW, OLD)
    assert found.verdict == "undetermined"
    assert found.effect == 0
    assert found.runs_needed == np.inf
    never = "No number of runs would find a difference that is 0."
    assert never in found.summary[1]
    assert never in replay.advise(found)
    assert "ore runs may decide" not in f"{found}{replay.advise(found)}"
    few = replay.judge(two(0.0, 2).assign(best_fitness=0.5), NEW, OLD)
    assert "More runs may decide it." in few.summary[1]


def test_where_arms_are_alike_policies_are_seldom_told_apart():
    rng = np.random.default_rng(0)
    ps = []
    for _ in range(6):
        best = 1 - np.exp(-0.05 * rng.exponential(size=(10, 13)).cumsum(axis=1))
        ps.append(replay.judge(as_frame(best, children=1, seeds=range(10)), "ucb1", "random").p)
    assert np.mean(np.array(ps) < 0.1) <= 0.5
    assert np.max(ps) > 0.3


def test_a_few_equal_seeds_discard_no_run():
    """Five pairs among forty runs stay together; all forty count."""
    new, old = group(0.6, 20, "new", seed=1), group(0.5, 20, "old", seed=2)
    old["seed"] += 15
    found = replay.judge(pd.concat([new, old]), NEW, OLD)
    assert (found.n, found.unit) == (40, "runs")
    assert "5 pairs of one seed stay together" in found.setting
    old["seed"] += 4
    one = replay.judge(pd.concat([new, old]), NEW, OLD)
    assert "1 pair of one seed stays together" in one.setting
    assert found.verdict == "greater"


def test_five_pairs_never_settle_anything_and_say_so():
    found = replay.judge(two(9.0, 5), NEW, OLD)
    assert found.verdict == "undetermined"
    assert "5 pairs never settle" in found.paragraph
    assert np.isnan(found.interval.low)


def sides(left, right, base=0):
    parts = []
    for model, values, first in (("new", left, 0), ("old", right, base)):
        ends = np.asarray(values, dtype=float)[:, None]
        seeds = range(first, first + len(ends))
        frame = as_frame(np.c_[np.zeros(len(ends)), ends], children=1, seeds=seeds)
        parts.append(frame.assign(model=model, run=model + frame["run"]))
    return pd.concat(parts)


def test_groups_without_any_spread_differ_without_an_interval():
    found = replay.judge(sides([0.5] * 6, [0.4] * 6, base=50), NEW, OLD, margin=0.3)
    assert found.verdict == "undetermined"  # how far apart runs can lie, nothing shows
    assert "no spread" in found.interval.note
    assert replay.judge(sides([0.5] * 6, [0.4] * 6, base=50), NEW, OLD).verdict == "greater"
    equal = replay.judge(sides([0.5] * 6, [0.5] * 6, base=50), NEW, OLD, margin=0.1)
    assert (equal.verdict, equal.p) == ("undetermined", 1.0)


def test_shares_have_an_interval_where_all_succeed_or_none():
    found = replay.judge(sides([1] * 8, [0] * 8, base=50), NEW, OLD)
    assert found.verdict == "greater"
    assert 0 < found.interval.low < 0.7
    none = replay.judge(sides([0] * 8, [0] * 8, base=50), NEW, OLD, margin=0.05)
    assert none.verdict == "undetermined"
    assert none.interval.low < -0.2 < 0.2 < none.interval.high


def test_a_known_range_adds_an_interval_that_covers_rare_jumps():
    rng = np.random.default_rng(0)
    left, right = 0.02 * rng.random((2, 20))
    frame = sides(left, right)
    found = replay.judge(frame, NEW, OLD, bounds=(0, 1))
    assert found.bounded.low < found.interval.low < found.interval.high < found.bounded.high
    assert "betting covers it" in found.paragraph
    assert "betting" not in replay.judge(frame, NEW, OLD).paragraph
    apart = replay.judge(sides(left, right, base=50), NEW, OLD, bounds=(0, 1)).bounded
    one, other = (replay.interval(x, level=0.975, method="betting") for x in (left, right))
    assert (apart.low, apart.high) == pytest.approx((one.low - other.high, one.high - other.low))
    flat = np.full(20, 0.5)
    for scores, bounds in ((frame, (0.0, 0.01)), (sides(flat, flat), (0.5, 0.5))):
        with pytest.raises(ValueError, match="around all scores"):
            replay.judge(scores, NEW, OLD, bounds=bounds)


def test_the_null_says_what_was_exchanged():
    rng = np.random.default_rng(3)
    left, right = rng.random((2, 8))
    pairs = replay.judge(sides(left, right), NEW, OLD)
    assert pairs.null == "the runs of each pair exchanged"
    assert pairs.taken_for_granted in pairs.paragraph
    assert pairs.taken_for_granted.startswith("It takes the differences of pairs to lie evenly")
    groups = replay.judge(sides(left, right, base=50), NEW, OLD)
    assert groups.taken_for_granted == ""
    apart = groups.null
    assert apart.startswith("runs exchanged between the sides, or equal means by Welch's t")
    partly = replay.judge(sides(left, right, base=4), NEW, OLD).null
    assert "between the sides, those of a pair with each other, or equal means" in partly


def test_a_sequential_verdict_is_the_confidence_sequences():
    found = replay.judge(two(0.1, 20), NEW, OLD, sequential=True)
    assert found.sequential
    assert found.verdict == "greater"
    assert found.e_value >= 20
    assert found.interval.low > 0
    assert "after every pair; 20 settles the question" in found.paragraph
    other = replay.judge(two(0.1, 20), OLD, NEW, sequential=True)
    assert (found.p_greater, found.p_less) == (other.p_less, other.p_greater)
    assert found.p_greater < 0.05 < found.p_less <= 1
    assert "without a partner" not in found.paragraph
    more = group(0.6, 23, "new", seed=1).assign(seed=lambda runs: runs["seed"] + 50)  # no pairs
    ahead = replay.judge(
        pd.concat([more, group(0.5, 20, "old", seed=2)]), NEW, OLD, sequential=True
    )
    assert "in the order of their seeds" in ahead.paragraph
    assert "3 runs still without a partner" in ahead.paragraph
    fixed = replay.judge(two(0.1, 20), NEW, OLD)
    assert np.isnan(fixed.e_value)
    assert found.interval.low < fixed.interval.low  # the price of looking
    few = replay.judge(two(0.1, 5), NEW, OLD, sequential=True)
    assert few.verdict == "undetermined"
    assert "fewer than 6 never can" in few.paragraph
    bet = replay.judge(two(0.3, 60), NEW, OLD, sequential=True, bounds=(0, 1.2))
    assert "betting" in bet.null
    assert bet.verdict == "greater"
    with pytest.raises(ValueError, match="are policies, which are judged once"):
        replay.judge(arms(), "ucb1", "random", sequential=True)


def test_evidence_that_does_not_grow_does_not_say_that_there_is_no_difference():
    frame = two(0.005, 20)
    found = replay.judge(frame, NEW, OLD, sequential=True)
    assert found.effect > 0
    assert found.e_value < 0.5
    assert f"{found.runs_needed:,.0f} more runs settle it with a power of 80%" in str(found)
    none = replay.judge(two(-0.0042, 20), NEW, OLD, sequential=True)
    assert 0 < abs(none.effect) < 0.001
    assert none.runs_needed == np.inf
    assert "a difference that is 0" not in str(none)
    assert "not even 8,192 more runs would settle so small a difference" in str(none)


def test_the_order_of_a_sequence_is_that_of_the_seeds():
    frame = two(0.02, 12)
    mixed = frame.sample(frac=1, random_state=1)
    mixed = mixed.sort_values(["run", "generation"], kind="stable")
    one, other = (replay.judge(each, NEW, OLD, sequential=True) for each in (frame, mixed))
    assert one.e_value == pytest.approx(other.e_value)
    turned = frame.assign(seed=np.where(frame["model"] == "old", 40 - frame["seed"], frame["seed"]))
    assert replay.judge(turned, NEW, OLD, sequential=True).e_value != pytest.approx(one.e_value)


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
    found = replay.judge(many, NEW, OLD)
    assert found.n == 6
    means = many[many["generation"] == 1].groupby("model")["best_fitness"].mean()
    assert found.effect == pytest.approx(means["new"] - means["old"], abs=1e-12)
    assert "paired by root, copies of a run taken together" in found.setting
    assert found.verdict == "greater"  # their luck, of ten times the effect, is shared
    shares = many.assign(best_fitness=many["best_fitness"] > 0.5)
    assert replay.judge(shares, NEW, OLD).n == 6  # means of zeros and ones are no zeros and ones
    one = pd.concat([copies("new", 1, 8, 0.01), copies("old", 1, 8, seed=1)])
    found = replay.judge(one, NEW, OLD)
    assert found.n == 8
    assert found.setting.endswith("paired by copy, given this state")
    apart = replay.judge(many.assign(copy=-1, root=many["run"]), NEW, OLD)
    assert apart.n == 48
    assert "several runs of one seed count as independent" in apart.setting
    unknown = replay.judge(many.assign(copy=-1, root=many["run"], seed=-1), NEW, OLD)
    assert unknown.setting == "whole runs after 1 generation"
    assert "paired" not in apart.setting


@pytest.mark.parametrize(
    ("a", "b", "message"),
    [
        ("ucb1", NEW, "two policies or two"),
        (("ucb1", {"c": 1}), "random", r"functools\.partial\(POLICIES\[name\]"),
        ({"model": "x"}, OLD, "no run has model = x; there are runs of"),
        ({"model": "new", "children": 3}, OLD, "no run has children = 3; there are runs of"),
        ({"colour": 1}, OLD, "expected columns"),
        ({"children": 8}, OLD, "runs of one model"),
        ("ucb1", "random", "runs of one model.* or `replay judge model=new model=old LOGS`"),
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


@pytest.mark.parametrize(
    ("move", "reward", "said"),
    [(0.0, "best_fitness", False), (5.0, "best_fitness", True), (5.0, "rank", False)],
)
def test_a_verdict_on_raw_rewards_says_where_fitness_leaves_the_unit_interval(move, reward, said):
    rng = np.random.default_rng(0)
    best = move + np.sort(rng.random((10, 5)), axis=1)
    found = replay.judge(
        as_frame(best, children=1, seeds=range(10)), "ucb1", "random", arms=2, reward=reward
    )
    assert ("meant for fitness in [0, 1]" in found.setting) is said


def test_runs_needed_are_those_of_the_nearer_verdict():
    """A tenth of the margin is nearer to `within margin` than to a difference."""
    found = {"error": 0.05, "freedom": 18.0, "verdict": "undetermined"}
    assert still_needed(10, 0.02, 0.1, **found) == still_needed(10, 0.08, 0.1, **found)
    assert still_needed(10, 0.02, 0.1, **found) == still_needed(10, 0.08, 0.0, **found)
    assert still_needed(10, 0.02, 0.0, **found) > 10 * still_needed(10, 0.02, 0.1, **found)


def test_further_runs_say_what_they_would_show():
    """Nearer to none than to the margin, they show that the difference lies within it."""
    near, far = (replay.judge(two(lead, 8), NEW, OLD, margin=0.04) for lead in (0.01, 0.02))
    assert (near.verdict, far.verdict) == ("undetermined", "undetermined")
    assert (near.nearer_none, far.nearer_none) == (True, False)
    for found in (near, far):
        for text in (repr(found), found.paragraph, replay.advise(found)):
            assert ("show that it lies within the margin with" in text) is found.nearer_none
            assert ("show it with" in text) is not found.nearer_none


def test_differences_are_those_of_pairs_first():
    left, right = np.array([5.0, 4.0, 9.0]), np.array([1.0, 1.5])
    made = Sides(
        left=left, right=right, pairs=1, by="seed", given="", depths=(1, 1), runs=len(left) + 2
    )
    assert made.differences.tolist() == [4.0, 2.5]


def test_pools_may_hold_half_of_the_runs_and_no_more():
    assert replay.judge(arms(6, 4), "ucb1", "random", arms=3).n == 6
    with pytest.raises(ValueError, match="twice as many as arms; for K = 3 there"):
        replay.judge(arms(5, 4), "ucb1", "random", arms=3)


def test_policies_that_use_up_every_arm_are_identical_by_construction():
    with pytest.warns(ReplayWarning, match="identical by construction") as said:
        found = replay.judge(arms(8, 4), "ucb1", "random", arms=2, rounds=8)
    assert len(said) == 1
    assert (found.verdict, found.effect) == ("undetermined", 0)
    assert "identical by construction" in found.paragraph


def test_policies_on_several_sizes_lead_to_the_comparison_of_groups():
    frame = pd.concat([group(0.5, 6, "m"), group(0.6, 6, "m2")])
    with pytest.raises(ValueError, match="of one model") as raised:
        replay.judge(frame, "random", "single")
    advised = "replay.judge(frame, {'model': 'm'}, {'model': 'm2'})"
    assert advised in str(raised.value)
    assert replay.judge(frame, {"model": "m"}, {"model": "m2"}).n == 6


def test_the_power_with_further_runs_counts_pairs_where_runs_are_pairs():
    left, right = group(0.52, 12, "new", seed=7), group(0.5, 12, "old", seed=8)
    found = replay.judge(pd.concat([left, right]), NEW, OLD)
    assert (found.verdict, found.unit) == ("undetermined", "pairs")
    differences = np.subtract(*found.points)
    larger = (found.n + found.runs_needed / 2) / found.n  # each pair is two runs
    band = power_band(differences.mean(), stats.sem(differences), found.n - 1, larger)
    assert found.power_then == pytest.approx(band)


def test_further_runs_of_a_sequential_verdict_are_two_for_each_pair():
    found = replay.judge(two(0.03, 12), NEW, OLD, sequential=True)
    assert (found.verdict, found.unit, found.n) == ("undetermined", "pairs", 12)
    d = np.subtract(*found.points)
    assert found.runs_needed == 2 * pairs_to_settle(d, share=0.8)
    assert f"{found.runs_needed:,.0f} more runs settle it with a power of 80%" in repr(found)


def test_groups_of_equal_means_have_the_interval_of_their_spread():
    ends = np.linspace(0.3, 0.7, 8)
    frame = sides(ends, ends[::-1].copy())
    found = replay.judge(frame, NEW, OLD)
    assert abs(found.effect) < 1e-12
    assert found.interval.low < -0.05 < 0.05 < found.interval.high
    assert found.verdict == "undetermined"
    assert "no spread" not in found.paragraph


def test_a_side_without_a_generation_is_refused_and_unequal_calls_are_said():
    def runs(N, T):
        frame = as_frame(np.tile(np.linspace(0, 1, T + 1), (6, 1)), children=N, seeds=range(6))
        return frame.assign(run=frame["run"] + f", N = {N}")

    frame = pd.concat([runs(1, 24), runs(16, 2)])
    one, sixteen = {"children": 1}, {"children": 16}
    with pytest.raises(ValueError, match="at least 16, one generation of the larger N, got 15"):
        replay.judge(frame, one, sixteen, calls=15)
    short = frame[(frame["children"] == 16) | (frame["generation"] <= 3)]
    with pytest.raises(
        ValueError, match="got 3, which is what the shortest run of N = 1 made; make"
    ):
        replay.judge(short, one, sixteen)
    three = pd.concat([frame, runs(4, 2)])
    with pytest.raises(ValueError, match=r"children = 3; there are runs of 1, 4, 16$"):
        replay.judge(three, one, {"children": 3})
    whole = three.assign(search="greedy")
    with pytest.raises(ValueError, match="no run has search = tree"):
        replay.judge(whole, {"search": "greedy"}, {"search": "tree"})
    with pytest.raises(ValueError, match=r"one N .*'1', '4', '16'.*; name it .* children=1"):
        replay.judge(whole, {"search": "greedy"}, one)
    with pytest.warns(ReplayWarning, match="within 20 calls are 20 and 16 calls"):
        replay.judge(frame, one, sixteen, calls=20)
    assert replay.judge(frame, one, sixteen, calls=16).effect == pytest.approx(16 / 24 - 1 / 2)


@pytest.mark.parametrize(("runs", "lack"), [(3, "2 more are needed"), (4, "1 more is needed")])
def test_policies_are_judged_from_five_runs_on(runs, lack):
    with pytest.raises(ValueError, match=f"at least five runs.*there are {runs}: {lack}"):
        replay.judge(arms(runs), "ucb1", "single")
    with pytest.raises(ValueError, match=lack):
        replay.power(arms(runs), "ucb1", "single", runs=[6], studies=2)
    assert np.isfinite(replay.judge(arms(5), "ucb1", "single").interval.low)


def test_a_rescored_log_beside_its_original_is_no_further_run(tmp_path):
    for search in ("greedy", "islands"):
        for seed in range(3):
            path = tmp_path / f"{search}-{seed}.jsonl"
            evo.run("mmd", search=search, seed=seed, generations=1, children=1, log=path,
                    progress=False)  # fmt: skip
    before = replay.load(tmp_path)
    evo.rescore(tmp_path / "greedy-0.jsonl", log=tmp_path / "again.jsonl")
    sides = ({"search": "greedy"}, {"search": "islands"})
    with pytest.warns(ReplayWarning, match="1 of 4 runs are rescored logs"):
        found = replay.judge(replay.load(tmp_path), *sides)
    assert found.paragraph == replay.judge(before, *sides).paragraph
