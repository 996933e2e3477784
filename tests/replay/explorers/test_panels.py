"""Panels of one's own: a function and its controls become a tab."""

import base64
import contextlib
import html
import io
import itertools
import json
import re

import numpy as np
import pandas as pd
import pytest
from matplotlib.colors import to_hex, to_rgb
from PIL import Image
from synthetic_runs import chain_runs, sweep_runs

import replay
from replay.explorers import PANELS, explore_figures, explore_panel, register
from replay.explorers.panels import ExplorerPanel
from replay.plots import Chart, charts
from replay.plots.marks import Line
from replay.plots.panel import Axis, Panel
from replay.plots.style import THEMES


def reached(frame, *, tau=0.5, by="generation", together=False):
    """How many runs have reached a fitness."""
    if tau > 5:
        raise ValueError("no run can reach that")
    share = (frame["best_fitness"] >= tau).groupby(frame[by]).mean()
    line = Line(x=share.index, y=share, label="all" if together else "")
    panel = Panel(title=f"Runs at {tau:g}", x=Axis(label=by), y=Axis(), marks=[line])
    return Chart(panels=[panel])


def drawn(frame, *, ax, theme):
    """Draws on axes."""
    ax.plot(frame.groupby("generation")["best_fitness"].mean())
    ax.set_title("Mean", loc="left")
    return ax


@pytest.fixture(scope="module")
def frame():
    return chain_runs(budget=16, sizes=(1, 2))[0]


@pytest.fixture(autouse=True)
def nothing_stays():
    before = dict(PANELS)
    yield
    PANELS.data.clear()
    PANELS.data.update(before)


def chart_of(explorer):
    return json.loads(explorer._screen.chart)


def test_a_function_is_a_tab_with_its_controls_and_moves(frame):
    register("Reached", reached, tau=(0.0, 1.0, 0.25), by=["generation", "children"])
    with contextlib.closing(replay.explore(frame)) as tabs:
        shown = tabs.open("Reached")
        assert list(shown.controls) == ["tau", "by", "together"]
        assert chart_of(shown)["panels"][0]["title"] == "Runs at 0.5"
        shown.controls["tau"].value = 0.75
        [panel] = chart_of(shown)["panels"]
        assert panel["title"] == "Runs at 0.75"
        [line] = reached(frame, tau=0.75).panels[0].marks
        assert panel["marks"][0]["y"] == line.y.tolist()
        shown.controls["together"].value = True
        assert chart_of(shown)["panels"][0]["marks"][0]["label"] == "all"
        assert "tau=0.75, by='generation', together=True" in shown.code
    sweep = sweep_runs(4, 1)
    register("Sweep length", charts.main_effects)
    with contextlib.closing(replay.explore(sweep)) as tabs:
        assert chart_of(tabs.open("Sweep length"))["panels"]


def test_what_a_panel_refuses_is_a_sentence_and_its_numbers_can_be_saved(frame, tmp_path):
    register("Reached", reached, tau=(0.0, 9.0, 0.25))
    with contextlib.closing(explore_panel(frame, "Reached", tau=0.25)) as shown:
        table = pd.read_csv(shown.save(tmp_path / "numbers.csv"))
        assert table["y"].tolist() == reached(frame, tau=0.25).panels[0].marks[0].y.tolist()
        assert shown.save(tmp_path / "page.html").stat().st_size > 10_000
        shown.controls["tau"].value = 8.0
        assert "no run can reach that" in shown._refusal.value
        assert chart_of(shown)["panels"][0]["title"] == "Runs at 0.25"


def test_a_function_that_draws_on_axes_is_a_still_picture(frame, tmp_path):
    register("Drawn", drawn)
    with contextlib.closing(explore_panel(frame, "Drawn")) as shown:
        assert len(chart_of(shown)["picture"]) > 1000
        assert [ax.get_title(loc="left") for ax in shown.figure().axes] == ["Mean"]
        assert [each.description for each in shown._saves if each.layout.display is None] == [
            "Save PNG", "Save SVG", "Save HTML",
        ]  # fmt: skip
        with pytest.raises(ValueError, match="states no numbers"):
            shown.save(tmp_path / "numbers.csv")


