"""What evolves and what evaluates, from functions, texts and files."""

from __future__ import annotations

import ast
import inspect
import os
import re
import textwrap
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Literal

from evo.capture import capture
from evo.capture.running import restate, source_of
from evo.logs.keys import holds_key
from evo.logs.languages import LANGUAGES
from evo.logs.records import Evolves, Isolation
from evo.logs.several import PROGRAM_FILES, pack
from evo.parsing import parsed
from evo.plugins import MistakenType
from evo.tasks.folder import TaskConfig, isolation_of
from evo.tasks.rows import read_text
from evo.tasks.stages import stages_in
from evo.tasks.task import PROGRAM_NAMES, entry_in

Where = Literal["sandbox", "here"]
GIVEN_TEXT, GIVEN_RESULT = ("text", "program"), ("reply", "value")
"""Names of the first parameter of a function that evaluates in this process."""

_ADVICE = (
    "pass rows as instances=, build it inside the function, or let the evaluator run in this "
    "process, where='here'"
)


@dataclass(frozen=True)
class Program:
    """What evolves: its text, and the functions to call."""

    text: str
    entry: tuple[str, ...]
    evolves: Evolves
    docstring: str = ""
    files: tuple[str, ...] = ()
    language: str = ""

    @property
    def file(self) -> str:
        """The name of the file that it would be in."""
        if self.files:
            return PROGRAM_FILES
        if self.language:
            return f"initial_program{LANGUAGES[self.language].suffix}"
        return f"initial_program.{'py' if self.evolves == 'python' else 'txt'}"


@dataclass(frozen=True)
class Judge:
    """What evaluates: the text of its module, where it runs, and its stages, if it has some.

    `earlier` is the text by which earlier versions knew one that runs here.
    """

    text: str
    isolation: Isolation
    given: str
    docstring: str = ""
    functions: tuple[Callable[..., object], ...] = field(default=(), compare=False)
    stages: tuple[str, ...] = ()
    earlier: str = field(default="", compare=False)

    @property
    def given_text(self) -> bool:
        """Whether it runs here and is given what evolves."""
        return self.isolation == "here" and self.given in GIVEN_TEXT


def judge_of(evaluate: object, where: Where, *, with_rows: bool) -> Judge:
    """Returns what evaluates; raises ValueError where that cannot be."""
    if isinstance(evaluate, str | Path):
        if where == "here":
            raise ValueError("evaluate: a text or file runs in the sandbox; give a function here")
        if isinstance(evaluate, str) and _FILE.fullmatch(evaluate.strip()):
            raise ValueError(
                f"evaluate: expected a function, its source or a Path, got {evaluate!r:.80}; if it "
                f"is the name of a file write Path({evaluate.strip()!r:.80})"
            )
        return _judge_in(evaluate)
    if isinstance(evaluate, Sequence):
        return _judge_in_stages(evaluate, where, with_rows=with_rows)
    if not callable(evaluate):
        raise ValueError(
            f"evaluate: expected a function, its source or a Path, got {evaluate!r:.80}"
        )
    first = _first_parameter(evaluate)
    docstring = inspect.getdoc(evaluate) or "" if inspect.isroutine(evaluate) else ""
    if where == "here":
        _check_here(evaluate, first, with_rows=with_rows)
        text, earlier = _logged_sources(evaluate)
        restate(earlier, text)
        return Judge(text, "here", first, docstring, (evaluate,), earlier=earlier)
    if first == "program_path":
        captured = capture(evaluate, advice=_ADVICE)
        return Judge(_named(captured.text, captured.name, "evaluate"), "shared", first, docstring)
    if inspect.iscoroutinefunction(evaluate):
        raise ValueError(
            f"evaluate: {first_name(evaluate)!r} is async, and what it waits for is not in the "
            "sandbox: let it run in this process, where='here', or make it a plain function"
        )
    _check_arguments(evaluate, with_rows=with_rows)
    captured = capture(evaluate, advice=_ADVICE)
    return Judge(_named(captured.text, captured.name, "score"), "separate", first, docstring)


