"""What an explorer is about, as values and functions."""

import dataclasses
from types import SimpleNamespace

import pytest

from replay.explorers.explorer_spec import ExplorerSpec, PictureSpec, Sentence, call
from replay.plots import style
from replay.plots.chart import Chart
from replay.plots.style import THEMES


def spec_of(**how):
    return PictureSpec(name="mine", theme="light", view=lambda now, coarse: Sentence("a"), **how)


def test_a_call_begins_with_its_first_argument_and_states_values_as_python_does():
    settings = {"task": "a'b", "shown": ("x",), "tau": 0.5}
    asked = []
    explorer = SimpleNamespace(figure=lambda: "drawn")
    explorers = SimpleNamespace(explore_mine=lambda *a, **how: asked.append((a, how)) or explorer)
    names = {"frame": "the frame", "replay": SimpleNamespace(explorers=explorers)}
    assert eval(call("explore_mine", "frame", settings), names) == "drawn"
    assert eval(call("explore_mine", "frame", {}), names) == "drawn"
    assert asked == [(("the frame",), settings), (("the frame",), {})]


def test_the_figure_for_paper_is_its_own_or_that_of_its_chart():
    view, drawn = Sentence("There is nothing."), style.subplots()[0]
    asked = []
    own = spec_of(figure=lambda *given: asked.append(given) or drawn)
    assert own.draw(view, "dark") is drawn
    assert asked == [(view, "dark")]
    figure = spec_of(chart=lambda view: Chart(message=view.words.upper())).draw(view, "dark")
    assert [text.get_text() for text in figure.axes[0].texts] == ["THERE IS NOTHING."]
    assert figure.axes[0].texts[0].get_color() == THEMES["dark"].text


def test_without_a_chart_the_words_of_a_view_stand_in_its_place():
    view = Sentence("There is nothing.")
    assert spec_of().chart_of(view) == Chart(message="There is nothing.")
    assert spec_of(chart=lambda view: Chart(title=view.words)).chart_of(view).title == view.words
    assert view.table()["note"].tolist() == ["There is nothing."]


def test_what_is_not_stated_changes_nothing():
    spec = ExplorerSpec(name="mine", theme="light", view=lambda now, coarse: Sentence("a"))
    now = {"a": 1}
    assert spec.adjust("a", now) is now
    assert spec.code(now) == ""
    assert spec.hidden(now) == set()
    assert not spec.slow(now)
    assert spec.clicked((("a", 2),)) == {"a": 2}
    assert dict(spec.scrubs) == {}
    with pytest.raises(dataclasses.FrozenInstanceError):
        spec.name = "other"
