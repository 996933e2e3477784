"""Commands made from functions: a parameter is an option, its docstring the help.

A command is a function that shows a result. `made_from` gives it the parameters of the function
that makes the result, so that names, defaults and help stand once, where the work is done.
"""

from __future__ import annotations

import functools
import inspect
import json
import math
import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, Protocol, get_type_hints

from cyclopts import Parameter
from docstring_parser import parse

from evo.configuration import MOST_SEEDS

Command = Callable[..., int]
"""Shows what was made, and returns the exit code."""


class Given(Protocol):
    """Something that was written on the command line."""

    @property
    def value(self) -> str:
        """Its text."""
        ...


def seed_range(text: str) -> list[int]:
    """Parses `7`, `40:50` (40 ... 49) or `1,5,40:50`.

    Raises:
        ValueError: Not of that form, empty, a seed occurs twice, or there are over a million.
    """
    seeds: list[int] = []
    for part in text.split(","):
        match = re.fullmatch(r"\s*(\d{1,18})(?::(\d{1,18}))?\s*", part)
        if match is None:
            raise ValueError(f"expected seeds such as 7, 40:50 or 1,5,40:50, got {text!r}")
        low = int(match[1])
        high = int(match[2]) if match[2] else low + 1
        if high - low > MOST_SEEDS:
            raise ValueError(f"expected at most {MOST_SEEDS:,} seeds, got {text!r}")
        seeds += range(low, high)
    if not seeds or len(set(seeds)) < len(seeds):
        raise ValueError(
            f"expected at least one seed and none twice, got {text!r} (40:50 is 40 ... 49)"
        )
    return seeds


def instance_range(text: str) -> int | slice:
    """Parses `40`, the first 40, or a slice such as `40:60` or `40:`.

    Raises:
        ValueError: Not of that form.
    """
    match = re.fullmatch(r"(\d*)(:?)(\d*)", text)
    if match is None or not match[2] + match[1]:
        raise ValueError(f"expected a number such as 40, or 40:60 or 40:, got {text!r}")
    first, end = (int(number) if number else None for number in (match[1], match[3]))
    return slice(first, end) if match[2] else int(match[1])


def numbers(texts: Sequence[str]) -> dict[str, float]:
    """Parses NAME=NUMBER, each name once.

    Raises:
        ValueError: Not of that form.
    """
    found: dict[str, float] = {}
    for text in texts:
        name, _, number = text.partition("=")
        try:
            value = float(number)
        except ValueError:
            raise ValueError(f"expected NAME=NUMBER, got {text!r}") from None
        if name in found:
            raise ValueError(f"{name!r} is given twice, the second time in {text!r}")
        found[name] = value
    return found


def _whole(low: int) -> Callable[[str], int]:
    def read(text: str) -> int:
        try:
            value = int(text)
        except ValueError:
            raise ValueError(f"expected a whole number, got {text!r}") from None
        if value < low:
            raise ValueError(f"expected at least {low}, got {value}")
        return value

    return read


def finite(text: str) -> float:
    """Parses a finite number.

    Raises:
        ValueError: No number, or not finite.
    """
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not math.isfinite(value):
        raise ValueError(f"expected a finite number, got {text!r}")
    return value


def one(convert: Callable[[str], Any], *names: str, metavar: str) -> Any:
    """Returns the type of an option with one value, parsed by a function of a text."""

    def read(_: object, tokens: Sequence[Given]) -> Any:
        return convert(tokens[0].value)

    return Annotated[Any, Parameter(name=names or None, converter=read, metavar=metavar)]


def many(convert: Callable[[list[str]], Any], *names: str, metavar: str) -> Any:
    """Returns the type of an option that may be given several times, parsed as a whole."""

    def read(_: object, tokens: Sequence[Given]) -> Any:
        return convert([token.value for token in tokens])

    found = Parameter(name=names or None, converter=read, metavar=metavar, negative=())
    return Annotated[list[Any] | Any, found]


def whole(*names: str, low: int = 1) -> Any:
    """Returns the type of a whole number from `low` on."""
    return one(_whole(low), *names, metavar="NUMBER")


def arm(text: str) -> str | dict[str, Any]:
    """Parses an arm: NAME=VALUE pairs, or the path of a log.

    Raises:
        ValueError: Neither of them.
    """
    if Path(text).exists() or "=" not in text:
        return text
    kinds: dict[str, Callable[[str], Any]] = {"children": int, "seed": int, "max_tokens": int}
    kinds |= dict.fromkeys(("temperature", "top_p", "min_improvement", "evaluation_timeout"), float)
    own: dict[str, Any] = {}
    for part in text.split(","):
        name, _, value = (piece.strip() for piece in part.partition("="))
        try:
            own[name] = kinds.get(name, str)(value)
        except ValueError:
            raise ValueError(
                f"expected NAME=VALUE,... such as model=offline,children=8, got {part!r}"
            ) from None
    return own


def fields(texts: Sequence[str]) -> dict[str, list[Any]]:
    """Parses `children=4,16`: numbers are numbers, anything else is text.

    Raises:
        ValueError: Not of that form, or a field occurs twice.
    """
    found: dict[str, list[Any]] = {}
    for text in texts:
        name, sign, values = text.partition("=")
        if not sign or not values or name in found:
            raise ValueError(f"expected each field once, NAME=VALUE,VALUE,..., got {text!r}")
        found[name] = [_literal(value) for value in values.split(",")]
    return found


