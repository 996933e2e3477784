"""What an evaluator says in words: in which convention, where it is kept, and who reads it."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest
from evo_runs import QUIET, write_task

import evo
import replay
from evo.logs.fitting import MOST_NOTES
from evo.logs.hashes import hash_of_task
from evo.logs.records import Evaluation, Instance, Limits
from evo.prompt import WRITTEN_VERSION, TriedProgram, feedback
from evo.runs.configuration import make_header, make_header_again
from evo.runs.identity import differences
from evo.runs.planning import Planner
from evo.runs.state import state_of
from evo.tasks.task import SHIPPED, load_task, shipped_tasks

PROGRAM = "def f():\n    return 0.25\n"
LOAD = """
import json, os, runpy
def put(path, **content):
    with open(path, "w") as file:
        json.dump(content, file)
"""
OURS = "def score(value):\n    return {'fitness': value, 'notes': 'it is far off'}\n"
OPENEVOLVE = """
from openevolve.evaluation_result import EvaluationResult
def evaluate(path):
    value = runpy.run_path(path)["f"]()
    artifacts = {"hint": "it is far off", "log": b"in " + path.encode()}
    return EvaluationResult(metrics={"combined_score": value}, artifacts=artifacts)
"""
FAILED = OPENEVOLVE.replace('"combined_score": value', '"combined_score": 0.0, "error": "too low"')
SHINKA = """
def main(program_path: str, results_dir: str):
    value = runpy.run_path(program_path)["f"]()
    put(os.path.join(results_dir, "correct.json"), correct=value < 1)
    put(os.path.join(results_dir, "metrics.json"), combined_score=value,
        text_feedback="it is far off")
