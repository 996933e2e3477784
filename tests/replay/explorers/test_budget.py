import base64
import contextlib
import io
import itertools
import json
import math
import re

import numpy as np
import pandas as pd
import pytest
from PIL import Image
from scipy.stats import ttest_ind
from synthetic_runs import as_frame, chain_runs

import replay
from replay.explorers import explore_budget
from replay.explorers.budget import Budgets, link
from replay.explorers.budget_arrays import fitness_limits
from replay.explorers.budget_data import outlook
from replay.explorers.budget_picture import _curves
from replay.logs.frames import ReplayWarning


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
        limits = (split.fitness.low[-1], split.fitness.high[-1])
        assert limits == pytest.approx((row.low, row.high), nan_ok=True)
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
    said = pytest.warns(ReplayWarning, match="10 of 30 runs have no complete generation")
    with said if name == "a size without a generation" else contextlib.nullcontext():
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
    frame, _ = sweep
    other = chain_runs(budget=8, sizes=(1, 2), task="other", start=0.5)[0]
    explorer = explore_budget(pd.concat([frame, other], ignore_index=True))
    explorer.controls["task"].value = "other"
    explorer.settle()
    assert explorer.words.startswith("other, chain")
    assert explorer.settings["calls"] <= 8
    explorer.close()


def test_what_lies_below_the_axis_is_pointed_at_and_brackets_are_named():
    best = np.r_[-101, -100, np.linspace(0.9, 0.95, 199)] + np.arange(6)[:, None] / 1e3
    frame = as_frame(best, children=2, seeds=range(6))
    with contextlib.closing(explore_budget(frame, generations=1)) as explorer:
        for T, shape in ((1, "below"), (128, "dot")):
            explorer.controls["generations"].value = T
            fitness, _ = _curves(explorer._spec.view(explorer.settings, False))
            [end] = [mark for mark in fitness.marks if mark.kind == "points"]
            low, high = fitness.y.domain
            assert end.shape == shape
            assert low < end.y[0] < high
        words = explorer.words
    assert re.search(r"In brackets: a \d+ % interval, of logged means; .*95 %, of the prob", words)
    assert "predictions" not in words


def unpacked(data):
    """The head of what the browser gets, and its columns by place."""
    length = int.from_bytes(data[:4], "little")
    head, floats = json.loads(data[4 : 4 + length]), np.frombuffer(data[4 + length :])
    return head, lambda place: floats[place[0] : place[0] + place[1]]


def test_the_browser_gets_every_cell_and_every_run(sweep):
    frame, children = without(sweep, 4)
    with contextlib.closing(explore_budget(frame, child_table=children)) as explorer:
        explorer.settle()
        head, column = unpacked(explorer.screen.data)
        known = explorer._spec.view(explorer.settings, False).outlook
        value, kinds = column(head["cells"]["value"]), head["cells"]["kinds"]
        places = itertools.product(head["sizes"], head["columns"])
        for at, (N, T) in enumerate(places):
            cell = known.cell(T, N)
            assert kinds[at] == (0 if cell is None else 1 if cell.logged else 2)
            if cell is not None:
                assert value[at] == cell.value
        assert {1, 2} <= set(kinds)
        for N, stratum in head["strata"].items():
            rows = known.fitness.values[known.strata[int(N)], : stratum["depth"] + 1]
            for run, (begins, values) in zip(rows, stratum["runs"], strict=True):
                lengths = np.diff([*column(begins), stratum["depth"] + 1]).astype(int)
                assert np.array_equal(np.repeat(column(values), lengths), run, equal_nan=True)


def test_the_axis_shows_the_early_part_of_curves():
    best = np.linspace(0.2, 0.9, 33) + np.arange(6)[:, None] / 1e3
    known = outlook(as_frame(best, children=2, seeds=range(6)), None)
    assert fitness_limits(known)[0] <= known.cell(1, 2).value


def test_the_numbers_of_another_task_come_with_it(sweep):
    frame = pd.concat([sweep[0], chain_runs(budget=8, sizes=(1, 2), task="other")[0]])
    with contextlib.closing(explore_budget(frame.reset_index(drop=True))) as explorer:
        seen = []
        explorer.controls["task"].observe(seen.append)
        before = explorer.screen.data
        explorer.controls["task"].value = "other"
        assert [change["new"] for change in seen] == ["other"]
        head, _ = unpacked(explorer.screen.data)
        assert head["task"] == "other"
        assert explorer.screen.data != before
        explorer.screen.set_state({"task": "toy"})  # as the browser does
        assert unpacked(explorer.screen.data)[0]["task"] == "toy"
        assert explorer.settings["calls"] == 32


def test_what_moved_on_the_page_is_read_and_observed(sweep):
    with contextlib.closing(explore_budget(*sweep[:1])) as explorer:
        seen = []
        explorer.controls["generations"].observe(seen.append)
        explorer.screen.set_state({"generations": 16, "children": 2, "calls": 32})
        assert [change["new"] for change in seen] == [16]
        assert explorer.settings["children"] == 2
        assert "T = 16 generations of N = 2 children" in explorer.words
        assert "generations=16, children=2, calls=32" in explorer.code


def test_predicted_shares_are_sent_for_the_tau_that_is_chosen(sweep):
    with contextlib.closing(explore_budget(*without(sweep, 4)[:1])) as explorer:
        explorer.settle()
        assert unpacked(explorer.screen.data)[0]["predicted"]["sizes"] == {}
    frame, children = without(sweep, 4)
    with contextlib.closing(explore_budget(frame, child_table=children)) as explorer:
        for tau in (0.4, 0.8):
            explorer.controls["tau"].value = tau
            explorer.settle()
            head, column = unpacked(explorer.screen.data)
            assert head["predicted"]["tau"] == tau
            known = explorer._spec.view(explorer.settings, False).outlook
            share = head["predicted"]["sizes"]["4"]["share"]
            assert np.array_equal(column(share[0]), known.predicted(4, tau)[0])


def test_the_stored_picture_is_small_and_needs_no_script(sweep):
    with contextlib.closing(explore_budget(*sweep[:1])) as explorer:
        bundle = explorer._repr_mimebundle_()
        shown = bundle["text/html"]
        assert len(shown) < 300_000
        [image] = re.findall(r'src="data:image/png;base64,([^"]+)"', shown)
        with Image.open(io.BytesIO(base64.b64decode(image))) as picture:
            assert (picture.format, picture.mode) == ("PNG", "P")  # of few colours
        assert 2 * len(image) < len(base64.b64encode(explorer.png))
        assert explorer.words.split(".")[0] in shown
        assert bundle["text/plain"] == explorer.words
        assert "application/vnd.jupyter.widget-view+json" in bundle


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
        head, column = unpacked(explorer.screen.data)
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
