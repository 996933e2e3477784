"""The rows of a table in a file, and which of its columns are ours.

A CSV may be separated by commas, semicolons or tabs, and its names may be written in capitals or
with spaces around them.
"""

from __future__ import annotations

import contextlib
import csv
import difflib
import io
import json
import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from shlex import quote

from evo.logs import examples
from evo.logs.journal import LogError, raw_pieces
from evo.logs.types import Fields
from evo.plugins import meant
from evo.warning import and_more, warn
from replay.importers import reading
from replay.importers.reading import LogFormatError

TEXTS = (".csv", ".csv.gz", ".tsv", ".tsv.gz")
ENDINGS = (*TEXTS, ".jsonl", ".jsonl.gz", ".parquet")
SO_FAR = {
    f"{name}_so_far": name
    for name in ("prompt_tokens", "completion_tokens", "cached_tokens", "dollars")
}
"""Columns that count from the beginning of a run, each with that of the calls."""

NUMBERS = {
    *SO_FAR,
    *("seed", "generation", "order", "index", "fitness", "parent_generation", "parent_index"),
    *("island", "prompt_tokens", "completion_tokens", "cached_tokens", "dollars", "seconds"),
}
COLUMNS = NUMBERS | {"run", "task", "model", "search", "status", "program"}

_UTF_16 = (b"\xff\xfe", b"\xfe\xff")
_SEPARATORS = ",;\t"
_WORDS = {
    "run": ("trial", "experiment", "exp", "arm", "replicate", "rep", "job", "chain", "repeat"),
    "order": ("step", "iteration", "iter", "epoch", "evaluation", "call", "round"),
    "fitness": ("score", "value", "reward", "objective", "metric", "accuracy", "performance"),
}
"""What others call the columns that are needed."""
_HEADING = re.compile(r"(.*\S)\s*[(\[]\s*(\S*)\s*[)\]]")
"""A column's name with its unit in brackets."""
_UNITS = {
    "seconds": {"s", "sec", "secs", "second", "seconds"},
    "dollars": {"$", "us$", "usd", "dollar", "dollars"},
    "fitness": {"%"},
}
_PLAIN = {"", "1", "-", "#", "n", "count", "tokens"}
"""Units of columns of ours, by column, and those that say nothing."""
_COSTS: dict[str, tuple[tuple[set[str], set[str]], ...]] = {
    "dollars": (
        ({"usd", "dollar", "dollars"}, set()),
        ({"cost", "costs", "price"}, {"llm", "api", "call", "model"}),
    ),
    "seconds": (
        ({"seconds", "sec", "secs", "duration", "runtime"}, set()),
        ({"time"}, {"s", "ms", "eval", "evaluation", "wall"}),
    ),
    "prompt_tokens": (({"token", "tokens"}, {"prompt", "input", "in"}),),
    "completion_tokens": (({"token", "tokens"}, {"completion", "output", "out"}),),
    "cached_tokens": (({"token", "tokens"}, {"cached", "cache"}),),
}
"""Words in others' names of columns of costs: one of the first and, if there are any, of the second
in a pair."""
_SUMMED = {"cum", "cumulative", "total"}
"""Words in the name of a column that counts from the beginning of a run."""

SEVERAL_RUNS = (
    "if the name is that of several runs, name runs by several columns, "
    "`--columns run=COLUMN,run=COLUMN`"
)
"""What to do where a table's column of runs holds one name for several."""

Row = Fields
Named = Mapping[str, str | Sequence[str]]
"""What a file calls our columns: one of its columns, or several together."""


@dataclass
class CallTable:
    """The rows of a table.

    Attributes:
        path: The file.
        rows: Each with its line in the file.
        names: The names of its columns, in order.
        ours: Our names of its columns, each with those of the file, as far as they are known.
    """

    path: Path
    rows: list[tuple[int, Row]]
    names: list[str]
    ours: dict[str, list[str]] = field(default_factory=dict)


def is_table(path: Path) -> bool:
    """Whether a path is a file whose name ends as that of a table."""
    return path.name.endswith(ENDINGS) and path.is_file()


def header_of(path: Path) -> list[str] | None:
    """The names of a table's columns by its first line; None if that does not tell."""
    try:
        head = next(raw_pieces(path, 0), b"").decode("utf-8-sig", errors="replace")
        first = _first_line(head)
        if path.name.endswith(TEXTS):
            return _names(first, _separator(first, COLUMNS))
        found: object = json.loads(first)
    except (LogError, csv.Error, ValueError, RecursionError):
        return None
    return list(found) if isinstance(found, dict) else None


def what_is_wrong(path: Path) -> str:
    """Why a file that is named as a table is none, and what to do; empty where it is another file.

    A file of lines of JSON may be anything, so that it is called a table only if it has keys.
    """
    names = header_of(path)
    if not path.name.endswith(TEXTS):
        return what_to_name(path, names) if names and "crc" not in names else ""
    with contextlib.suppress(LogError):
        if next(raw_pieces(path, 0), b"")[:2] in _UTF_16:
            return "cannot be read: it is UTF-16; save it as UTF-8 ('CSV UTF-8' in Excel)"
    return what_to_name(path, names or [])


