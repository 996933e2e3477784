"""Runs under two versions of a task, or with other settings, are refused or shown apart."""

import re

import msgspec
import numpy as np
import pandas as pd
import pytest
from samples import sample_lines
from synthetic_runs import as_frame, chain_runs

import replay
from evo.logs.hashes import hash_of_task
from evo.logs.journal import encode_line
from evo.logs.records import Header
from replay.logs.columns import settings_that_vary
from replay.logs.frames import ReplayWarning
from replay.plots import charts
from replay.reports.decision import decision_section
from replay.reports.forms import FORMATS

KEPT = "9c51.77"


def runs_of(version=KEPT, settings="", start=0.0):
    steps = np.random.default_rng(len(version + settings)).exponential(0.05, (8, 6))
    best = start + np.c_[np.zeros(8), 1 - np.exp(-steps.cumsum(axis=1))]
    frame = as_frame(best, children=2, seeds=range(8)).assign(
        task_version=version, search="greedy", settings=settings
    )
    return frame.assign(run=frame["run"] + version + settings)


@pytest.fixture(scope="module")
def versions():
    return pd.concat([runs_of(), runs_of("88aa.77", start=5.0)], ignore_index=True)


@pytest.fixture(scope="module")
def settings():
    return pd.concat([runs_of(), runs_of(settings="feedback", start=5.0)], ignore_index=True)


def edited(header: Header, text="# changed\n", name="evaluator.py") -> Header:
    task = header.task
    files = {**task.files, name: task.files[name] + text}
    task = msgspec.structs.replace(task, files=files)
    return msgspec.structs.replace(
        header, task=msgspec.structs.replace(task, hash=hash_of_task(task))
    )


