"""Commands made from functions: a parameter is an option, its docstring the help.

A command is a function that shows a result. `made_from` gives it the parameters of the function
that makes the result, so that names, defaults, limits and help stand once, where the work is done.
"""

from __future__ import annotations

import functools
import inspect
import json
import math
import re
from collections.abc import Callable, Sequence
from pathlib import Path
from types import UnionType
from typing import (
    TYPE_CHECKING,
    Annotated,
    Any,
    Literal,
    Union,
    get_args,
    get_origin,
    get_type_hints,
)

from cyclopts import Parameter

from evo.runs.configuration import seeds_of
from evo.runs.options import descriptions

if TYPE_CHECKING:
    from cyclopts import Token

Command = Callable[..., int]
"""Shows what was made, and returns the exit code."""


def one(convert: Callable[[str], Any], *names: str, metavar: str) -> Any:
    """Returns the type of an option with one value, parsed by a function of a text."""

    def read(_: object, tokens: Sequence[Token]) -> Any:
        return convert(tokens[0].value)

    return Annotated[Any, Parameter(name=names or None, converter=read, metavar=metavar)]


def many(convert: Callable[[list[str]], Any], *names: str, metavar: str) -> Any:
    """Returns the type of an option that may be given several times, parsed as a whole."""

    def read(_: object, tokens: Sequence[Token]) -> Any:
        return convert([token.value for token in tokens])

    found = Parameter(name=names or None, converter=read, metavar=metavar, negative=())
    return Annotated[list[Any] | Any, found]


def whole(text: str, *, low: float = -math.inf) -> int:
    """Parses a whole number from `low` on; limits of an option of a function are the function's."""
    try:
        value = int(text)
    except ValueError:
        raise ValueError(f"expected a whole number, got {text!r}") from None
    if value < low:
        raise ValueError(f"expected at least {low}, got {value}")
    return value


def finite(text: str) -> float:
    """Parses a finite number."""
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not math.isfinite(value):
        raise ValueError(f"expected a finite number, got {text!r}")
    return value


def instance_range(text: str) -> int | slice:
    """Parses `40`, the first 40, or a slice such as `40:60` or `40:`."""
    match = re.fullmatch(r"(\d*)(:?)(\d*)", text)
    if match is None or not match[2] + match[1]:
        raise ValueError(f"expected a number such as 40, or 40:60 or 40:, got {text!r}")
    first, end = (int(number) if number else None for number in (match[1], match[3]))
    return slice(first, end) if match[2] else int(match[1])


def pairs(texts: Sequence[str], form: str, convert: Callable[[str], Any]) -> dict[str, Any]:
    """Parses NAME=VALUE, each name once."""
    found: dict[str, Any] = {}
    for text in texts:
        name, sign, value = (part.strip() for part in text.partition("="))
        if name in found:
            raise ValueError(f"{name!r} is given twice, the second time in {text!r}")
        try:
            if not name or not sign or not value:
                raise ValueError
            found[name] = convert(value)
        except ValueError:
            raise ValueError(f"expected {form}, got {text!r}") from None
    return found


def numbers(texts: Sequence[str]) -> dict[str, float]:
    """Parses NAME=NUMBER, each name once."""
    return pairs(texts, "NAME=NUMBER", float)


def assignments(texts: Sequence[str]) -> dict[str, Any]:
    """Parses NAME=VALUE, each name once: numbers are numbers, anything else is text."""
    return pairs(texts, "NAME=VALUE", literal)


def literal(text: str) -> Any:
    """Parses what JSON knows; anything else is text."""
    try:
        return json.loads(text)
    except ValueError:
        return text


def arm(text: str) -> str | dict[str, Any]:
    """Parses an arm: NAME=VALUE pairs, or the path of a log."""
    if Path(text).exists() or "=" not in text:
        return text
    return pairs(text.split(","), "NAME=VALUE,... such as model=offline,children=8", literal)


def fields(texts: Sequence[str]) -> dict[str, list[Any]]:
    """Parses `children=4,16`: numbers are numbers, anything else is text."""
    listed = pairs(texts, "each field once, NAME=VALUE,VALUE,...", str)
    return {
        name: [literal(value) for value in values.split(",")] for name, values in listed.items()
    }


def limits(texts: Sequence[str]) -> dict[str, float]:
    """Parses the limits of a budget, UNIT=NUMBER."""
    for text in texts:
        if text.isdecimal():
            raise ValueError(
                f"expected UNIT=NUMBER, a limit of all runs together such as calls={text}, got "
                f"{text!r}; the size of each run of a grid is --calls {text}"
            )
    return pairs(texts, "UNIT=NUMBER such as calls=512", float)


if TYPE_CHECKING:
    Making = functools.partial[Any]
    Arms = list[str | dict[str, Any]] | None
    Varied = dict[str, list[Any]] | None
    Port = int
    SearchFields = dict[str, Any] | None
    Seed = int | None
    Count = int | None
    Needed = float
    Number = float | None
    Costs = dict[str, float] | None
    Parameters = dict[str, float] | None
    Limits = dict[str, float] | None
    Seeds = tuple[int, ...] | None
    Instances = int | slice | None
else:
    Making = functools.partial
    Arms = many(lambda texts: [arm(text) for text in texts], "--arm", metavar="NAME=VALUE,...")
    Varied = many(fields, "--vary", metavar="NAME=VALUE,...")
    Port = Seed = one(functools.partial(whole, low=0), metavar="NUMBER")
    Count = one(functools.partial(whole, low=1), metavar="NUMBER")
    Needed = Number = one(finite, metavar="NUMBER")
    Costs = many(numbers, metavar="WHAT=NUMBER")
    Limits = many(limits, metavar="UNIT=NUMBER")
    Parameters = many(numbers, "--set", metavar="NAME=NUMBER")
    SearchFields = many(assignments, metavar="NAME=VALUE")
    Seeds = one(seeds_of, metavar="SEEDS")
    Instances = one(instance_range, metavar="COUNT")

