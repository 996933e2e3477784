import json
import re
import subprocess
import sys

import numpy as np
import pandas as pd
import pytest
from synthetic_runs import sweep_runs

import replay
from evo.studies.selection import SELECTORS
from replay.explorers import explore_selection
from replay.explorers.selection import SelectionReplay


@pytest.fixture(scope="module")
def matrix():
    """Five configurations, the third the best."""
    rng = np.random.default_rng(1)
    return np.clip(rng.normal([[0.2], [0.3], [0.8], [0.4], [0.5]], 0.05, (5, 60)), 0, 1)


@pytest.fixture
def explorer(matrix):
    made = explore_selection(matrix)
    yield made
    made.close()


def test_it_is_the_race_of_select(explorer, matrix, tmp_path):
    found = replay.select(matrix)
    assert f"After round {len(found.rounds)} of {len(found.rounds)}" in explorer.words
    assert re.search("(Winner|Ahead): configuration 2, mean", explorer.words)
    assert "certain at delta 0.05" in explorer.words
    saved = pd.read_csv(explorer.save(tmp_path / "numbers.csv"))
    for number, each in enumerate(found.rounds, start=1):
        part = saved[saved["round"] == number]
        assert part["count"].tolist() == each.count[0].tolist()
        assert part["lower"].tolist() == pytest.approx(each.lower[0].tolist())


def test_words_and_table_say_by_which_comparison_a_configuration_was_retired(explorer, matrix):
    found = replay.select(matrix)
    whole = found.frame().set_index("configuration")
    said = []
    for shown in range(1, len(found.rounds) + 1):
        explorer.controls["rounds"].value = shown
        said.append(explorer.words)
    table = explorer._view.table()
    for k, name in enumerate(found.labels):
        own = table[table["configuration"] == name]
        assert (own["loss"] == np.where(own["alive"], "", found.loss(k))).all()
        last = own.iloc[-1]
        assert (
            last[["lost_to", "shared"]].tolist() == whole.loc[name, ["lost_to", "shared"]].tolist()
        )
        assert last["p"] == pytest.approx(whole.loc[name, "p"], nan_ok=True)
        if found.loss(k):
            [first] = [words for words in said if f"{name} {found.loss(k)}" in words]
            gone = own.loc[~own["alive"], "round"].min()
            assert first.startswith(f"After round {gone} of")


def test_every_number_of_the_chart_is_one_of_the_table(explorer):
    explorer.choose(selector="arm_elimination", batch=5)
    for shown in (1, 2, explorer.controls["rounds"].max):
        explorer.controls["rounds"].value = shown
        [panel] = json.loads(explorer._screen.chart)["panels"]
        table = explorer._view.table().set_index(["configuration", "round"])
        bars = [each for each in panel["marks"] if each["kind"] == "bars"]
        lines = [each for each in panel["marks"] if each["kind"] == "line"]
        assert len(bars) == len(lines) == len(panel["y"]["ticks"]) == 5
        for bar, line in zip(bars, lines, strict=True):
            name = bar["texts"][0].split("\n")[0]
            rows = table.loc[name].iloc[: len(bar["x0"])]
            assert bar["x0"] == rows["lower"].tolist()
            assert bar["x1"] == rows["upper"].tolist()
            assert line["x"][::2] == line["x"][1::2] == rows["mean"].tolist()
            counts = [int(text.rpartition(" = ")[2]) for text in bar["texts"]]
            assert counts == rows["count"].tolist()


