"""How foreign code is called, in a jailed process: a program, and a task's evaluator.

| the evaluator defines | convention of |
|---|---|
| `score(value)`, in a process that never sees the program (isolation `separate`) | this project |
| `evaluate(program_path)`, which returns metrics, or a number, or either with notes | OpenEvolve |
| `evaluate(program_path, results_path)`, which writes them as JSON | CodeEvolve |
| `main(program_path, results_dir)`, which writes metrics.json and correct.json | ShinkaEvolve |

The last three may be `async`; folders of examples run unchanged. There evaluator and program share
a process inside the sandbox, so a program can forge its metrics: the log has `isolation: shared`.
"""

from __future__ import annotations

import base64
import importlib.util
import inspect
import json
import math
import os
import socket
import sys
import traceback
from collections.abc import Callable, Collection, Mapping
from contextlib import redirect_stderr, redirect_stdout, suppress
from dataclasses import dataclass, field
from numbers import Real
from types import ModuleType
from typing import TypeGuard

import msgspec
import numpy as np

from evo.logs.caps import CAPS
from evo.logs.fitting import fit_value
from evo.logs.languages import LANGUAGES
from evo.logs.records import Evaluation, Limits, TaskRecord
from evo.logs.several import unpack
from evo.plugins import MistakenType
from evo.sandbox import EVALUATOR_FAILED, values
from evo.sandbox.compiled import ProgramFailed
from evo.sandbox.messages import ClosedError, ScorerRequest, receive, send
from evo.sandbox.outcome import Printed, describe, failed, printable
from evo.sandbox.purity import KEY, for_subprocesses, seed_everything
from evo.sandbox.scores import WrongScore, as_float, notes_text, read_score
from evo.tasks.folder import writes_results

_SCORE = msgspec.msgpack.Decoder(ScorerRequest)
_MOST_KEPT = 200_000  # bytes of a construction that is kept
_MOST_PARTS = CAPS["EVO_MAX_VALUE"][0]

NO_COMBINED_SCORE = (
    "warning: no combined_score; the fitness is the mean of the metrics' finite numbers"
)

# Programs


def execute(
    task: TaskRecord, program: str, limits: Limits, folder: str, key: bytes
) -> bytes | Evaluation:
    """Run a program to its end, whatever it does: its value as bytes, or how it ended.

    The task's isolation decides whether its evaluator runs here as well; `key` is that of the
    randomness of interpreters which it or the program starts.
    """
    suffix = ".txt" if task.evolves == "text" else ".py"
    if task.language and not task.wrapped:
        suffix = LANGUAGES[task.language].suffix
    path = os.path.join(folder, f"program{suffix}")
    files = {path: program}
    if task.program_files:  # in the working folder, where the first of them is run
        files = {os.path.join(os.getcwd(), n): text for n, text in unpack(program).items()}
        path = next(iter(files))
    try:
        _key_subprocesses(key, folder)
        if task.isolation == "shared":
            _write_files(task)
        _write(files)
        if task.isolation == "shared":
            return _run_evaluator(task, path)
        if task.program_files:
            sys.path.insert(0, os.getcwd())
        return _call(task, files[path], path, limits)
    except ProgramFailed as error:
        return msgspec.structs.replace(failed(str(error)), notes=error.notes)
    except BaseException as error:  # the wall: nothing a program raises passes it
        text = describe(error)
        if task.isolation == "shared" and not _has_part_in(error, files):
            text = f"{EVALUATOR_FAILED}: {text}"
        return failed(text)


def _write(files: Mapping[str, str]) -> None:
    """Writes the files of a program, by path."""
    for path, text in files.items():
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "w", encoding="utf-8", errors="surrogatepass") as file:
            file.write(text)


def _call(task: TaskRecord, program: str, path: str, limits: Limits) -> bytes | Evaluation:
    module = ModuleType("program")
    module.__file__ = path
    sys.modules["program"] = module
    exec(compile(program, path, "exec"), module.__dict__)
    functions = (module.__dict__.get(name) for name in task.entry)
    function = next(filter(callable, functions), None)
    if function is None:
        expected = " or ".join(f"{name}()" for name in task.entry)
        return failed(f"the program defines no function {expected}")
    return as_value(function(), limits)


def as_value(value: object, limits: Limits) -> bytes | Evaluation:
    """A returned value as bytes, if it is plain data of allowed size."""
    try:
        return values.encode(value, max_bytes=limits.value_mb * 2**20)
    except values.UnsendableError as error:
        return failed(str(error), "invalid")


def _key_subprocesses(key: bytes | None, folder: str) -> None:
    """Let the interpreters that a program or an evaluator starts draw keyed random numbers too."""
    place = os.path.join(folder, "keyed")
    os.mkdir(place)
    with open(os.path.join(place, "sitecustomize.py"), "w", encoding="utf-8") as file:
        file.write(for_subprocesses(key))
    os.environ["PYTHONPATH"] = place


