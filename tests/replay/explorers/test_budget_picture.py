"""The budget explorer's charts for paper."""

import contextlib
import dataclasses
import math
import re

import numpy as np
import pytest
from explored import without
from synthetic_runs import as_frame, chain_runs

from replay.explorers import explore_budget
from replay.explorers.budget_arrays import fitness_limits
from replay.explorers.budget_data import NAMES, outlook
from replay.explorers.budget_picture import (
    _budget_cells,
    _curves,
    _map,
    _marks,
    _thinned,
    draw_budget,
)
from replay.explorers.budget_values import behind_in_cell
from replay.explorers.budget_view import BudgetView


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


@pytest.mark.parametrize("count", [0, 1, 2, 89, 90, 91, 92, 150, 1000, 20_000])
def test_a_thinned_curve_keeps_its_ends_and_is_short(count):
    found = _thinned(count).tolist()
    assert found == sorted(set(found))
    assert len(found) <= 90
    if count:
        assert (found[0], found[-1]) == (0, count - 1)
    if count <= 90:
        assert found == list(range(count))
    else:
        assert len(found) > 45


@pytest.fixture(scope="module")
def known(sweep):
    return outlook(*without(sweep, 4))


def view_of(known, *splits, tau=0.5, **how):
    found = [place and known.split(*place, axis="calls", tau=tau) for place in splits]
    return BudgetView(outlook=known, axis="calls", tau=tau, splits=tuple(found), **how)