def _first_line(text: str) -> str:
    return re.split(r"[\r\n]", text.lstrip("\r\n"), maxsplit=1)[0]


def check_columns(columns: Named) -> None:
    """Raises ValueError where a name is none of ours, which would be passed over."""
    for name, given in columns.items():
        if name not in COLUMNS:
            raise ValueError(
                f"columns: unknown column {name!r}{meant(str(name), COLUMNS) or ';'} expected "
                f"names among {', '.join(sorted(COLUMNS))}, each with what the file calls it"
            )
        theirs = [given] if isinstance(given, str) else given
        if not (isinstance(theirs, Sequence) and theirs and all(type(t) is str for t in theirs)):
            raise ValueError(
                f"columns: expected for {name!r} the name of a column of the file, or a list of "
                f"them, got {given!r:.60}"
            )


def ours_of(names: Iterable[str], columns: Named) -> dict[str, list[str]]:
    """Our names of a file's columns, each with the file's own: as given, else as they read."""
    found = {
        name: [given] if isinstance(given, str) else [*given] for name, given in columns.items()
    }
    names = list(names)
    plain: dict[str, list[str]] = {}
    for name in names:
        plain.setdefault(_without_unit(name.strip().lower()), []).append(name)
    counted = {SO_FAR[name] for name in found if name in SO_FAR}  # what is named is no call's
    for name in COLUMNS - found.keys() - counted:
        alike = plain.get(name, [])
        if name in alike or len(alike) == 1:
            found[name] = [name if name in alike else alike[0]]
    return found


def _without_unit(name: str) -> str:
    """A column's name without a unit in brackets, if it is the one in which we count."""
    if not (found := _HEADING.fullmatch(name)):
        return name
    known = _UNITS.get(found[1].removesuffix("_so_far"), set()) | _PLAIN
    return found[1] if found[2] in known else name


def costs_not_taken(table: CallTable) -> str:
    """Names columns that look like costs and are not taken, with what to do; else empty."""
    taken = {theirs for each in table.ours.values() for theirs in each}
    left = [name for name in table.names if name not in taken and _has_numbers(table, name)]
    found: dict[str, str] = {}
    for ours in sorted(
        _COSTS.keys() - table.ours.keys() - {SO_FAR.get(name) for name in table.ours}
    ):
        if alike := [name for name in left if _is_of(name, ours)]:
            counter = f"{ours}_so_far"
            summed = counter in SO_FAR and _SUMMED & {*_parts(alike[0])}
            found[counter if summed else ours] = alike[0]
    if not found:
        return ""
    named = ",".join(f"{ours}={theirs}" for ours, theirs in found.items())
    return (
        "columns that may be costs are not taken for them: "
        f"{', '.join(map(repr, found.values()))}; where one counts dollars or tokens of a call "
        "(..._so_far: of all calls of a run so far), or seconds of an evaluation, name it: "
        f"columns={found} of replay.importers.load, or `--columns {quote(named)}` of "
        "`replay import table`; convert other units first"
    )


def _is_of(name: str, ours: str) -> bool:
    """Whether a column looks as if it were one of ours, of costs."""
    words = {*_parts(name.replace("$", " usd "))}
    return any(words & one and (words & other or not other) for one, other in _COSTS[ours])


def _has_numbers(table: CallTable, name: str) -> bool:
    return any(re.match(r"\s*[-+.]?\d", str(row.get(name))) for _, row in table.rows)


def lacks(ours: Collection[str]) -> bool:
    """Whether a column that is needed is not there."""
    return "fitness" not in ours or not {"generation", "order"} & {*ours}


def what_to_name(path: Path, names: Sequence[str]) -> str:
    """Says which columns a table needs, which it has, and how to say what they are called."""
    known = ours_of(names, {})
    wanted = [
        *(["run"] if "run" not in known else []),
        *(["order"] if not {"generation", "order"} & known.keys() else []),
        *(["fitness"] if "fitness" not in known else []),
    ]
    guesses = {
        name: next(
            iter([*close_to(name, names), *(n for n in names if name in _parts(n))]), "COLUMN"
        )
        for name in wanted
    }
    option = ",".join(f"{name}={theirs}" for name, theirs in guesses.items())
    return (
        f"expected columns 'generation' (or 'order') and 'fitness', and 'run' where it holds "
        f"several, found {', '.join(map(repr, names[:12])) or 'none'}; if it is a table of calls, "
        f"say what it calls them: `replay import table {quote(str(path))} --columns "
        f"{quote(option)} -o FOLDER`, or replay.importers.load({str(path)!r}, columns={guesses}); "
        f"{examples.minimal(examples.TABLE)}"
    )