"""


@pytest.mark.parametrize(
    ("source", "program", "status", "notes"),
    [
        (OURS, PROGRAM, "ok", "it is far off"),
        (OPENEVOLVE, PROGRAM, "ok", "hint: it is far off\nlog: in program.py"),
        (FAILED, PROGRAM, "error", "hint: it is far off\nlog: in program.py"),
        (SHINKA, PROGRAM, "ok", "it is far off"),
        (SHINKA, PROGRAM.replace("0.25", "2.5"), "invalid", "it is far off"),
    ],
)
def test_every_convention_has_words(
    source: str, program: str, status: str, notes: str, tmp_path: Path
) -> None:
    toml = "entry = ['f']\n" if source == OURS else ""
    task = write_task(tmp_path / "task", PROGRAM, LOAD + source, toml)
    found = evo.evaluate(task, program)
    assert (found.status, found.notes) == (status, notes)


def test_notes_are_capped_logged_tabled_and_told(tmp_path: Path) -> None:
    words = "{'fitness': value, 'notes': 'word \\ud800 ' * 9999 if value > .25 else 'start'}"
    judge = f"def score(value):\n    return {words}\n"
    task = write_task(tmp_path / "task", PROGRAM, judge, "entry = ['f']\n")
    options: dict[str, Any] = {"generations": 2, "children": 4, "seed": 3, **QUIET}
    log = evo.run(task, feedback=True, log=tmp_path / "a.jsonl", **options)
    assert log.initial is not None
    assert log.initial.evaluation.notes == "start"
    better = next(c for c in log.children if (c.evaluation.fitness or 0) > 0.25)
    assert MOST_NOTES < len(better.evaluation.notes) < MOST_NOTES + 60
    assert better.evaluation.notes.endswith("further characters]")
    table = replay.children(log, progress=False).set_index(["generation", "index"])
    assert table.loc[(better.generation, better.index), "notes"] == better.evaluation.notes
    prompt = Planner()(state_of(log, through=0))[0].messages[-1]["content"]
    assert "Notes of its evaluator:\n- start\n" in prompt
    assert evo.rerun(log).same
    assert not evo.verify(log).faults
    silent = evo.run(task, log=tmp_path / "b.jsonl", **options)
    assert "Notes" not in Planner()(state_of(silent, through=0))[0].messages[-1]["content"]


def test_a_failure_is_told_with_its_notes_and_without_what_differs_between_machines() -> None:
    task = load_task("mmd").record
    parent = Evaluation(status="ok", fitness=0.5, notes="near /tmp/x/y\n\nafter 1.5 s: 1.23456789")
    failed = Evaluation(status="invalid", error="it overlaps", notes="1 and 2\nby 0.5")
    assert feedback(task, parent, [TriedProgram(failed)]) == (
        "Notes of its evaluator:\n- near [...]\n- after [...]: 1.23457\n"
        "What went wrong lately:\n- invalid: it overlaps; 1 and 2 by 0.5\n"
    )
    shared = msgspec.structs.replace(task, isolation="shared")
    without = feedback(shared, parent, [TriedProgram(failed)], version=2)
    assert without == "What went wrong lately:\n- invalid: it overlaps\n"


@pytest.mark.parametrize("name", sorted(set(shipped_tasks()) - {"word_problems"}))
def test_notes_of_shipped_tasks_leave_their_hash_as_it_was(name: str) -> None:
    task = load_task(name).record
    assert task.notes_file in task.files
    bare = task.judged
    assert task.notes_file not in bare.files
    assert hash_of_task(bare) == hash_of_task(task) == task.hash
    now, before = make_header(task, feedback=True), make_header(bare, feedback=True)
    assert differences(now, before) == []
    assert now.prompt_version == WRITTEN_VERSION


def test_another_wording_goes_without_notes() -> None:
    assert not load_task("tsp:renamed").record.notes_file


def test_a_log_goes_on_with_the_notes_that_it_began_with(tmp_path: Path) -> None:
    task = load_task("mmd")
    bare = replace(task, record=task.record.judged)
    options: dict[str, Any] = {"children": 2, "seeds": [3], "feedback": True, "log_dir": tmp_path}
    [begun] = evo.run_many(bare, generations=1, **options, **QUIET)
    [log] = evo.run_many(task, generations=2, resume=True, **options, **QUIET)
    assert log.path == begun.path
    assert len(log.generations) == 2
    assert not any(child.evaluation.notes for child in log.children)
    assert evo.rerun(log).same


def test_older_feedback_on_a_shared_evaluator_stays_without_notes(tmp_path: Path) -> None:
    task = write_task(tmp_path / "task", PROGRAM, LOAD + OPENEVOLVE)
    header = make_header(task, feedback=True)
    assert header.prompt_version == WRITTEN_VERSION
    older = msgspec.structs.replace(header, prompt_version=2)
    assert make_header_again(older, children=3).prompt_version == 2
    assert make_header_again(header).prompt_version == WRITTEN_VERSION
    log = evo.run(task, feedback=True, generations=1, children=1, log=tmp_path / "a.jsonl", **QUIET)
    state = state_of(log, through=0)
    assert "it is far off" in Planner()(state)[0].messages[-1]["content"]
    state.header = older
    assert "it is far off" not in Planner()(state)[0].messages[-1]["content"]


def test_answers_and_whole_numbers_are_told_as_they_are() -> None:
    task = load_task("word_problems").record
    rows: list[Any] = [{"id": "a", "input": "?", "answer": 1234567}]
    wrong = Evaluation(
        status="invalid", instances=(Instance(id="a", status="ok", score=0.0),), error="bad"
    )
    parent = Evaluation(
        status="ok", fitness=0.5, metrics={"count": 1234567.0}, notes="2024-05-01: 1234567 of 0.10"
    )
    for reply in ("1.23457e+06", "1234567 ", "7 minutes", "/a/b 0x1f", "2024-05-01"):
        told = feedback(task, parent, [TriedProgram(wrong, {"a": reply})], rows)
        shown = json.dumps(reply) if reply.endswith(" ") else reply
        assert f"expected 1234567, got {shown}\n" in told
        assert "Its metrics: count 1234567." in told
        assert "- 2024-05-01: 1234567 of 0.10\n" in told
        before = feedback(task, parent, [TriedProgram(wrong, {"a": reply})], rows, version=3)
        assert "expected 1.23457e+06, got" in before
    long = feedback(task, parent, [TriedProgram(wrong, {"a": "x" * 10**6 + " so 12"})], rows)
    assert "so 12\n" in long
    assert len(long) < 500


def told(name: str, *given: Any) -> str:
    space: dict[str, Any] = {}
    exec((SHIPPED / name / "evaluator_notes.py").read_text(), space)
    text: str = space["notes"](*given)
    return text


def test_the_notes_of_shipped_tasks_say_what_is_wrong() -> None:
    grid = np.stack(np.meshgrid(np.arange(6), np.arange(5)), -1).reshape(-1, 2)[:26] / 6 + 1 / 12
    radii = np.full(26, 1 / 12)
    assert "pairs" not in (fine := told("circle_packing", (grid, radii)))
    assert "26 of 26 circles touch something" in fine
    radii[3] += 0.01
    bad = told("circle_packing", (grid, radii))
    assert "3 pairs of circles overlap, most: " in bad
    assert "3 and 4 by 0.01" in bad
    assert "1 circles leave the square, most: 3 by 0.01" in bad
    points = [[0.1 * k, 0.01 * k * k] for k in range(16)]
    assert told("min_max_distance", points).startswith("closest points: 0 and 1: 0.1005")
    points[7] = [0.55, 0.305]
    assert "points 5, 6, 7: " in told("heilbronn_triangle", points[:11])
    tour = {"input": [[0, 0], [0, 1], [1, 1], [1, 0]], "optimum": 4.0}
    said = told("tsp_construct", [0, 2, 1, 3], tour)
    assert said.startswith("the tour is 20.7% longer than the shortest; dearest steps: from city ")
    bins = told("online_bin_packing", [0, 1, 1], {"input": [60, 50, 50]})
    assert bins.startswith("2 bins for 3 items, at least 2 are needed; largest free rooms: 40, 0;")
    circles = [(0.25, 0.25, 0.25), (0.5, 0.25, 0.25)]
    assert "0 and 1 by 0.25" in told("circle_grid", circles, {"input": 2, "best": 1})


def test_a_sandbox_notices_that_only_the_notes_have_changed(tmp_path: Path) -> None:
    judge = "def score(value):\n    return value\n"
    task = write_task(tmp_path / "task", "def f():\n    return 1.0\n", judge, "entry = ['f']\n")
    found = []
    with evo.sandbox.Evaluator(1) as sandbox:
        for text in ("first", "second"):
            (task / "evaluator_notes.py").write_text(f"def notes(value):\n    return '{text}'\n")
            loaded = evo.load_task(task)
            made = sandbox.evaluate(loaded.record, loaded.initial_program, Limits())
            found.append((loaded.record.hash, made.notes))
    assert [notes for _, notes in found] == ["first", "second"]
    assert found[0][0] == found[1][0]


def test_notes_on_a_data_set_are_of_the_worst_instance_in_sight(tmp_path: Path) -> None:
    judge = "def score(value, instance):\n    return value / instance['input']\n"
    task = write_task(tmp_path / "task", "def f(x):\n    return 1.0\n", judge,
                      "entry = ['f']\ninstances = 'set.jsonl'\n")  # fmt: skip
    (task / "evaluator_notes.py").write_text(
        "def notes(value, instance):\n    return f'{value:g} of {instance[\"input\"]}'\n"
    )
    (task / "set.jsonl").write_text('{"input": 2}\n{"input": 5}\n{"input": 9, "check": true}\n')
    assert evo.evaluate(task, "def f(x):\n    return 1.0\n").notes == "instance 2: 1 of 5"
    (task / "evaluator_notes.py").write_text("def notes(value, instance):\n    return 1 / 0\n")
    found = evo.evaluate(task, "def f(x):\n    return 1.0\n")
    assert (found.status, found.notes) == ("ok", "")