def test_every_other_split_of_the_budget_has_a_dotted_frame_around_its_cell(known):
    x, y = _budget_cells(view_of(known, (8, 2), None, (4, 4)), 16)
    rows, columns, *_ = known.grid
    found = {
        (columns[round(np.nanmean(x[k : k + 6]))], rows[round(np.nanmean(y[k : k + 6]))])
        for k in range(0, len(x), 6)
    }
    splits = {(16 // N, N) for N in rows if 16 % N == 0 and 16 // N in columns}
    assert found == splits - {(8, 2), (4, 4)}
    assert len(x) == len(y) == 6 * len(found)
    few, _ = _budget_cells(view_of(known, (8, 2), None, None), 64)
    assert len(few) == 6 * sum(64 % N == 0 and 64 // N in columns for N in rows) < 6 * len(rows)
    corners = [(a % 1, b % 1) for a, b in zip(x, y, strict=True) if not math.isnan(a)]
    assert all(min(abs(e - 0.43), abs(e - 0.57)) < 1e-9 for corner in corners for e in corner)


def test_logged_generations_are_solid_with_a_band_and_predicted_ones_are_dashed(known):
    fitness, reached = _curves(view_of(known, (4, 4), (8, 2), None))
    bands = [mark for mark in fitness.marks if mark.kind == "line" and mark.low is not None]
    dashed = [mark for mark in fitness.marks if getattr(mark, "dash", "") == "6 3"]
    assert [len(mark.x) for mark in bands] == [8, 0]  # the choice is drawn last
    assert [len(mark.x) for mark in dashed] == [0, 4]
    assert [mark.shape for mark in fitness.marks if mark.kind == "points"] == ["dot", "ring"]
    named = [mark.label for mark in reached.marks if getattr(mark, "label", "")]
    assert named == [f"{NAMES[1]}: T = 8, N = 2", f"{NAMES[0]}: T = 4, N = 4 (predicted)"]


def test_no_heading_of_the_picture_is_broken_within_a_split(known):
    figure = draw_budget(view_of(known, (8, 2), (16, 1), (4, 4)), "light")
    figure.canvas.draw()
    whole, fitness, reached = (ax for ax in figure.axes if ax.get_title(loc="left"))
    assert "\n" not in "".join(ax.get_title(loc="left") for ax in (whole, fitness, reached))
    tall = [ax.get_position().height for ax in (whole, fitness, reached)]
    assert tall[0] > tall[1] + tall[2]
    texts = [text.get_text() for text in reached.get_legend().get_texts()]
    assert texts[-1].startswith(f"{NAMES[0]}: T = 8, N = 2")


def test_a_prediction_goes_on_where_the_logged_part_of_a_curve_ends(known):
    curve = dataclasses.replace(known.split(8, 2, axis="calls", tau=0.5).fitness, logged=3, whole=3)
    logged, predicted, *limits, _ = _marks(curve, "#000000", -1.0, "")
    assert [*logged.x, *predicted.x] == curve.x.tolist()
    assert len(logged.x) == 3
    assert all(limit.x.tolist() == predicted.x.tolist() for limit in limits)


def test_a_curve_is_thin_where_only_some_runs_go_on():
    frame, _ = chain_runs(budget=32, sizes=(2, 4))
    ended = frame["run"].isin(sorted(frame.loc[frame["children"] == 4, "run"].unique())[:3])
    known = outlook(frame[~ended | (frame["generation"] <= 5)], None)
    assert known.about.endswith("thin if not all runs")
    assert outlook(frame, None).about.endswith("; dashes if predicted")
    view = view_of(known, (8, 4), None, (4, 2))
    curve = view.splits[0].fitness
    assert (curve.whole, curve.n, curve.of) == (5, 7, 10)
    assert "Of 10 runs of N = 4, 7 go on so far" in view.words
    assert "go on" not in view_of(known, (4, 4), None, None).words
    [thick, thin, *_] = _marks(curve, "#000000", -1.0, "choice")
    assert thick.width > thin.width
    assert thick.x.tolist() == curve.x[:5].tolist()
    assert thin.x.tolist() == curve.x[4:].tolist()  # from where they part
    assert [mark.label for mark in (thick, thin)] == ["choice", ""]


def test_tau_is_drawn_only_where_it_lies_on_the_axis(known):
    for tau, there in ((0.5, True), (7.0, False), (-7.0, False)):
        fitness, _ = _curves(view_of(known, (8, 2), None, None, tau=tau))
        assert [mark.kind in ("rule", "label") for mark in fitness.marks].count(True) == 2 * there


def test_runs_above_the_axis_make_it_longer_and_each_has_its_colour(known):
    low, high = fitness_limits(known)
    best = max(known.names, key=lambda name: known.one_run(name, "calls").value[-1])
    run = known.one_run(best, "calls")
    other = dataclasses.replace(run, run="other", value=run.value + 1.0)
    fitness, _ = _curves(view_of(known, (8, 2), None, None, runs=(run, other)))
    lines = {mark.label: mark for mark in fitness.marks if getattr(mark, "label", "")}
    assert lines[best].color != lines["other"].color
    assert fitness.y.domain[0] == low
    assert fitness.y.domain[1] > max(high, other.value[-1])
    assert _curves(view_of(known, (8, 2), None, None))[0].y.domain == (low, high)


def test_a_map_of_one_row_has_no_cells_of_the_same_budget():
    frame = as_frame(
        np.linspace(0.3, 0.9, 65) + np.arange(6)[:, None] / 1e3, children=2, seeds=range(6)
    )
    known = outlook(frame, None)
    assert _map(view_of(known, (8, 2), None, None)).about == ""


def test_a_map_of_differences_states_them_and_one_of_fitness_says_what_was_never_run(known, sweep):
    chosen = (8, 2), None, None
    heat = _map(view_of(known, *chosen))
    assert "round: never run, predicted" in heat.about
    assert "round" not in _map(view_of(outlook(sweep[0], None), *chosen)).about
    behind = _map(view_of(known, *chosen, map="behind"))
    [cells] = [mark for mark in behind.marks if mark.kind == "cells"]
    rows, columns, *_ = known.grid
    stated = {
        (columns[c], rows[r]): text
        for r, row in enumerate(cells.written)
        for c, text in enumerate(row)
        if text
    }
    assert stated == {place: behind_in_cell(b.value) for place, b in known.behind.items()}
    assert heat.title == behind.title == "toy, chain"
    frames = [mark for mark in heat.marks if mark.kind == "spans"]
    assert len(frames) == 1
    assert (round(frames[0].x0[0] + 0.43), round(frames[0].y0[0] + 0.43)) == (
        columns.index(8),
        rows.index(2),
    )
