"""A run that several logs hold counts once, whatever asks."""

import dataclasses
import shutil
import warnings

import msgspec
import numpy as np
import pandas as pd
import pytest

import evo
import replay
from evo.logs.maintenance import compact
from replay.logs.decode import read_run
from replay.logs.frames import ReplayWarning, independent_runs, split_repeats
from replay.logs.repeats import lines_of, repeats_across, repeats_of
from replay.logs.tables import load_tables
from replay.reports.report import groups, sections

SEEDS = range(3, 9)


@pytest.fixture(scope="module")
def logs(tmp_path_factory):
    """Six runs of four generations, and what repeats some of them."""
    folder = tmp_path_factory.mktemp("repeats")
    options = {"children": 2, "model": "offline", "progress": False}
    for seed in SEEDS:
        evo.run("mmd", seed=seed, generations=4, log=folder / f"a{seed}.jsonl", **options)
    shutil.copy(folder / "a3.jsonl", folder / "copied.jsonl")
    evo.run("mmd", seed=4, generations=2, log=folder / "shorter.jsonl", **options)
    compact(folder / "a5.jsonl", folder / "compacted.jsonl")
    return folder


@pytest.mark.thorough
def test_each_repeat_names_the_longest_log_of_its_run_and_the_others_none(logs):
    repeat_of = replay.load(logs).groupby("run")["repeat_of"].first().to_dict()
    others = {run: of for run, of in repeat_of.items() if of}
    assert others == {"copied": "a3", "shorter": "a4", "compacted": "a5"}
    assert replay.children(logs).groupby("run")["repeat_of"].first().to_dict() == repeat_of


def test_other_seeds_and_settings_are_no_repeats(logs, tmp_path):
    options = {"children": 2, "generations": 2, "model": "offline", "progress": False}
    evo.run("mmd", seed=3, log=tmp_path / "a.jsonl", **options)
    evo.run("mmd", seed=3, log=tmp_path / "b.jsonl", feedback=True, **options)
    evo.run("mmd", seed=30, log=tmp_path / "c.jsonl", **options)
    evo.run("mmd", seed=3, log=tmp_path / "d.jsonl", **options | {"temperature": 0.3})
    evo.run("mmd", seed=3, log=tmp_path / "e.jsonl", **options | {"children": 3})
    assert not replay.load(tmp_path)["repeat_of"].astype(bool).any()


def test_a_fork_is_no_repeat_of_its_root_but_its_copy_is_one_of_it(tmp_path):
    log = evo.run("mmd", children=2, generations=3, log=tmp_path / "a.jsonl", progress=False)
    evo.fork(log, at=1, copies=2, generations=3, log_dir=tmp_path / "forks")
    frame = replay.load(tmp_path)
    assert not frame["repeat_of"].astype(bool).any()
    shutil.copytree(tmp_path / "forks", tmp_path / "again")
    twice = replay.load(tmp_path)
    assert twice.loc[twice["repeat_of"] != "", "run"].nunique() == 2


def same(found, other):
    """Whether two results state the same, whatever kind they are."""
    if isinstance(found, pd.DataFrame):
        pd.testing.assert_frame_equal(found.reset_index(drop=True), other.reset_index(drop=True))
    elif isinstance(found, np.ndarray):
        np.testing.assert_array_equal(found, other)
    else:
        assert str(found) == str(other)


