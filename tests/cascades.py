"""Evaluators in OpenEvolve's cascade convention, and how OpenEvolve 0.4.0 evaluated programs.

`metrics` were printed by `tests/benchmarks/openevolve_cascades.py`, which asks it again.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

NEVER = """
def evaluate(program_path):
    raise RuntimeError("never called")
"""

HEAD = """
def run(program_path):
    names = {}
    with open(program_path) as file:
        exec(file.read(), names)
    return names["solve"]()
"""

COMBINED = (
    HEAD
    + """
def evaluate_stage1(program_path):
    x = run(program_path)
    return {"runs_successfully": 1.0, "value": x, "combined_score": x}

def evaluate_stage2(program_path):
    return evaluate(program_path)

def evaluate(program_path):
    x = run(program_path)
    return {"value": x, "distance": 1 - x, "combined_score": x * x}
"""
)

MEANS = (
    HEAD
    + NEVER
    + """
def evaluate_stage1(program_path):
    return {"first": run(program_path)}

def evaluate_stage2(program_path):
    return {"second": run(program_path) ** 2, "first": run(program_path) + 0.1}

def evaluate_stage3(program_path):
    return {"third": run(program_path) ** 3}
"""
)

RESULTS = (
    """
from openevolve.evaluation_result import EvaluationResult
"""
    + HEAD
    + NEVER
    + """
def evaluate_stage1(program_path):
    x = run(program_path)
    return EvaluationResult(metrics={"combined_score": x, "one": 1.0}, artifacts={"a": "first"})

def evaluate_stage2(program_path):
    x = run(program_path)
    return EvaluationResult(metrics={"two": 2 * x}, artifacts={"b": "second"})

def evaluate_stage3(program_path):
    x = run(program_path)
    return EvaluationResult(metrics={"combined_score": x - 0.05, "three": x}, artifacts={})
"""
)

ONE = (
    HEAD
    + NEVER
    + """
def evaluate_stage1(program_path):
    return {"combined_score": run(program_path)}
"""
)


@dataclass(frozen=True)
class Cascade:
    """An evaluator, its configuration, and the metrics of programs that return a number."""

    evaluator: str
    config: str = ""
    metrics: dict[float, dict[str, float]] = field(default_factory=dict)

    def write(self, folder: Path) -> Path:
        """Writes a folder as OpenEvolve's users have it."""
        folder.mkdir(parents=True)
        (folder / "initial_program.py").write_text(program(0.95))
        (folder / "evaluator.py").write_text(self.evaluator)
        if self.config:
            (folder / "config.yaml").write_text(self.config)
        return folder


def program(number: float) -> str:
    """Returns a program."""
    return f"# EVOLVE-BLOCK-START\ndef solve():\n    return {number}\n# EVOLVE-BLOCK-END\n"


NUMBERS = (0.3, 0.5, 0.6, 0.8, 0.95)
CASCADES = {
    "combined": Cascade(
        COMBINED,
        metrics={
            0.3: {"runs_successfully": 1.0, "value": 0.3, "combined_score": 0.3},
            0.5: {"runs_successfully": 1.0, "value": 0.5, "combined_score": 0.25, "distance": 0.5},
            0.6: {"runs_successfully": 1.0, "value": 0.6, "combined_score": 0.36, "distance": 0.4},
            0.8: {
                "runs_successfully": 1.0,
                "value": 0.8,
                "combined_score": 0.6400000000000001,
                "distance": 0.19999999999999996,
            },
            0.95: {
                "runs_successfully": 1.0,
                "value": 0.95,
                "combined_score": 0.9025,
                "distance": 0.050000000000000044,
            },
        },
    ),
    "means": Cascade(
        MEANS,
        metrics={
            0.3: {"first": 0.3},
            0.5: {"first": 0.6, "second": 0.25},
            0.6: {"first": 0.7, "second": 0.36},
            0.8: {"first": 0.9, "second": 0.6400000000000001, "third": 0.5120000000000001},
            0.95: {"first": 1.05, "second": 0.9025, "third": 0.8573749999999999},
        },
    ),
    "results": Cascade(
        RESULTS,
        metrics={
            0.3: {"combined_score": 0.3, "one": 1.0},
            0.5: {"combined_score": 0.5, "one": 1.0, "two": 1.0},
            0.6: {"combined_score": 0.6, "one": 1.0, "two": 1.2},
            0.8: {"combined_score": 0.75, "one": 1.0, "two": 1.6, "three": 0.8},
            0.95: {"combined_score": 0.8999999999999999, "one": 1.0, "two": 1.9, "three": 0.95},
        },
    ),
    "one stage": Cascade(
        ONE,
        metrics={
            0.3: {"combined_score": 0.3},
            0.5: {"combined_score": 0.5},
            0.6: {"combined_score": 0.6},
            0.8: {"combined_score": 0.8},
            0.95: {"combined_score": 0.95},
        },
    ),
    "thresholds": Cascade(
        COMBINED,
        "evaluator:\n  cascade_thresholds: [0.2]\n  timeout: 20\n",
        metrics={
            0.3: {"runs_successfully": 1.0, "value": 0.3, "combined_score": 0.09, "distance": 0.7},
            0.5: {"runs_successfully": 1.0, "value": 0.5, "combined_score": 0.25, "distance": 0.5},
            0.6: {"runs_successfully": 1.0, "value": 0.6, "combined_score": 0.36, "distance": 0.4},
            0.8: {
                "runs_successfully": 1.0,
                "value": 0.8,
                "combined_score": 0.6400000000000001,
                "distance": 0.19999999999999996,
            },
            0.95: {
                "runs_successfully": 1.0,
                "value": 0.95,
                "combined_score": 0.9025,
                "distance": 0.050000000000000044,
            },
        },
    ),
    "no third threshold": Cascade(
        MEANS,
        "evaluator:\n  cascade_thresholds: [0.2]\n",
        metrics={
            0.3: {"first": 0.4, "second": 0.09},
            0.5: {"first": 0.6, "second": 0.25},
            0.6: {"first": 0.7, "second": 0.36},
            0.8: {"first": 0.9, "second": 0.6400000000000001},
            0.95: {"first": 1.05, "second": 0.9025},
        },
    ),
    "off": Cascade(
        COMBINED,
        "max_iterations: 7\nevaluator:\n  cascade_evaluation: false\n",
        metrics={
            0.3: {"value": 0.3, "distance": 0.7, "combined_score": 0.09},
            0.5: {"value": 0.5, "distance": 0.5, "combined_score": 0.25},
            0.6: {"value": 0.6, "distance": 0.4, "combined_score": 0.36},
            0.8: {
                "value": 0.8,
                "distance": 0.19999999999999996,
                "combined_score": 0.6400000000000001,
            },
            0.95: {"value": 0.95, "distance": 0.050000000000000044, "combined_score": 0.9025},
        },
    ),
}
