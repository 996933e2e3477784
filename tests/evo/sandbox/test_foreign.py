"""Programs as the sandbox calls them, and evaluators that score what they returned."""

from __future__ import annotations

import pytest
from toy import (
    GOOD,
    HURRY,
    IMPORTS_US,
    LIMITS,
    NEEDS_SCIPY,
    NO_IMPORT,
    Remnants,
    make_task,
)

from evo.prompt import last_line
from evo.sandbox import EVALUATOR_FAILED, Evaluator
from evo.sandbox.foreign import size_of


def test_value_and_metrics(evaluator: Evaluator) -> None:
    program = "import numpy as np\ndef build():\n    return np.arange(8.0).reshape(4, 2)"
    evaluation = evaluator.evaluate(make_task(), program, LIMITS, keep_value=True)
    assert evaluation.fitness == 3.5
    assert evaluation.metrics == {"objective": 28.0}
    assert evaluation.value == [[0.0, 1.0], [2.0, 3.0], [4.0, 5.0], [6.0, 7.0]]
    assert evaluator.evaluate(make_task(), program, LIMITS).value is None


WORKS = {
    "first entry": f"""
def build():
    raise RuntimeError("not preferred")
{GOOD}
if __name__ == "__main__":
    raise SystemExit("main ran")
""",
    "own source": f"import inspect\n{GOOD}\nassert 'inspect' in open(__file__).read()\n"
    "assert 'return' in inspect.getsource(construct)",
    "scipy": NEEDS_SCIPY,
}


FAILS = {
    "this package": (IMPORTS_US, NO_IMPORT),
    "lone surrogates": (f"{GOOD}\n#\ud800", "valid Unicode"),
    "its own line": ("def construct():\n    return 1 / 0", "return 1 / 0"),
}


@pytest.mark.parametrize("name", WORKS)
def test_programs_that_work(evaluator: Evaluator, name: str) -> None:
    assert evaluator.evaluate(make_task(), WORKS[name], LIMITS).status == "ok"


@pytest.mark.parametrize("name", FAILS)
def test_programs_that_fail_are_told_why(evaluator: Evaluator, name: str) -> None:
    program, says = FAILS[name]
    evaluation = evaluator.evaluate(make_task(), program, LIMITS)
    assert evaluation.status == "error"
    assert says in (evaluation.error or "")
    assert (evaluation.error or "").count("File ") <= 1  # no frame but the program's


def test_a_program_whose_value_is_scored_apart_finds_no_file_of_its_task(
    evaluator: Evaluator,
) -> None:
    source = "def score(value):\n    return float(len(value))\n"
    files = {"evaluator.py": source, "held_out.txt": "secret", "initial_program.py": ""}
    program = "import os\ndef construct():\n    return os.listdir('.')\n"
    found = evaluator.evaluate(make_task(source, files=files), program, LIMITS, keep_value=True)
    assert (found.status, found.value) == ("ok", [])


def test_an_entry_is_the_first_name_that_can_be_called(evaluator: Evaluator) -> None:
    program = GOOD.replace("construct", "build")
    assert evaluator.evaluate(make_task(), f"construct = 3\n{program}", LIMITS).status == "ok"
    found = evaluator.evaluate(make_task(), "construct = 3", LIMITS)
    assert found.error == "the program defines no function construct() or build()"


@pytest.mark.parametrize(
    ("score", "status", "says"),
    [
        ("raise ValueError('too near')", "invalid", "too near"),
        ("return {'fitness': float('nan')}", "invalid", "fitness is not finite"),
        ("return {'fitness': 1.0, 'area': float('inf')}", "invalid", "area is not finite"),
        ("return {'area': 1.0}", "error", "key 'fitness'"),
        ("return {'fitness': 'high'}", "error", "must return numbers"),
        ("return {'fitness': 1.0, 'gap': 'x'}", "error", "'gap': 'x'; words go into 'notes'"),
        ("return 'high'", "error", "must return a number, a dict"),
        ("return 1 / 0", "error", "ZeroDivisionError"),
        ("import os; os._exit(3)", "error", "exit code 3"),
        ("while True: pass", "timeout", "scoring"),
        ("return {'fitness': 10**400}", "invalid", "fitness is not finite: inf"),
        ("return {'fitness': type('R', (), {'__repr__': None})()}", "error", "evaluator failed"),
        ("return {'fitness': 1.0, '\\ud800' * 2: 'x'}", "error", "must return numbers"),
        ("raise ValueError('x' * 1_000_000)", "invalid", "xxx"),
        ("return {'fitness': 'x' * 1_000_000}", "error", "must return numbers"),
        ("return {'fitness': 1.0, 'k' * 1_000_000: 1.0}", "invalid", "too long"),
    ],
)
def test_failing_evaluators(evaluator: Evaluator, score: str, status: str, says: str) -> None:
    limits = HURRY if status == "timeout" else LIMITS
    evaluation = evaluator.evaluate(make_task(f"def score(value):\n    {score}"), GOOD, limits)
    assert evaluation.status == status
    assert says in (evaluation.error or "")
    assert len(evaluation.error or "") < 10_000
    assert evaluator.evaluate(make_task(), GOOD, LIMITS).status == "ok"