def _has_part_in(error: BaseException, paths: Collection[str]) -> bool:
    """Whether a program, in files at these paths, had a part in what passed its evaluator."""
    if isinstance(error, MemoryError | RecursionError):
        return True
    if isinstance(error, SyntaxError) and error.filename in paths:
        return True
    owner = getattr(error, "obj", None)  # of an AttributeError: what lacks the attribute
    if isinstance(owner, ModuleType) and getattr(owner, "__file__", None) in paths:
        return True
    frames = traceback.walk_tb(error.__traceback__)
    return any(frame.f_code.co_filename in paths for frame, _ in frames)


# Evaluators


def size_of(task: TaskRecord) -> int:
    """Room that a task's files need in a folder, bytes."""
    contents = (*task.files.values(), *task.encoded.values())
    return sum(len(text.encode()) + 4096 for text in contents)


def _write_files(task: TaskRecord) -> None:
    """Write a task's files, read-only, into the working folder."""
    folder = os.getcwd()
    contents = {path: text.encode() for path, text in task.files.items()}
    if task.program_files:
        del contents[task.program_file]
    contents |= {path: base64.b64decode(text) for path, text in task.encoded.items()}
    for name, content in contents.items():
        target = os.path.normpath(os.path.join(folder, name))
        if not target.startswith(os.path.join(folder, "")):  # a forged log's
            raise ValueError(f"expected files below the task's folder, got {name!r}")
        os.makedirs(os.path.dirname(target), exist_ok=True)
        with open(target, "wb") as file:
            file.write(content)
        os.chmod(target, 0o444)


def _load_evaluator(task: TaskRecord) -> ModuleType:
    """Import a task's evaluator from the working folder, which holds its files.

    The task's folder and the evaluator's own can be imported from, as when run by hand.
    """
    folder = os.getcwd()
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


def serve_scores(task: TaskRecord, channel: socket.socket, folder: str) -> None:
    """Load a task's evaluator into the working folder, then score values until the server goes.

    The folder is that of the process; what keys interpreters that the evaluator starts lies there.
    """
    score: Callable[[object], object] | None = None
    notes = None
    try:
        name = task.judging or "score"
        _key_subprocesses(None, folder)
        _write_files(task)
        score = getattr(_load_evaluator(task), name, None)
        problem = f"defines no function {name}(value)"
        notes = _notes_of(task)
    except BaseException as error:  # the wall: an evaluator must not take the run down
        problem = f"could not be imported: {describe(error, 'it')}"
    while True:
        try:
            request = _SCORE.decode(receive(channel))
        except ClosedError:
            return
        if callable(score):
            send(channel, _score(score, request, notes))
        else:
            send(channel, failed(f"{EVALUATOR_FAILED}: {task.evaluator_file!r} {problem}"))


def _notes_of(task: TaskRecord) -> Callable[[object], object] | None:
    """Returns the function that puts a value into words; on a data set `score` calls it itself."""
    if not task.notes_file or task.instances_file:
        return None
    name = os.path.splitext(os.path.basename(task.notes_file))[0]
    with suppress(Exception):  # a fault in it costs the notes and nothing else
        found: Callable[[object], object] = importlib.import_module(name).notes
        return found
    return None


def _score(
    score: Callable[[object], object],
    request: ScorerRequest,
    notes: Callable[[object], object] | None = None,
) -> Evaluation:
    try:
        value = values.decode(request.value)
    except ValueError as error:
        return failed(str(error))
    keep = request.keep_value and len(request.value) <= _MOST_KEPT
    kept = fit_value(values.to_lists(value), _MOST_PARTS) if keep else None
    seed_everything(request.key)
    os.environ[KEY] = request.key.hex()
    printed = Printed()
    try:
        with redirect_stdout(printed), redirect_stderr(printed):
            scored = _numbers_of(score, value)
    except BaseException as error:  # the wall: what it raises or returned is its own code
        scored = failed(f"{EVALUATOR_FAILED}: {describe(error, 'it')}")
    if scored.status != "ok":
        scored = msgspec.structs.replace(scored, error=f"{scored.error}{printed.shown()}")
    if scored.status == "error":
        return scored
    if notes is not None and not scored.notes:
        with suppress(Exception):
            scored = msgspec.structs.replace(scored, notes=notes_text(notes(value)))
    return msgspec.structs.replace(scored, value=kept)


def _numbers_of(score: Callable[[object], object], value: object) -> Evaluation:
    """Returns what `score` reports about a value."""
    try:
        fitness, metrics, notes = read_score(score(value))
    except ValueError as error:
        return failed(str(error), "invalid")
    except WrongScore as error:
        return failed(f"{EVALUATOR_FAILED}: {error}")
    return Evaluation(status="ok", fitness=fitness, metrics=metrics, notes=notes)


def _notes_in(result: object, metrics: Mapping[str, object]) -> str:
    """The words beside an evaluator's metrics, whatever its convention calls them."""
    artifacts = getattr(result, "artifacts", None) or metrics.get("artifacts")
    others = (metrics.get(name) for name in ("text_feedback", "notes"))
    return next(filter(None, map(notes_text, (artifacts, *others))), "")


