"""The sources that run around a program and an evaluator on a data set, as they behave."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest
from samples import sample_header

import evo
from evo.logs.records import TaskRecord
from evo.logs.several import pack, unpack
from evo.runs.scoring import (
    alone_task,
    is_apart,
    is_strict,
    program_source,
    scoring_task,
    strict_places,
)
from evo.tasks.instances import read_instances

INSTANCES = [
    {"id": "a", "input": 1},
    {"id": "b", "input": 2, "check": True},
    {"id": "c", "input": 3},
]
APART = "def harness(function, *value):\n    return ['by harness', function(*value)]\n"
BESIDE = "def solve(value):\n    return -value\n"


def task(**changes: Any) -> TaskRecord:
    record = sample_header().task
    files = {
        "evaluator.py": "def score(outcome, instance):\n    return outcome\n",
        **changes.pop("files", {}),
    }
    return msgspec.structs.replace(
        record,
        files=files,
        evaluator_file="evaluator.py",
        entry=("solve", "other"),
        notes_file="",
        **changes,
    )


def outcomes(source: str, name: str = "evo_on_instances") -> Any:
    """Runs a source and calls its function."""
    scope: dict[str, Any] = {"__name__": "program"}
    exec(compile(source, "program.py", "exec"), scope)
    return scope[name]()


def source_of(record: TaskRecord, program: str, *, draw: int = 0, seed: int = 0) -> str:
    return program_source(record, program, INSTANCES, draw=draw, seed=seed)


@pytest.mark.parametrize(
    ("scores", "missing", "places"),
    [("unit", None, []), ("any", None, [0, 2]), ("any", 0.0, []), ("unit", 0.0, [])],
)
def test_each_instance_needs_a_score_where_any_number_is_one_and_none_stands_in(
    scores: str, missing: float | None, places: list[int]
) -> None:
    record = task(scores=scores, missing=missing)
    assert is_strict(record) == bool(places)
    assert strict_places(record, INSTANCES) == places  # those that only check do not count


def test_a_program_is_called_with_each_input_and_may_fail_on_some() -> None:
    program = "def solve(value):\n    return 6 // (value - 2)\n"
    assert outcomes(source_of(task(), program)) == [["ok", -6], ["error", None], ["ok", 6]]
    loose = task(files={"h.py": APART}, harness_file="h.py")
    found = outcomes(source_of(loose, program))
    assert found == [["ok", ["by harness", -6]], ["error", None], ["ok", ["by harness", 6]]]


def test_the_first_error_counts_if_there_is_nothing_else() -> None:
    program = "def solve(value):\n    raise ValueError(f'on {value}')\n"
    for record in (task(), task(files={"h.py": APART}, harness_file="h.py")):
        with pytest.raises(ValueError, match="on 1"):
            outcomes(source_of(record, program))


def test_an_error_on_an_instance_that_must_have_a_score_ends_it_and_names_the_instance() -> None:
    strict = task(scores="any")
    with pytest.raises(ZeroDivisionError) as failed:
        outcomes(source_of(strict, "def solve(value):\n    return 1 / (value - 3)\n"))
    assert failed.value.__notes__ == ["on the input of instance 2"]
    only_check = "def solve(value):\n    return 1 / (value - 2)\n"
    assert outcomes(source_of(strict, only_check)) == [["ok", -1.0], ["error", None], ["ok", 1.0]]


def test_the_first_name_that_is_a_function_is_called() -> None:
    for record in (task(), task(scores="any")):
        both = "def other(value):\n    return 'other'\n\ndef solve(value):\n    return 'solve'\n"
        assert outcomes(source_of(record, both))[0] == ["ok", "solve"]
        assert outcomes(source_of(record, both.replace("def solve", "def mine")))[0] == [
            "ok",
            "other",
        ]
        number = both.replace("def solve(value):\n    return 'solve'", "solve = 3")
        assert outcomes(source_of(record, number))[0] == ["ok", "other"]
        with pytest.raises(NameError, match="defines no function solve or other"):
            outcomes(source_of(record, "x = 1\n"))


def test_a_harness_stands_below_the_program_or_apart_from_it() -> None:
    assert is_apart(APART)
    assert not any(map(is_apart, ("", BESIDE, "harness = print\n", "class harness:\n    pass\n")))
    beside = task(files={"h.py": BESIDE}, harness_file="h.py")
    strict = msgspec.structs.replace(beside, scores="any")
    for record in (beside, strict):
        assert outcomes(source_of(record, "def solve(value):\n    return value\n"))[0] == ["ok", -1]


def test_without_instances_the_function_is_called_with_nothing() -> None:
    record = alone_task(task(files={"h.py": APART}, harness_file="h.py"))
    assert record.entry == ("evo_alone",)
    assert record.hash != task().hash
    source = program_source(
        task(files={"h.py": APART}, harness_file="h.py"),
        "def solve():\n    return 5\n",
        (),
        draw=0,
        seed=0,
    )
    assert outcomes(source, "evo_alone") == ["by harness", 5]


def test_from_draw_1_on_each_instance_has_luck_of_its_own_that_is_the_same_for_any_program() -> (
    None
):
    lucky = "import random\n\n\ndef solve(value):\n    {}\n    return random.random()\n"

    def drawn(program: str, **luck: int) -> list[float]:
        return [value for _, value in outcomes(source_of(task(), program, **luck))]

    one, more = lucky.format("pass"), lucky.format("[random.random() for _ in range(value)]")
    first = drawn(one, draw=1)
    assert len(set(first)) == 3
    assert drawn(one, draw=1) == first
    assert not set(drawn(one, draw=2)) & set(first)
    assert not set(drawn(one, draw=1, seed=1)) & set(first)
    greedy = one.replace("return random.random()", "return (random.random(), random.random())[0]")
    assert drawn(greedy, draw=1) == first  # however many draws the ones before it took
    assert drawn(more, draw=1) != first
    assert "evo_on_luck" not in source_of(task(), one, draw=0)


def test_of_several_files_the_first_is_run() -> None:
    files = {"main.py": "def solve(value):\n    return value\n", "more.py": "x = 1\n"}
    record = task(program_files=("main.py", "more.py"))
    made = unpack(source_of(record, pack(files)))
    assert [*made] == ["main.py", "more.py"]
    assert made["more.py"].strip() == "x = 1"
    assert outcomes(made["main.py"])[2] == ["ok", 3]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    (tmp_path / "rows.jsonl").write_text("".join(json.dumps(each) + "\n\n" for each in INSTANCES))
    yield tmp_path
    sys.modules.pop("words", None)


def scorer(record: TaskRecord, name: str = "score") -> Callable[[object], dict[str, Any]]:
    scope: dict[str, Any] = {"__name__": "evaluator"}
    exec(scoring_task(record, INSTANCES).files["evaluator.py"], scope)
    function: Callable[[object], dict[str, Any]] = scope[name]
    return function


ON_ROWS: dict[str, Any] = {"instances_file": "rows.jsonl"}
FOUND = [["ok", 0.5], ["ok", 0.0], ["ok", 0.25]]


def test_scores_are_of_each_instance_whether_outcomes_come_as_values_or_as_json(
    folder: Path,
) -> None:
    score = scorer(task(**ON_ROWS))
    assert score(FOUND) == score(json.dumps(FOUND))
    assert {str(place): score(FOUND)[str(place)] for place in range(3)} == {
        "0": 0.5,
        "1": 0.0,
        "2": 0.25,
    }


def test_notes_are_of_the_worst_instance_that_is_not_held_out(folder: Path) -> None:
    words = "def notes(outcome, instance):\n    return f'got {outcome}'\n"
    (folder / "words.py").write_text(words)
    noted = msgspec.structs.replace(
        task(files={"words.py": words}, **ON_ROWS), notes_file="words.py"
    )
    found = scorer(noted)(FOUND)
    assert found["notes"] == "instance c: got 0.25"  # (b is worse, and held out)
    assert (
        scorer(noted)([["ok", 0.25], ["ok", 0.0], ["ok", 0.25]])["notes"] == "instance a: got 0.25"
    )
    (folder / "words.py").write_text("def notes(outcome, instance):\n    raise ValueError\n")
    sys.modules.pop("words", None)
    assert scorer(noted)(FOUND)["notes"] == ""
    assert scorer(task(**ON_ROWS))(FOUND)["notes"] == ""


def test_only_an_evaluator_of_its_own_process_is_wrapped() -> None:
    shared = task(isolation="shared", **ON_ROWS)
    assert scoring_task(shared, INSTANCES).files == shared.files
    made = scoring_task(task(**ON_ROWS), INSTANCES)
    assert made.entry == ("evo_on_instances",)
    assert made.hash == f"{task().hash} on instances"
    assert made.files["evaluator.py"].startswith(task().files["evaluator.py"])


ROWS = [{"input": number} for number in range(3)]


def following(x: int) -> int:
    return x + 1


def cheap(value: int, row: dict[str, int]) -> float:
    return 0.5


def thorough(value: int, row: dict[str, int]) -> float:
    return float(value == row["input"] + 1)


@pytest.mark.parametrize("stages", [{}, {"thresholds": [0.5]}])
def test_rows_are_scored_by_the_tasks_function_and_with_stages_by_that_of_the_last(
    stages: dict[str, list[float]],
) -> None:
    evaluate = [cheap, thorough] if stages else thorough
    task = evo.task("following", initial_program=following, evaluate=evaluate, instances=ROWS,
                    statement="s", **stages)  # fmt: skip
    found = task.evaluate()
    assert (found.status, found.fitness) == ("ok", 1.0)


def test_a_task_that_is_scored_on_rows_has_an_identity_of_its_own(tmp_path: Path) -> None:
    task = evo.task("following", initial_program=following, evaluate=thorough, instances=ROWS,
                    statement="s")  # fmt: skip
    made = scoring_task(task.record, read_instances(task.record))
    assert made.hash != task.record.hash
    assert made.entry == ("evo_on_instances",)
    assert made.files[made.evaluator_file].startswith(task.record.files[made.evaluator_file][:40])
