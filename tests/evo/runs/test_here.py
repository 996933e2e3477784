"""Evaluators that run in the caller's own process."""

import re
import warnings
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest

import evo
from evo.capture import capture
from evo.logs.hashes import hash_of_task
from evo.runs.configuration import make_header
from evo.runs.identity import differences, differing
from evo.tasks.functions import task
from evo.tasks.task import EvaluatorFailed, TaskError, with_function

ROWS = [{"input": k, "want": 2 * k + 1} for k in range(4)]


def double(x):
    """Maps a number to another one."""
    return x * 2


class Client:
    def ask(self, x: float) -> float:
        return x + 1


CLIENT = Client()


SEEN: list[object] = []


PICK = "def pick(number):\n    return number\n"
ALONE = "def pick():\n    return 4\n"


def test_an_evaluator_may_run_here_with_what_it_holds_open() -> None:
    def judged(value, row, seed):
        SEEN.append(seed)
        return CLIENT.ask(value) - row["want"]

    made = task("here", initial_program=double, evaluate=judged, instances=ROWS, where="here")
    assert made.evaluate().fitness == 0
    again = SEEN.copy()
    made.evaluate()
    assert sorted(again) == sorted(SEEN[4:])
    assert len(set(again)) == 4
    with pytest.raises(evo.TaskError, match="where='sandbox' makes it one"):
        made.save("anywhere")


def test_an_evaluator_here_is_given_what_its_first_parameter_says() -> None:
    def of_text(text, row):
        return len(text) + row["k"]

    async def of_program(program):
        return len(program)

    def of_value(value):
        return float(np.sum(value))

    rows = [{"k": 1}, {"k": 2}]
    made = task(
        "t", initial_program="abc", evaluate=of_text, instances=rows, where="here", statement="s"
    )
    assert made.evaluate().fitness == 4.5
    assert not made.record.asks_model
    text = "def f():\n    import numpy\n    return numpy.ones(3)\n"
    here = {"where": "here", "statement": "s", "initial_program": text}
    assert task("t", evaluate=of_program, **here).evaluate().fitness == len(text)
    assert task("t", evaluate=of_value, **here).evaluate().fitness == 3
    with pytest.raises(ValueError, match=r"`text` or `program`.*`reply` or `value`.*got 'x'"):
        task("t", evaluate=lambda x, row: 1, instances=ROWS, **here)


def test_what_happens_to_an_evaluator_here_is_a_status() -> None:
    def refuses(value):
        raise ValueError("not legal")

    def breaks(value):
        raise KeyError("gone")

    def waits(value):
        import time

        time.sleep(5)

    async def waits_async(value):
        import asyncio

        await asyncio.sleep(5)

    def words(value):
        return "good"

    common = {"initial_program": "def f():\n    return 1\n", "where": "here", "statement": "s"}
    for function, status in {
        refuses: "invalid", breaks: "error", waits: "timeout", waits_async: "timeout",
        words: "error",
    }.items():  # fmt: skip
        made = task("t", evaluate=function, limits={"seconds": 0.2}, **common)
        assert made.evaluate().status == status, function


def test_an_evaluator_here_that_fails_on_the_initial_program_costs_no_call(tmp_path: Path) -> None:
    def gone(value):
        return CLIENT.lost(value)

    asked = []

    def model(messages):
        asked.append(messages)

    failing = task(
        "t", evaluate=gone, initial_program="def f():\n    return 1\n", where="here", statement="s"
    )
    assert (failing.evaluate().error or "").startswith("the evaluator failed: Traceback")
    message = r"the evaluator fails on the initial program \(.*test_here\.py, line \d+\): Attribute"
    with pytest.raises(EvaluatorFailed, match=message):
        evo.run(failing, model=model, log=tmp_path / "a.jsonl", progress=False)
    assert not asked


LIMIT = 9


def remembers(value):
    SEEN.append("secret")
    return -abs(value - LIMIT)


def test_an_evaluator_here_may_have_state(monkeypatch) -> None:
    def made():
        return task("t", initial_program=ALONE, evaluate=remembers, where="here", statement="s")

    first = made()
    SEEN.append("more")
    assert made().record.hash == first.record.hash
    text = first.record.files["evaluator.py"]
    assert "SEEN = ...  # a list that this code changes" in text
    assert "more" not in text
    monkeypatch.setitem(globals(), "LIMIT", 10)
    one, other = (make_header(each) for each in (first, made()))
    assert "evaluator.py (LIMIT) of the task t changed" in differing(one, other)