def test_every_figure_of_a_group_has_a_place(frame):
    with contextlib.closing(explore_figures(frame)) as shown:
        assert chart_of(shown)["panels"][0]["title"].startswith("Best so far")
        shown.controls["figure"].value = "what exploring gains"
        assert "keep the best" in chart_of(shown)["panels"][0]["title"]
        known = {"replay": replay, "frame": frame}
        with contextlib.closing(eval(shown.code.removesuffix(".figure()"), known)) as again:
            assert again.words == shown.words


@pytest.mark.parametrize(
    ("controls", "said"),
    [
        ({"colour": ["a"]}, "expected settings among tau, by, together, got 'colour'"),
        ({"by": []}, "by: expected a list of values to choose from, got an empty one"),
        ({"tau": object()}, "tau: expected what ipywidgets.interact makes a control of"),
    ],
)
def test_settings_that_do_not_exist_are_refused(controls, said):
    with pytest.raises(ValueError, match=said):
        register("Reached", reached, **controls)
    assert "Reached" not in PANELS


@pytest.mark.parametrize("wrong", [3, None, lambda: None])
def test_a_panel_is_a_function_of_a_frame(wrong):
    with pytest.raises(TypeError, match="expected a panel, a function of a frame and its settings"):
        register("Reached", wrong)
    assert "Reached" not in PANELS


@pytest.mark.parametrize("name", ["Budget", "Figures", "Selection"])
def test_the_name_of_a_built_in_tab_is_refused_and_replaced_on_purpose(frame, name):
    with pytest.raises(ValueError, match=f"{name!r} is the name of a built-in panel"):
        register(name, reached)
    PANELS.replace(name, ExplorerPanel(reached))
    with contextlib.closing(replay.explore(frame)) as tabs:
        assert chart_of(tabs.open(name))["panels"][0]["title"] == "Runs at 0.5"


def spoiling(frame):
    """Changes what it is given."""
    frame["best_fitness"] = -1.0
    return charts.trajectories(frame)


def failing(frame):
    """Fails."""
    raise KeyError("nope")


def returning_nothing(frame):
    """Returns no chart."""


def test_what_a_panel_does_to_its_frame_stays_its_own(frame):
    before = frame.copy()
    explore_panel(frame, spoiling).close()
    pd.testing.assert_frame_equal(frame, before)


@pytest.mark.parametrize(
    ("panel", "words"),
    [
        (failing, "the function of the panel 'Mine' failed: KeyError: 'nope'"),
        (returning_nothing, "to return a replay.plots.Chart, or"),
    ],
)
def test_any_failure_of_a_panel_is_a_sentence_in_its_place(frame, panel, words):
    register("Mine", panel)
    with contextlib.closing(replay.explore(frame)) as tabs:
        assert words in html.unescape(tabs.open("Mine")._refusal.value)
        assert tabs.open("Table of runs").widget


@pytest.mark.parametrize("in_browser", [True, False])
def test_a_cell_shows_why_a_panel_has_nothing_to_show(frame, in_browser, monkeypatch):
    if not in_browser:
        monkeypatch.setattr("replay.explorers.chart_explorer._screen", lambda: None)
    with contextlib.closing(explore_panel(frame, failing)) as shown:
        cell = shown._repr_mimebundle_()
    assert cell["text/plain"] == "the function of the panel 'failing' failed: KeyError: 'nope'"
    assert cell["text/plain"] in html.unescape(cell["text/html"])
    assert "<img" not in cell["text/html"]


@pytest.mark.parametrize("suffix", ["html", "png", "csv"])
def test_what_a_panel_refuses_is_not_saved(frame, tmp_path, suffix):
    path = tmp_path / f"page.{suffix}"
    refused = pytest.raises(ValueError, match="the function of the panel 'failing' failed: KeyErr")
    with contextlib.closing(explore_panel(frame, failing)) as shown, refused:
        shown.save(path)
    register("Reached", reached, tau=(0.0, 9.0, 0.25))
    with contextlib.closing(explore_panel(frame, "Reached", tau=0.25)) as shown:
        shown.controls["tau"].value = 8.0
        with pytest.raises(ValueError, match="no run can reach that"):
            shown.save(path)  # not what was shown before, under these settings
        assert not path.exists()
        shown.undo()
        assert shown.save(path).exists()


