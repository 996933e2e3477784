"""Evaluators in the conventions of other tools, which import the program themselves."""

from __future__ import annotations

import base64
from pathlib import Path
from textwrap import dedent

import pytest
from toy import LIMITS, make_task

from evo.logs.records import Evaluation, Limits, TaskRecord
from evo.sandbox import EVALUATOR_FAILED, Evaluator
from evo.tasks.task import load_task

PROGRAM = "VALUE = 0.5\ndef answer():\n    return VALUE\n"
LOAD = """
import importlib.util
def load(path):
    spec = importlib.util.spec_from_file_location("program", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module
"""


def folder(evaluator: str, **changes: object) -> TaskRecord:
    return make_task(LOAD + dedent(evaluator), **{"isolation": "shared", "entry": (), **changes})


def run(evaluator: Evaluator, source: str, program: str = PROGRAM, **changes: object) -> Evaluation:
    return evaluator.evaluate(folder(source, **changes), program, Limits(seconds=20))


RESULT = """
from openevolve.evaluation_result import EvaluationResult
def evaluate(path):
    return EvaluationResult(metrics={"combined_score": 0.25}, artifacts={"log": "x"})
"""
CHATTER = """
def evaluate(path):
    print("chatter")
    answer = load(path).answer()
    return {"combined_score": answer, "other": 2, "nan": float("nan"), "note": "text"}
def evaluate_stage1(path):
    raise RuntimeError("stages are not run")
"""
POOLS = """
import concurrent.futures as futures
def evaluate(path):
    with futures.ThreadPoolExecutor(2) as pool:
        one = pool.submit(load(path).answer).result(timeout=5)
    with futures.ProcessPoolExecutor(2) as pool:
        two = pool.submit(abs, -0.25).result(timeout=5)
    return {"combined_score": one + two}
"""
MEAN = "def evaluate(path):\n    return {'a': 1.0, 'b': 2, 'c': float('inf'), 'd': True}"


@pytest.mark.parametrize(
    ("source", "fitness", "metrics", "warning"),
    [
        (CHATTER, 0.5, {"other": 2.0}, ""),
        (RESULT, 0.25, {}, ""),
        (POOLS, 0.75, {}, ""),
        (MEAN, 1.5, {"a": 1.0, "b": 2.0}, "warning: no combined_score"),
    ],
)
def test_metrics_and_fitness(
    evaluator: Evaluator, source: str, fitness: float, metrics: dict[str, float], warning: str
) -> None:
    found = run(evaluator, source)
    assert (found.status, found.fitness, found.metrics) == ("ok", fitness, metrics), found.error
    assert (found.error or "").startswith(warning)
    assert bool(found.error) == bool(warning)


WRITE = """
import json, os
def put(path, **content):
    with open(path, "w") as file:
        json.dump(content, file)
"""
SHINKA = """
def main(program_path: str, results_dir: str):
    answer = load(program_path).answer()
    put(os.path.join(results_dir, "correct.json"), correct=answer > 0, error="not above 0")
    put(os.path.join(results_dir, "metrics.json"), combined_score=answer,
        public={"area": 2.0}, private={"hidden": 3.0}, text_feedback="none")
"""
CODEEVOLVE = """
def evaluate(program_path, results_path=None):
    put(results_path, benchmark_ratio=load(program_path).answer(), eval_time=9.0)
"""


@pytest.mark.parametrize(
    ("source", "metrics"),
    [
        (SHINKA, {"area": 2.0}),
        (SHINKA.replace("def main", "async def main"), {"area": 2.0}),
        (CODEEVOLVE, {"benchmark_ratio": 0.5, "eval_time": 9.0}),
        (CODEEVOLVE.replace("benchmark_ratio", "combined_score"), {"eval_time": 9.0}),
        (CODEEVOLVE.replace("=None", "").replace("def ev", "async def ev"), None),
        ("async def evaluate(path):\n    return {'combined_score': load(path).answer()}", {}),
    ],
)
def test_other_conventions(
    evaluator: Evaluator, tmp_path: Path, source: str, metrics: dict[str, float] | None
) -> None:
    (tmp_path / "evaluate.py").write_text(LOAD + WRITE + source)
    (tmp_path / "initial.py").write_text(PROGRAM)
    task = load_task(tmp_path)
    assert task.record.isolation == "shared"
    evaluation = evaluator.evaluate(task.record, task.initial_program, Limits(seconds=20))
    assert (evaluation.status, evaluation.fitness) == ("ok", 0.5), evaluation.error
    assert metrics is None or evaluation.metrics == metrics


