import numpy as np
import pandas as pd
import pytest
from ipywidgets import Widget
from synthetic_runs import sweep_runs

import replay
from replay.explorers import explore_sweep
from replay.explorers.sweep import FIGURES, Filters
from replay.planning.sweeps import by_configuration, main_effects
from replay.statistics.intervals import measured


@pytest.fixture(scope="module")
def frame():
    return sweep_runs()


@pytest.fixture
def explorer(frame):
    made = explore_sweep(frame)
    yield made
    made.close()


def counts(explorer, name):
    """The number in brackets of each value."""
    options = explorer.controls[f"where {name}"].options
    return {value: int(label.rpartition("(")[2].rstrip(")")) for label, value in options}


def test_counts_are_of_what_the_other_filters_leave(explorer, frame):
    explorer.controls["where model"].value = ("a",)
    chosen = frame[frame["model"] == "a"]
    assert counts(explorer, "children") == {
        str(N): int((chosen["children"] == N).sum()) for N in (4, 8)
    }
    assert sum(counts(explorer, "model").values()) == len(frame)  # its own filter does not count
    assert counts(explorer, "top_p") == {"0.9": 0, "1": 0, "not asked": len(chosen)}
    explorer.controls["where model"].value = ()
    assert sum(counts(explorer, "top_p").values()) == len(frame)


def test_new_counts_never_take_a_choice_away_even_for_a_moment(explorer, monkeypatch):
    explorer.controls["where children"].value = ("4",)
    sent = []
    monkeypatch.setattr(Widget, "_send", lambda self, told, buffers=None: sent.append((self, told)))
    explorer.controls["where model"].value = ("a",)
    told = {
        name: [message["state"] for widget, message in sent if widget is explorer.controls[name]]
        for name in ("where children", "where model")
    }
    assert [set(state) for state in told["where model"]] == [{"index"}]  # its counts stay
    [state] = told["where children"]
    assert "_options_labels" in state
    assert state.get("index", (0,)) == (0,)


@pytest.mark.parametrize("figure", FIGURES)
def test_the_table_is_that_of_the_chosen_runs(explorer, frame, figure, tmp_path):
    explorer.choose(**{"figure": figure, "where children": ("8",), "where seed": ("0", "2")})
    saved = pd.read_csv(explorer.save(tmp_path / "numbers.csv"))
    chosen = frame[(frame["children"] == 8) & frame["seed"].isin([0, 2])]
    if figure == "main effects":
        expected = main_effects(chosen)
        assert set(saved["seeds"]) == {2}
        assert saved["value"].tolist() == pytest.approx(expected["value"].tolist())
    elif figure == "depth and breadth":
        means = chosen.groupby("generations")["fitness"].mean()
        assert saved["value"].tolist() == pytest.approx(means.tolist())
    else:
        expected = by_configuration(chosen)["fitness"]
        assert saved["fitness"].tolist() == pytest.approx(expected.tolist())
    assert f"{chosen['configuration'].nunique()} of 30 configurations" in explorer.words
    assert f"{len(chosen)} of 120 runs completed" in explorer.words


def test_controls_that_do_not_matter_are_hidden(explorer):
    shown = {name for name, each in explorer.controls.items() if each.layout.display != "none"}
    assert "measure" in shown
    assert "cost" not in shown
    explorer.controls["figure"].value = "cost and fitness"
    assert explorer.controls["measure"].layout.display == "none"
    assert explorer.controls["cost"].layout.display is None
    assert "flops" not in explorer.controls["cost"].options  # unknown of every run


def test_numbers_and_labels_choose_alike(frame):
    filters = Filters(frame)
    for name, value in (("children", 8), ("temperature", 0.2), ("top_p", 1.0), ("seed", 3)):
        rows = filters.chosen({name: [value]})
        assert (rows == (frame[name] == value).to_numpy()).all()
        assert (rows == filters.chosen({name: [filters.labels[name][rows][0]]})).all()
    assert filters.chosen({"children": []}).all()
    classes = filters.order["max_tokens"]
    assert len(classes) == 4
    assert sum(filters.chosen({"max_tokens": [each]}).sum() for each in classes) == len(frame)


def test_nothing_left_is_a_sentence(explorer, frame):
    explorer.choose(**{"where model": ("a",), "where top_p": ("1",)})
    assert explorer.words == "0 of 30 configurations, 0 of 120 runs completed."
    explorer.choose(**{"where model": (), "where top_p": ()})
    assert "120 of 120" in explorer.words
    where = {"model": ["a"], "top_p": [1.0]}
    made = explore_sweep(frame, where=where)
    [ax] = made.figure().axes
    made.close()
    assert "there are no runs here" in [text.get_text() for text in ax.texts]


def test_the_code_gives_the_chosen_runs_as_a_figure(explorer, frame):
    explorer.choose(**{"figure": "configurations", "where model": ("a",), "where seed": ("1",)})
    assert "where={'model': ('a',), 'seed': ('1',)}" in explorer.code
    figure = eval(explorer.code, {"replay": replay, "frame": frame})
    titles = [[ax.get_title(loc="left") for ax in f.axes] for f in (figure, explorer.figure())]
    assert titles[0] == titles[1]
    assert len(figure.axes[0].lines) == len(explorer.figure().axes[0].lines)


def test_runs_that_are_not_over_are_counted(frame):
    part = frame.copy()
    part.loc[part["seed"] == 3, ["status", "fitness"]] = ["pending", np.nan]
    part.loc[part["seed"] == 2, ["status", "fitness"]] = ["failed", np.nan]
    made = explore_sweep(part)
    assert "60 of 120 runs completed" in made.words
    assert "30 failed" in made.words
    assert "30 pending" in made.words
    assert "no interval, n = 2 seeds" in made.words
    made.controls["where seed"].value = ("3",)
    assert "0 of 120 runs completed, 30 pending." in made.words
    made.close()
    made = explore_sweep(sweep_runs(3, 10))
    assert f"{100 * measured('mean', 10):.0f} % interval over 10 seeds" in made.words
    made.close()


@pytest.mark.parametrize("rows", [0, 1, 4], ids=["empty", "one run", "one configuration"])
def test_little_is_shown_as_what_it_is(frame, rows):
    part = frame.head(rows)
    made = explore_sweep(part)
    for figure in FIGURES if made.controls else ():
        if figure in made.controls["figure"].options:
            made.controls["figure"].value = figure
            assert made.figure().axes
    assert ("1 of 1 configurations" if rows else "there are no runs here") in made.words
    made.close()


def test_what_is_wrong_is_said(frame):
    for settings, said in (
        ({"where": {"N": [1]}}, "fields among model"),
        ({"where": {"children": [5]}}, "children is among 4, 8, got '5'"),
        ({"figure": "effects"}, "figure: expected a value out of .'main effects'"),
        ({"cost": "flops"}, "cost: expected a value out of .'tokens', 'n_calls'"),
    ):
        with pytest.raises(ValueError, match=said):
            explore_sweep(frame, **settings)
    plain = explore_sweep(pd.DataFrame({"fitness": [1.0]}))
    assert "load_sweep" in plain.words
    plain.close()


def test_tabs_of_a_sweep(frame):
    tabs = replay.explore(frame)
    assert "Not certain, as there are no further samples. Ahead: " in tabs["Selection"].words
    tabs["Sweep"].controls["where model"].value = ("a",)
    tabs.close()