class Judge:
    def __init__(self, limit: int) -> None:
        self.limit, self.calls = limit, 0

    def __call__(self, value: float) -> float:
        self.calls += 1
        return -abs(value - self.limit)


class Waiting(Judge):
    async def __call__(self, value: float) -> float:
        return -abs(value - self.limit)


@pytest.mark.parametrize("kind", [Judge, Waiting])
def test_an_object_that_is_called_may_evaluate_here_and_goes_on(kind, tmp_path) -> None:
    def made(limit: int) -> evo.Task:
        return task(
            "t",
            initial_program="def f():\n    return 1\n",
            evaluate=kind(limit),
            where="here",
            statement="s",
        )

    assert made(4).evaluate().fitness == -3
    path = tmp_path / "a.jsonl"
    for generations in (1, 2):
        log = evo.run(made(4), generations=generations, children=1, log=path, progress=False)
        assert len(log.generations) == generations
    with pytest.raises(evo.LogError, match=r"evaluator\.py \(self\.limit\) of the task t changed"):
        evo.run(made(5), generations=3, children=1, log=path, progress=False)


def test_a_log_goes_on_whose_evaluator_here_had_its_state_in_the_task() -> None:
    now = task("t", initial_program=ALONE, evaluate=remembers, where="here", statement="s")
    text = now.record.files["evaluator.py"]
    head = text[: text.index("\n") + 1]
    before = head + capture(remembers).text
    old = msgspec.structs.replace(now.record, files={**now.record.files, "evaluator.py": before})
    old = msgspec.structs.replace(old, hash=hash_of_task(old))
    assert old.hash != now.record.hash
    header = make_header(now)
    assert differences(msgspec.structs.replace(header, task=old), header) == []
    assert with_function(old, now).function is remembers


def test_a_function_that_has_changed_does_not_stand_for_that_of_a_log() -> None:
    one, other = (task("t", initial_program="text", evaluate=f, where="here") for f in (len, max))
    with pytest.raises(TaskError, match="what that uses changed; undo it or run anew"):
        with_function(one.record, other)


def test_rows_that_are_held_out_count_for_no_metric_and_no_note() -> None:
    def judge(value: int, row: dict[str, Any]) -> dict[str, Any]:
        return {"fitness": value / 10, "size": value, "notes": f"size {value}"}

    task = evo.task(
        "pick", initial_program=PICK, evaluate=judge, instances=[{"input": 2}, {"input": 3}],
        held_out=[{"input": 1}], where="here", statement="pick returns a number",
    )  # fmt: skip
    found = task.evaluate()
    assert found.fitness == pytest.approx(0.25)
    assert found.metrics["size"] == 2.5
    assert found.metrics["check_fitness"] == pytest.approx(0.1)
    assert found.notes == "instance 0: size 2"


@pytest.mark.parametrize(
    ("options", "where"), [({}, "here"), ({"asynchronous": True}, "sandbox"), ({}, "sandbox")]
)
def test_the_advice_on_noise_can_be_followed(options, where, tmp_path: Path) -> None:
    program = "import random\n\n\ndef pick():\n    return random.random()\n"
    task = evo.task(
        "noise", initial_program=program, evaluate=float, where=where,
        statement="pick returns a number",
    )  # fmt: skip
    given = {"generations": 1, "children": 1, "progress": False, **options}
    with pytest.warns(UserWarning, match="evaluations are noisy") as said:
        evo.run(task, log=tmp_path / "a.jsonl", **given)
    [words] = [text for each in said if "noisy" in (text := str(each.message))]
    advice = {name: int(number) for name, number in re.findall(r"(\w+)=(\d+)", words)}
    with warnings.catch_warnings():
        warnings.filterwarnings("error", ".*evaluations are noisy")
        log = evo.run(task, log=tmp_path / "b.jsonl", **given, **advice)
    assert log.header.draws == advice["draws"] > 1
    assert bool(log.header.confirm) == (where == "sandbox" and not options)
