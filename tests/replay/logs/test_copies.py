"""Copies of runs in tables: forks, rescored logs, and logs that are loaded twice."""

import msgspec
import numpy as np
import pandas as pd
import pytest
from samples import changed, sample_lines, write_lines, write_sample

import replay
from evo.logs.records import (
    Child,
    Fork,
    Generation,
    Header,
    Limits,
)
from replay.logs.frames import ReplayWarning, distinct_runs
from replay.logs.tables import load_tables
from replay.plots.registry import figures
from replay.reports.report import groups, sections
from replay.reports.titles import settled


def test_what_a_fork_inherited_costs_nothing(tmp_path):
    """The first of three generations was copied from the run that the fork left."""
    plain = write_sample(tmp_path / "plain.jsonl", generations=3, children=3)
    fork = Fork(at=1, copy=2, parent="a" * 64, through="b" * 64, root="c" * 64, segments=())
    lines = [
        msgspec.structs.replace(line, inherited=True)
        if isinstance(line, Child | Generation) and line.generation == 1
        else line
        for line in changed(sample_lines(generations=3, children=3), Header, fork=fork)
    ]
    forked = write_lines(tmp_path / "forked.jsonl", lines)
    one, other = replay.load(plain), replay.load(forked)
    assert set(other["forked_from"]) == {"b" * 12}
    assert (set(other["copy"]), set(other["root"])) == ({2}, {"c" * 12})
    for name in ("n_calls", "tokens", "n_attempts", "seconds", "evaluation_seconds"):
        assert other.loc[1, name] == 0 < one.loc[1, name]
        assert other.loc[2:, name].tolist() == one.loc[2:, name].tolist()
    assert other["best_fitness"].tolist() == one["best_fitness"].tolist()
    assert load_tables(forked).runs["n_calls"].item() == 6
    attempts = replay.attempts(forked)
    assert attempts["generation"].min() == 2
    children = replay.children(forked)
    assert children.loc[children["inherited"], "generation"].tolist() == [1, 1, 1]


def rescored_beside(folder, **fields):
    """A log and what `evo rescore` makes of it, as far as a table can tell them apart."""
    original = write_sample(folder / "a.jsonl", generations=3, children=3)
    lines = changed(
        sample_lines(generations=3, children=3), Header, source="evo rescore by objective", **fields
    )
    return original, write_lines(folder / "a.rescored.jsonl", lines)


def test_a_rescored_log_beside_its_original_costs_nothing_and_is_no_run_of_its_own(tmp_path):
    original, rescored = rescored_beside(tmp_path)
    frame = replay.load(tmp_path)
    assert frame.groupby("run")["rescored"].first().tolist() == [False, True]
    assert frame["root"].nunique() == 1
    for name in ("n_calls", "tokens", "seconds", "call_seconds"):
        assert frame[name].sum() == replay.load(original)[name].sum()
    alone = replay.load(rescored)
    assert not alone["rescored"].any()
    assert alone["n_calls"].sum() == 9
    with pytest.warns(ReplayWarning, match="1 of 2 runs are rescored logs"):
        assert set(replay.depth_breadth(frame).cells["n"]) == {1}
    tables = load_tables(tmp_path)
    assert tables.runs["n_calls"].tolist() == [9, 0]
    [group] = groups(tables)
    fitness, status, *_ = sections(group)
    assert any("1 of 2 runs are rescored logs" in note for note in fitness.notes)
    assert fitness.cells.set_index("quantity").loc["final, median", "n"] == 1
    assert status.cells.set_index("quantity").loc["children", "value"] == 9
    [shown] = settled(figures(), [group])  # without a warning: a note above says it
    chart = next(iter(shown.values()))(tables.generations)
    assert chart.panels[0].about == "A single run, no interval"


def test_a_log_that_was_evaluated_again_in_the_same_way_is_of_its_originals_search(tmp_path):
    _, rescored = rescored_beside(tmp_path)
    assert replay.load(tmp_path)["search"].unique().tolist() == [
        "greedy",
        "evo rescore by objective",
    ]
    write_lines(
        rescored, changed(sample_lines(generations=3, children=3), Header, source="evo rescore")
    )
    frame = replay.load(tmp_path)
    assert frame["search"].unique().tolist() == ["greedy"]
    assert frame["rescored"].any()
    assert replay.load(rescored)["search"].unique().tolist() == [
        "evo rescore"
    ]  # of what, is unknown


def test_rescored_logs_of_other_searches_are_runs_of_their_own(tmp_path):
    rescored_beside(tmp_path / "seed", seed=99)
    rescored_beside(tmp_path / "feedback", feedback=True)
    for folder in ("seed", "feedback"):
        frame = replay.load(tmp_path / folder)
        assert not frame["rescored"].any()
        assert frame["n_calls"].sum() == 18


def test_one_log_by_a_relative_and_an_absolute_path_is_one_run(tmp_path, monkeypatch):
    path = write_sample(tmp_path / "a.jsonl", generations=3, children=3)
    other = write_sample(tmp_path / "b" / "a.jsonl", generations=2, children=3, seed=7)
    monkeypatch.chdir(tmp_path)
    absolute, relative = replay.load(path), replay.load("a.jsonl")
    both = pd.concat([absolute, relative, replay.load(other)])
    for frame in (both, both.reset_index(drop=True)):
        found = distinct_runs(frame)
        assert found["run"].nunique() == 2
        assert len(found) == 7
        assert replay.fitness_matrix(frame).shape == (2, 4)
        assert np.nansum(replay.cost_matrices(frame)["calls"]) == 9 + 6
    children = distinct_runs(pd.concat([replay.children(path), replay.children("a.jsonl")]))
    assert len(children) == 9


def test_of_a_log_that_was_loaded_twice_the_later_rows_stay(tmp_path, monkeypatch):
    path = write_sample(tmp_path / "a.jsonl", generations=2, children=3)
    monkeypatch.chdir(tmp_path)
    early, late = replay.load(path), replay.load("a.jsonl").assign(n_ok=7)
    assert distinct_runs(pd.concat([early, late]))["n_ok"].tolist() == [7, 7, 7]


@pytest.mark.parametrize("how", [{"draws": 4}, {"confirm": 3}, {"limits": Limits(seconds=1.5)}])
def test_how_programs_are_evaluated_makes_no_other_run_of_a_rescored_log(tmp_path, how):
    rescored_beside(tmp_path, **how)
    assert replay.load(tmp_path)["n_calls"].sum() == 9


def test_repeats_that_a_fork_inherited_are_those_of_the_run_that_it_left(tmp_path):
    """Child 1 of each generation repeats the initial program; two generations were inherited."""
    fork = Fork(at=2, copy=0, parent="a" * 64, through="b" * 64, root="c" * 64, segments=())
    lines = [
        msgspec.structs.replace(line, repeats=((1, 0, 0),))
        if isinstance(line, Generation)
        else line
        for line in sample_lines(generations=3, children=2)
    ]
    plain = write_lines(tmp_path / "plain.jsonl", lines)
    forked = write_lines(tmp_path / "forked.jsonl", changed(lines, Header, fork=fork))
    assert replay.load(plain)["n_repeats"].tolist() == [0, 1, 1, 1]
    assert replay.load(forked)["n_repeats"].tolist() == [0, 0, 0, 1]
