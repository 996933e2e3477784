"""Logged values of each split, and what a kernel predicts of others."""

import contextlib
import itertools
import math

import numpy as np
import pandas as pd
import pytest
from explored import numbers_of, without
from scipy.stats import ttest_ind
from synthetic_runs import as_frame, chain_runs

import replay
from replay.explorers import explore_budget
from replay.explorers.budget import Budgets, link
from replay.explorers.budget_data import MOST_ENDS, axes_of, known_units, outlook
from replay.explorers.budget_picture import _curves


def test_logged_splits_are_those_of_the_grid(sweep):
    frame, children = sweep
    known = outlook(frame, children)
    cells = replay.depth_breadth(frame).cells
    for row in cells.itertuples():
        cell = known.cell(row.generations, row.children)
        assert (cell.value, cell.logged) == (pytest.approx(row.value), True)
        split = known.split(row.generations, row.children, axis="calls", tau=0.9)
        assert split.logged
        limits = (split.fitness.low[-1], split.fitness.high[-1])
        assert limits == pytest.approx((row.low, row.high), nan_ok=True)
        assert split.fitness.x[-1] == row.calls


def test_splits_never_run_are_predicted_inside_what_was_logged(sweep):
    known = outlook(*without(sweep, 4))
    cell = known.cell(4, 4)
    assert not cell.logged
    assert known.cell(4, 2).value - 0.05 < cell.value < known.cell(4, 8).value + 0.05
    assert known.cell(8, 4) is None  # nobody was as deep with so many children
    assert known.cell(4, 32) is None
    assert outlook(without(sweep, 4)[0], None).cell(4, 4) is None
    split = known.split(4, 4, axis="tokens", tau=0.5)
    assert split.fitness.logged == 0
    assert not split.logged
    assert split.costs["tokens"].value == pytest.approx(150 * 16)
    assert math.isnan(split.costs["tokens"].low)


def test_one_run_fills_no_heatmap(sweep):
    frame, children = (
        table[(table["children"] == 1) & (table["run"].str.endswith("-0"))] for table in sweep
    )
    known = outlook(frame, children)
    assert known.cell(32, 1).logged
    assert all(known.cell(T, N) is None for T in (1, 2, 4) for N in (2, 4, 8))


def test_the_probability_to_reach_tau_falls_with_tau_and_is_no_certainty(sweep):
    known = outlook(*without(sweep, 4))
    reached = [
        known.split(4, 4, axis="calls", tau=tau).reached for tau in (-9.0, 0.3, 0.6, 0.9, 9.0)
    ]
    for easy, hard in itertools.pairwise(reached):
        assert (easy.value >= hard.value).all()
    assert (np.diff(reached[2].value) >= 0).all()
    for sure in (reached[0], reached[-1]):
        assert (sure.high - sure.low > 0.2).all()
        assert ((sure.value > 0) & (sure.value < 1)).all()


def test_no_hits_are_no_certainty(sweep):
    never = outlook(*sweep).split(8, 4, axis="calls", tau=2.0).reached
    assert (never.value == 0).all()
    assert never.high == pytest.approx(0.3085, abs=1e-4)  # Clopper and Pearson (1934), 0 of 10


def test_runs_of_a_split_are_those_of_the_table_and_are_drawn_one_by_one(sweep):
    frame, _ = sweep
    explorer = explore_budget(frame, generations=4, children=8, runs=["toy-chain-8-3"])
    known = explorer._spec.view(explorer.settings, False).outlook
    rows = frame[(frame["children"] == 8) & (frame["generation"] == 4)]
    wanted = rows.sort_values("best_fitness", ascending=False, kind="stable")
    assert known.runs_of(4, 8) == list(zip(wanted["run"], wanted["best_fitness"], strict=True))
    assert known.runs_of(8, 8) == []
    assert known.runs_of(4, 3) == []
    of = frame[frame["run"] == "toy-chain-8-3"]
    fitness, _ = _curves(explorer._spec.view(explorer.settings, False))
    line = next(mark for mark in fitness.marks if getattr(mark, "label", "") == "toy-chain-8-3")
    assert line.y.tolist() == of["best_fitness"].tolist()[1:]
    assert "runs=['toy-chain-8-3']" in explorer.code
    assert f"toy-chain-8-3, {of['best_fitness'].iloc[4]:.4g} after T = 4." in explorer.words
    explorer.controls["runs"].value = []
    assert "runs" not in explorer.code
    for wrong in ("toy-chain-8-3", ["nobody"]):
        with pytest.raises(ValueError, match="runs: "):
            explorer.controls["runs"].value = wrong
    explorer.close()


def test_every_depth_that_a_run_reached_can_be_chosen():
    """A run of 40 generations is shown at 40, and not at the power of two below."""
    best = np.linspace(0.2, 0.9, 41) + np.arange(6)[:, None] / 1e3
    frame = as_frame(best, children=4, seeds=range(6))
    with contextlib.closing(explore_budget(frame, generations=40)) as explorer:
        assert (explorer.settings["generations"], explorer.settings["calls"]) == (40, 160)
        assert "T = 40 generations of N = 4" in explorer.words
        explorer.controls["generations"].value = 16
        assert explorer.settings["calls"] == 64
        explorer.controls["generations"].value = 40
        assert explorer.settings["children"] == 4
    now = {"generations": 40, "children": 8, "calls": 256}
    assert link("generations", now, [4, 8], [32, 40, 64])["calls"] == 320


