"""Commands made from functions and from the options of `evo.runs.options`.

A command is a function whose parameters are options; `takes` adds those that the runs of its kind
have, so that names, types, defaults and descriptions exist once. Importing this module loads
nothing but the command line's library, so that help is quick.
"""

import functools
import inspect
import json
import math
import re
from collections.abc import Callable, Collection, Mapping, Sequence
from pathlib import Path
from typing import (
    TYPE_CHECKING,
    Annotated,
    Literal,
    TypedDict,
    TypeVar,
    get_type_hints,
)

from cyclopts import Group, Parameter

from evo.cli.own import FORM, known_filters, known_name
from evo.logs.types import JsonObject
from evo.runs.options import (
    ControlOptions,
    DraftOptions,
    EvaluationOptions,
    FilterOptions,
    GoalOptions,
    ModelOptions,
    Option,
    OrderOptions,
    PromptOptions,
    SeedOptions,
    SizeOptions,
    TimeoutOptions,
    WorkOptions,
)
from evo.runs.signatures import entries

if TYPE_CHECKING:
    from cyclopts import Token

Value = TypeVar("Value")
Command = TypeVar("Command", bound=Callable[..., int])
"""A command: it prints its result and returns the exit code."""


def one(convert: Callable[[str], object], *names: str, metavar: str) -> object:
    """Returns the type of an option with one value, parsed by a function of a text."""

    def read(_: object, tokens: "Sequence[Token]") -> object:
        return convert(tokens[0].value)

    return Annotated[object, Parameter(name=names or None, converter=read, metavar=metavar)]


def many(convert: Callable[[list[str]], object], *names: str, metavar: str) -> object:
    """Returns the type of an option that may be given several times, parsed as a whole."""

    def read(_: object, tokens: "Sequence[Token]") -> object:
        return convert([token.value for token in tokens])

    found = Parameter(name=names or None, converter=read, metavar=metavar, negative=())
    return Annotated[list[object] | object, found]


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


def seconds_or_auto(text: str) -> object:
    """Parses a number of seconds, or `auto`, which a run fixes itself."""
    return text if text == "auto" else finite(text)


def instance_range(text: str) -> int | slice:
    """Parses `40`, the first 40, or a slice such as `40:60` or `40:`."""
    match = re.fullmatch(r"(\d*)(:?)(\d*)", text)
    if match is None or not match[2] + match[1]:
        raise ValueError(f"expected a number such as 40, or 40:60 or 40:, got {text!r}")
    first, end = (int(number) if number else None for number in (match[1], match[3]))
    return slice(first, end) if match[2] else int(match[1])


def pairs(texts: Sequence[str], form: str, convert: Callable[[str], Value]) -> dict[str, Value]:
    """Parses NAME=VALUE, each name once."""
    found: dict[str, Value] = {}
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


def assignments(texts: Sequence[str]) -> dict[str, object]:
    """Parses NAME=VALUE, each name once: numbers are numbers, anything else is text."""
    return pairs(texts, "NAME=VALUE", literal)


def paths(texts: Sequence[str]) -> dict[str, str]:
    """Parses NAME=PATH, each name once."""
    return pairs(texts, "NAME=PATH", str)


_BARE_POINT = re.compile(r"[+-]?(\d+\.|\.\d+)(e[+-]?\d+)?", re.IGNORECASE)  # JSON has no .5


def literal(text: str) -> object:
    """Parses a JSON value, or a number such as .5; anything else is returned as text."""
    try:
        return json.loads(text)
    except ValueError:
        return float(text) if _BARE_POINT.fullmatch(text) else text


def arm(text: str) -> str | dict[str, object]:
    """Parses an arm: NAME=VALUE pairs, or the path of a log."""
    if Path(text).exists() or "=" not in text:
        return text
    return pairs(text.split(","), "NAME=VALUE,... such as model=offline,children=8", literal)


def fields(texts: Sequence[str]) -> dict[str, list[object]]:
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


def seed_list(text: str) -> tuple[int, ...]:
    """Parses seeds such as `7`, `40:50` or `1,5,40:50`."""
    from evo.runs.configuration import seeds_of

    return seeds_of(text)


if TYPE_CHECKING:
    Arms = list[str | dict[str, object]] | None
    Varied = dict[str, list[object]] | None
    Port = int
    Positive = int
    Seed = int | None
    Count = int | None
    Needed = float
    Number = float | None
    Timeout = float | Literal["auto"] | None
    Costs = dict[str, float] | None
    Parameters = dict[str, float] | None
    Assignments = dict[str, object] | None
    Budget = dict[str, float] | None
    Pythons = dict[str, str] | None
    Seeds = tuple[int, ...] | None
