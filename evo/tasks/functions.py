"""Tasks from what there is in a notebook: functions, texts, rows and files.

What is given becomes the files of a folder, captured from functions where need be, and the folder's
task.toml, so that `save` writes a folder that is the very same task.
"""

from __future__ import annotations

import ast
import inspect
import json
import math
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal, cast

import msgspec

from evo.logs.inputs import limits_of
from evo.logs.keys import holds_key
from evo.logs.records import Bar, Evolves, Limits, StageRecord, TaskRecord
from evo.parsing import parsed
from evo.plugins import MistakenType
from evo.tasks.folder import FILE_CAP, TaskConfig, TaskError
from evo.tasks.rows import lines_of
from evo.tasks.sources import Judge, Program, Where, harness_of, judge_of, program_in, program_of
from evo.tasks.stages import stage_records
from evo.tasks.task import Task, finished
from evo.tasks.their_names import answers_others_names
from evo.warning import warn

if TYPE_CHECKING:
    from evo.tasks.rows import Rows

_INSTANCES, _EVALUATOR, _HARNESS = "instances.jsonl", "evaluator.py", "harness.py"


@answers_others_names
def task(
    name: str,
    *,
    initial_program: object,
    evaluate: object,
    statement: str | None = None,
    instances: Rows | None = None,
    harness: object = None,
    entry: str | Sequence[str] | None = None,
    evolves: Evolves | None = None,
    prompt: str | None = None,
    asks: object = None,
    held_out: Rows | None = None,
    missing: float | None = None,
    thresholds: Sequence[Bar] = (),
    limits: Limits | Mapping[str, Any] | Sequence[Limits | Mapping[str, Any]] | None = None,
    private: Sequence[str] = (),
    where: Where = "sandbox",
    language: str = "",
    scale: Literal["unit"] | None = None,
) -> Task:
    """Makes a task out of functions, texts and rows; every verb takes it, as it does a folder.

    A function is kept by its source with all that it uses, so that a log of the task can be played
    again and evaluated anywhere. The program runs in the sandbox, always.

    Args:
        name: A plain name, with which the names of logs begin.
        initial_program: A function or class, whose source evolves; a text, Python if it defines a
            function or class and else a text that evolves; or a Path to a file or folder. A dict
            of these by file name, where several files evolve together; the first is the one that
            runs. Where `evaluate` is given what evolves, it is given a dict of their texts.
        evaluate: What scores, higher being better: `evaluate(value)`, or `evaluate(value, row)`
            with instances, where `value` is what the program returned; of a text that evolves
            `evaluate(text)`, or `evaluate(reply, row)` with instances. A function whose first
            parameter is `program_path` is given a file, as OpenEvolve's evaluators are. It returns
            a number, a dict with `fitness`, or (number, notes); ValueError says that a value is
            not legal. Also the source of such a function, or a Path to it. A list of functions are
            stages, from cheap to thorough: a program that one refuses costs no later one.
        statement: What the program is for, for the model (default: the docstrings).
        instances: Rows, as dicts, a DataFrame or a Path to a .jsonl or .csv file. The program is
            called with the `input` of each; under a text that evolves a model is asked the `prompt`
            of each. The fitness is the mean over the rows, whose scores may be any numbers unless
            `scale` says otherwise.
        harness: `harness(function, input)`, or `harness(function)` without instances: it runs
            beside the program, calls it as often as it likes and returns the value. A time that it
            measures is one that the program could tamper with.
        entry: The function of the program to call, where there are several.
        evolves: "python" or "text", where that cannot be seen.
        prompt: The column that is asked, or given to the program, if it has another name.
        asks: The model that is asked instances under a text (default: the run's own).
        held_out: Further rows that are only for checking; no search sees them.
        missing: What a row without a score counts; without it a program that fails on one of them
            has no fitness. With `scale="unit"` such a row counts 0.
        thresholds: What admits a program to the next stage, for each but the last: a number that
            the stage's score must reach, or "parent", to be better there than the program that was
            rewritten.
        limits: Limits of an evaluation, such as `{"seconds": 10}`, or a list of them, one for each
            stage. With `{"seconds": "auto"}` each run fixes the time limit itself, see
            `evo.Limits`.
        private: Metrics that no prompt, policy or search may see.
        where: Where `evaluate` runs: in the sandbox, or here, in this process, with whatever it
            uses. Here its first parameter says what it is given: `text` or `program`, that which
            evolves; `reply` or `value`, what came of it. It may be async, and a parameter `seed`
            is given one. A limit of time is soft here: what runs on cannot be ended.
        language: Of a text that is a program in another language: c, cpp, rust, go, julia,
            javascript, sql, r, lua or bash. It is compiled and run in the sandbox: it reads its
            input, text or JSON, on standard input, and what it prints, JSON or text, is the value.
        scale: "unit" if the fitness, and with instances the score of each row, lies between 0 and
            1, so that policies and selectors may take it as it is, and texts may race on growing
            batches of the rows (`batches=`). True is 1, and False is 0.

    Returns:
        The task: `.evaluate(program)`, `.check()` and `.save(folder)` are its own verbs.

    Raises:
        ValueError: Something does not fit, or a function uses what has no text, which is named.

    Example:
        >>> def pair():
        ...     return [1.0, 2.0]
        >>> def spread(value):
        ...     "How far apart two numbers between 0 and 9 are."
        ...     return abs(value[0] - value[1]) if max(value) <= 9 else 0.0
        >>> evo.task("spread", initial_program=pair, evaluate=spread).evaluate().fitness
        1.0
    """
    _check_words(name, statement, entry)
    if where not in ("sandbox", "here"):
        raise ValueError(f"where: expected 'sandbox' or 'here', got {where!r}")
    if scale not in (None, "unit"):
        raise ValueError(f"scale: expected 'unit' or None, got {scale!r}")
    judge = judge_of(evaluate, where, with_rows=instances is not None)
    if language:
        _check_language(entry, evolves)
        program = program_in(language, initial_program, judge)
    else:
        program = program_of(initial_program, entry, evolves, judge)
    with_rows = instances is not None
    beside = harness_of(harness, program, with_rows=with_rows)
    _warn_of_arguments(name, program, judge, called=with_rows or bool(beside))
    _check_columns(program, prompt, asks, held_out, missing, with_rows=with_rows, scale=scale)
    said = _statement_of(name, statement, program, judge)
    staged = isinstance(limits, Sequence)
    limited = [limits_of(each, Limits()) for each in limits] if isinstance(limits, Sequence) else []
    stages = _stages(name, judge, thresholds, limited)
    files = {program.file: program.text, _EVALUATOR: judge.text}
    files |= {_HARNESS: beside} if beside else {}
    if instances is not None:
        column = prompt or ("prompt" if program.evolves == "text" else "input")
        column = column if prompt or not judge.given_text else ""
        asked = program.evolves == "text" and not judge.given_text
        files[_INSTANCES] = lines_of(instances, held_out, column, asked=asked)
    config = TaskConfig(
        name=name,
        statement=said.strip(),
        entry=program.entry,
        evolves=program.evolves,
        isolation=judge.isolation,
        language=language,
        scale=scale,
        program=program.files or program.file,
        evaluator=_EVALUATOR,
        instances=_INSTANCES if with_rows else None,
        harness=_HARNESS if beside else None,
        private=_names(private),
        scores="any" if with_rows and scale is None else "unit",
        missing=None if missing is None or scale else float(missing),
        prompt=prompt or "",
        asks=asks if isinstance(asks, str) else "",
        thresholds=tuple(each.threshold for each in stages if each.threshold is not None),
        stage_limits=tuple(limited),
        limits=Limits() if staged or limits is None else limits_of(limits, Limits()),
    )
    files["task.toml"] = as_toml(config)
    _check_files(name, files)
    record = TaskRecord(
        name=name, hash="", files=dict(sorted(files.items())), program_file=program.file,
        evaluator_file=_EVALUATOR, statement=said.strip(), evolves=program.evolves,
        isolation=judge.isolation, entry=program.entry, private=config.private,
        instances_file=config.instances or "", harness_file=config.harness or "",
        scores=config.scores, missing=config.missing, column=config.prompt,
        given_text=judge.given_text, stages=stages, program_files=program.files,
        language=language,
    )  # fmt: skip
    return finished(record, config.limits, name, asks=asks, functions=judge.functions)