def designed(*splits, runs=6):
    """Runs of some T and N, of which the deeper reach more."""
    frames = []
    for T, N in splits:
        best = np.linspace(0.2, 0.5 + T / 100, T + 1) + np.arange(runs)[:, None] / 1e3
        frames.append(as_frame(best, children=N, seeds=range(runs)))
    return pd.concat(frames)


def test_the_map_has_a_column_for_each_depth_of_the_design_and_opens_on_a_shared_budget():
    with contextlib.closing(explore_budget(designed((5, 4), (2, 10)))) as explorer:
        known = explorer._spec.view(explorer.settings, False).outlook
        assert known.grid[:2] == ([4, 10], [1, 2, 4, 5])
        assert known.behind[2, 10].best == (5, 4)  # the comparison that was designed
        assert (explorer.settings["generations"], explorer.settings["children"]) == (5, 4)
        assert {text.get_text() for text in explorer.figure().axes[0].get_xticklabels()} >= {"5"}
    with contextlib.closing(explore_budget(designed((8, 4), (8, 8)))) as explorer:
        assert explorer.settings["calls"] == 32  # 8 of 8 have a budget of their own


def test_the_map_has_few_columns_beside_powers_of_two():
    ends = {N: 20 + N for N in range(1, MOST_ENDS + 2)}
    most = max(ends.values())
    assert axes_of(ends, predicted=False)[1] == [1, 2, 4, 8, 16, 32, most]
    del ends[1]
    assert set(axes_of(ends, predicted=True)[1]) >= set(ends.values())


def test_of_splits_with_one_mean_none_is_called_the_highest():
    frame, _ = chain_runs(budget=16, sizes=(1, 2, 4, 8, 16), seeds=range(8))
    with contextlib.closing(explore_budget(frame.assign(best_fitness=0.5))) as explorer:
        explorer.settle()
        assert (
            "No split of its budget has a higher mean, and others have the same" in explorer.words
        )


def test_a_split_is_compared_with_the_best_of_its_budget():
    frame, children = chain_runs(budget=16, sizes=(1, 2, 4, 8, 16), seeds=range(8))
    with contextlib.closing(explore_budget(frame, child_table=children)) as explorer:
        explorer.settle()
        known = explorer._spec.view(explorer.settings, False).outlook
        for (T, N), behind in known.behind.items():
            best = known.cell(*behind.best)
            same = [known.cell(T * N // M, M) for M in (1, 2, 4, 8, 16) if T * N % M == 0]
            assert best.value == max(each.value for each in same if each is not None)
            assert behind.value == known.cell(T, N).value - best.value
            if behind.value < 0:
                assert behind.low < behind.value < behind.high
                ends = [
                    frame[(frame["children"] == n) & (frame["generation"] == t)]["best_fitness"]
                    for t, n in ((T, N), behind.best)
                ]
                welch = ttest_ind(*ends, equal_var=False).confidence_interval()
                assert (behind.low, behind.high) == pytest.approx(tuple(welch))
        assert (1, 1) not in known.behind  # the only split of its budget
        T, N = next(place for place, each in known.behind.items() if each.value < 0)
        explorer.choose(generations=T, children=N, calls=T * N)
        assert f"behind T = {known.behind[T, N].best[0]}, N = " in explorer.words
        explorer.controls["map"].value = "behind"
        assert "map='behind'" in explorer.code
        heat = explorer.figure().axes[0]
        shown = [text.get_text() for text in heat.texts]
        assert shown.count("0") == len({t * n for t, n in known.behind})
        head, column = numbers_of(explorer.screen.data)
        sent = dict(zip(itertools.product(head["sizes"], head["columns"]),
                        column(head["cells"]["behind"]), strict=True))  # fmt: skip
        assert all(sent[n, t] == each.value for (t, n), each in known.behind.items())


def test_the_difference_from_a_split_that_was_never_run_has_no_interval_or_a_simulated_one(sweep):
    frame, children = without(sweep, 4)
    known = Budgets(frame, children)
    now = known.begins({})
    known.predict(now)
    outlook = known.outlook(now)
    kinds = {}
    for (T, N), behind in outlook.behind.items():
        pair = [outlook.cell(T, N).logged, outlook.cell(*behind.best).logged]
        if behind.value < 0:
            kinds.setdefault(sum(pair), []).append(behind)
    assert all("never run" in each.note and math.isnan(each.low) for each in kinds[1])
    assert all(each.low <= each.high for each in kinds.get(0, []))


def test_a_mean_over_those_that_have_something_is_not_shown():
    best = np.tile([np.nan, 0.5, 0.6], (4, 1))
    best[0, 1] = np.nan
    known = outlook(as_frame(best, children=2, seeds=range(4)), None)
    assert math.isnan(known.cell(1, 2).value)
    assert known.cell(2, 2).value == 0.6
    assert known.split(2, 2, axis="calls", tau=0.55).reached.value.tolist() == [0, 1]


def test_a_split_costs_the_calls_that_its_logs_state_those_of_the_initial_program_included(sweep):
    frame, _ = sweep
    assert "calls" not in known_units(frame)
    asked = frame.assign(n_calls=np.where(frame["generation"] > 0, 5 * frame["children"], 4))
    known = outlook(asked, None)
    assert known.costs_of(8, 4)["calls"].value == 164.0
    assert known.costs_of(6, 5)["calls"].value == 154.0  # of N that nobody ran
    assert known.position(4, "calls").tolist()[:2] == [4.0, 8.0]  # the axis is T N
    tokens = frame.assign(tokens=frame["tokens"].where(frame["generation"] > 0, 70.0))
    more = outlook(tokens, None).costs_of(8, 4)["tokens"].value
    assert more == outlook(frame, None).costs_of(8, 4)["tokens"].value + 70