else:
    Arms = many(lambda texts: [arm(text) for text in texts], "--arm", metavar="NAME=VALUE,...")
    Varied = many(fields, "--vary", metavar="NAME=VALUE,...")
    Port = Seed = one(functools.partial(whole, low=0), metavar="NUMBER")
    Count = Positive = one(functools.partial(whole, low=1), metavar="NUMBER")
    Needed = Number = one(finite, metavar="NUMBER")
    Timeout = one(seconds_or_auto, metavar="NUMBER|auto")
    Costs = many(numbers, metavar="WHAT=NUMBER")
    Budget = many(limits, metavar="UNIT=NUMBER")
    Parameters = many(numbers, "--set", metavar="NAME=NUMBER")
    Assignments = many(assignments, metavar="NAME=VALUE")
    Pythons = many(paths, metavar="ENGINE=PATH")
    Seeds = one(seed_list, metavar="SEEDS")

Flag = Annotated[bool, Parameter(negative=())]
"""A switch that is off unless it is given."""

Resume = Annotated[bool, Parameter(negative="--no-resume")]
"""The switch of going on with a log, which is on unless its negative is given."""

LogPaths = Annotated[list[str], Parameter(name="LOG", negative=())]
"""Logs, one or more."""

OwnSearch = Annotated[str | None, Parameter(name="--search", metavar=FORM)]
"""A search of one's own that logs were made with."""

OwnFilters = Annotated[list[str] | None, Parameter(name="--filter", metavar=FORM, negative=())]
"""Filters of one's own that logs were made with."""

Output = Annotated[Path | None, Parameter(name=("-o", "--output"))]
"""A file to write."""


class TaskOptions(TypedDict, total=False):
    """Parts of a task."""

    program: Annotated[str | None, Option("Initial program, for a task folder without one.")]
    evaluator: Annotated[str | None, Option("Evaluator, for a task folder without one.")]
    instances: Annotated[
        str | None, Option("Instances of the task's data set: the first so many, or FIRST:END.")
    ]


class InstanceOptions(TypedDict, total=False):
    """Parts of a task whose program is given."""

    evaluator: Annotated[str | None, Option("Evaluator, for a task folder without one.")]
    instances: Annotated[
        str | None, Option("Instances of the task's data set: the first so many, or FIRST:END.")
    ]


class ValueOptions(TypedDict, total=False):
    """Fields of a search, and of filters."""

    search_set: Annotated[
        Mapping[str, object] | None,
        Option("A field of the search, such as size=40; may be given several times."),
    ]
    filter_set: Annotated[
        Mapping[str, object] | None,
        Option("A field of a filter, such as near_duplicates.ratio=0.9, likewise."),
    ]


class ShellOptions(TypedDict, total=False):
    """Options of a session that only the command line has."""

    quiet: Annotated[bool, Option("Show no progress bar.", False)]
    backend: Annotated[
        Literal["local", "dask"],
        Option(
            "Where programs are evaluated: here, or on the workers of a Dask scheduler.", "local"
        ),
    ]


TITLES: dict[type, str] = {
    GoalOptions: "Goal",
    SizeOptions: "Goal",
    OrderOptions: "Search and prompt",
    SeedOptions: "Goal",
    TaskOptions: "Task",
    InstanceOptions: "Task",
    ModelOptions: "Model",
    PromptOptions: "Search and prompt",
    ValueOptions: "Search and prompt",
    FilterOptions: "Search and prompt",
    DraftOptions: "Several replies, data sets",
    EvaluationOptions: "Evaluation and noise",
    TimeoutOptions: "Endpoint and machine",
    WorkOptions: "Endpoint and machine",
    ControlOptions: "Endpoint and machine",
    ShellOptions: "Endpoint and machine",
}
"""Groups of options in the complete help."""

COMMON = Group("Options", sort_key=0)
"""The group of the options that the short help shows."""

PYTHON_ONLY = {
    *("settings", "progress", "on_event", "listeners", "limits", "protocol", "condition", "stops"),
    "timeout",  # the command line has it as a flag of call_timeout
}
"""Options of functions that the command line has not."""

FLAGS = {
    "children": ("-N", "--N", "--children"),
    "generations": ("-T", "--T", "--generations"),
    "quiet": ("-q", "--quiet"),
    "call_timeout": ("--call-timeout", "--timeout"),
    "requests_per_minute": ("--rpm",),
    "tokens_per_minute": ("--tpm",),
    "drafts": ("--drafts", "--replies-per-child"),
    "filters": ("--filter",),
    "batches": ("--batches", "--first-batch"),
    "draws": ("--draws", "--evaluations-per-program"),
    "confirm": ("--confirm", "--confirm-draws"),
    "spending": ("--spending", "--share-alpha"),
    "cap": ("--cap", "--generations-per-arm"),
}
"""Flags of options that are not called as in Python, or have further names."""

TYPES: dict[str, object] = {
    "backend": Literal["local", "dask"],
    "cache": str | None,
    "evaluation_timeout": one(seconds_or_auto, metavar="NUMBER|auto"),
    "filters": Annotated[list[str] | None, Parameter(metavar=f"NAME|{FORM}", negative=())],
    "models": list[str] | None,
    "model_weights": Annotated[list[float] | None, Parameter(negative=())],
    "instances": one(instance_range, metavar="COUNT"),
    "search": Annotated[str, Parameter(metavar=f"NAME|{FORM}")],
    "search_set": many(assignments, metavar="NAME=VALUE"),
    "filter_set": many(assignments, metavar="FILTER.NAME=VALUE"),
}
"""Types on the command line that do not follow from those in Python."""