def _judge_in_stages(evaluate: Sequence[object], where: Where, *, with_rows: bool) -> Judge:
    """Returns what evaluates in stages, one function for each."""
    if len(evaluate) < 2 or any(isinstance(each, str | Path) for each in evaluate):
        raise ValueError(
            "evaluate: expected a list of two or more functions, from cheap to thorough, got "
            f"{list(evaluate)!r:.80}"
        )
    judges = [judge_of(each, where, with_rows=with_rows) for each in evaluate]
    if len({(judge.isolation, judge.given_text) for judge in judges}) > 1:
        given = ", ".join(repr(judge.given) for judge in judges)
        raise ValueError(f"evaluate: expected all stages to be given the same, got {given}")
    first = judges[0]
    docstring = "\n\n".join(judge.docstring for judge in judges if judge.docstring)
    functions = tuple(function for judge in judges for function in judge.functions)
    if where == "here":
        names = tuple(first_name(each) for each in functions)
        text = "\n\n".join(judge.text for judge in judges)
    else:
        captured = capture(*evaluate, advice=_ADVICE)
        names = captured.names
        text = f"{captured.text.rstrip()}\n\n\nstages = [{', '.join(names)}]\n"
    earlier = "\n\n".join(judge.earlier for judge in judges)
    restate(earlier, text)
    return Judge(text, first.isolation, first.given, docstring, functions, names, earlier)


def _judge_in(evaluate: str | Path) -> Judge:
    """Returns the evaluator in a file or a text."""
    text = read_text(evaluate, "evaluate") if isinstance(evaluate, Path) else evaluate
    place = evaluate if isinstance(evaluate, Path) else Path("evaluate")
    body = _parse(text, str(place)).body
    if (found := stages_in(str(place), text)) is not None:
        given = "program_path" if found.isolation == "shared" else "value"
        docstring = ast.get_docstring(parsed(text)) or ""
        return Judge(text, found.isolation, given, docstring, stages=found.functions)
    functions = {node.name: node for node in body if isinstance(node, ast.FunctionDef)}
    names = {each.id for n in body for each in ast.walk(n) if isinstance(each, ast.Name)}
    known = {"score", "evaluate", "main"} & {*names, *functions}
    wanted: Isolation | None = None
    judging = functions.get("evaluate" if known else [*functions, ""][0])
    if judging and (known or len(functions) == 1):
        first = "".join(argument.arg for argument in judging.args.args[:1])
        if not known or first in ("text", *GIVEN_RESULT):  # else it is another tool's
            wanted = "shared" if first == "program_path" else "separate"
            if "score" not in known:
                text = _named(text, judging.name, "evaluate" if wanted == "shared" else "score")
    isolation = isolation_of(place, text, TaskConfig(entry=(), isolation=wanted))
    first = "program_path" if isolation == "shared" else "value"
    return Judge(text, isolation, first, ast.get_docstring(parsed(text)) or "")


def _check_here(evaluate: Callable[..., object], first: str, *, with_rows: bool) -> None:
    if with_rows and first not in (*GIVEN_TEXT, *GIVEN_RESULT):
        raise ValueError(
            f"evaluate: with instances the first parameter of a function that runs here is "
            f"`text` or `program`, to be given what evolves, or `reply` or `value`, to be given "
            f"what came of it, got {first!r}"
        )
    _check_arguments(evaluate, with_rows=with_rows)


def _check_arguments(evaluate: Callable[..., object], *, with_rows: bool) -> None:
    """Raises ValueError if a function cannot be called as an evaluator is."""
    try:
        signature = inspect.signature(evaluate)
    except (TypeError, ValueError):  # some of C have none
        return
    seeded = {"seed": 0} if "seed" in signature.parameters else {}
    try:
        signature.bind(*[None] * (2 if with_rows else 1), **seeded)
    except TypeError:
        takes = "(value, row), since there are instances" if with_rows else "(value)"
        raise ValueError(
            f"evaluate: it is called as evaluate{takes}, and {first_name(evaluate)!r} takes "
            f"{signature!s:.80}"
        ) from None


def _logged_sources(evaluate: Callable[..., object]) -> tuple[str, str]:
    """Returns the source that a log keeps of a function that runs here, now and earlier."""
    head = "# This evaluator ran in the process that made the log, not in the sandbox.\n"
    found, unknown = source_of(evaluate), f"# Its source could not be had: {first_name(evaluate)}\n"

    def kept(text: str) -> str:
        text = text or unknown
        return head + ("# Its source seems to hold a key.\n" if holds_key(text) else text)

    return kept(found.text), kept(found.earlier)


