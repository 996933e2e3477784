import json
from pathlib import Path

import pytest
from foreign_samples import openevolve_program, write_openevolve

from replay.importers import read
from replay.importers.openevolve_files import evaluation

SAMPLES = Path(__file__).parents[3] / "logs" / "samples"
TRACE = "Traceback (most recent call last):\n  ...\nZeroDivisionError: division by zero\n"


@pytest.mark.parametrize(
    ("metrics", "status", "fitness"),
    [
        ({"combined_score": 0.0}, "ok", 0.0),
        ({"combined_score": 1.5, "error": ""}, "ok", 1.5),
        ({"combined_score": 0.0, "error": "ValueError: no"}, "error", None),
        ({"combined_score": 0.0, "timeout": True}, "timeout", None),
        ({"combined_score": float("inf")}, "invalid", None),
        ({"combined_score": "high"}, "invalid", None),
        ({"combined_score": None, "x": 1.0}, "invalid", None),
        ({"error": 0.0}, "error", None),
        ({"x": 1.0, "y": float("nan")}, "invalid", None),
        ({"flag": True}, "invalid", None),
        ({}, None, None),
        (None, None, None),
    ],
)
def test_failures_are_statuses_never_numbers(metrics, status, fitness):
    found = evaluation(metrics)
    assert (found.status, found.fitness) == (status, fitness)


@pytest.mark.parametrize(
    ("artifacts", "error"),
    [
        ({"stderr": "division by zero", "traceback": TRACE}, "ZeroDivisionError: division by zero"),
        ({"traceback": TRACE}, "ZeroDivisionError: division by zero"),
        ({"stderr": "invalid syntax (a.py, line 1)", "traceback": "  ...\nSyntaxError: invalid"},
         "invalid syntax (a.py, line 1)"),
        ({"stderr": {}, "error_message": "no"}, "no"),
        ({"stdout": "well"}, "the source does not say why"),
        (None, "the source does not say why"),
        ("{torn", "the source does not say why"),
    ],
)  # fmt: skip
def test_artifacts_say_why_a_program_failed(tmp_path, artifacts, error):
    write_openevolve(tmp_path)
    program = openevolve_program("g", 7, {"stage1_passed": 0.0, "error": 0.0})
    text = json.dumps(artifacts) if isinstance(artifacts, dict) else artifacts
    inside = tmp_path / "checkpoints" / "checkpoint_10" / "programs" / "g.json"
    inside.write_text(json.dumps(program | {"artifacts_json": text}))
    (run,) = read(tmp_path)
    found = run.children[6].evaluation
    assert (found.status, found.error, found.fitness) == ("error", error, None)


def test_artifacts_of_a_trace_say_why_a_program_failed():
    (run,) = read(SAMPLES / "openevolve-1")
    errors = {child.evaluation.error for child in run.children}
    assert "ValueError: expected 16 finite points" in errors
    assert "the source does not say why" not in errors