def _check_words(name: object, statement: object, entry: object) -> None:
    """Raises MistakenType for what should be a text and is none."""
    for what, value, optional in (("name", name, False), ("statement", statement, True)):
        if not (isinstance(value, str) or (optional and value is None)):
            raise MistakenType(f"{what}: expected a text, got {value!r:.80}")
    if entry is None or isinstance(entry, str) or callable(entry):
        return  # a function is answered with its name where the program is known
    if not isinstance(entry, Iterable) or not all(isinstance(each, str) for each in entry):
        raise MistakenType(
            f"entry: expected the name of a function of the initial program, got {entry!r:.80}"
        )


def _check_language(entry: object, evolves: object) -> None:
    """Raises ValueError for what does not go with a program in another language."""
    if entry is not None or evolves is not None:
        raise ValueError(
            "entry, evolves: a program in another language is run as a whole, without these"
        )


def _statement_of(name: str, statement: str | None, program: Program, judge: Judge) -> str:
    """Returns what a model is told of the task; warns where nothing says it."""
    if said := statement or _docstrings(program, judge):
        return said
    warn(
        f"{name}: there is no statement and no docstring, so a model is told nothing of what "
        "the program is for; give statement=",
    )
    what = "program" if program.evolves == "python" else "text"
    return f"Improve the {what} so that its evaluator gives it a higher score."