def test_a_value_without_a_hash_is_taken(frame):
    register("Columns", by_columns, columns={"one": ["generation"], "two": ["run", "seed"]})
    with contextlib.closing(explore_panel(frame, "Columns")) as shown:
        shown.controls["columns"].value = ["run", "seed"]
        assert chart_of(shown)["panels"][0]["title"] == "run, seed"


def by_columns(frame, *, columns):
    """Names columns."""
    return Chart(panels=[Panel(title=", ".join(columns), x=Axis(), y=Axis(), marks=[])])


def test_a_saved_page_has_the_controls_and_what_each_of_their_settings_shows(frame, tmp_path):
    register("Reached", reached, tau=(0.0, 6.0, 1.5), by=["generation", "children"])
    with contextlib.closing(explore_panel(frame, "Reached", tau=1.5)) as shown:
        [[book]] = arguments_of(shown.save(tmp_path / "page.html"))
        looks = [(e["label"], e["kind"], e["texts"], e["at"]) for e in book["controls"]]
        assert looks == [
            ("tau", "slider", ["0", "1.5", "3", "4.5", "6"], 1),
            ("by", "list", ["generation", "children"], 0),
            ("together", "box", ["no", "yes"], 0),
        ]
        settings = itertools.product(
            (0.0, 1.5, 3.0, 4.5, 6.0), ("generation", "children"), (False, True)
        )
        for number, (tau, by, together) in zip(book["which"], settings, strict=True):
            page = book["pages"][number]
            if tau > 5:
                assert page["message"] == page["label"] == "no run can reach that"
                continue
            shown.choose(tau=tau, by=by, together=together)
            assert page == chart_of(shown) | {"label": shown.words}
        assert len(book["pages"]) == 17  # what cannot be shown is there once


def arguments_of(page):
    """What the scripts of a page are given."""
    return [
        json.loads(base64.b64decode(given))
        for given in re.findall(
            r'JSON.parse\(new TextDecoder\(\).decode\(bytes\("(.*?)"', page.read_text()
        )
    ]


def test_an_unknown_panel_lists_those_there_are(frame):
    register("Reached", reached)
    with pytest.raises(ValueError, match=r"those registered \(Reached\), got 'Nothing'"):
        explore_panel(frame, "Nothing")
    with pytest.raises(ValueError, match="by: expected"):
        explore_panel(frame, "Reached", by=3.0)


def test_what_draws_on_axes_wears_the_inks_of_the_page(frame):
    def plain(frame, *, ax):
        ax.plot([0, 1], [0, 1], label="line")
        ax.set(title="Plain", xlabel="x")
        ax.legend()

    with contextlib.closing(explore_panel(frame, plain)) as shown:
        chart = chart_of(shown)
    for name, theme in (("picture", "light"), ("dark", "dark")):
        pixels = np.asarray(Image.open(io.BytesIO(base64.b64decode(chart[name]))).convert("RGB"))
        colours, counts = np.unique(pixels.reshape(-1, 3), axis=0, return_counts=True)
        assert to_hex(colours[counts.argmax()] / 255).upper() == THEMES[theme].ground
        assert counts.max() > 0.9 * counts.sum()  # the axes, too
        ink = np.array(to_rgb(THEMES[theme].text)) * 255
        assert (abs(colours - ink).max(axis=1) < 3).any()
    with contextlib.closing(explore_panel(frame, plain, theme="dark")) as shown:
        assert chart_of(shown)["dark"] == ""
        assert shown.figure("dark").axes[0].title.get_color() == THEMES["dark"].text


def test_what_cannot_be_shown_cannot_be_saved(frame, tmp_path, monkeypatch):
    def seen(explorer):
        return {each.layout.display for each in explorer._saves}

    register("Reached", reached, tau=(0.0, 9.0, 0.25))
    with contextlib.closing(explore_panel(frame, "Reached", tau=0.25)) as shown:
        assert seen(shown) == {None}
        shown.controls["tau"].value = 8.0
        assert seen(shown) == {"none"}
        shown.undo()
        assert seen(shown) == {None}
        monkeypatch.chdir(tmp_path)
        monkeypatch.setattr(shown, "_paper", lambda: (_ for _ in ()).throw(OSError("disk full")))
        shown._saves[0].click()
        assert "not saved: disk full" in shown._status.value
    with contextlib.closing(explore_figures(frame[:0])) as nothing:
        assert seen(nothing) == {"none"}