def assignments(texts: Sequence[str]) -> dict[str, Any]:
    """Parses NAME=VALUE: JSON, such as a number, or else text.

    Raises:
        ValueError: Not of that form, or a name occurs twice.
    """
    pairs = [text.partition("=") for text in texts]
    if wrong := [
        t for t, (_, sign, value) in zip(texts, pairs, strict=True) if not sign or not value
    ]:
        raise ValueError(f"expected NAME=VALUE, got {wrong[0]!r}")
    if len({name for name, _, _ in pairs}) < len(pairs):
        raise ValueError(f"expected each name once, got {list(texts)!r}")
    return {name: _literal(value) for name, _, value in pairs}


def _literal(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError:
        return text


def limits(texts: Sequence[str]) -> dict[str, float] | int:
    """Parses UNIT=NUMBER, or a plain number of calls."""
    return int(texts[0]) if len(texts) == 1 and texts[0].isdecimal() else numbers(texts)


if TYPE_CHECKING:
    Making = functools.partial[Any]
    Arms = list[str | dict[str, Any]] | None
    Varied = dict[str, list[Any]] | None
    Port = int
    Count = int | None
    Needed = float
    Number = float | None
    Costs = dict[str, float] | None
    Limits = dict[str, float] | int | None
    Parameters = dict[str, float] | None
    SearchFields = dict[str, Any] | None
    Seed = int
    Start = int
    Seeds = list[int] | None
    Instances = int | slice | None
else:
    Making = functools.partial
    Arms = many(lambda texts: [arm(text) for text in texts], "--arm", metavar="NAME=VALUE,...")
    Varied = many(fields, "--vary", metavar="NAME=VALUE,...")
    Port = whole(low=0)
    Count = whole()
    Needed = Number = one(finite, metavar="NUMBER")
    Costs = many(numbers, metavar="WHAT=NUMBER")
    Limits = many(limits, metavar="UNIT=NUMBER")
    Parameters = many(numbers, "--set", metavar="NAME=NUMBER")
    SearchFields = many(assignments, metavar="NAME=VALUE")
    Seed = whole(low=0)
    Start = whole(low=0)
    Seeds = one(seed_range, metavar="SEEDS")
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
    "children": whole("-N", "--children"),
    "copies": whole(),
    "inspirations": whole(low=0),
    "generations": whole("-T", "--generations"),
    "max_concurrent": whole(),
    "max_tokens": whole(),
    "model": str | None,
    "parameters": Parameters,
    "patience": whole(),
    "requests_per_minute": whole("--rpm"),
    "retries": whole(low=0),
    "rounds": whole(),
    "scheduler": str | None,
    "seed": Seed,
    "seeds": Seeds,
    "task": str,
    "tokens_per_minute": whole("--tpm"),
    "workers": whole(),
}
"""Of parameters whose text on the command line is not their Python type, by name."""


def made_from(
    source: Callable[..., Any], *, without: Sequence[str] = ()
) -> Callable[[Command], Command]:
    """Returns a decorator that gives a command the parameters of a function besides its own.

    The command is called with the function, its arguments filled in, and its own arguments. Where
    the command line says things in other words than Python, `of_task` and `of_session` translate.

    Args:
        source: Makes what the command shows.
        without: Parameters that have no place on a command line.
    """

    def decorate(show: Command) -> Command:
        given = inspect.signature(source).parameters
        own = dict(list(inspect.signature(show).parameters.items())[1:])
        spoken: list[Callable[..., dict[str, Any]]] = (
            [of_task] if "task" in given.keys() - set(without) else []
        )
        spoken += [of_search] if "search" in given.keys() - set(without) else []
        spoken += [of_session] if "progress" in given else []
        left_out = {*without, *own, "settings", "limits", "progress"}
        more = {n: p for words in spoken for n, p in inspect.signature(words).parameters.items()}
        every = {n: p for n, p in given.items() if n not in left_out} | more | own
        if "task" in more:  # it stands first, and has to be named unless the command says else
            every["task"] = own.get("task", more["task"])

        def command(*values: Any, **options: Any) -> int:
            bound = dict(signature.bind(*values, **options).arguments)
            mine = {name: bound.pop(name) for name in own if name in bound}
            if "task" in mine and mine["task"] is not None:
                bound["task"] = mine["task"]
            for words in spoken:
                names = inspect.signature(words).parameters.keys() & bound.keys()
                if words is of_session or "task" in names or (names and words is of_search):
                    bound |= words(**{name: bound.pop(name) for name in names})
            return show(functools.partial(source, **bound), **mine)

        helps, hints = dict[str, str](), dict[str, Any]()
        for function in (source, *spoken, show):
            helps |= {p.arg_name: p.description or "" for p in parse(function.__doc__ or "").params}
            own_types = {} if function is source else dict.fromkeys(every)
            for name, parameter in inspect.signature(function).parameters.items():
                if name in every and (name in own_types or name not in TYPES):
                    hints[name] = _hint(function, parameter)
        hints = {**TYPES, **hints}
        parameters = [
            p.replace(annotation=Annotated[hints[n], Parameter(help=" ".join(helps[n].split()))])
            for n, p in sorted(every.items(), key=lambda item: item[1].kind)
        ]
        signature = inspect.Signature(parameters)
        command.__signature__ = signature  # type: ignore[attr-defined]
        command.__annotations__ = {p.name: p.annotation for p in parameters}
        command.__doc__, command.__name__ = (show.__doc__ or "").split("\n\n")[0], show.__name__
        return command

    return decorate


def _hint(function: Callable[..., Any], parameter: inspect.Parameter) -> Any:
    """Returns the type of an argument; a text, where any path-like value will do."""
    hint = parameter.annotation
    if isinstance(hint, str):
        names = inspect.unwrap(function).__globals__
        hint = get_type_hints(
            type("_", (), {"__annotations__": {"_": hint}}), names, include_extras=True
        )["_"]
    return str | None if "PathLike" in str(hint) else hint


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
    from evo.task import load_task

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
