"""The budget explorer: sliders that belong together, odd frames, and what it refuses."""

import contextlib
import warnings

import numpy as np
import pandas as pd
import pytest
from synthetic_runs import as_frame, chain_runs

import replay
from replay.explorers import explore_allocation, explore_budget
from replay.explorers.budget import link
from replay.logs.frames import ReplayWarning


def test_a_budget_with_one_split_does_not_hold_its_sliders():
    before = {"generations": 8, "children": 3, "calls": 12}
    assert link("generations", before, [3], [1, 2, 4, 8])["calls"] == 24


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
    said = pytest.warns(ReplayWarning, match="10 of 30 runs have no complete generation")
    with said if name == "a size without a generation" else contextlib.nullcontext():
        explorer = explore_budget(ODD[name])
    for control in ("generations", "children", "calls"):
        for option in explorer.controls[control].options:
            explorer.controls[control].value = option
    assert "mean best fitness" in explorer.words
    assert explorer.figure().axes
    explorer.close()


@pytest.mark.parametrize(
    ("forks", "words"), [(2, "2 of 6 runs are forks"), (6, "all 6 runs are forks of 1 state")]
)
def test_what_is_left_out_and_what_holds_given_a_state_is_said_once(sweep, forks, words):
    frame, children = sweep
    runs = sorted(frame["run"].unique())[:6]
    frame = frame[frame["run"].isin(runs)]
    frame = frame.assign(forked_from=np.where(frame["run"].isin(runs[:forks]), "state", ""))
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        explorer = replay.explore(frame, child_table=children).open("Budget")
        explorer.settle()
    assert [str(each.message).startswith(words) for each in caught] == [True]


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
    frame, _ = sweep
    other = chain_runs(budget=8, sizes=(1, 2), task="other", start=0.5)[0]
    explorer = explore_budget(pd.concat([frame, other], ignore_index=True))
    explorer.controls["task"].value = "other"
    explorer.settle()
    assert explorer.words.startswith("other, chain")
    assert explorer.settings["calls"] <= 8
    explorer.close()


@pytest.mark.parametrize("scale", [1e-9, 1e9, -1e9])
def test_fitness_of_any_size_has_a_tau_and_an_axis_of_its_own_size(scale):
    frame, children = chain_runs(budget=32, sizes=(1, 2, 4))
    for name in ("best_fitness", "fitness", "parent_fitness"):
        for table in (frame, children):
            if name in table:
                table[name] = table[name] * abs(scale) - (2 * abs(scale) if scale < 0 else 0)
    finals = frame.groupby("run")["best_fitness"].max()
    for explore, given in ((explore_budget, {"child_table": children}), (explore_allocation, {})):
        with contextlib.closing(explore(frame, **given)) as shown:
            tau = shown.controls["tau"].value
            assert finals.min() - np.ptp(finals) <= tau <= finals.max()
            shown.settle()
            shown.controls["tau"].value = float(finals.max())
            assert shown.settings["tau"] == finals.max()
            assert "nan" not in shown.words
    with contextlib.closing(explore_budget(frame, child_table=children, tau=10 * scale)) as shown:
        assert shown.settings["tau"] == 10 * scale
        with pytest.raises(ValueError, match="tau: expected a value out of all finite numbers"):
            shown.choose(tau=float("nan"))


@pytest.mark.parametrize(("moved", "value"), [("task", "other"), ("model", "second")])
def test_a_task_of_other_models_brings_one_of_them_along_and_a_model_a_task(moved, value):
    frame = chain_runs(budget=8, sizes=(1, 2))[0]
    other = chain_runs(budget=8, sizes=(1, 2), task="other")[0].assign(model="second")
    both = pd.concat([frame, other], ignore_index=True)
    with contextlib.closing(explore_budget(both, task="toy")) as explorer:
        before = explorer.screen.data
        explorer.screen.set_state({**explorer.settings, moved: value})  # as a page does
        assert (explorer.settings["task"], explorer.settings["model"]) == ("other", "second")
        assert explorer.screen.data != before
        assert explorer.words.startswith("other, second")


@pytest.mark.parametrize(
    ("asked", "split"),
    [
        ({"generations": 40}, (40, 1)),
        ({"generations": 5, "children": 4}, (5, 4)),
        ({"generations": 11, "calls": 22}, (11, 2)),
    ],
)
def test_any_number_of_generations_that_a_run_reached_can_be_asked_for(asked, split):
    frame, _ = chain_runs(sizes=(1, 2, 4, 8), budget=64, seeds=range(4))
    explorer = explore_budget(frame, **asked)
    T, N = split
    assert (explorer.settings["generations"], explorer.settings["children"]) == split
    assert f"T = {T} generations of N = {N} " in explorer.words
    assert T in explorer.controls["generations"].options
    explorer.close()


def test_more_generations_than_any_run_reached_are_refused():
    frame, _ = chain_runs(sizes=(1, 2), budget=16, seeds=range(4))
    with pytest.raises(ValueError, match=r"generations: expected a value out of .* got 17"):
        explore_budget(frame, generations=17)
