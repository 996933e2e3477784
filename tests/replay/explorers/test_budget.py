import contextlib
import itertools
import math
import re

import numpy as np
import pytest
from synthetic_runs import as_frame, chain_runs

import replay
from replay.explorers import explore_budget
from replay.explorers.budget import link
from replay.explorers.budget_data import outlook


@pytest.fixture(scope="module")
def sweep():
    return chain_runs(budget=32, sizes=(1, 2, 4, 8, 16, 32))


def test_logged_splits_are_those_of_the_grid(sweep):
    frame, children = sweep
    known = outlook(frame, children)
    cells = replay.depth_breadth(frame).cells
    for row in cells.itertuples():
        cell = known.cell(row.generations, row.children)
        assert (cell.value, cell.logged) == (pytest.approx(row.value), True)
        split = known.split(row.generations, row.children, axis="calls", tau=0.9)
        assert split.logged
        kept = max(row.low, frame["best_fitness"].min())  # bands keep to the data's range
        assert split.fitness.low[-1] == pytest.approx(kept)
        assert split.fitness.x[-1] == row.calls


def without(sweep, N):
    return [table[table["children"] != N] for table in sweep]


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


@pytest.mark.parametrize("moved", ["generations", "children", "calls"])
def test_linked_sliders_stay_on_the_budget_line(moved):
    powers = [1, 2, 4, 8, 16]
    for T, N, new in itertools.product(powers, repeat=3):
        before = {"generations": T, "children": N, "calls": T * N}
        asked = new * N if moved == "calls" else new
        after = link(moved, {**before, moved: asked}, powers, powers)
        assert after["calls"] == after["generations"] * after["children"]
        if moved == "calls":
            assert after["calls"] == asked
        elif 1 < T * N < 256:
            assert after["calls"] == T * N  # at the edges, too
            if T * N % new == 0 and T * N // new in powers:
                assert after[moved] == new


def test_a_budget_with_one_split_does_not_hold_its_sliders():
    before = {"generations": 8, "children": 3, "calls": 12}
    assert link("generations", before, [3], [1, 2, 4, 8])["calls"] == 24


def test_a_mean_over_those_that_have_something_is_not_shown():
    best = np.tile([np.nan, 0.5, 0.6], (4, 1))
    best[0, 1] = np.nan
    known = outlook(as_frame(best, children=2, seeds=range(4)), None)
    assert math.isnan(known.cell(1, 2).value)
    assert known.cell(2, 2).value == 0.6
    assert known.split(2, 2, axis="calls", tau=0.55).reached.value.tolist() == [0, 1]


ODD = {
    "a size without a generation": chain_runs(budget=4, sizes=(1, 2, 8))[0],
    "one run": as_frame(np.array([[0.1, 0.2, 0.3]]), children=3, seeds=[0]),
    "one generation": as_frame(np.array([[0.1, 0.2], [0.1, 0.3]]), children=5, seeds=[0, 1]),
    "nothing ok": as_frame(np.full((3, 4), np.nan), children=2, seeds=range(3)),
    "NaN tail": as_frame(np.array([[0.1, 0.2, 0.3], [0.1, 0.2, np.nan]]), children=2, seeds=[0, 1]),
    "no costs": as_frame(np.ones((3, 4)), children=2, seeds=range(3)).drop(
        columns=["tokens", "dollars", "flops"]
    ),
}


@pytest.mark.parametrize("name", ODD)
def test_odd_frames_are_shown(name):
    explorer = explore_budget(ODD[name])
    for control in ("generations", "children", "calls"):
        for option in explorer.controls[control].options:
            explorer.controls[control].value = option
    assert "mean best fitness" in explorer.words
    assert explorer.figure().axes
    explorer.close()


@pytest.mark.parametrize("rows", [0, 3])
def test_nothing_to_show_is_a_sentence(rows):
    frame = as_frame(np.zeros((3, 1)), children=2, seeds=range(3)).head(rows)
    explorer = explore_budget(frame)
    assert "no run has a complete generation" in explorer.words
    assert explorer.figure().axes
    explorer.close()


def test_what_is_wrong_is_said(sweep):
    frame, children = sweep
    for settings, said in (
        ({"generations": 32, "children": 32}, "calls: expected a value out of"),
        ({"generations": 64}, "generations: expected a value out of .* got 64"),
        ({"generations": 4, "children": 4, "calls": 64}, "C = T"),
        ({"task": "nothing"}, "'nothing'"),
        ({"axis": "pulls"}, "axis: expected a value out of"),
        ({"depth": 3}, "expected settings among generations, .* got 'depth'"),
    ):
        with pytest.raises(ValueError, match=said):
            explore_budget(frame, child_table=children, **settings)
    shallow = frame[(frame["children"] != 2) | (frame["generation"] <= 4)]
    with pytest.raises(ValueError, match="never run"):
        explore_budget(shallow, generations=16, children=2)


def test_another_task_brings_its_own_defaults(sweep):
    import pandas as pd

    frame, _ = sweep
    other = chain_runs(budget=8, sizes=(1, 2), task="other", start=0.5)[0]
    explorer = explore_budget(pd.concat([frame, other], ignore_index=True))
    explorer.controls["task"].value = "other"
    explorer.settle()
    assert explorer.words.startswith("other, chain")
    assert explorer.settings["calls"] <= 8
    explorer.close()


def test_what_lies_below_the_axis_is_pointed_at_and_brackets_are_named():
    best = np.r_[0.1, 0.2, np.linspace(0.9, 0.95, 199)] + np.arange(6)[:, None] / 1e3
    frame = as_frame(best, children=2, seeds=range(6))
    with contextlib.closing(explore_budget(frame, generations=1)) as explorer:
        shown = explorer._canvas.picture._curves[0][0].end
        assert shown.get_marker() == "v"
        low, high = shown.axes.get_ylim()
        assert low < shown.get_ydata()[0] < high
        explorer.controls["generations"].value = 128
        assert shown.get_marker() == "o"
        words = explorer.words
    assert re.search(r"In brackets: a \d+ % interval, of logged means; .*95 %, of the prob", words)
    assert "predictions" not in words
