"""A path in place of a frame or log is answered with what loads it, by every verb."""

import inspect
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import evo
import replay
from evo.plugins import MistakenType

NEEDED = {"frame": "replay.load", "children": "replay.children", "log": "evo.read_log"}
PATHS_TOO = {"explore", "film"}  # these load themselves


def verbs():
    """Every public function whose first argument is a frame or a log, with its loader."""
    for room in (replay, replay.plots, replay.explorers):
        for name in dir(room):
            verb = getattr(room, name)
            if name.startswith("_") or not inspect.isfunction(verb) or name in PATHS_TOO:
                continue
            first, *rest = inspect.signature(verb).parameters.values()
            if first.name in NEEDED and name != "explore_panel":
                needs = [p for p in rest if p.default is p.empty and p.kind != p.VAR_KEYWORD]
                yield pytest.param(verb, needs, id=f"{room.__name__}.{name}")


@pytest.mark.parametrize(("verb", "needs"), [*verbs()])
def test_a_path_is_answered_with_what_loads_it(verb, needs):
    given = [1 for each in needs if each.kind == each.POSITIONAL_OR_KEYWORD]
    named = {each.name: 1 for each in needs if each.kind == each.KEYWORD_ONLY}
    for path in ("runs", Path("runs"), ["a.jsonl", "b.jsonl"]):
        with pytest.raises(TypeError, match=rf"^{verb.__name__}: .*load it first") as said:
            verb(path, *given, **named)
        (loader,) = (
            each
            for each in ("replay.load", "replay.children", "replay.load_sweep", "evo.read_log")
            if f"{verb.__name__}({each}(" in str(said.value)
        )
        first = next(iter(inspect.signature(verb).parameters))
        assert loader in (NEEDED[first], "replay.load_sweep")


@pytest.mark.parametrize(("verb", "needs"), [*verbs()])
def test_so_is_what_is_no_table_or_log(verb, needs):
    given = [1 for each in needs if each.kind == each.POSITIONAL_OR_KEYWORD]
    named = {each.name: 1 for each in needs if each.kind == each.KEYWORD_ONLY}
    for wrong, words in ((None, "None"), ({"a": 1}, "a value of type dict")):
        with pytest.raises(TypeError, match=rf"^{verb.__name__}: expected what .*, got {words}$"):
            verb(wrong, *given, **named)


def test_another_table_is_named(tmp_path):
    made = evo.sweep(
        {"children": [1, 2]}, task="mmd", seeds=[1], base={"generations": 1}, progress=False,
        log_dir=tmp_path / "sweep",
    )  # fmt: skip
    sweep, children = replay.load_sweep(made), replay.children(made, progress=False)
    verbs = (replay.fitness_matrix, replay.depth_breadth, replay.plots.trajectories, replay.explore)
    for verb in verbs:
        with pytest.raises(TypeError, match=r"the table of replay.children, a row per child; load"):
            verb(children)
    for verb in verbs[:3]:
        with pytest.raises(TypeError, match=r"the table of replay.load_sweep, a row per run; load"):
            verb(sweep)
    with pytest.raises(TypeError, match=r"lineage: expected what evo.read_log returns, got a Data"):
        replay.lineage(children)
    with pytest.raises(TypeError, match=r"explore: expected what replay.load returns, got None"):
        replay.explore(None)