def _warn_of_arguments(name: str, program: Program, judge: Judge, *, called: bool) -> None:
    """Warns where a program's function needs arguments, unless rows or a harness call it."""
    if called or program.evolves != "python" or program.files or program.language:
        return
    if judge.isolation == "shared" or judge.given_text or not program.entry:
        return
    nodes = (node for node in parsed(program.text).body if isinstance(node, ast.FunctionDef))
    found = next((node for node in nodes if node.name == program.entry[0]), None)
    positional = [*found.args.posonlyargs, *found.args.args] if found else []
    needed = positional[: len(positional) - len(found.args.defaults)] if found else []
    if needed:
        warn(
            f"{name}: {program.entry[0]}() is called without arguments and needs "
            f"{', '.join(each.arg for each in needed)}; if evaluate is to be given the path of a "
            f"program, as OpenEvolve's evaluators are, call its first parameter program_path, not "
            f"{judge.given}; else let instances= or harness= say what the function is called with"
        )


def _stages(
    name: str, judge: Judge, thresholds: Sequence[Bar], limits: Sequence[Limits]
) -> tuple[StageRecord, ...]:
    """Returns the stages of an evaluation; none of one that is one function."""
    if judge.stages:
        return stage_records(name, judge.stages, thresholds, limits)
    if thresholds:
        raise ValueError(
            "thresholds: these go with stages, and evaluate is one function: "
            "evaluate=[cheap, thorough]"
        )
    if limits:
        raise ValueError("limits: a list of them goes with stages, evaluate=[cheap, thorough]")
    return ()


def _check_columns(
    program: Program,
    prompt: str | None,
    asks: object,
    held_out: object,
    missing: float | None,
    *,
    with_rows: bool,
    scale: str | None,
) -> None:
    """Raises ValueError for what goes with instances and has none."""
    for name, value in {"prompt": prompt, "held_out": held_out, "missing": missing}.items():
        if value is not None and not with_rows:
            raise ValueError(f"{name}: this goes with instances=, and there are none")
    if missing is not None and not (isinstance(missing, int | float) and math.isfinite(missing)):
        raise ValueError(f"missing: expected a finite number, got {missing!r}")
    if missing and scale:
        raise ValueError(
            f"missing: with scale='unit' a row without a score counts 0, got {missing!r}; leave "
            "one of them out"
        )
    if asks is not None and not (with_rows and program.evolves == "text"):
        raise ValueError("asks: a model is asked instances under a text that evolves")


def _docstrings(program: Program, judge: Judge) -> str:
    parts = [inspect.cleandoc(each) for each in (program.docstring, judge.docstring) if each]
    return "\n\n".join(dict.fromkeys(parts))


def as_toml(config: TaskConfig) -> str:
    """Returns the task.toml of a configuration; texts and lists in TOML are as in JSON."""
    tables: dict[str, object] = msgspec.to_builtins(config)
    limits = cast(dict[str, object], tables.pop("limits", {}))
    staged = cast(list[dict[str, object]], tables.pop("stage_limits", []))
    lines = [f"{key} = {_toml(value)}\n" for key, value in tables.items()]
    for each in staged:
        lines += ["\n[[stage_limits]]\n", *(f"{key} = {_toml(v)}\n" for key, v in each.items())]
    if limits:
        lines += ["\n[limits]\n", *(f"{key} = {_toml(value)}\n" for key, value in limits.items())]
    return "".join(lines)


def _toml(value: object) -> str:
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")


def _names(private: object) -> tuple[str, ...]:
    """Returns the names of private metrics; raises MistakenType for what is none."""
    several = isinstance(private, Iterable) and not isinstance(private, str | bytes)
    given = list(private) if several else [private]  # type: ignore[call-overload]
    names = tuple(name for name in given if isinstance(name, str))
    if len(names) < len(given):
        raise MistakenType(
            f"private: expected names of metrics, such as ['objective'], got {private!r:.80}"
        )
    return names


def _check_files(name: str, files: Mapping[str, str]) -> None:
    for file, text in files.items():
        if len(text.encode("utf-8", "surrogatepass")) > FILE_CAP:
            raise TaskError(
                f"{name}: {file}: a log holds at most {FILE_CAP:,} bytes of each file of a task, "
                f"got {len(text):,}"
            )
        if holds_key(text, code=file.endswith(".py")):
            what = {_INSTANCES: "instances", _EVALUATOR: "evaluate"}.get(file, "initial_program")
            raise ValueError(
                f"{what}: it seems to hold a key, and a log is passed on to others; read it from "
                "the environment where it is used"
            )
