import html
import itertools

import numpy as np
import pytest
from scipy import stats
from synthetic_runs import as_frame

import replay
from replay.planning.diagnosis import diagnose, expected_leader


def lasting(rng, n=30, rounds=24, spread=1.0, slope=0.0, noise=0.0):
    """Runs that differ from the first generation on, and gain `slope` a generation at most."""
    level = rng.normal(0, spread, (n, 1)) * np.r_[0, np.ones(rounds)]
    steps = noise * rng.exponential(size=(n, rounds + 1))
    steps[:, 0] = 0
    best = level + slope * np.arange(rounds + 1) + steps.cumsum(axis=1)
    return as_frame(best, children=1, seeds=range(n))


@pytest.mark.parametrize("arms", [1, 2, 3, 6])
def test_the_leader_of_all_choices_of_arms_is_a_sum_over_ranks(arms):
    early, late = np.array([3.0, 1, 3, 0, 3, 1]), np.array([1.0, 2, 4, 8, 16, 32])
    found = []
    for chosen in itertools.combinations(range(6), arms):
        rows = list(chosen)
        leaders = [k for k in rows if early[k] == early[rows].max()]
        found.append(late[leaders].mean())
    # A tie among all runs is broken as among those chosen only if tied runs are alike.
    even = np.array([late[early == value].mean() for value in early])
    assert expected_leader(early, even, arms) == pytest.approx(
        np.mean([even[[*chosen]][early[[*chosen]].argmax()] for chosen in
                 itertools.combinations(range(6), arms)])
    )  # fmt: skip
    assert expected_leader(early, late, arms) == pytest.approx(np.mean(found))


def test_where_arms_differ_and_leads_last_a_bandit_can_help():
    found = diagnose(lasting(np.random.default_rng(0)))
    assert found.verdict == "greater"
    assert found.low > 0
    assert (found.persistence["correlation"] > 0.99).all()
    assert (found.persistence["lasts"] == 1).all()
    assert (found.ways["persists"].round(9) == 1).all()
    assert (found.ways["needed"].abs() < 1e-9).all()  # depth is worth nothing
    assert "can help here" in found.summary[0]
    assert f"n = {found.runs} runs" in found.summary[1]
    assert tuple(str(found).splitlines()[:2]) == found.summary
    assert all(html.escape(line) in found._repr_html_() for line in found.summary)
    assert found.best["arms"] == 10


def test_where_arms_are_alike_and_depth_pays_it_cannot():
    rng = np.random.default_rng(1)
    found = diagnose(lasting(rng, spread=0.01, slope=1.0, noise=0.1))
    assert found.verdict == "less"
    assert found.high < 0
    assert (found.ways["needed"] > 1).all()
    assert "does not pay" in str(found)


def test_a_gain_is_the_leaders_value_less_that_of_one_run_of_all_pulls():
    frame = lasting(np.random.default_rng(2), n=9, slope=0.05, noise=0.3)
    values = replay.fitness_matrix(frame)
    row = diagnose(frame).ways.set_index(["arms", "explored"]).loc[(3, 4)]
    picks = itertools.combinations(range(9), 3)
    leaders = [max(chosen, key=lambda k: values[k, 4]) for chosen in picks]
    assert row["committed"] == pytest.approx(values[leaders, 24 - 2 * 4].mean())
    assert row["single"] == pytest.approx(values[:, 24].mean())
    assert row["gain"] == pytest.approx(row["committed"] - row["single"])


def test_ranks_are_compared_by_spearman_and_leads_by_pairs_of_runs():
    frame = lasting(np.random.default_rng(3), n=12, noise=0.5)
    values = replay.fitness_matrix(frame)
    row = diagnose(frame).persistence.set_index("generation").loc[6]
    assert row["correlation"] == pytest.approx(stats.spearmanr(values[:, 6], values[:, 24])[0])
    pairs = [
        values[i, 24] > values[k, 24]
        for i, k in itertools.permutations(range(12), 2)
        if values[i, 6] > values[k, 6]
    ]
    assert row["lasts"] == pytest.approx(np.mean(pairs))


@pytest.mark.thorough
def test_the_interval_of_the_gain_covers_it():
    """The truth is that of very many runs; nominal 95 % over 80 worlds, each of 12 runs."""
    world = {"spread": 1.0, "slope": 0.02, "noise": 0.3, "rounds": 12}
    many = replay.fitness_matrix(lasting(np.random.default_rng(4), n=4000, **world))
    truth = expected_leader(many[:, 2], many[:, 12 - 2 * 2], 3) - many[:, 12].mean()
    held = []
    for k in range(80):
        ways = diagnose(lasting(np.random.default_rng([5, k]), n=12, **world)).ways
        row = ways.set_index(["arms", "explored"]).loc[(3, 2)]
        held.append(row["low"] <= truth <= row["high"])
    assert np.mean(held) > 0.86