@pytest.mark.parametrize(
    "ask",
    [
        replay.fitness_matrix,
        lambda frame: replay.cost_matrices(frame)["calls"],
        lambda frame: replay.depth_breadth(frame).cells,
        lambda frame: replay.judge(frame, "ucb1", "random"),
        lambda frame: replay.judge(frame, {"seed": 3}, {"seed": 4}),
        lambda frame: replay.power(frame, "ucb1", "random", runs=6, studies=3),
        replay.diagnose,
        lambda frame: replay.compete(frame, ["ucb1"]).effects,
        lambda frame: replay.time_to_threshold(frame, 0.5),
        lambda frame: replay.select(frame.assign(arm=frame["seed"] % 2, s=(frame["seed"] - 3) // 2),
                                    fields=["arm"], sample="s").winner,
        lambda frame: replay.ledger({"logs": frame}, policies=["ucb1"]),
    ],
)  # fmt: skip
def test_an_analysis_states_the_same_with_repeats_as_without_and_says_so_once(logs, ask):
    frame = replay.load(logs)
    once = frame[frame["repeat_of"] == ""]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ReplayWarning)
        expected = ask(once)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        found = ask(frame)
    same(found, expected)
    texts = [str(each.message) for each in caught if "repeat others" in str(each.message)]
    if not hasattr(found, "notes"):
        assert len(texts) <= 1
    with pytest.warns(ReplayWarning, match="3 of 9 runs repeat others"):
        independent_runs(frame)


def test_the_matrix_holds_repeats_on_request(logs):
    frame = replay.load(logs)
    assert replay.fitness_matrix(frame, repeats=True).shape == (9, 5)
    with pytest.warns(ReplayWarning, match="3 of 9 runs repeat others"):
        assert replay.fitness_matrix(frame).shape == (6, 5)


def test_a_repeat_counts_where_its_original_is_not_in_the_frame(logs):
    frame = replay.load(logs)
    part = frame[frame["run"].isin(["copied", "shorter", "a5", "compacted"])]
    kept, left = split_repeats(part)
    assert set(kept["run"]) == {"copied", "shorter", "a5"}
    assert left == 1
    both = pd.concat([part[part["run"] == "shorter"].assign(run="b"), part])
    kept, left = split_repeats(both[both["run"].isin(["b", "shorter"])])
    assert kept["run"].nunique() == left == 1


def test_two_loads_with_runs_of_one_name_keep_what_each_repeats(logs, tmp_path):
    for seed in (20, 21):
        name = tmp_path / f"a{seed - 17}.jsonl"
        evo.run("mmd", children=2, generations=2, seed=seed, log=name, progress=False)
        shutil.copy(name, tmp_path / f"again{seed}.jsonl")
    frame = pd.concat([replay.load(logs), replay.load(tmp_path)], ignore_index=True)
    with pytest.warns(ReplayWarning, match="5 of 13 runs repeat others"):
        assert len(replay.fitness_matrix(frame)) == 8


def test_a_report_counts_them_once_and_says_so(logs):
    [group] = groups(load_tables(logs))
    fitness, *_ = sections(group)
    assert fitness.cells.set_index("quantity").loc["final, median", "n"] == 6
    assert sum("3 of 9 runs repeat others" in note for note in fitness.notes) == 1


def test_the_same_run_with_other_replies_is_no_repeat(logs):
    """As of an endpoint that does not heed the seed."""
    run = read_run(logs / "a3.jsonl", "a")
    first = run.children[0]
    evaluation = msgspec.structs.replace(first.evaluation, fitness=0.123, status="ok")
    other = dataclasses.replace(
        run,
        name="b",
        children=[msgspec.structs.replace(first, evaluation=evaluation), *run.children[1:]],
    )
    assert repeats_of([lines_of(run), lines_of(other)]) == {}
    begun = dataclasses.replace(run, name="c", children=run.children[1:])
    assert repeats_of([lines_of(begun), lines_of(other), lines_of(run)]) == {"c": "b"}


def test_repeats_are_found_between_tables_that_were_read_apart(logs, tmp_path):
    copied, other = tmp_path / "copied", tmp_path / "other"
    shutil.copytree(logs, copied)
    evo.run("mmd", generations=4, children=2, seed=99, log=other / "a.jsonl", progress=False)
    one, copy, different = (
        table.assign(run=f"{name} " + table["run"])
        for name, table in (
            ("one", replay.load(logs)),
            ("copy", replay.load(copied)),
            ("other", replay.load(other)),
        )
    )
    found = repeats_across(one, copy)
    assert {run for run in found if run.startswith("copy")} == {*copy["run"]}
    assert not repeats_across(one, different)