def _run_evaluator(task: TaskRecord, program_path: str) -> Evaluation:
    """Import the evaluator, let it evaluate a program's file, and read its metrics."""
    module = _load_evaluator(task)
    results = os.path.join(os.getcwd(), "results")
    evaluate = getattr(module, task.judging or "evaluate", None)
    main = getattr(module, "main", None)
    if callable(evaluate):
        if not writes_results(list(inspect.signature(evaluate).parameters)):
            return _read_metrics(_finished(evaluate(program_path)), task.fitness_key)
        returned = _finished(evaluate(program_path, results))
        if not os.path.exists(results):
            return _read_metrics(returned, task.fitness_key)
        metrics = _read_json(results)
        if "benchmark_ratio" in metrics:  # the fitness of CodeEvolve's own problems
            metrics.setdefault("combined_score", metrics["benchmark_ratio"])
        return _read_metrics(metrics, task.fitness_key)
    if callable(main) and writes_results(list(inspect.signature(main).parameters)):
        os.mkdir(results)
        _finished(main(program_path, results))
        correct = _read_json(os.path.join(results, "correct.json"))
        place = os.path.join(results, "metrics.json")
        if not correct.get("correct"):
            words = str(
                correct.get("error") or "the evaluator reports that the program is not correct"
            )
            notes = (
                notes_text(_read_json(place).get("text_feedback")) if os.path.exists(place) else ""
            )
            return msgspec.structs.replace(failed(words, "invalid"), notes=notes)
        metrics = _read_json(place)
        public = metrics.get("public")
        public = public if isinstance(public, dict) else {}
        return _read_metrics(metrics | public, task.fitness_key)
    return failed(
        f"{EVALUATOR_FAILED}: {task.evaluator_file!r} defines no function evaluate(program_path), "
        "evaluate(program_path, results_path) or main(program_path, results_dir)"
    )


def _finished(result: object) -> object:
    """What a function returned, awaited if need be."""
    if not inspect.iscoroutine(result):
        return result
    import asyncio

    return asyncio.run(result)


def _read_json(path: str) -> dict[str, object]:
    with open(path, encoding="utf-8") as file:
        content = json.load(file)
    if not isinstance(content, dict):
        raise MistakenType(f"{os.path.basename(path)}: expected an object, got {content!r:.80}")
    return content


def _read_metrics(result: object, key: str) -> Evaluation:
    """What an evaluator returned, as metrics with their `combined_score`, or as a failure.

    An `error` text and a true `timeout` are the convention's signs of failure, whatever score
    comes with them. Without `combined_score` it is the mean of the finite numbers. A bare number
    is the score itself, and a pair is a score and notes, as evaluators of values return them.
    With a `key` the metric of that name is the fitness.
    """
    if isinstance(result, tuple) and len(result) == 2:
        judged = _read_metrics(result[0], key)
        return msgspec.structs.replace(judged, notes=judged.notes or notes_text(result[1]))
    if isinstance(result, Real | np.bool):
        return _numbers_of(lambda _: result, None)
    metrics = getattr(result, "metrics", result)
    if not isinstance(metrics, Mapping):
        words = (
            "must return a dict of metrics, a number, or either with notes, got an object of type "
            f"{type(result).__name__!r}"
        )
        return failed(f"{EVALUATOR_FAILED}: evaluate(program_path) {words}")
    judged = _judged(result, metrics, key)
    return msgspec.structs.replace(judged, notes=_notes_in(result, metrics))


def _judged(result: object, metrics: Mapping[str, object], key: str) -> Evaluation:
    reason = ""
    if (error := metrics.get("error")) and not _is_number(error):
        artifacts = getattr(result, "artifacts", None)
        texts = artifacts if isinstance(artifacts, Mapping) else {}
        details = [f"{name}: {texts[name]}" for name in ("stderr", "traceback") if texts.get(name)]
        reason = "\n".join([str(error), *details])
    stopped = metrics.get("timeout")
    if type(stopped).__name__ in ("bool", "bool_") and stopped:
        return failed(reason or "the evaluator timed out", "timeout")
    if reason:
        return failed(reason)
    numbers = {printable(str(n)): as_float(v) for n, v in metrics.items() if _is_number(v)}
    if key:
        if key in numbers:
            return Evaluation(status="ok", fitness=numbers[key], metrics=numbers)
        expected = f"expected a number in the metric {key!r}, which is the fitness"
        return failed(f"{expected}; the metrics are {list(metrics)!r}", "invalid")
    if "combined_score" in numbers:
        return Evaluation(status="ok", fitness=numbers.pop("combined_score"), metrics=numbers)
    if "combined_score" in metrics:
        words = f"combined_score must be a number, got {metrics['combined_score']!r}"
        return failed(words, "invalid")
    finite = [value for value in numbers.values() if math.isfinite(value)]
    if not finite:
        return failed(f"the metrics hold no finite number: {list(metrics)!r}", "invalid")
    mean = math.fsum(finite) / len(finite)
    return Evaluation(status="ok", fitness=mean, metrics=numbers, error=NO_COMBINED_SCORE)


def _is_number(value: object) -> TypeGuard[Real]:
    return isinstance(value, Real) and type(value).__name__ not in ("bool", "bool_")


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
