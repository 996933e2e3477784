"""Controls and the picture that they move, as the kernel computes it."""

import dataclasses
import io

import pytest
from PIL import Image


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
    with pytest.raises(ValueError, match="arms"):
        explorer.scrub("arms")


def test_what_cannot_be_shown_is_said_and_the_picture_stays(explorer, monkeypatch):
    def unknown(now, coarse):
        raise ValueError(f"nothing is known of {now['arms']} arms")

    before, spec = explorer._screen.chart, explorer._spec
    monkeypatch.setattr(explorer, "_spec", dataclasses.replace(spec, view=unknown))
    explorer.controls["arms"].value = 4
    assert explorer._screen.chart == before
    assert "nothing is known of 4 arms" in explorer._words.value
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