def close_to(ours: str, names: Iterable[str]) -> list[str]:
    """The columns of a file that look as if they were one of ours under another name."""
    words = {ours, *_WORDS.get(ours, ())}
    found = []
    for name in names:
        stem = [
            part
            for part in _parts(name)
            if part not in ("id", "name", "no", "nr", "number", "index")
        ]
        joined = "".join(stem)
        singular = joined.removesuffix("s")
        if {joined, singular} & words or difflib.get_close_matches(joined, words, 1, 0.85):
            found.append(name)
    return found


def _parts(name: str) -> list[str]:
    """The words of a column's name."""
    return re.sub(r"[^a-z]+", " ", name.lower()).split()


def table_of(path: Path, columns: Named) -> CallTable:
    """Reads the rows of a table and finds our columns among its own.

    Raises:
        LogFormatError: The file cannot be read, or a column is missing.
    """
    rows = list(_rows(path, {*COLUMNS, *theirs_of(columns)}))
    if not rows:
        raise LogFormatError(
            f"{path}: expected at least one row, got none; {examples.minimal(examples.TABLE)}"
        )
    names = list(dict.fromkeys(name for _, row in rows for name in row))
    for name, given in columns.items():
        for theirs in [given] if isinstance(given, str) else given:
            if theirs not in names:
                raise LogFormatError(
                    f"{path}:1: expected a column {theirs!r}, as columns= calls our {name!r}, "
                    f"found {', '.join(map(repr, names[:20]))}{meant(theirs, names)}"
                )
    found = CallTable(path, rows, names, ours_of(names, columns))
    if lacks(found.ours):
        raise LogFormatError(f"{path}:1: {what_to_name(path, names)}")
    return found


def theirs_of(columns: Named) -> Iterator[str]:
    """The columns of the file that are named."""
    for given in columns.values():
        yield from [given] if isinstance(given, str) else given


def _rows(path: Path, known: Collection[str]) -> Iterator[tuple[int, Row]]:
    """Rows with their line."""
    if path.name.endswith(".parquet"):
        yield from enumerate(_parquet(path), start=1)
        return
    text = reading.read_text(path)
    if path.name.endswith(TEXTS):
        yield from _separated(path, text, known)
        return
    for number, line in enumerate(text.split("\n"), start=1):
        if line.strip():
            yield number, reading.parse(line, dict[str, object], f"{path}:{number}")


def _parquet(path: Path) -> Iterator[Row]:
    try:
        import pandas as pd

        table = pd.read_parquet(path)
        rows = table.astype(object).where(table.notna(), None).to_dict("records")
    except ImportError:
        raise LogFormatError(
            f"{path}: expected pyarrow, which reads Parquet, found none: "
            "`pip install pyarrow`, or save the table as CSV"
        ) from None
    except (OSError, ValueError) as error:
        why = str(error).partition("\n")[0]
        raise LogFormatError(
            f"{path}: cannot be read as Parquet: {why}; as CSV, {examples.minimal(examples.TABLE)}"
        ) from None
    return ({str(k): v for k, v in row.items()} for row in rows)


def _separated(path: Path, text: str, known: Collection[str]) -> Iterator[tuple[int, Row]]:
    text = text.lstrip("\r\n")
    separator = _separator(_first_line(text), known)
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=separator, skipinitialspace=True)
    short: list[int] = []
    try:
        names = [name.strip() for name in next(reader, [])]
        if twice := [name for name in names if name and names.count(name) > 1]:
            raise LogFormatError(f"{path}:1: expected each column once, got {twice[0]!r} twice")
        for cells in reader:
            if not cells:
                continue
            if any(cells[len(names) :]):
                raise LogFormatError(
                    f"{path}:{reader.line_num}: expected {len(names)} cells, got {len(cells)}; "
                    f"{_why_more(names, separator, known)}"
                )
            if len(cells) < len(names):
                short.append(reader.line_num)
            row = dict.fromkeys(names) | dict(zip(names, cells, strict=False))
            yield reader.line_num, {name: cell or None for name, cell in row.items() if name}
    except csv.Error as error:
        raise LogFormatError(f"{path}:{reader.line_num}: not CSV: {error}") from None
    if short:
        warn(
            f"{path}:{and_more(short)}: fewer than {len(names)} cells; those at the end are taken "
            "for empty"
        )


def _why_more(names: Sequence[str], separator: str, known: Collection[str]) -> str:
    """Why a row may have more cells than the first line has names."""
    if any(name in known or name.lower() in known for name in names):
        return f"a text that holds {separator!r} is written in quotes"
    return (
        f"the first line, {', '.join(names)!r:.60}, holds no name of a column that is known: "
        "delete what stands above the names"
    )


def _names(line: str, separator: str) -> list[str]:
    cells = next(csv.reader([line], delimiter=separator, skipinitialspace=True), [])
    return [name.strip() for name in cells if name.strip()]


def _separator(line: str, known: Collection[str]) -> str:
    """What separates the names in the first line: the most known ones, or else the most."""

    def score(separator: str) -> tuple[int, int]:
        names = _names(line, separator)
        return sum(name in known or name.lower() in known for name in names), len(names)

    return max(_SEPARATORS, key=score)  # the first of equals