def program_of(
    given: object, entry: str | Sequence[str] | None, evolves: Evolves | None, judge: Judge
) -> Program:
    """Returns what evolves; raises ValueError where that cannot be."""
    if evolves not in (None, "python", "text"):
        raise ValueError(f"evolves: expected 'python' or 'text', got {evolves!r}")
    if callable(entry):
        raise MistakenType(
            f"entry: expected the name of a function of the initial program, got {entry!r}; write "
            f"entry={getattr(entry, '__name__', 'NAME')!r}, or give the function itself as "
            "initial_program="
        )
    entries = (entry,) if isinstance(entry, str) else tuple(entry or ())
    if isinstance(given, Mapping):
        return _of_files(given, entry, evolves, judge)
    if isinstance(given, Path):
        given = _find_program(given)
        python = given.suffix == ".py" if evolves is None else evolves == "python"
        return _from_text(read_text(given, "initial_program"), entries, python, judge)
    if isinstance(given, str):
        return _of_text(given, entries, evolves, judge)
    if not callable(given):
        raise ValueError(
            f"initial_program: expected a function, a class, a text or a Path, got {given!r:.80}"
        )
    captured = capture(given, advice="build it inside the function")
    if all(
        isinstance(node, ast.Import | ast.ImportFrom)
        for node in _parse(captured.text, "initial_program").body
    ):
        raise ValueError(
            f"initial_program: {captured.name!r} is imported from elsewhere, so it has no text "
            "that could evolve; write a function that calls it, or give its source as a text"
        )
    docstring = inspect.cleandoc(given.__doc__ or "")
    return Program(captured.text, entries or (captured.name,), "python", docstring)


def _of_text(
    given: str, entries: tuple[str, ...], evolves: Evolves | None, judge: Judge
) -> Program:
    """Returns the program that a text is, or the text that evolves; not one of a file's name."""
    if "\n" not in given and len(given) < 4096 and os.path.exists(given):
        raise ValueError(
            f"initial_program: {given!r} is the name of a file that exists; to read it write "
            f"Path({given!r})"
        )
    if evolves is None and _FILE.fullmatch(given.strip()):
        raise ValueError(
            f"initial_program: there is no file {given!r}; evolves='text' if it is the text"
        )
    text = _dedented(given)
    if evolves is not None or judge.given == "program_path" or _defines_something(text):
        return _from_text(text, entries, evolves != "text", judge)
    if not _looks_like_program(text):
        return _from_text(text, entries, False, judge)
    try:
        return _from_text(text, entries, True, judge)
    except ValueError as error:
        raise ValueError(f"{error}; evolves='text' if it is a text") from None


def program_in(language: str, given: object, judge: Judge) -> Program:
    """Returns a program in another language; raises ValueError where that cannot be."""
    if not isinstance(language, str) or language not in LANGUAGES:
        raise ValueError(
            f"language: expected one of {', '.join(LANGUAGES)}, or none for Python, got "
            f"{language!r:.80}"
        )
    if not isinstance(given, str | Path):
        raise ValueError(
            f"initial_program: expected the text of a program in {language}, or a Path, got "
            f"{given!r:.80}"
        )
    text = read_text(given, "initial_program") if isinstance(given, Path) else given
    text = textwrap.dedent(text).strip("\n") + "\n"
    if not text.strip():
        raise ValueError("initial_program: expected a program, got nothing")
    entry = entry_in(language, judge.isolation)
    return Program(text, entry, "python", language=language)


def _of_files(
    given: Mapping[str, object],
    entry: str | Sequence[str] | None,
    evolves: Evolves | None,
    judge: Judge,
) -> Program:
    """Returns the program of several files; the first is the one that runs."""
    if not given:
        raise ValueError("initial_program: expected at least one file, got an empty dict")
    names = list(given)
    if not all(isinstance(name, str) for name in names):
        raise MistakenType(
            f"initial_program: expected the names of files and their texts, got {given!r:.80}"
        )
    if evolves is None:
        evolves = "python" if names[0].endswith(".py") else "text"
    first = program_of(given[names[0]], entry, evolves, judge)
    texts = {names[0]: first.text}
    for name in names[1:]:
        value = given[name]
        if isinstance(value, Path):
            texts[name] = read_text(value, f"initial_program[{name!r}]")
        elif isinstance(value, str):
            texts[name] = value
        elif callable(value):
            texts[name] = capture(value, advice="build it inside the function").text
        else:
            raise ValueError(
                f"initial_program[{name!r}]: expected a text, a function or a Path, got "
                f"{value!r:.80}"
            )
    try:
        text = pack(texts)
    except ValueError as error:
        raise ValueError(f"initial_program: {error}") from None
    return replace(first, text=text, files=(names[0], *sorted(names[1:])))