def test_the_limits_of_the_best_way_hold_for_all_of_them():
    found = diagnose(lasting(np.random.default_rng(6), n=12, noise=0.3))
    assert found.low < found.best["gain"] < found.high
    assert found.low < found.best["low"]  # the choice among several ways costs certainty


def test_runs_that_found_nothing_at_first_count_with_the_lowest_fitness():
    frame = lasting(np.random.default_rng(7), n=10)
    start = frame["generation"] < 2
    frame.loc[start & frame["seed"].lt(5), "best_fitness"] = np.nan
    assert np.isfinite(diagnose(frame).ways["gain"]).all()
    with pytest.raises(ValueError, match="nothing was ever ok"):
        diagnose(frame.assign(best_fitness=np.nan))


@pytest.mark.parametrize(
    ("n", "rounds", "words"),
    [
        (4, 10, "at least 5 runs, there are 4: 1 more is needed"),
        (8, 2, "3 generations or more; the shortest has 2"),
    ],
)
def test_too_few_runs_or_generations_are_refused(n, rounds, words):
    with pytest.raises(ValueError, match=words):
        diagnose(lasting(np.random.default_rng(8), n=n, rounds=rounds))


def test_a_diagnosis_changes_with_the_scale_of_fitness_as_fitness_does():
    frame = lasting(np.random.default_rng(9), n=12, noise=0.3)
    one, other = diagnose(frame), diagnose(frame.assign(best_fitness=9 * frame.best_fitness - 5))
    assert one.verdict == other.verdict
    np.testing.assert_allclose(other.ways["gain"], 9 * one.ways["gain"], atol=1e-9)
    np.testing.assert_allclose(other.ways["persists"], one.ways["persists"])


def test_the_figure_has_a_line_for_each_number_of_arms():
    found = diagnose(lasting(np.random.default_rng(10), n=12))
    ax = replay.plots.gains(found.ways)
    shown = [text.get_text() for text in ax.get_legend().get_texts()]
    assert shown == sorted(shown) == [f"K = {K}" for K in sorted({*found.ways["arms"]})]
    assert not {text.get_text() for text in ax.texts} & {*shown}
    assert all(tick == round(tick) for tick in ax.get_xticks())  # pulls
    few = replay.plots.gains(found.ways[found.ways["explored"] <= 2])
    assert all(tick == round(tick) for tick in few.get_xticks())


def test_with_a_margin_the_answer_may_be_no():
    """Runs that differ by less than the margin, and runs whose leads last."""
    rng = np.random.default_rng(11)
    alike = lasting(rng, n=30, spread=0.0, slope=0.02, noise=0.005)
    found = diagnose(alike, margin=0.2)
    assert found.verdict == ("less" if found.high < 0 else "within margin")
    assert found.high < 0.2
    differ = diagnose(lasting(rng, n=30), margin=0.2)
    assert differ.verdict == "greater"
    assert differ.learned.low > 0
    assert "freeze_thaw" in str(differ)
    with pytest.raises(ValueError, match="margin above 0"):
        diagnose(alike, margin=0.0)


def test_a_margin_below_the_upper_limit_leaves_the_question_open():
    frame = lasting(np.random.default_rng(12), n=24, spread=0.05, noise=0.3)
    found = diagnose(frame, margin=1e-6)
    assert found.verdict != "within margin"
    wide = diagnose(frame, margin=10.0)
    assert (wide.low, wide.high) == (found.low, found.high)
    if found.verdict == "undetermined":
        assert wide.verdict == "within margin"


@pytest.mark.parametrize(
    ("halfway", "end", "words"),
    [
        ([1, 1, 1, 1, 1], [2, 2, 2, 2, 2], "all runs are alike, so they say nothing of how long"),
        ([1, 2, 1, 2, 1], [2, 2, 2, 2, 2], "some runs lead, but all end alike: no lead lasts"),
        ([1, 2, 1, 1, 1], [2, 3, 2, 2, 2], "(no interval: without one of the runs the others are"),
    ],
)
def test_runs_that_are_alike_are_said_to_be_so_in_place_of_numbers(halfway, end, words):
    best = np.c_[np.zeros(5), np.zeros(5), halfway, end, end]
    text = str(diagnose(as_frame(best, children=1, seeds=range(5))))
    assert words in text
    assert "nan" not in text
    assert ("These runs, which all end alike, do not tell" in text) == (min(end) == max(end))
