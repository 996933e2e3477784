"""The charts of the allocation explorer: their numbers are those of its table."""

import dataclasses
import json
import math
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from matplotlib.collections import FillBetweenPolyCollection

from replay.explorers.allocation_chart import (
    GREY,
    _rows,
    allocation_chart,
    colours_of,
    reach,
    short_name,
    texts_of,
    width_of,
)


def panels(explorer):
    return json.loads(explorer._screen.chart)["panels"]


def test_every_number_of_the_chart_is_one_of_the_table(explorer):
    explorer.controls["arms"].value = 3
    explorer.controls["tau"].value = 0.7
    explorer.settle()
    table, view = explorer._view.table(), explorer._view
    curves, pulls, times, effects = panels(explorer)
    lines = [each for each in curves["marks"] if each["kind"] == "line"]
    assert [each["label"] for each in lines] == list(view.played)
    for line in lines:
        rows = table[table["policy"] == line["label"]]
        assert line["x"] == rows["round"].tolist()
        for drawn, column in (("y", "value"), ("low", "low"), ("high", "high")):
            assert line[drawn] == [None if np.isnan(each) else each for each in rows[column]]
    assert curves["marks"][-1]["y"] == 0.7
    assert pulls["marks"][0]["values"] == view.played[view.shown].ranks.tolist()
    dots = times["marks"][0]["x"]
    known = table.groupby("policy", sort=False)["rounds_to_tau"].first()
    assert dots == [None if np.isinf(each) else each for each in known]
    found = list(view.effects.values())
    assert effects["marks"][1]["x1"] == [each.value for each in found]
    assert effects["marks"][2]["x_low"] == [each.low for each in found]
    assert effects["marks"][2]["x_high"] == [each.high for each in found]


def test_of_many_rounds_some_are_sent(explorer, monkeypatch):
    monkeypatch.setattr("replay.explorers.allocation_chart.MOST_PLACES", 7)
    explorer._draw(coarse=False)
    line = panels(explorer)[0]["marks"][0]
    assert len(line["x"]) == 7
    assert [line["x"][0], line["x"][-1]] == [1, explorer.settings["rounds"]]
    value = explorer._view.played[line["label"]].curve.value
    assert line["y"] == [value[at - 1] for at in line["x"]]


def test_only_the_policy_whose_pulls_are_shown_has_a_band(explorer):
    view = explorer._view
    for shown in view.played:
        lines = allocation_chart(dataclasses.replace(view, shown=shown)).panels[0].marks[:-1]
        assert {each.label: each.band for each in lines} == {n: n == shown for n in view.played}
        figure = allocation_chart(dataclasses.replace(view, shown=shown)).figure()
        drawn = figure.axes[0].collections
        [band] = [each for each in drawn if isinstance(each, FillBetweenPolyCollection)]
        curve, path = view.played[shown].curve, band.get_paths()[0].vertices
        assert np.nanmax(curve.high) == pytest.approx(path[:, 1].max())


def test_what_comes_later_or_never_is_an_arrow_at_the_edge(explorer):
    explorer.controls["tau"].value = 1.5
    dots, later, _ = panels(explorer)[2]["marks"]
    assert dots["x"] == [None] * len(later["x"])
    assert later["shape"] == "later"
    assert all(each is not None for each in later["x"])


def test_the_axis_of_fitness_shows_the_early_part_of_curves(explorer):
    low, high = allocation_chart(explorer._view).figure().axes[0].get_ylim()
    for played in explorer._view.played.values():
        assert low <= np.nanmin(played.curve.value) <= np.nanmax(played.curve.value) <= high


def gaining(*intervals):
    """As much of a view as its effects."""
    found = {
        str(k): SimpleNamespace(value=v, low=a, high=b) for k, (a, v, b) in enumerate(intervals)
    }
    return SimpleNamespace(effects=found)


ends = st.floats(-1e4, 1e4)


@given(st.lists(st.tuples(ends, ends, ends), max_size=4))
def test_every_effect_has_room_on_an_axis_of_a_round_length(intervals):
    found = reach(gaining(*intervals))
    assert found >= 1.2 * max((abs(e) for each in intervals for e in each), default=0.0)
    assert f"{found:e}"[0] in "125"
    assert float(f"{found:.0e}") == pytest.approx(found)


@pytest.mark.parametrize("widest", [1 / 1200, 0.0008333333333333335, 0.008333333333333335,
                                    8.333333333333336, 83.33333333333334])  # fmt: skip
def test_an_effect_at_the_end_of_a_round_length_has_room_too(widest):
    """Where the logarithm is rounded down to a whole number."""
    assert reach(gaining((0.0, widest, math.nan))) >= 1.2 * widest