def test_what_an_evaluator_of_shinkaevolve_calls_incorrect_is_invalid(evaluator: Evaluator) -> None:
    evaluation = run(evaluator, WRITE + SHINKA, "def answer():\n    return -1.0")
    assert (evaluation.status, evaluation.error) == ("invalid", "not above 0")


@pytest.mark.parametrize("folder_name", ["", "evaluator/"])
def test_data_files_and_siblings(evaluator: Evaluator, folder_name: str) -> None:
    source = dedent(
        """
        import os, pickle, helper, above
        HERE = os.path.dirname(os.path.abspath(__file__))
        def evaluate(program_path):
            with open(os.path.join(HERE, "data", "table.txt")) as file:
                near = float(file.read())
            with open("top.bin", "rb") as file:
                top = file.read()
            assert top == bytes(range(256))
            try:
                open("top.bin", "wb")
            except PermissionError:
                pass
            else:
                raise AssertionError("files of the task are read-only")
            with open("scratch.pkl", "wb") as file:
                pickle.dump(near, file)
            return {"combined_score": near + helper.ONE + above.ZERO}
        """
    )
    task = folder(
        "",
        files={
            f"{folder_name}evaluator.py": source,
            f"{folder_name}helper.py": "ONE = 1",
            "above.py": "ZERO = 0",
            f"{folder_name}data/table.txt": "0.125",
            "initial_program.py": "",
        },
        encoded={"top.bin": base64.b64encode(bytes(range(256))).decode()},
        evaluator_file=f"{folder_name}evaluator.py",
    )
    evaluation = evaluator.evaluate(task, PROGRAM, LIMITS)
    assert evaluation.fitness == 1.125, evaluation.error


def test_subprocesses_draw_keyed_random_numbers(evaluator: Evaluator) -> None:
    source = """
        import multiprocessing, random, subprocess, sys
        CODE = (
            "import random, os, numpy as np; random.seed();"
            "print(random.random() + np.random.rand() + np.random.default_rng().random())"
        )
        def evaluate(program_path):
            print = subprocess.run([sys.executable, "-c", CODE], capture_output=True, check=True)
            with multiprocessing.Pool(1) as pool:
                forked = pool.apply(random.random)
            return {"combined_score": float(print.stdout), "forked": forked}
        """
    found = [run(evaluator, source, PROGRAM + end) for end in ("", "#", "")]
    assert [evaluation.status for evaluation in found] == ["ok"] * 3, found
    assert found[0].fitness == found[2].fitness != found[1].fitness
    assert found[0].metrics == found[2].metrics != found[1].metrics


@pytest.mark.parametrize(
    ("returned", "fitness", "metrics", "notes"),
    [
        ("0.25", 0.25, {}, ""),
        ("True", 1.0, {}, ""),
        ("__import__('numpy').float32(0.5)", 0.5, {}, ""),
        ("__import__('numpy').True_", 1.0, {}, ""),
        ("(2, 'well done')", 2.0, {}, "well done"),
        ("({'combined_score': 3, 'size': 7}, {'why': 'long'})", 3.0, {"size": 7.0}, "why: long"),
        ("({'combined_score': 3, 'notes': 'own'}, 'other')", 3.0, {}, "own"),
        ("{'combined_score': 3, 'artifacts': {'why': 'long'}}", 3.0, {}, "why: long"),
        ("{'combined_score': 3, 'artifacts': {}, 'text_feedback': 'long'}", 3.0, {}, "long"),
    ],
)
def test_a_number_is_a_score_and_a_pair_has_notes(
    evaluator: Evaluator, returned: str, fitness: float, metrics: dict[str, float], notes: str
) -> None:
    found = run(evaluator, f"def evaluate(path):\n    return {returned}")
    assert (found.status, found.fitness, found.metrics) == ("ok", fitness, metrics)
    assert found.notes == notes