def test_each_value_is_told_why_its_evaluator_cannot_score(evaluator: Evaluator) -> None:
    for source, says in (
        ("x = 1", "'evaluator.py' defines no function score(value)"),
        ("score = 3", "'evaluator.py' defines no function score(value)"),
        ("1 / 0", "'evaluator.py' could not be imported: "),
    ):
        for program in (GOOD, f"{GOOD} "):
            found = evaluator.evaluate(make_task(source), program, LIMITS)
            assert found.status == "error"
            assert (found.error or "").startswith(f"{EVALUATOR_FAILED}: {says}")


def test_what_an_evaluator_printed_is_kept_with_its_failure_alone(evaluator: Evaluator) -> None:
    noisy = "import sys\ndef score(value):\n    print('it scores')\n"
    for end, status in (("raise ValueError('bad')", "invalid"), ("return [][0]", "error")):
        task = make_task(f"{noisy}    print('x' * 9999, 'aloud', file=sys.stderr)\n    {end}")
        found = evaluator.evaluate(task, GOOD, LIMITS)
        error = found.error or ""
        assert found.status == status
        assert "aloud" in error
        assert "characters dropped" in error
        assert len(error) < 3000
        assert "xxx" not in last_line(error)  # which is all that a prompt shows of it
    again = evaluator.evaluate(make_task(f"{noisy}    raise ValueError('bad')"), GOOD, LIMITS)
    assert (again.error or "").endswith("of the evaluator ---\nit scores")
    assert last_line(again.error) == "bad"
    fine = evaluator.evaluate(make_task(f"{noisy}    return 1.0"), GOOD, LIMITS)
    assert (fine.status, fine.error, fine.notes) == ("ok", None, "")


KEYED_SCORE = """
import random, secrets, subprocess, sys, uuid
CODE = "import random, secrets, uuid; print(random.random(), secrets.token_hex(), uuid.uuid4())"
def score(value):
    drawn = random.random(), secrets.token_hex(), uuid.uuid4(), hash("text"), list({"a", "b", "c"})
    raise ValueError(f"{drawn} {subprocess.check_output([sys.executable, '-c', CODE])}")
"""


def test_an_evaluators_randomness_is_keyed_in_processes_that_it_starts_too(
    evaluator: Evaluator, remnants: Remnants
) -> None:
    task, other = make_task(KEYED_SCORE), f"{GOOD}  # another"
    first = [evaluator.evaluate(task, each, LIMITS).error for each in (GOOD, other, GOOD)]
    assert first[0] == first[2] != first[1]
    luck = [evaluator.evaluate(task, each, LIMITS, draw=1).error for each in (GOOD, other)]
    assert luck[0] == luck[1] != first[0]
    with Evaluator(1) as fresh:  # another process, in which nothing was scored before
        assert fresh.evaluate(task, other, LIMITS).error == first[1]
        assert fresh.evaluate(task, GOOD, LIMITS, draw=1).error == luck[0]


def test_a_construction_is_kept_as_long_as_it_is_small(evaluator: Evaluator) -> None:
    task = make_task("def score(value):\n    return float(len(value[0]))\n")
    for length in (100_000, 199_000, 201_000):
        program = f"def construct():\n    return ['x' * {length}]"
        found = evaluator.evaluate(task, program, LIMITS, keep_value=True)
        assert found.fitness == length
        assert (found.value is not None) == (length < 200_000)


@pytest.mark.parametrize(
    ("score", "words", "notes"),
    [
        ("1.0", "return 'its words'", "its words"),
        ("(1.0, 'own')", "return 'its words'", "own"),
        ("1.0", "return 1 / 0", ""),
        ("1.0", "return", ""),
        ("{}[1]", "return 'its words'", ""),  # of a value without a score there is nothing to say
    ],
)
def test_words_about_a_value_are_the_evaluators_own_first_and_never_cost_its_score(
    evaluator: Evaluator, score: str, words: str, notes: str
) -> None:
    source = f"def score(value):\n    return {score}\n"
    files = {"evaluator.py": source, "notes.py": f"def notes(value):\n    {words}\n"}
    task = make_task(source, files={**files, "initial_program.py": ""}, notes_file="notes.py")
    found = evaluator.evaluate(task, GOOD, LIMITS)
    assert (found.fitness, found.notes) == (None if "[" in score else 1.0, notes)


def test_room_is_made_for_every_file_of_a_task() -> None:
    task, size = make_task(), 100_000
    long = {**task.files, "a.txt": "é" * (size // 2)}
    for more in ({"files": long}, {"encoded": {"a.bin": "A" * size}}):
        grown = make_task(**more)  # type: ignore[arg-type]
        assert size_of(task) + size < size_of(grown) < size_of(task) + size + 2 * 4096