def test_effects_without_an_interval_count_by_their_values():
    assert reach(gaining((math.nan, 0.1, math.inf))) == reach(gaining((0.1, 0.1, 0.1)))
    assert reach(gaining((math.nan, math.nan, math.nan))) == reach(gaining())


@pytest.mark.parametrize(
    ("rounds", "width"), [(1, 2), (2, 2), (3, 4), (4, 4), (5, 8), (64, 64), (65, 128)]
)
def test_the_axis_of_rounds_ends_at_a_power_of_two(rounds, width):
    assert width_of(SimpleNamespace(rounds=rounds)) == width


def test_long_names_stand_in_two_lines_and_short_ones_in_one():
    assert short_name("successive_halving") == "successive\nhalving"
    assert short_name("arm_elimination_x") == "arm\nelimination_x"
    assert short_name("best_arm") == "best_arm"
    assert short_name("twelve_signs") == "twelve_signs"


def test_baselines_are_grey_and_policies_have_colours_of_their_own():
    found = colours_of(["single", "random", "ucb1", "thompson"])
    assert found[0] == found[1] == GREY
    assert len(set(found)) == 3
    assert colours_of(["ucb1", "single", "thompson"])[::2] == found[2:]


def test_rows_stand_from_the_top_down_with_room_for_those_of_the_panel_beside():
    full, fewer = _rows(["a", "b", "c"], 3), _rows(["a"], 3)
    assert full.domain == (2.5, -0.5)
    assert fewer.domain == (1.5, -1.5)
    assert full.ticks == [(0.0, "a"), (1.0, "b"), (2.0, "c")]
    assert fewer.ticks == [(0.0, "a")]


def test_an_equal_share_of_the_pulls_has_the_middle_colour_as_far_as_there_is_room(explorer):
    view = explorer._view
    for arms, most in ((2, 0.5), (2, 0.9), (4, 0.3), (4, 0.99), (8, 0.2), (8, 0.1)):
        rest = (1 - most) / (arms - 1)
        ranks = np.full((arms, view.rounds), rest)
        ranks[0] = most
        played = {n: SimpleNamespace(curve=p.curve, ranks=ranks) for n, p in view.played.items()}
        shown = dataclasses.replace(view, arms=arms, played=played)
        bar, [cells] = (p := allocation_chart(shown).panels[1]).bar, p.marks
        assert (cells.least, cells.most) == pytest.approx((bar.least / 100, bar.most / 100))
        assert 0 <= cells.least < 1 / arms < cells.most <= min(1.0, 3 / arms)
        middle = (cells.least + cells.most) / 2
        assert middle == pytest.approx(1 / arms) if cells.most < 2 / arms else cells.least == 0
        assert cells.most >= min(most, 3 / arms)


def test_what_may_come_later_than_the_axis_ends_is_an_arrow_beside_a_cut_interval(explorer):
    ends = {
        "single": (3.0, 2.0, 4.0),
        "random": (3.0, 2.0, math.inf),
        "ucb1": (math.inf, 5.0, math.inf),
        "thompson": (math.inf, math.nan, math.nan),
    }
    any_time = explorer._view.times["random"]
    times = {
        name: dataclasses.replace(any_time, time=time, low=low, high=high)
        for name, (time, low, high) in ends.items()
    }
    view = dataclasses.replace(explorer._view, times=times)
    dots, later, rows = allocation_chart(view).panels[2].marks
    width = width_of(view)
    assert dots.x == [3.0, 3.0, math.inf, math.inf]
    assert dots.x_high[:3] == [4.0, width, width]
    assert [x == width for x in later.x] == [False, True, True, True]
    assert len(rows.texts) == 4


def test_a_click_on_a_row_shows_the_pulls_of_its_policy(explorer):
    keys = allocation_chart(explorer._view).keys()
    view = explorer._view
    assert keys[2, 2] == [(("shown", name),) for name in view.times]
    assert keys[3, 3] == [(("shown", name),) for name in view.effects]


@pytest.mark.parametrize(("baseline", "title"), [
    ("single", "Gain over one run"), ("random", "Gain over random pulls"),
])  # fmt: skip
def test_the_titles_say_with_what_policies_are_compared(explorer, baseline, title):
    view = explorer._view
    pools = SimpleNamespace(runs=view.pools.runs, baseline=lambda rounds: baseline)
    texts = texts_of(dataclasses.replace(view, pools=pools))
    assert texts[3].title == title
    assert baseline in texts[3].about
    assert texts[1].title == f"Pulls of {view.shown}"