SIGNS = [
    ("{'combined_score': 0.0, 'error': 'broke'}", "error", "broke"),
    ("{'combined_score': 0.9, 'timeout': True}", "timeout", "timed out"),
    ("{'combined_score': float('nan')}", "invalid", "not finite"),
    ("{'combined_score': 10**400}", "invalid", "not finite"),
    ("{'combined_score': -(10**400)}", "invalid", "not finite"),
    ("{'combined_score': 'high'}", "invalid", "must be a number"),
    ("{'note': 'text'}", "invalid", "no finite number"),
    ("{'combined_score': 0.5, 'error': ''}", "ok", ""),
    ("{'combined_score': 0.5, 'timeout': False, 'error': 0.0}", "ok", ""),
    ("[1.0]", "error", "must return a dict"),
    ("None", "error", "got an object of type 'NoneType'"),
    ("float('inf')", "invalid", "not finite"),
    ("({'combined_score': 0.5, 'error': 'broke'}, 'notes')", "error", "broke"),
    ("1 / 0", "error", "ZeroDivisionError"),
    ("__import__('os')._exit(0)", "error", "without returning"),
    ("{'error': 'x' * 1_000_000}", "error", "xxx"),
    ("{'combined_score': 'x' * 1_000_000}", "invalid", "must be a number"),
    ("{'combined_score': 1.0, 'k' * 1_000_000: 1.0}", "invalid", "too long"),
    ("{str(i): 1.0 for i in range(50_000)}", "invalid", "too many"),
]
CANNOT_RUN = [
    ("import sklearn_missing.svm", "no package 'sklearn_missing' is installed"),
    ("import openevolve.database", "pip install openevolve"),
    ("def other(path): pass", "defines no function evaluate(program_path)"),
    ("def evaluate(path:", "SyntaxError"),
]


@pytest.mark.parametrize(
    ("source", "status", "says"),
    [
        *((f"def evaluate(path):\n    return {result}", *rest) for result, *rest in SIGNS),
        *((source, "error", says) for source, says in CANNOT_RUN),
    ],
)
def test_signs_of_failure(evaluator: Evaluator, source: str, status: str, says: str) -> None:
    found = run(evaluator, source)
    assert found.status == status
    assert says in (found.error or "")
    assert len(found.error or "") < 10_000  # a log keeps no endless texts
    assert len(found.metrics) < 2


def test_text_evolves(evaluator: Evaluator) -> None:
    text = "Think step by step.\n\u00e9"
    read = "def evaluate(path):\n    return {'combined_score': len(open(path).read())}"
    shared = run(evaluator, read, text, evolves="text")
    task = make_task("def score(text):\n    return {'fitness': len(text)}", evolves="text")
    assert shared.fitness == evaluator.evaluate(task, text, LIMITS).fitness == len(text)


@pytest.mark.parametrize("name", ["../../forged.py", "/tmp/forged.py", "a/../../../forged.py"])
def test_files_out_of_a_forged_log_stay_in_the_folder(evaluator: Evaluator, name: str) -> None:
    source = "def evaluate(path):\n    return {'combined_score': 1.0}"
    files = {"evaluator.py": source, "initial_program.py": "", name: "x = 1"}
    evaluation = run(evaluator, source, files=files)
    assert evaluation.status == "error"
    assert f"files below the task's folder, got {name!r}" in (evaluation.error or "")
    assert not Path("/tmp/forged.py").exists()


EVALUATE = "def evaluate(path):\n    "
RETURN = f"{EVALUATE}return "