def _dedented(text: str) -> str:
    """Returns a program without the indentation of where it stands; other texts as they are."""
    plain = textwrap.dedent(text).strip("\n")
    return f"{plain}\n" if plain != text and _defines_something(plain) else text


def _from_text(text: str, entries: tuple[str, ...], python: bool, judge: Judge) -> Program:
    if not text.strip():
        raise ValueError("initial_program: expected a program or a text, got nothing")
    if not python:
        return Program(text, (), "text")
    tree = _parse(text, "initial_program")
    defined = [n for n in tree.body if isinstance(n, _DEFINITIONS)]
    names = [node.name for node in defined]
    needs_entry = judge.given != "program_path" and not judge.given_text
    if entries:
        if needs_entry and not set(entries) & set(names):
            raise ValueError(
                f"entry: the initial program defines {', '.join(names) or 'no function'}, got "
                f"{', '.join(entries)}"
            )
    elif needs_entry:
        if len(names) != 1:
            raise ValueError(
                f"entry: the initial program defines {', '.join(names) or 'no function'}: name the "
                "one to call, entry='NAME'"
            )
        entries = (names[0],)
    called = next((node for node in defined if node.name in entries), None)
    docstring = (called and ast.get_docstring(called)) or ast.get_docstring(tree) or ""
    return Program(text, entries, "python", docstring)


def harness_of(harness: object, program: Program, *, with_rows: bool) -> str:
    """Returns the text of the module that holds the harness; empty: there is none."""
    if harness is None:
        return ""
    if program.evolves == "text":
        raise ValueError("harness: it runs beside a program, and a text evolves")
    if isinstance(harness, Path | str):
        text = read_text(harness, "harness") if isinstance(harness, Path) else harness
        _parse(text, "harness")
        return text
    captured = capture(harness, advice="build it inside the function")
    if inspect.iscoroutinefunction(harness):
        raise ValueError(f"harness: expected a plain function, {captured.name!r} is async")
    wanted = 2 if with_rows else 1
    needed = [p for p in _signature(harness) if p.default is p.empty]
    if not len(needed) <= wanted <= len(_signature(harness)):
        takes = "(function, input)" if with_rows else "(function)"
        raise ValueError(
            f"harness: it is called as harness{takes}, and {captured.name!r} takes "
            f"{len(needed)} arguments"
        )
    return _named(captured.text, captured.name, "harness")


def _named(text: str, name: str, wanted: str) -> str:
    """Returns the text of a module in which a function has the name by which it is called."""
    if name == wanted:
        return text
    calling = f"def {wanted}(*arguments):\n    return {name}(*arguments)"
    own = calling if wanted == "harness" else f"{wanted} = {name}"
    return f"{text.rstrip()}\n\n\n{own}\n"


def _find_program(path: Path) -> Path:
    path = path.expanduser()
    if path.is_dir():
        found = [path / name for name in PROGRAM_NAMES if (path / name).is_file()]
        if not found:
            raise ValueError(f"initial_program: {path} holds none of {', '.join(PROGRAM_NAMES)}")
        return found[0]
    return path


_DEFINITIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
_BEGINNING = re.compile(
    r"\s*(@\w|(async )?def \w+ ?\(|class \w+ ?[(:]|from [\w.]+ import |import \w+\s*$)", re.M
)
_FILE = re.compile(r"[\w./\\ -]*\w\.(py|txt|md|json|toml)")


def _holds(text: str, *kinds: type[ast.stmt]) -> bool:
    """Whether a text is Python with a statement of these kinds at its top level."""
    try:
        return any(isinstance(node, kinds) for node in parsed(text).body)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return False


def _defines_something(text: str) -> bool:
    """Whether a text is Python that defines a function or class."""
    return _holds(text, *_DEFINITIONS)


def _looks_like_program(text: str) -> bool:
    """Whether a text that defines nothing begins as a program does, or assigns a value."""
    return bool(_BEGINNING.match(text)) or _holds(text, ast.Assign)


def _parse(text: str, what: str) -> ast.Module:
    try:
        return parsed(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        raise ValueError(f"{what}: not valid Python: {error}") from None


def _signature(function: object) -> list[inspect.Parameter]:
    try:
        return list(inspect.signature(function).parameters.values())  # type: ignore[arg-type]
    except (TypeError, ValueError):  # some of C have none
        return []


def _first_parameter(function: object) -> str:
    parameters = _signature(function)
    return parameters[0].name if parameters else ""


def first_name(function: object) -> str:
    """Returns what a function is called."""
    return str(getattr(function, "__name__", type(function).__name__))
