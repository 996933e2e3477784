"""What comparisons found, as charts."""

import dataclasses

import pytest
from synthetic_runs import tasks

import replay
from replay.plots import charts
from replay.plots.marks import Points, Rule


@pytest.fixture(scope="module")
def found():
    frame = tasks(1.0, runs=12, count=1).assign(model="toy")
    return replay.judge(frame, {"search": "a"}, {"search": "b"}, margin=0.01)


def test_a_verdict_is_drawn_with_its_interval_no_effect_and_both_margins(found):
    [panel] = charts.verdict(found).panels
    *rules, effect = panel.marks
    assert all(isinstance(each, Rule) for each in rules)
    assert [each.x for each in rules] == [0.0, -0.01, 0.01]
    assert isinstance(effect, Points)
    places = effect.x, effect.x_low, effect.x_high
    assert places == ([found.effect], [found.interval.low], [found.interval.high])
    assert f"{found.interval.label}, {found.counted}; dashed: margin 0.01" == panel.about
    assert (panel.title, panel.x.label) == (found.verdict, f"fitness, {found.a} minus {found.b}")


def test_without_a_margin_there_is_none_and_without_an_interval_it_is_said(found):
    few = dataclasses.replace(
        found, margin=0.0, interval=replay.interval([found.effect] * 2), unit="pairs", n=2
    )
    [panel] = charts.verdict(few).panels
    assert [each.x for each in panel.marks if isinstance(each, Rule)] == [0.0]
    assert panel.about == "no interval, n = 2 pairs"
