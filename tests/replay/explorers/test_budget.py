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
from synthetic_runs import as_frame, chain_runs

from replay.explorers import explore_budget
from replay.explorers.budget import link
from replay.explorers.budget_arrays import fitness_limits
from replay.explorers.budget_data import outlook
from replay.explorers.budget_picture import _curves
from replay.logs.frames import ReplayWarning


@pytest.fixture(scope="module")
def sweep():
    return chain_runs(budget=32, sizes=(1, 2, 4, 8, 16, 32))


def without(sweep, N):
    return [table[table["children"] != N] for table in sweep]


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