def write(path, change=lambda header: header, **how):
    header, *rest = sample_lines(**how)
    path.write_bytes(b"".join(map(encode_line, [change(header), *rest])))
    return path


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Six runs under an evaluator, and six of the same name under the edited one."""
    place = tmp_path_factory.mktemp("edited")
    for seed in range(6):
        write(place / f"s{seed}.jsonl", seed=seed)
        write(place / f"s{seed}-2.jsonl", edited, seed=seed + 10)
    return place


QUESTIONS = {
    "diagnose": replay.diagnose,
    "judge policies": lambda frame: replay.judge(frame, "thompson", "single"),
    "judge groups": lambda frame: replay.judge(frame, {"children": 2}, {"search": "greedy"}),
    "compete": lambda frame: replay.compete(frame, {"ucb1": "ucb1"}, replicates=20),
    "simulate": lambda frame: replay.simulate(frame, "ucb1", rounds=4, replicates=10),
    "time_to_threshold": lambda frame: replay.time_to_threshold(frame, 0.5),
    "fit_bilinear": replay.fit_bilinear,
    "plan": lambda frame: replay.plan(frame, budget=16),
}


@pytest.mark.parametrize("question", QUESTIONS)
def test_one_answer_for_two_versions_of_a_task_is_refused(question, versions):
    with pytest.raises(
        ValueError, match=r"one version of a task, got '9c51\.77' \(8 runs"
    ) as error:
        QUESTIONS[question](versions)
    assert "frame[frame.task_version == '88aa.77']" in str(error.value)


@pytest.mark.parametrize("column", ["task_version", "settings"])
def test_a_plan_does_not_learn_from_children_under_two_versions_or_settings(column):
    children = chain_runs(budget=8, sizes=(1, 2))[1].assign(search="greedy")
    half = children["seed"] % 2 == 0
    for earlier in ("9c51.77", "88aa.77"):
        assert replay.fit_kernel(children.assign(**{column: earlier})).task == "toy"
    mixed = children.assign(**{column: np.where(half, "9c51.77", "88aa.77")})
    with pytest.raises(ValueError, match=r"expected children of one .*88aa\.77"):
        replay.fit_kernel(mixed)


@pytest.mark.parametrize("question", QUESTIONS)
def test_one_answer_for_two_settings_is_refused(question, settings):
    with pytest.raises(ValueError, match=r"settings.*'feedback'|settings.*feedback"):
        QUESTIONS[question](settings)


def test_a_refusal_says_which_file_of_the_task_changed(folder):
    frame = replay.load(folder, progress=False)
    with pytest.raises(ValueError, match=r"evaluator\.py changed between them, so that their fit"):
        replay.judge(frame, "thompson", "single")
    for path in folder.glob("*-2.jsonl"):
        path.rename(path.with_suffix(".away"))
    with pytest.raises(ValueError, match="its evaluator, its instances, its statement or its pro"):
        replay.judge(frame, "thompson", "single")
    for path in folder.glob("*.away"):
        path.rename(path.with_suffix(".jsonl"))


def test_sides_of_two_evaluators_are_refused_but_not_of_two_first_programs():
    one, scored, begun = runs_of(), runs_of("88aa.77"), runs_of("9c51.00")
    for other, refused in ((scored, True), (begun, False)):
        both = pd.concat([one, other], ignore_index=True)
        sides = [{"task_version": each} for each in both["task_version"].unique()]
        if refused:
            with pytest.raises(ValueError, match=r"sides cannot be compared.*no common scale"):
                replay.judge(both, *sides)
        else:
            assert replay.judge(both, *sides).n == 8
    changed = scored.assign(children=4)
    with pytest.raises(ValueError, match="sides cannot be compared"):
        replay.judge(pd.concat([one, changed]), {"children": 2}, {"children": 4})


def test_settings_are_sides_of_a_comparison(settings):
    found = replay.judge(settings, {"settings": "feedback"}, {"settings": ""})
    assert (found.verdict, found.n) == ("greater", 8)


@pytest.mark.parametrize("column", ["model", "search", "settings"])
def test_sides_that_differ_in_more_than_they_name_are_told(column):
    left, right = runs_of(), runs_of(settings="b").assign(children=4, settings="")
    other = right.assign(**{column: "filters near_duplicates"})
    sides = [{"children": 2}, {"children": 4}]
    both = pd.concat([left, other], ignore_index=True)
    with pytest.warns(ReplayWarning, match=f"also differ in {column}, .* 'filters near_dup"):
        told = replay.judge(both, *sides)
    named = [
        side | {column: rows[column].iloc[0]}
        for side, rows in zip(sides, (left, other), strict=True)
    ]
    assert replay.judge(both, *named).effect == told.effect  # and says nothing
    assert replay.judge(pd.concat([left, right]), *sides).effect == told.effect


@pytest.mark.parametrize("column", ["task_version", "settings"])
def test_splits_and_trajectories_are_those_of_each_alone(column, versions, settings):
    frame = {"task_version": versions, "settings": settings}[column]
    found = replay.depth_breadth(frame, resamples=20).cells
    assert found["model"].nunique() == 2
    for (_, part), name in zip(
        frame.groupby(column, sort=False), found["model"].unique(), strict=True
    ):
        alone = replay.depth_breadth(part, resamples=20).cells
        assert found.loc[found["model"] == name, "value"].tolist() == alone["value"].tolist()
        assert set(alone["model"]) == {"chain"}
    labels = {*charts.trajectories(frame).table()["label"].dropna()} - {""}
    words = {"task_version": "task version 88aa.77", "settings": "feedback"}
    assert len(labels) == 2
    assert any(words[column] in each for each in labels)


def test_versions_of_a_task_are_tasks_of_their_own_in_a_comparison(versions):
    frame = versions.assign(half=versions["seed"] % 2)
    found = replay.compare(frame, by="half")
    assert found.tasks == ("toy, task version 9c51.77", "toy, task version 88aa.77")
    for part, task in zip((runs_of(), runs_of("88aa.77", start=5.0)), found.tasks, strict=True):
        alone = replay.compare(part.assign(half=part["seed"] % 2), by="half").effects["effect"]
        assert found.effects.set_index("task").loc[task, "effect"] == alone.iloc[0]


def test_a_comparison_says_that_a_configuration_mixes_settings(settings):
    frame = settings.assign(half=settings["seed"] % 2)
    with pytest.warns(ReplayWarning, match="half 0, 1 differ in their settings"):
        replay.compare(frame, by="half")


def test_a_report_decides_within_a_version_and_names_each(folder):
    tables = replay.load_tables(folder, progress=False)
    words = FORMATS["plain"]([decision_section(tables, None)])
    assert len(re.findall(r"the\s+highest of 6 runs", words)) == 2
    asked = [line for line in words.splitlines() if line.startswith("What is the best")]
    assert sum("task version" in line for line in asked) == 2


def test_runs_of_an_unknown_version_contradict_none():
    both = pd.concat([runs_of(), runs_of("")], ignore_index=True)
    assert replay.diagnose(both).runs == 16


def test_settings_that_follow_from_the_search_are_no_field_of_their_own():
    both = pd.concat([runs_of(), runs_of(settings="islands(islands=4)").assign(search="islands")])
    assert settings_that_vary(both) == ["search"]
    assert len({*charts.trajectories(both).table()["label"].dropna()} - {""}) == 2
