"""An explorer that the page moves by itself: what it tells, and what it gets."""

import base64
import contextlib
import dataclasses
import io
import json
import re

import pandas as pd
import pytest
from explored import numbers_of
from PIL import Image
from synthetic_runs import chain_runs

import replay
from replay.explorers import explore_budget
from replay.explorers.browser_explorer import BrowserExplorer, BrowserSpec
from replay.explorers.explorer_spec import Sentence
from replay.explorers.widgets import page_script


def test_the_numbers_of_another_task_come_with_it(sweep):
    frame = pd.concat([sweep[0], chain_runs(budget=8, sizes=(1, 2), task="other")[0]])
    with contextlib.closing(explore_budget(frame.reset_index(drop=True))) as explorer:
        seen = []
        explorer.controls["task"].observe(seen.append)
        before = explorer.screen.data
        explorer.controls["task"].value = "other"
        assert [change["new"] for change in seen] == ["other"]
        head, _ = numbers_of(explorer.screen.data)
        assert head["task"] == "other"
        assert explorer.screen.data != before
        explorer.screen.set_state({"task": "toy"})  # as the browser does
        assert numbers_of(explorer.screen.data)[0]["task"] == "toy"
        assert explorer.settings["calls"] == 32


def test_its_buttons_look_as_those_of_other_explorers(sweep):
    with contextlib.closing(explore_budget(*sweep[:1])) as explorer:
        assert page_script() in explorer.widget.children[0].value


def test_what_moved_on_the_page_is_read_and_observed(sweep):
    with contextlib.closing(explore_budget(*sweep[:1])) as explorer:
        seen = []
        explorer.controls["generations"].observe(seen.append)
        explorer.screen.set_state({"generations": 16, "children": 2, "calls": 32})
        assert [change["new"] for change in seen] == [16]
        assert explorer.settings["children"] == 2
        assert "T = 16 generations of N = 2 children" in explorer.words
        assert "generations=16, children=2, calls=32" in explorer.code


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


def named(**how):
    """An explorer of two lists, a number and any number of runs, which states its settings."""
    sent = []
    spec = BrowserSpec(
        name="mine", theme="light",
        options={"task": ["a", "b"], "children": [1, 2, 4], "tau": None, "runs": ["r1", "r2"]},
        lists=("runs",),
        view=lambda now, coarse: Sentence(str(now)),
        pack=lambda now: sent.append(dict(now)) or f"{len(sent)} {now}".encode(),
        same=lambda one, other: one["task"] == other["task"],
        **how,
    )  # fmt: skip
    begins = {"task": "a", "children": 2, "tau": 0.5, "runs": []}
    return BrowserExplorer(spec, help="<b>", begins=begins), sent


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"children": 3}, r"children: expected a value out of \(1, 2, 4\), got 3"),
        ({"tau": float("nan")}, "tau: expected a value out of all finite numbers"),
        ({"tau": float("inf")}, "tau: expected a value out of all finite numbers"),
        ({"tau": True}, "tau: expected a value out of all finite numbers"),
        ({"tau": "0.5"}, "tau: expected a value out of all finite numbers"),
        ({"runs": "r1"}, "runs: expected a list, got 'r1'"),
        ({"runs": ["r1", "r9"]}, "runs: there is no 'r9'"),
        ({"depth": 1}, "expected settings among task, children, tau, runs, got 'depth'"),
    ],
)
def test_settings_and_values_that_do_not_exist_are_refused_and_change_nothing(settings, said):
    shown, _ = named()
    before = shown.settings
    with contextlib.closing(shown), pytest.raises(ValueError, match=said):
        shown.choose(**{"children": 4, **settings})
    assert shown.settings == before


def test_any_number_within_a_million_and_any_of_the_runs_can_be_chosen():
    shown, _ = named()
    with contextlib.closing(shown):
        for tau in (-1e12, 0, 1e12):
            shown.controls["tau"].value = tau
            assert shown.settings["tau"] == tau
        shown.choose(runs=("r2", "r1"), children=4)
        assert (shown.controls["runs"].value, shown.settings["children"]) == (["r2", "r1"], 4)


def test_numbers_are_sent_again_only_where_those_on_the_page_do_not_serve():
    shown, sent = named()
    with contextlib.closing(shown):
        shown.choose(children=4, tau=0.7)
        shown.screen.set_state({"children": 1})  # as the browser does
        assert len(sent) == 1
        shown.choose(task="b")
        assert [each["task"] for each in sent] == ["a", "b"]
        shown.screen.set_state({"task": "a"})
        assert [each["task"] for each in sent] == ["a", "b", "a"]


