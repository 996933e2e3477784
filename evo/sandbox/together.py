"""Evaluators that import the program themselves, by three conventions.

- OpenEvolve: `evaluate(program_path)` returns metrics;
- CodeEvolve: `evaluate(program_path, results_path)` writes them as JSON;
- ShinkaEvolve: `main(program_path, results_dir)` writes metrics.json and correct.json.

Each may be `async`; folders of examples run unchanged. Evaluator and program share a process inside
the sandbox, so a program can forge its metrics; the log says `isolation: shared`.
"""

from __future__ import annotations

import base64
import importlib.util
import inspect
import json
import math
import os
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from numbers import Real
from types import ModuleType
from typing import Any

from evo.folder import writes_results
from evo.records import TaskRecord
from evo.sandbox import EVALUATOR_FAILED
from evo.sandbox.messages import Returned, printable


def write_files(task: TaskRecord, folder: str) -> None:
    """Write a task's files, read-only, below a folder."""
    contents = {path: text.encode() for path, text in task.files.items()}
    contents |= {path: base64.b64decode(text) for path, text in task.encoded.items()}
    for path, content in contents.items():
        target = os.path.normpath(os.path.join(folder, path))
        if not target.startswith(os.path.join(folder, "")):  # a forged log's
            raise ValueError(f"expected files below the task's folder, got {path!r}")
        os.makedirs(os.path.dirname(target), exist_ok=True)
        with open(target, "wb") as file:
            file.write(content)
        os.chmod(target, 0o444)


def load_evaluator(task: TaskRecord, folder: str) -> ModuleType:
    """Write a task's files into a folder and import its evaluator from there.

    The task's folder and the evaluator's own can be imported from, as when run by hand.
    """
    write_files(task, folder)
    path = os.path.join(folder, task.evaluator_file)
    sys.path[:0] = list(dict.fromkeys((os.path.dirname(path), folder)))
    _stand_in_for_openevolve()
    spec = importlib.util.spec_from_file_location("evaluator", path)
    if spec is None or spec.loader is None:
        raise ImportError(f"cannot import the evaluator {task.evaluator_file!r}")
    module = importlib.util.module_from_spec(spec)
    sys.modules["evaluator"] = module
    spec.loader.exec_module(module)
    return module


def run_evaluator(task: TaskRecord, program_path: str) -> Returned:
    """Import the evaluator, let it evaluate a program's file, and read its metrics."""
    module = load_evaluator(task, os.getcwd())
    results = os.path.join(os.getcwd(), "results")
    evaluate, main = getattr(module, "evaluate", None), getattr(module, "main", None)
    if callable(evaluate):
        if not writes_results(list(inspect.signature(evaluate).parameters)):
            return read_metrics(_finished(evaluate(program_path)))
        metrics = _finished(evaluate(program_path, results))
        if os.path.exists(results):
            metrics = _read_json(results)
            if "benchmark_ratio" in metrics:  # the fitness of CodeEvolve's own problems
                metrics.setdefault("combined_score", metrics["benchmark_ratio"])
        return read_metrics(metrics)
    if callable(main) and writes_results(list(inspect.signature(main).parameters)):
        os.mkdir(results)
        _finished(main(program_path, results))
        correct = _read_json(os.path.join(results, "correct.json"))
        if not correct.get("correct"):
            text = str(correct.get("error") or "the evaluator says that it is not correct")
            return Returned(kind="invalid", text=printable(text))
        metrics = _read_json(os.path.join(results, "metrics.json"))
        public = metrics.get("public")
        return read_metrics(metrics | (public if isinstance(public, dict) else {}))
    text = (
        f"{EVALUATOR_FAILED}: {task.evaluator_file!r} defines no function evaluate(program_path), "
        "evaluate(program_path, results_path) or main(program_path, results_dir)"
    )
    return Returned(kind="error", text=text)


def _finished(result: Any) -> Any:
    """What a function returned, awaited if need be."""
    if not inspect.isawaitable(result):
        return result
    import asyncio

    async def finish() -> Any:
        return await result

    return asyncio.run(finish())