@pytest.mark.parametrize("given", [5, None, ["a.jsonl", 5]])
def test_logs_are_paths_or_logs(given, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    evo.run("mmd", generations=1, children=1, log="a.jsonl", progress=False)
    with pytest.raises(TypeError, match=r"expected logs, their paths, folders .*got (5|None)$"):
        replay.load(given)
    with pytest.raises(TypeError, match=r"folder: expected a path, got"):
        replay.load_sweep(given)


@pytest.mark.parametrize(
    "verb",
    [
        lambda frame: replay.judge(frame, "ucb1", "single"),
        lambda frame: replay.judge(frame, {"children": 1}, {"children": 2}),
        lambda frame: replay.compete(frame, ["ucb1"]),
        lambda frame: replay.simulate(frame, "ucb1", rounds=3),
        lambda frame: replay.plan(frame, budget=8),
        replay.diagnose,
        replay.compare,
        replay.depth_breadth,
    ],
)
def test_a_selection_that_nothing_meets_is_said_to_be_empty(verb, tmp_path):
    log = evo.run("mmd", generations=1, children=1, log=tmp_path / "a.jsonl", progress=False)
    frame = replay.load(log, progress=False)
    with pytest.raises(ValueError, match="expected at least one run, got an empty frame"):
        verb(frame[frame["run"] == "x"])


@pytest.mark.parametrize("verb", [replay.compare, replay.select, replay.simulate_many])
def test_so_do_verbs_that_take_numbers_too(verb):
    with pytest.raises(TypeError, match="load it first"):
        verb("runs", ["ucb1"]) if verb is replay.simulate_many else verb("runs")


def test_the_advice_can_be_followed(tmp_path):
    log = evo.run("mmd", generations=2, children=2, log=tmp_path / "a.jsonl", progress=False)
    with pytest.raises(TypeError, match=r"fitness_matrix\(replay.load\(log\), ...\)"):
        replay.fitness_matrix(log)
    assert replay.fitness_matrix(replay.load(log, progress=False)).shape == (1, 3)
    with pytest.raises(TypeError, match=r"lineage\(evo.read_log\("):
        replay.lineage(log.path)
    assert len(replay.lineage(evo.read_log(log.path)))


RESULTS = {
    "comparison": "replay.compare",
    "heatmap": "replay.depth_breadth",
    "slices": "replay.depth_breadth",
    "value_of_knowing": "replay.depth_breadth",
    "regime_probabilities": "replay.fit_bilinear",
    "envelope_curves": "replay.envelope",
    "odds": "replay.fit_kernel",
    "planner_card": "replay.plan",
    "race": "replay.select",
    "pulls": "evo.allocate_live",
    "verdict": "replay.judge",
}
TABLES = ("gains", "policy_curves", "pool_vs_allocation", "pulls_per_arm", "threshold_times")


@pytest.mark.parametrize("name", sorted(replay.plots.charts.__all__))
def test_a_chart_of_something_else_says_what_it_is_drawn_of(name):
    chart = getattr(replay.plots.charts, name)
    needs = [
        each for each in list(inspect.signature(chart).parameters.values())[1:]
        if each.default is each.empty
    ]  # fmt: skip
    named = {each.name: "x" for each in needs}
    frame = pd.DataFrame({"a": [1]})
    for wrong in (frame, 5, None, "x", [1], np.ones((3, 3))):
        if name == "construction":
            with pytest.raises(ValueError, match="expected a picture among circles"):
                chart(wrong, value=1)
            continue
        if name == "lines" and wrong is frame:  # any table is one of lines
            continue
        with pytest.raises((MistakenType, ValueError)) as said:
            chart(wrong, **named)
        assert "expected" in str(said.value)
        if name in RESULTS:
            assert f"{name}: expected what " in str(said.value)
            assert RESULTS[name] in str(said.value)
        if name in (*TABLES, "verdicts", "lines", "estimates"):
            assert str(said.value).startswith(("expected a DataFrame", "expected columns"))


def test_a_table_of_ones_own_lacks_what_it_lacks():
    mine = pd.DataFrame({"run": ["a"], "best_fitness": [0.5]})
    for verb in (replay.fitness_matrix, replay.diagnose, replay.explore):
        with pytest.raises(MistakenType, match=r"replay.load returns, got .* without generation$"):
            verb(mine)
    with pytest.raises(MistakenType, match=r"compete: expected .* without generation$"):
        replay.compete(mine, ["ucb1"])


def test_what_is_no_replay_or_no_figure_is_named():
    words = r"^pool effect: expected what replay.simulate returns, got a value of type int$"
    with pytest.raises(MistakenType, match=words):
        replay.pool_effect(5, 5)
    for show in (replay.show, lambda wrong: replay.plots.save(wrong, "a.png")):
        for wrong in (5, None, "x", [1], [], pd.DataFrame({"a": [1]})):
            with pytest.raises(MistakenType, match=r"expected a figure of matplotlib or its axes"):
                show(wrong)
    words = r"^expected logs or frames by name, in a dict, got a value of type int$"
    with pytest.raises(MistakenType, match=words):
        replay.ledger(5)


@pytest.mark.parametrize("wrong", [None, "8", [8], 2.5])
def test_what_is_no_count_is_named(wrong):
    with pytest.raises(MistakenType, match=r"^rounds: expected a whole number, got"):
        replay.simulate([[0.0, 0.5]], "ucb1", rounds=wrong)
    with pytest.raises(MistakenType, match=r"^batch_size: expected a whole number, got"):
        evo.plan_concurrency(4, wrong)
    frame = pd.DataFrame({"run": ["a"], "generation": [1], "best_fitness": [0.5]})
    if wrong != [8]:
        with pytest.raises(MistakenType, match=r"^runs: expected a whole number, got"):
            replay.power(frame, "ucb1", "single", runs=wrong)