def takes(
    *kinds: type,
    shown: Collection[str] = (),
    as_logged: Collection[str] = (),
    flags: Mapping[str, tuple[str, ...]] | None = None,
) -> Callable[[Command], Command]:
    """Returns a decorator that gives a command the options of its `**options`.

    Args:
        kinds: Classes of options, whose entries become options of the command.
        shown: The names of those that the short help shows, in order; own ones are always shown.
        as_logged: The names of those whose default is the value in the log.
        flags: Flags of options that have others here than in `FLAGS`.
    """
    flagged = {**FLAGS, **(flags or {})}
    listed = {entry.name: entry for kind in kinds for entry in entries(kind)}
    listed = {name: listed[name] for name in [*shown, *listed] if name not in PYTHON_ONLY}

    def decorate(function: Command) -> Command:
        signature = inspect.signature(function)
        own = [p for p in signature.parameters.values() if p.kind is not p.VAR_KEYWORD]
        more = [
            inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=entry.option.default)
            for name, entry in listed.items()
            if name not in signature.parameters
        ]
        every = [*more[: len(shown)], *own, *more[len(shown) :]]
        types = get_type_hints(function, include_extras=True)
        helps = _descriptions(function)
        made = []
        for parameter in sorted(every, key=lambda each: each.kind):
            name = parameter.name
            if parameter in own:
                type_, about = types[name], Parameter(help=helps.get(name, ""))
            else:
                type_ = TYPES.get(name) or _type_on_the_line(str(listed[name].annotation))
                text = listed[name].option.help
                about = Parameter(
                    name=flagged.get(name),
                    help=_as_logged(text) if name in as_logged else text,
                    group=COMMON if name in shown else _group_of(name),
                )
            made.append(parameter.replace(annotation=Annotated[type_, about]))
        whole_signature = signature.replace(parameters=made)

        @functools.wraps(function)
        def command(*values: object, **options: object) -> int:
            given = dict(whole_signature.bind(*values, **options).arguments)
            return function(**_in_python(given, {*listed} - signature.parameters.keys()))

        command.__signature__ = whole_signature  # type: ignore[attr-defined]
        command.__annotations__ = {each.name: each.annotation for each in made}
        command.__doc__ = (function.__doc__ or "").partition("\n\n")[0]
        return command  # type: ignore[return-value]  # called by the command line alone

    return decorate


def _as_logged(text: str) -> str:
    """Returns the description of an option whose default is the value in the log."""
    return re.sub(r"( \(default: [^()]*\))?\.$", " (default: as in the log).", text)


def _group_of(name: str) -> Group:
    return _group(next(t for kind, t in TITLES.items() if name in kind.__annotations__))


@functools.cache
def _group(title: str) -> Group:
    return Group(title, sort_key=[*TITLES.values()].index(title) + 1)


def _type_on_the_line(annotation: str) -> object:
    """Returns the type of an option on the command line: a number, a switch, or else a text."""
    kinds = set(re.findall(r"\w+", annotation))
    if "bool" in kinds:
        return Flag
    if "int" in kinds:
        return one(whole, metavar="NUMBER")
    return one(finite, metavar="NUMBER") if "float" in kinds else str | None


def _descriptions(function: Callable[..., object]) -> dict[str, str]:
    """Returns the descriptions of a docstring's arguments by name."""
    text = inspect.cleandoc(function.__doc__ or "")
    block = re.search(r"^Args:\n((?:    .*\n?)+)", text, re.MULTILINE)
    entry = re.compile(r"^    (\w+): (.*(?:\n        .*)*)", re.MULTILINE)
    found = entry.findall(block[1] if block else "")
    return {name: " ".join(text.split()) for name, text in found}


def _in_python(given: JsonObject, listed: Collection[str]) -> JsonObject:
    """Returns the arguments that a function takes for what a command line gives."""
    names = [name for name in TaskOptions.__annotations__ if name in listed]
    if names and isinstance(given.get("task"), str):
        from evo.tasks.task import load_task

        parts = {name: given.pop(name) for name in names if name in given}
        given["task"] = load_task(given["task"], **parts)
    if "search" in listed and given.keys() & {"search", "search_set"}:
        fields = given.pop("search_set", None) or {}
        name = known_name("search", str(given.get("search", "greedy")))
        given["search"] = {"name": name, **fields}
    fields = given.pop("filter_set", None) if "filter_set" in listed else None
    if fields or ("filters" in listed and given.get("filters")):
        given["filters"] = known_filters(given.get("filters") or (), fields or {})
    if "quiet" in listed:
        if (given.pop("backend", "local") == "dask") != ("scheduler" in given):
            raise ValueError(
                "--backend dask and --scheduler ADDRESS go together, such as "
                "--backend dask --scheduler tcp://host:8786"
            )
        given["progress"] = not given.pop("quiet", False)
    return given
