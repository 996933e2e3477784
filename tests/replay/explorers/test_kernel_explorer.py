"""Controls and the picture that they move, as the kernel computes it."""

import dataclasses
import io
from types import SimpleNamespace

import ipywidgets
import pytest
from PIL import Image

from replay.explorers import kernel_explorer
from replay.explorers.debounce import Debounce
from replay.explorers.explorer_spec import DEFAULT, ExplorerSpec, Sentence
from replay.explorers.kernel_explorer import KernelExplorer


def test_the_picture_follows_a_control(explorer):
    before = explorer.png
    explorer.controls["arms"].value = 3
    assert explorer.png != before
    assert "arms=3" in Image.open(io.BytesIO(explorer.png)).text["Source"]
    explorer.settle()
    assert "with 3 arms" in explorer.words


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"z": 1}, "expected settings among task, model, .*, got 'z'"),
        ({"arms": 3, "rounds": -1}, "rounds: expected a value out of .*, got -1"),
        ({"arms": 99}, "arms: expected a value out of .*, got 99"),
    ],
)
def test_settings_and_values_that_do_not_exist_are_refused_and_change_nothing(
    explorer, settings, said
):
    before, shown = explorer.settings, explorer.words
    with pytest.raises(ValueError, match=said):
        explorer.choose(**settings)
    assert explorer.settings == before
    assert {name: control.value for name, control in explorer.controls.items()} == before
    assert explorer.words == shown
    explorer.choose(arms=3)
    explorer.undo()
    assert explorer.settings == before


def test_the_code_gives_the_picture_as_a_figure(frame, explorer):
    explorer.controls["arms"].value = 3
    explorer.settle()
    import replay

    figure = eval(explorer.code, {"replay": replay, "frame": frame})
    drawn = explorer.figure()
    assert [ax.get_xlabel() for ax in figure.axes] == [ax.get_xlabel() for ax in drawn.axes]


def test_a_scrub_holds_every_picture(explorer):
    made = explorer.scrub("tau", [0.5, 0.6, 0.7])
    slider, book, _ = made.children
    texts = book.texts
    assert len(texts) == len(set(texts)) == len(slider.options)
    assert all(label in text for (label, _), text in zip(slider.options, texts, strict=True))
    assert book.at == slider.index
    assert len(book.pages) == len(slider.options)
    with pytest.raises(ValueError, match=r"expected values, or a parameter among .*'tau'"):
        explorer.scrub("rounds")


def test_what_cannot_be_shown_is_said_and_the_picture_stays(explorer, monkeypatch):
    def unknown(now, coarse):
        raise ValueError(f"nothing is known of {now['arms']} arms")

    before, spec = explorer._screen.chart, explorer._spec
    monkeypatch.setattr(explorer, "_spec", dataclasses.replace(spec, view=unknown))
    explorer.controls["arms"].value = 5
    assert explorer._screen.chart == before
    assert "nothing is known of 5 arms" in explorer._refusal.value
    monkeypatch.setattr(explorer, "_spec", spec)
    explorer.controls["arms"].value = 3
    assert "with 3 arms" in explorer.words


def test_at_rest_the_view_is_complete(explorer):
    explorer.controls["arms"].value = 3
    explorer._debounce.thread.join(30)
    assert explorer._debounce.thread is None
    assert not explorer._screen.coarse
    assert "1,000 replicates" in explorer.words


def test_settings_can_be_undone_one_change_at_a_time(explorer):
    begun = explorer.settings
    assert explorer._undo.disabled
    for arms in (3, 4, 5):  # one slide
        explorer.controls["arms"].value = arms
    slid = explorer.settings
    explorer.choose(reward="rank", shown="random")
    explorer.choose(reward="rank")  # changes nothing
    explorer._clicked((("shown", "single"),))
    assert explorer.settings["shown"] == "single"
    explorer.undo()
    assert explorer.settings == {**slid, "reward": "rank", "shown": "random"}
    explorer.undo()
    assert explorer.settings == slid
    assert explorer.controls["reward"].value == slid["reward"]
    explorer._undo.click()
    assert explorer.settings == begun
    assert explorer._undo.disabled
    explorer.undo()
    assert explorer.settings == begun