def _read_json(path: str) -> dict[str, Any]:
    with open(path, encoding="utf-8") as file:
        content = json.load(file)
    if not isinstance(content, dict):
        raise TypeError(f"{os.path.basename(path)}: expected an object, got {content!r:.80}")
    return content


def read_metrics(result: Any) -> Returned:
    """What an evaluator returned, as metrics with their `combined_score`, or as a failure.

    An `error` text and a true `timeout` are the convention's signs of failure, whatever score
    comes with them. Without `combined_score` it is the mean of the finite numbers.
    """
    metrics = getattr(result, "metrics", result)
    if not isinstance(metrics, Mapping):
        kind = type(result).__name__
        text = (
            f"{EVALUATOR_FAILED}: evaluate(program_path) must return a dict of metrics, got an "
            f"object of type {kind!r}"
        )
        return Returned(kind="error", text=printable(text))
    if _is_true(metrics.get("timeout")):
        return Returned(kind="timeout", text=_reason(result, metrics) or "the evaluator timed out")
    if reason := _reason(result, metrics):
        return Returned(kind="error", text=reason)
    numbers = {
        printable(str(name)): as_float(value)
        for name, value in metrics.items()
        if _is_number(value)
    }
    if "combined_score" in metrics:
        if "combined_score" not in numbers:
            text = f"combined_score must be a number, got {metrics['combined_score']!r}"
            return Returned(kind="invalid", text=printable(text))
        return Returned(kind="metrics", metrics=numbers)
    finite = [value for value in numbers.values() if math.isfinite(value)]
    if not finite:
        text = f"the metrics hold no finite number: {list(metrics)!r}"
        return Returned(kind="invalid", text=printable(text))
    numbers["combined_score"] = math.fsum(finite) / len(finite)
    text = "warning: no combined_score; the fitness is the mean of the metrics' finite numbers"
    return Returned(kind="metrics", metrics=numbers, text=text)


def _reason(result: Any, metrics: Mapping[Any, Any]) -> str:
    """The evaluator's own word for a failure, or an empty text."""
    error = metrics.get("error")
    if not error or _is_number(error):
        return ""
    artifacts = getattr(result, "artifacts", None)
    details = [str(error)]
    if isinstance(artifacts, Mapping):
        details += [
            f"{name}: {artifacts[name]}" for name in ("stderr", "traceback") if artifacts.get(name)
        ]
    return printable("\n".join(details))


def _is_number(value: Any) -> bool:
    return (
        isinstance(value, Real) and not isinstance(value, bool) and type(value).__name__ != "bool"
    )


def as_float(value: Any) -> float:
    """The number as a float; beyond the largest float it is infinite."""
    try:
        return float(value)
    except OverflowError:
        return math.inf if value > 0 else -math.inf


def _is_true(value: Any) -> bool:
    return type(value).__name__ in ("bool", "bool_") and bool(value)


def _stand_in_for_openevolve() -> None:
    """Provide the one class that example evaluators import where OpenEvolve is not installed."""
    if "openevolve" in sys.modules or importlib.util.find_spec("openevolve") is not None:
        return
    package, module = ModuleType("openevolve"), ModuleType("openevolve.evaluation_result")
    package.__path__ = []
    vars(package)["evaluation_result"] = module
    vars(module)["EvaluationResult"] = EvaluationResult
    sys.modules |= {"openevolve": package, "openevolve.evaluation_result": module}


@dataclass
class EvaluationResult:
    """Metrics and artifacts of one evaluation, as OpenEvolve's class of this name holds them."""

    metrics: dict[str, float]
    artifacts: dict[str, str | bytes] = field(default_factory=dict)

    @classmethod
    def from_dict(cls, metrics: dict[str, float]) -> EvaluationResult:
        """Wrap plain metrics."""
        return cls(metrics=metrics)

    def to_dict(self) -> dict[str, float]:
        """The metrics alone."""
        return self.metrics