Flag = Annotated[bool, Parameter(negative=())]
"""A switch that is off unless it is given."""

LogPaths = Annotated[list[str], Parameter(name="LOG", negative=())]
"""Logs, one or more."""

Output = Annotated[Path | None, Parameter(name=("-o", "--output"))]
"""A file to write."""

TYPES: dict[str, Any] = {
    "budget": Limits,
    "cache": Path | None,
    "critic": str | None,
    "model": str | None,
    "parameters": Parameters,
    "seeds": Seeds,
    "task": str,
}
"""Of parameters whose text on the command line is not their Python type, by name."""

NAMES = {
    "children": ("-N", "--children"),
    "generations": ("-T", "--generations"),
    "requests_per_minute": ("--rpm",),
    "tokens_per_minute": ("--tpm",),
}
"""Options that are not called as their parameters are."""


def made_from(
    source: Callable[..., Any], *, without: Sequence[str] = ()
) -> Callable[[Command], Command]:
    """Returns a decorator that gives a command the parameters of a function besides its own.

    The command is called with the function, its arguments filled in, and its own arguments. Where
    the command line says things in other words than Python, `of_task` and `of_session` translate.
    """
    takes = inspect.signature(source).parameters.keys()
    spoken: list[Callable[..., dict[str, Any]]] = []
    if "task" in takes and "task" not in without:
        spoken.append(of_task)
    if "search" in takes and "search" not in without:
        spoken.append(of_search)
    if "progress" in takes:
        spoken.append(of_session)

    def decorate(show: Command) -> Command:
        own = list(inspect.signature(show).parameters)[1:]
        left_out = {*without, "settings", "limits", "progress", "on_event"}
        every: dict[str, inspect.Parameter] = {}
        for function in (source, *spoken, show):
            helps = descriptions(function)
            for name, parameter in inspect.signature(function).parameters.items():
                if name in left_out if function is source else function is show and name not in own:
                    continue
                kind = TYPES.get(name) if function is source else None
                kind = kind or _hint(function, parameter)
                about = Parameter(help=helps.get(name, ""))
                every[name] = parameter.replace(annotation=Annotated[kind, about])
        if of_task in spoken:  # the task stands first
            every = {"task": every["task"], **every}
        ordered = sorted(every.values(), key=lambda parameter: parameter.kind)
        signature = inspect.Signature(ordered)

        def command(*values: Any, **options: Any) -> int:
            bound = dict(signature.bind(*values, **options).arguments)
            mine = {name: bound.pop(name) for name in own if name in bound}
            if mine.get("task") is not None:
                bound["task"] = mine["task"]
            for words in spoken:
                names = inspect.signature(words).parameters.keys() & bound.keys()
                if words is of_session or "task" in names or (names and words is of_search):
                    bound |= words(**{name: bound.pop(name) for name in names})
            return show(functools.partial(source, **bound), **mine)

        command.__signature__ = signature  # type: ignore[attr-defined]
        command.__annotations__ = {p.name: p.annotation for p in ordered}
        command.__doc__, command.__name__ = (show.__doc__ or "").split("\n\n")[0], show.__name__
        return command

    return decorate


def _hint(function: Callable[..., Any], parameter: inspect.Parameter) -> Any:
    """Returns the type of an option: whole and finite numbers, and a text for what is path-like."""
    hint, names = parameter.annotation, NAMES.get(parameter.name, ())
    if isinstance(hint, str):
        known = inspect.unwrap(function).__globals__
        holder = type("_", (), {"__annotations__": {"_": hint}})
        hint = get_type_hints(holder, known, include_extras=True)["_"]
    if "PathLike" in str(hint):
        return str | None
    kinds = get_args(hint) if get_origin(hint) in (Union, UnionType) else (hint,)
    if int in kinds:
        return one(whole, *names, metavar="NUMBER")
    return one(finite, *names, metavar="NUMBER") if float in kinds else hint


def of_task(
    task: str,
    *,
    program: str | None = None,
    evaluator: str | None = None,
    instances: Instances = None,
) -> dict[str, Any]:
    """Returns the task that a command line names.

    Args:
        task: Name (cp, mmd, ht, ...; see `evo tasks`) or folder.
        program: Initial program of a folder.
        evaluator: Evaluator of a folder.
        instances: Of the task's data set: the first so many, or FIRST:END such as 40:60.
    """
    from evo.tasks.task import load_task

    return {"task": load_task(task, program=program, evaluator=evaluator, instances=instances)}


def of_search(*, search: str = "greedy", search_set: SearchFields = None) -> dict[str, Any]:
    """Returns the search that a command line names.

    Args:
        search: Which programs the children rewrite: greedy, best_of_n, population, islands.
        search_set: A field of the search, such as size=40; may be given several times.
    """
    return {"search": {"name": search, **(search_set or {})}}


def of_session(
    *,
    quiet: Annotated[bool, Parameter(name=("-q", "--quiet"), negative=())] = False,
    backend: Literal["local", "dask"] = "local",
    scheduler: str | None = None,
) -> dict[str, Any]:
    """Returns how a session works, as a command line says.

    Args:
        quiet: No progress bar.
        backend: Where programs are evaluated: here, or on the workers of a Dask scheduler.
        scheduler: Address of Dask's, such as tcp://host:8786.
    """
    if (backend == "dask") != (scheduler is not None):
        raise ValueError(
            "--backend dask and --scheduler ADDRESS go together, such as "
            "--backend dask --scheduler tcp://host:8786"
        )
    return {"progress": not quiet, "scheduler": scheduler}