def stating(*names, adjust=lambda moved, now: now, view=None, **how):
    """An explorer with sliders from 0 to 9 that states its settings."""
    spec = ExplorerSpec(
        name="mine", theme="light", adjust=adjust,
        view=view or (lambda now, coarse: Sentence(f"{now}{' coarse' if coarse else ''}")),
        code=lambda now: f"mine({now})", **how,
    )  # fmt: skip
    controls = {name: ipywidgets.IntSlider(min=0, max=9) for name in names}
    return KernelExplorer(spec, controls, help="")


@pytest.fixture
def made(monkeypatch):
    monkeypatch.setattr(Debounce, "soon", lambda self: None)  # nothing comes to rest by itself
    monkeypatch.setattr(KernelExplorer, "_image", lambda self, view: view.words.encode())
    kept = []

    def make(*names, **how):
        kept.append(stating(*names, **how))
        return kept[-1]

    yield make
    for each in kept:
        each.close()


def at_most(moved, now):
    """Keeps b no larger than a: the other one follows what was moved."""
    return {**now, "a": max(now["a"], now["b"])} if moved == "b" else {
        **now, "b": min(now["a"], now["b"])
    }  # fmt: skip


def test_settings_that_are_chosen_fit_together_as_if_they_were_moved_by_hand(made):
    chosen, moved = made("a", "b", adjust=at_most), made("a", "b", adjust=at_most)
    for settings in ({"b": 5}, {"a": 3}, {"a": 2, "b": 7}, {"b": 1, "a": 8}):
        chosen.choose(**settings)
        for name in sorted(settings):
            moved.controls[name].value = settings[name]
        assert chosen.settings == moved.settings
        assert {n: each.value for n, each in chosen.controls.items()} == chosen.settings
    chosen.undo()
    assert chosen.settings == {"a": 7, "b": 7}


def test_policies_can_be_chosen_without_the_one_that_is_shown(explorer):
    explorer.choose(policies=["exp3p"])
    assert explorer.settings["policies"] == ("exp3p",)
    assert explorer.settings["shown"] == "exp3p"
    explorer.choose(shown="random")
    explorer.choose(policies=("ucb1",), arms=3)
    assert (explorer.settings["shown"], explorer.settings["arms"]) == ("random", 3)


def test_what_does_not_fit_together_is_refused_and_changes_nothing(made):
    def refuse(moved, now):
        if now["a"] == 7:
            raise ValueError("never 7")
        return now

    shown = made("a", "b", adjust=refuse)
    with pytest.raises(ValueError, match="never 7"):
        shown.choose(b=3, a=7)
    assert shown.settings == {"a": 0, "b": 0}
    assert [each.value for each in shown.controls.values()] == [0, 0]
    assert shown._undo.disabled


def test_as_many_changes_as_are_kept_can_be_undone(made, monkeypatch):
    monkeypatch.setattr(kernel_explorer, "MOST_PAST", 3)
    shown = made("a", "b")
    for value in range(1, 6):
        shown.choose(a=value)
    seen = []
    while not shown._undo.disabled:
        shown.undo()
        seen.append(shown.settings["a"])
    assert seen == [4, 3, 2]


def test_moves_of_one_slider_are_one_change_and_those_of_another_are_not(made):
    shown = made("a", "b")
    for name, value in (("a", 1), ("a", 2), ("b", 3), ("a", 4)):
        shown.controls[name].value = value
    seen = []
    while not shown._undo.disabled:
        shown.undo()
        seen.append(tuple(shown.settings.values()))
    assert seen == [(2, 3), (2, 0), (0, 0)]