def test_what_goes_with_a_setting_follows_it_by_hand_and_on_another_tasks_numbers():
    moved = []

    def adjust(name, settings):
        moved.append(name)
        return {**settings, "children": 1} if name == "task" else settings

    shown, _ = named(adjust=adjust)
    with contextlib.closing(shown):
        shown.controls["tau"].value = 0.9
        shown.controls["task"].value = "b"
        assert shown.settings["children"] == 1
        shown.screen.set_state({"children": 4})  # fits together already
        shown.screen.set_state({"task": "a"})
        assert shown.settings["children"] == 1
    assert moved == ["tau", "task", "task"]


@pytest.mark.parametrize(
    ("settings", "split"),
    [
        ({"generations": 16}, (16, 2, 32)),
        ({"children": 1}, (32, 1, 32)),
        ({"calls": 16}, (4, 4, 16)),
        ({"generations": 4, "children": 4}, (4, 4, 16)),
        ({"generations": 2, "children": 8, "calls": 16}, (2, 8, 16)),
        ({"tau": 0.4}, (8, 4, 32)),
    ],
)
def test_a_budget_that_is_chosen_is_one_that_its_code_opens_again(sweep, settings, split):
    frame = sweep[0]
    with contextlib.closing(explore_budget(frame)) as shown:
        shown.choose(**settings)
        now = shown.settings
        assert (now["generations"], now["children"], now["calls"]) == split
        code = shown.code.removesuffix(".figure()")
        with contextlib.closing(eval(code, {"replay": replay, "frame": frame})) as again:
            assert again.settings == now


def test_settings_that_do_not_fit_together_are_refused_and_change_nothing(sweep):
    with contextlib.closing(explore_budget(sweep[0])) as shown:
        before = shown.settings
        with pytest.raises(ValueError, match=r"such as calls = 16, got generations = 4, .*= 32$"):
            shown.choose(generations=4, children=4, calls=32)
        assert shown.settings == before


@pytest.mark.parametrize("generations", [4, 16, 32])
def test_one_setting_that_is_chosen_is_one_that_is_moved_by_hand(sweep, generations):
    with contextlib.closing(explore_budget(sweep[0], calls=8)) as shown:
        before = shown.settings
        shown.controls["generations"].value = generations
        moved = shown.settings
        shown.choose(**before)
        assert shown.settings == before
        shown.choose(generations=generations)
        assert shown.settings == moved


def test_a_setting_is_observed_by_its_value_alone():
    shown, _ = named()
    with contextlib.closing(shown):
        seen = []
        shown.controls["children"].observe(seen.append)
        shown.choose(tau=0.9)
        shown.choose(children=4)
        assert [(change["old"], change["new"]) for change in seen] == [(2, 4)]
        with pytest.raises(ValueError, match="expected names='value', got 'options'"):
            shown.controls["children"].observe(print, names="options")


def test_what_takes_longer_is_sent_only_if_there_is_news_and_nothing_has_moved():
    news = []
    shown, sent = named(slow=lambda now: news.pop())
    with contextlib.closing(shown):
        for news_now, still, count in (
            (True, [False], 1),
            (False, [True, True], 1),
            (True, [True, False], 1),
            (True, [True, True], 2),
        ):
            news[:] = [news_now]
            answers = iter(still)
            shown._at_rest(lambda answers=answers: next(answers))
            assert len(sent) == count
        for news_now, count in ((True, 3), (False, 3)):
            news[:] = [news_now]
            shown.settle()
            assert len(sent) == count


def test_the_page_that_shows_the_picture_asks_for_the_rest_until_it_is_closed(monkeypatch):
    shown, _ = named()
    soon = []
    monkeypatch.setattr(shown._debounce, "soon", lambda: soon.append(1))
    shown._receive({"kind": "other"})
    assert soon == []
    shown._receive({"kind": "mounted"})
    assert soon == [1]
    shown.close()
    shown._receive({"kind": "mounted"})
    assert soon == [1]


def test_a_choice_of_which_nothing_is_known_is_a_sentence():
    def view(now, coarse):
        if now["children"] == 4:
            raise ValueError("never run")
        return Sentence(str(now))

    shown, _ = named()
    with contextlib.closing(shown):
        shown._spec = dataclasses.replace(shown._spec, view=view)
        shown.choose(children=4)
        assert shown.words == "never run"


@pytest.mark.parametrize("alone", [True, False])
def test_a_page_holds_the_numbers_and_the_choice_and_its_address_if_it_is_alone(alone):
    shown, _ = named()
    with contextlib.closing(shown):
        shown.choose(children=4)
        page = shown.page(alone=alone)
        assert base64.b64encode(shown.screen.data).decode() in page
        assert base64.b64encode(json.dumps(shown.settings).encode()).decode() in page
        assert ("{ addressed: mount }" in page) == alone
        assert "<b>" not in shown.widget.children[0].value