@pytest.mark.parametrize(
    ("source", "program", "its_own"),
    [
        (f"{RETURN}load(path).answer()", "def answer():\n    return {}[1]", True),
        (f"{EVALUATE}load(path)\n    return {{}}[1]", PROGRAM, False),
        (f"{RETURN}load(path).other()", PROGRAM, True),
        (f"{RETURN}path.other", PROGRAM, False),
        (f"{RETURN}load(path).answer()", "def answer(:", True),
        (f"{RETURN}compile('(', 'other.py', 'exec')", PROGRAM, False),
        (f"{RETURN}[0] * (1 << 60)", PROGRAM, True),
    ],
)
def test_an_error_is_the_evaluators_unless_the_program_had_a_part_in_it(
    evaluator: Evaluator, source: str, program: str, its_own: bool
) -> None:
    found = run(evaluator, source, program)
    assert found.status == "error"
    assert (found.error or "").startswith(EVALUATOR_FAILED) == (not its_own), found.error


SHOWS = """
from openevolve.evaluation_result import EvaluationResult
def evaluate(path):
    artifacts = {"stderr": "near line 3", "other": "not shown"}
    return EvaluationResult(metrics={"combined_score": 0.0, "error": "broke"}, artifacts=artifacts)
"""
TWO = "def evaluate(program_path, results_path):\n    "
MAIN = "def main(program_path, results_dir):\n    "
CORRECT = "put(results_dir + '/correct.json', correct=True)\n    "


@pytest.mark.parametrize(
    ("source", "fitness", "metrics"),
    [
        (f"{RETURN}{{'combined_score': 1, 'error': 2.0}}", 1.0, {"error": 2.0}),
        (f"{RETURN}{{'combined_score': 1, 'timeout': 30}}", 1.0, {"timeout": 30.0}),
        (f"{RETURN}{{'combined_score': 1, 7: 2}}", 1.0, {"7": 2.0}),
        (f"{TWO}return {{'combined_score': 0.25}}", 0.25, {}),
        (f"{TWO}put(results_path, combined_score=1, benchmark_ratio=2)", 1.0,
         {"benchmark_ratio": 2.0}),
        (f"{MAIN}{CORRECT}put(results_dir + '/metrics.json', combined_score=1, public=3)", 1.0,
         {"public": 3.0}),
        (f"{MAIN}raise RuntimeError\n{RETURN}0.5", 0.5, {}),
    ],
)  # fmt: skip
def test_what_a_convention_leaves_open_is_no_failure(
    evaluator: Evaluator, source: str, fitness: float, metrics: dict[str, float]
) -> None:
    found = run(evaluator, WRITE + source)
    assert (found.status, found.fitness, found.metrics) == ("ok", fitness, metrics), found.error


@pytest.mark.parametrize(
    ("source", "status", "says"),
    [
        (SHOWS, "error", "broke\nstderr: near line 3"),
        (f"{RETURN}{{'timeout': True, 'error': 'late'}}", "timeout", "late"),
        (f"{RETURN}{{'timeout': __import__('numpy').True_}}", "timeout",
         "the evaluator timed out"),
        *(
            (f"{MAIN}put(results_dir + '/correct.json'{correct})", "invalid",
             "the evaluator reports that the program is not correct")
            for correct in ("", ", correct=False")
        ),
    ],
)  # fmt: skip
def test_a_failure_has_the_words_that_the_evaluator_gave_it(
    evaluator: Evaluator, source: str, status: str, says: str
) -> None:
    found = run(evaluator, WRITE + source)
    assert (found.status, found.error) == (status, says)


@pytest.mark.parametrize(
    ("source", "says"),
    [
        ("def main():\n    return 1", "defines no function evaluate(program_path)"),
        (f"{MAIN}pass", "correct.json"),
        (f"{MAIN}open(results_dir + '/correct.json', 'w').write('[1]')",
         "correct.json: expected an object, got [1]"),
    ],
)  # fmt: skip
def test_an_evaluator_that_keeps_to_no_convention_is_at_fault(
    evaluator: Evaluator, source: str, says: str
) -> None:
    error = run(evaluator, WRITE + source).error or ""
    assert error.startswith(EVALUATOR_FAILED)
    assert says in error


def test_the_file_of_a_program_is_named_after_what_evolves(evaluator: Evaluator) -> None:
    source = f"{RETURN}(1.0, path.rpartition('.')[2])"
    assert run(evaluator, source).notes == "py"
    assert run(evaluator, source, "some text", evolves="text").notes == "txt"