def test_the_code_states_only_what_matters(made):
    shown = made("a", "b", hidden=lambda now: {"b"} if now["a"] else set())
    assert shown.code == "mine({'a': 0, 'b': 0})"
    shown.controls["a"].value = 2
    assert shown.code == "mine({'a': 2})"
    assert (shown.controls["b"].layout.display, shown.controls["a"].layout.display) == (
        "none",
        None,
    )
    shown._settings["a"] = DEFAULT
    assert shown.code == "mine({})"


def test_coarse_while_it_moves_and_in_full_once_it_settles(made):
    asked = []
    shown = made("a", slow=lambda now: asked.append(now["a"]))
    shown.controls["a"].value = 2
    shown._debounce.cancel()
    assert shown.words == "{'a': 2} coarse"
    assert shown.png == b"{'a': 2} coarse"
    shown.settle()
    assert shown.words == shown.png.decode() == "{'a': 2}"
    assert shown._screen.value == shown.png
    before = list(asked)
    shown.settle()
    assert asked == before == [2]  # nothing is computed twice


def test_what_is_shown_at_rest_is_not_computed_for_what_moves_again(made):
    seen = []
    shown = made("a", slow=seen.append)
    shown._at_rest(lambda: False)
    assert (seen, shown._coarse) == ([], True)
    answers = iter([True, False])
    shown._at_rest(lambda: next(answers))
    assert (len(seen), shown._coarse) == (1, True)
    shown._at_rest(lambda: True)
    assert not shown._coarse


def test_a_scrub_goes_over_given_values_and_leaves_the_settings_as_they_were(made):
    shown = made("a", "b", adjust=at_most, scrubs={"a": lambda now: [1, 2]})
    shown.choose(b=4)
    before = shown.settings
    slider, stack, _ = shown.scrub("b", [2, 6]).children
    said = [page.children[1].value for page in stack.children]
    assert ["'a': 4, 'b': 2" in said[0].replace("&#x27;", "'"),
            "'a': 6, 'b': 6" in said[1].replace("&#x27;", "'")] == [True, True]  # fmt: skip
    assert not any("coarse" in each for each in said)
    assert [label for label, _ in slider.options] == ["2", "6"]
    assert shown.settings == before
    assert shown.words == str(before)
    with pytest.raises(ValueError, match=r"a parameter among \['a'\], got 'b'"):
        shown.scrub("b")


def test_a_click_that_means_nothing_possible_is_passed_over(made):
    shown = made("a")
    shown._clicked((("a", 99),))
    shown._clicked((("z", 1),))
    assert shown.settings == {"a": 0}
    shown._clicked((("a", 5),))
    assert shown.settings == {"a": 5}


def test_of_what_cannot_be_shown_no_file_is_offered_until_it_can_be_shown_again(made):
    def view(now, coarse):
        if now["a"] > 5:
            raise ValueError("nothing above 5")
        return SimpleNamespace(words=str(now))

    shown = made("a", view=view)
    offered = []
    for value in (6, 2):
        shown.controls["a"].value = value
        offered.append({each.layout.display for each in shown._saves})
    assert offered == [{"none"}, {None}]


def test_it_begins_where_it_is_asked_to_if_there_is_something_to_show():
    def view(now, coarse):
        if now["a"] > 5:
            raise ValueError("nothing above 5")
        return Sentence(str(now))

    spec = ExplorerSpec(name="mine", theme="light", view=view)
    controls = {"a": ipywidgets.IntSlider(min=0, max=9)}
    with pytest.raises(ValueError, match="nothing above 5"):
        KernelExplorer(spec, controls, help="", begins={"a": 6})
    shown = KernelExplorer(spec, controls, help="", begins={"a": 4})
    assert shown.settings == {"a": 4}
    assert [each.layout.display for each in shown._saves] == ["none"] * 4  # a sentence
    shown.close()
    assert shown.words == ""
