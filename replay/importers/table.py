"""Any tool's runs as one table: CSV, JSON lines or Parquet, one row per evaluated child.

| column | |
|---|---|
| `run` | names the run; without it the table is one run |
| `task`, `model`, `seed` | of the run |
| `search` | `greedy` where every child of the run rewrites the best program so far, which `replay.plan` needs; anything else counts as a search of its own |
| `generation` | of the child, 0 is the initial program; or `order`, any number by which a run's rows are sorted, then each row is a generation of its own |
| `index` | of the child in its generation, from 0; without it the rows of a generation are counted |
| `status` | `ok`, `no_reply`, `no_program`, `invalid`, `error` or `timeout`; another word is kept as the error and the status stays missing; without it, a child with a fitness is ok |
| `fitness` | higher is better; empty where there is none |
| `parent_generation`, `parent_index`, `island` | where the child comes from |
| `prompt_tokens`, `completion_tokens`, `cached_tokens`, `dollars`, `seconds` | of its call; `seconds` of its evaluation |
| `program` | its text; of generation 0 the initial program |

`generation` (or `order`) and `fitness` are needed. What is missing stays missing; further columns
are kept as metrics where they are numbers. A child that a generation lacks, up to the most that any
of the run has, is a failed call.
"""  # noqa: E501

from __future__ import annotations

import collections
import csv
import io
import itertools
import json
from collections.abc import Collection, Hashable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import get_args

from evo.logs import examples
from evo.logs.journal import LogError, raw_pieces
from evo.logs.records import Child, Model, SearchRecord, Status
from evo.logs.types import Fields
from evo.warning import warn
from replay.importers import foreign, reading
from replay.importers.foreign import Failure, Imported
from replay.importers.reading import LogFormatError
from replay.logs.frames import GREEDY

ENDINGS = (".csv", ".csv.gz", ".jsonl", ".jsonl.gz", ".parquet")
_NUMBERS = {
    *("seed", "generation", "order", "index", "fitness", "parent_generation", "parent_index"),
    *("island", "prompt_tokens", "completion_tokens", "cached_tokens", "dollars", "seconds"),
}
_COLUMNS = _NUMBERS | {"run", "task", "model", "search", "status", "program"}
_NO_NUMBER = {"", "-", "nan", "na", "n/a", "none", "null"}
"""What tables write where there is no fitness."""

_STATUSES: dict[str, Status] = {status: status for status in get_args(Status)}

Row = Fields


def recognises(path: Path) -> bool:
    """Whether the path is a table with the columns that are needed."""
    if not (path.is_file() and path.name.endswith(ENDINGS)):
        return False
    if path.name.endswith(".parquet"):
        return True
    try:
        head = next(raw_pieces(path, 0), b"").decode(errors="replace").partition("\n")[0]
        is_csv = path.name.removesuffix(".gz").endswith(".csv")
        names: object = next(csv.reader([head]), ()) if is_csv else json.loads(head)
    except (LogError, csv.Error, ValueError, RecursionError):
        return False
    if not isinstance(names, dict | list):
        return False
    return "fitness" in names and ("generation" in names or "order" in names)


def read(
    path: Path,
    *,
    columns: Mapping[str, str | Sequence[str]] | None = None,
    ok: Collection[str] = ("ok", "valid"),
    task: str = "unknown",
    model: str = "unknown",
) -> list[Imported]:
    """Reads a table.

    Args:
        path: One that ends in one of `ENDINGS`.
        columns: What the file calls our columns, as {"generation": "epoch"}; several columns
            together may name the run.
        ok: Words of `status` that mean ok.
        task: Name of the task where the table has none.
        model: Name of the model where the table has none.

    Raises:
        LogFormatError: The file cannot be read, or a column or number is missing; names the line.
    """
    runs: dict[str, list[tuple[str, Row]]] = {}
    for line, row in _rows(path):
        known = {name: row[name] for name in row if name not in (columns or {})}
        for name, given in (columns or {}).items():
            theirs = [given] if isinstance(given, str) else list(given)
            if missing := [each for each in theirs if each not in row]:
                raise LogFormatError(f"{path}:1: expected columns {theirs}, missing {missing}")
            cells = [row[each] for each in theirs]
            known[name] = cells[0] if len(cells) == 1 else "_".join(map(str, cells))
        known |= {name: _number(known[name]) for name in _NUMBERS & known.keys()}
        if "fitness" not in known or not {"generation", "order"} & known.keys():
            raise LogFormatError(
                f"{path}:1: expected columns 'generation' (or 'order') and 'fitness', missing in "
                f"{sorted(known)}; {examples.minimal(examples.TABLE)}"
            )
        word = known.get("status")
        known["status"] = "ok" if isinstance(word, Hashable) and word in ok else word
        known = {"task": task, "model": model} | {k: v for k, v in known.items() if v is not None}
        runs.setdefault(str(known.get("run", "")), []).append((f"{path}:{line}", known))
    if not runs:
        raise LogFormatError(
            f"{path}: expected at least one row, got none; {examples.minimal(examples.TABLE)}"
        )
    return [_run(path, name, rows) for name, rows in runs.items()]