def test_a_move_needs_no_picture_of_the_kernel(matrix):
    code = f"""
import sys
from replay.explorers import explore_selection
made = explore_selection({matrix[:3, :9].tolist()!r})
made.controls["rounds"].value = 1
made.settle()
print(made.words, "matplotlib" in sys.modules)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    assert done.stdout.startswith("After round 1"), done.stderr
    assert done.stdout.split()[-1] == "False"


def test_many_rounds_are_thinned_to_what_can_be_told_apart(explorer, monkeypatch):
    explorer.controls["selector"].value = "hill_climbing"
    last = explorer.controls["rounds"].max
    monkeypatch.setattr("replay.plots.policies.MOST_ROUNDS", 10)
    assert last > 10
    explorer._draw(coarse=False)
    bars = json.loads(explorer._screen.chart)["panels"][0]["marks"][0]
    assert 5 <= len(bars["x0"]) <= 10
    assert bars["texts"][-1].split("\n")[1].startswith(f"round {last}: ")
    row = explorer._view.table().set_index(["configuration", "round"]).loc["configuration 2"]
    assert bars["x0"][-1] == row.loc[last, "lower"]


def test_a_click_shows_the_race_after_a_round(explorer):
    place = {"kind": "click", "panel": 0, "mark": 0, "place": 1, "serial": explorer._serial}
    explorer._on_message(place)
    assert explorer.controls["rounds"].value == 2
    explorer._on_message({**place, "place": 0})  # what was shown when it was clicked
    assert explorer.controls["rounds"].value == 1
    for lost in ({"serial": 99}, {"panel": 3}, {"place": 999}, {"mark": 1}):
        explorer._on_message({**place, **lost})
    assert explorer.controls["rounds"].value == 1


def test_rounds_are_played_one_by_one(explorer):
    last = explorer.controls["rounds"].max
    taken = []
    for number in range(1, last + 1):
        explorer.controls["rounds"].value = number
        assert f"round {number} of {last}" in explorer.words
        taken.append(int(explorer.words.split(" left, ")[1].split(" of")[0]))
    assert taken == sorted(set(taken))


@pytest.mark.parametrize("selector", SELECTORS)
def test_every_selector_is_shown_to_its_end(explorer, selector):
    explorer.choose(rounds=1, selector="random_search" if selector == "bayesian" else "bayesian")
    explorer.controls["selector"].value = selector
    rounds = explorer.controls["rounds"]
    assert rounds.value == rounds.max
    assert re.search("(Winner|Ahead): configuration 2, mean", explorer.words)
    shown = explorer.controls["threshold"].layout.display != "none"
    assert shown == (selector == "threshold")
    assert ("'threshold': " in explorer.code) == shown


def test_other_orders_are_tried_at_rest(explorer, matrix):
    explorer.controls["delta"].value = 0.01
    assert "other orders" not in explorer.words
    explorer.settle()
    assert "In 100 other orders" in explorer.words
    assert "100 % end with the same winner" in explorer.words
    found = replay.select(matrix, delta=0.01, shuffles=100)
    assert f"takes {np.median(found.shuffled):.0f} " in explorer.words
    assert "never certain" not in explorer.words


def test_other_orders_that_end_without_an_answer_are_counted(matrix):
    race = explore_selection(matrix[:, :5])
    race.settle()
    found = replay.select(matrix[:, :5], shuffles=100)
    assert found.end == "exhausted"
    assert not found.shuffled_certain.any()
    assert "in 100 of 100 orders the winner was never certain" in race.words
    race.close()


def test_a_scrub_holds_the_race_round_by_round_and_the_code_gives_a_round(explorer, matrix):
    explorer.controls["rounds"].value = 2
    slider, book, _ = explorer.scrub("rounds").children
    last = explorer.controls["rounds"].max
    texts = book.texts
    assert len(texts) == len(set(texts)) == len(slider.options) == last
    assert all(f"round {k} of {last}" in text for k, text in enumerate(texts, 1))
    assert book.at == 1
    figure = eval(explorer.code, {"replay": replay, "data": matrix})
    told = [[ax.get_title(loc="left") for ax in f.axes] for f in (figure, explorer.figure())]
    assert told[0] == told[1] != [ax.get_title(loc="left") for ax in
                                  explore_selection(matrix).figure().axes]  # fmt: skip


def test_compat_comes_with_a_warning(explorer):
    before = explorer.words
    explorer.controls["interval"].value = "compat"
    assert "do not rely" in explorer.words
    assert "do not rely" not in before


def test_configurations_of_a_sweep_are_told_apart_by_its_fields():
    frame = sweep_runs(12)
    frame.loc[frame["seed"] == 3, "status"] = "pending"
    found = replay.select(frame)
    assert found.terms.size == 3  # what is pending is no failure
    assert len(found.labels) == 12
    assert not any("nan" in label or "trial" in label for label in found.labels)


def test_a_seed_that_some_lack_is_noted():
    frame = sweep_runs(6).drop(index=[3])
    made = explore_selection(frame)
    assert "Note: 1 of 4 samples are not of all configurations" in made.words
    made.close()


@pytest.mark.parametrize(
    "data", [np.zeros((0, 3)), np.zeros(3), sweep_runs(1), sweep_runs().head(0)],
    ids=["no rows", "one axis", "one configuration", "empty"],
)  # fmt: skip
def test_nothing_to_select_from_is_a_sentence(data):
    made = explore_selection(data)
    assert made.words
    assert not made.controls
    assert made.figure().axes
    made.close()


def test_a_lone_configuration_wins_without_a_race():
    made = explore_selection(np.full((1, 5), 0.5))
    assert "configuration 0 wins without a sample" in made.words
    assert made.figure().axes
    made.close()


def test_a_race_of_failures_is_shown():
    made = explore_selection(np.full((2, 4), np.nan))
    assert "2 of 2 configurations left" in made.words
    assert "Not certain" in made.words
    made.close()


def test_what_is_wrong_is_said(matrix):
    with pytest.raises(ValueError, match="selector out of"):
        explore_selection(matrix, begins={"selector": "best"})
    with pytest.raises(ValueError, match="rounds: expected a value out of 1 to"):
        explore_selection(matrix, begins={"rounds": 99})


def test_a_thousand_configurations_are_raced_once():
    rng = np.random.default_rng(0)
    race = SelectionReplay(rng.random((1000, 10)), {})
    assert race.view(shuffled=True).selection.shuffled.size == 0