def _rows(path: Path) -> Iterator[tuple[int, Row]]:
    """Rows with their line."""
    if path.name.endswith(".parquet"):
        try:
            import pandas as pd

            rows = pd.read_parquet(path).to_dict("records")
        except ImportError:
            raise LogFormatError(
                f"{path}: expected pyarrow, which reads Parquet, found none: "
                "`pip install pyarrow`, or save the table as CSV"
            ) from None
        except (OSError, ValueError) as error:
            why = str(error).partition("\n")[0]
            raise LogFormatError(
                f"{path}: cannot be read as Parquet: {why}; as CSV, "
                f"{examples.minimal(examples.TABLE)}"
            ) from None
        yield from enumerate(({str(k): v for k, v in row.items()} for row in rows), start=1)
        return
    text = reading.read_text(path)
    if path.name.removesuffix(".gz").endswith(".jsonl"):
        for number, line in enumerate(text.splitlines(), start=1):
            if line.strip():
                yield number, reading.parse(line, dict[str, object], f"{path}:{number}")
        return
    reader = csv.DictReader(io.StringIO(text, newline=""))
    try:
        for cells in reader:
            yield reader.line_num, {str(name): cell or None for name, cell in cells.items()}
    except csv.Error as error:
        raise LogFormatError(f"{path}:{reader.line_num}: not CSV: {error}") from None


def _number(cell: object) -> object:
    """A cell's number where its text is one."""
    try:
        return float(cell) if isinstance(cell, str) and len(cell) < 40 else cell
    except ValueError:
        return cell


def _whole(row: Row, name: str, where: str, most: int = foreign.MOST) -> int | None:
    if row.get(name) is None:
        return None
    value = foreign.finite(row[name])
    if value is None or not value.is_integer() or not 0 <= value <= most:
        raise LogFormatError(
            f"{where}: expected a whole number from 0 to {most} in column {name!r}, "
            f"got {row[name]!r:.60}"
        )
    return int(value)


def _warn_of_doubles(name: str, rows: list[tuple[str, Row]]) -> None:
    """Warns where all rows of a run stand several times, as in a table that was joined twice."""
    counts = collections.Counter(repr(sorted(row.items(), key=str)) for _, row in rows)
    if (least := min(counts.values())) > 1 and len(counts) > 1:
        warn(
            f"run {name!r}: every row stands {least} times or more; they are taken for {least} "
            "children of each generation",
        )


def _run(path: Path, name: str, rows: list[tuple[str, Row]]) -> Imported:
    where, first = rows[0]
    for column, (line, row) in itertools.product(("task", "model", "seed", "search"), rows):
        if str(row.get(column)) != str(first.get(column)):
            raise LogFormatError(
                f"{line}: run {name!r} has more than one {column}, {first.get(column)!r:.60} and "
                f"{row.get(column)!r:.60}; give each run a name of its own in column 'run'"
            )
    _warn_of_doubles(name, rows)
    if "generation" not in first:
        rows = sorted(rows, key=lambda row: foreign.finite(row[1].get("order")) or 0.0)
        rows = [(line, {**row, "generation": k}) for k, (line, row) in enumerate(rows, start=1)]
    placed: dict[int, dict[int, Child]] = {}
    start: Child | None = None
    for line, row in rows:
        generation = _whole(row, "generation", line)
        if generation is None:
            raise LogFormatError(f"{line}: expected a whole number in column 'generation'")
        if generation == 0:
            start = _child({**row, "parent_generation": None}, 0, 0, line)
            continue
        members = placed.setdefault(generation, {})
        index = _whole(row, "index", line)
        index = max(members, default=-1) + 1 if index is None else index
        if index in members:
            raise LogFormatError(f"{line}: run {name!r} has child {(generation, index)} twice")
        members[index] = _child(row, generation, index, line)
    last = max(placed, default=0)
    seed = _whole(first, "seed", where, 2**53)
    return foreign.assemble(
        path,
        "table",
        name=name.replace("/", "-") or path.name.partition(".")[0],
        task=str(first["task"]),
        model=Model(name=str(first["model"])),
        seed=foreign.UNKNOWN_SEED if seed is None else seed,
        children=[list(placed.get(number, {}).values()) for number in range(1, last + 1)],
        n=max((index for members in placed.values() for index in members), default=0) + 1,
        initial=start,
        search=SearchRecord(name=GREEDY) if first.get("search") == GREEDY else None,
        lost=["whatever the table has no column for", *([] if start else ["generation 0"])],
    )


def _child(row: Row, generation: int, index: int, where: str) -> Child:
    word, fitness = row.get("status"), foreign.finite(row.get("fitness"))
    if isinstance(text := row.get("fitness"), str) and text.strip().lower() not in _NO_NUMBER:
        raise LogFormatError(
            f"{where}: expected a number in column 'fitness', with a point before its decimals, or "
            f"nothing where there is none, got {text!r:.60}"
        )
    failure: Failure | None = None
    if word is not None and word != "ok":
        failure = (_STATUSES.get(str(word)), f"status {word!r}")
    elif word is None and fitness is None:
        failure = (None, "no fitness and no status in the source")
    others = {name: _number(row[name]) for name in row if name not in _COLUMNS}
    seconds, cached, dollars = (
        foreign.finite(row.get(name)) for name in ("seconds", "cached_tokens", "dollars")
    )
    before = _whole(row, "parent_generation", where, generation - 1)
    return foreign.born(
        generation,
        foreign.judged(row.get("fitness"), failure=failure, seconds=seconds, metrics=others),
        index=index,
        attempts=foreign.answered(
            row.get("prompt_tokens"),
            row.get("completion_tokens"),
            dollars=dollars,
            prompt_tokens_details=None if cached is None else {"cached_tokens": cached},
        ),
        parent=None if before is None else (before, _whole(row, "parent_index", where) or 0),
        island=_whole(row, "island", where),
        program=row.get("program"),
    )
