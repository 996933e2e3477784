"""Any tool's runs as one table: CSV, JSON lines or Parquet, one row per evaluated child.

| column | |
|---|---|
| `run` | names the run; without it the table is one run |
| `task`, `model`, `seed` | of the run |
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

import csv
import gzip
import io
import json
import zlib
from collections.abc import Collection, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, get_args

from evo.records import Child, Evaluation, Model, Status
from replay.importers.foreign import (
    UNKNOWN_SEED,
    Failure,
    Imported,
    LogFormatError,
    answered,
    assemble,
    born,
    finite,
    judged,
    read_text,
)

NAME = "table"
ENDINGS = (".csv", ".csv.gz", ".jsonl", ".jsonl.gz", ".parquet")
_MOST_GENERATIONS = 100_000
_NUMBERS = {
    *("seed", "generation", "order", "index", "fitness", "parent_generation", "parent_index"),
    *("island", "prompt_tokens", "completion_tokens", "cached_tokens", "dollars", "seconds"),
}
_COLUMNS = _NUMBERS | {"run", "task", "model", "status", "program"}
_STATUSES = frozenset(get_args(Status))

Row = Mapping[str, Any]


def recognises(path: Path) -> bool:
    """Whether the path is a table with the columns that are needed."""
    if not (path.is_file() and path.name.endswith(ENDINGS)):
        return False
    try:
        with gzip.open(path) if path.name.endswith(".gz") else path.open("rb") as file:
            head = file.read(1 << 16).decode(errors="replace").partition("\n")[0]
    except (OSError, EOFError, zlib.error):
        return False
    if path.name.endswith(".parquet"):
        return True
    try:
        table = path.name.removesuffix(".gz").endswith(".csv")
        names: object = next(csv.reader([head]), ()) if table else json.loads(head)
    except (csv.Error, ValueError, RecursionError):
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
        where = f"{path}:{line}"
        known = {name: row[name] for name in row if name not in (columns or {})}
        for name, given in (columns or {}).items():
            theirs = [given] if isinstance(given, str) else list(given)
            if missing := [each for each in theirs if each not in row]:
                raise LogFormatError(f"{path}:1: expected columns {theirs}, missing {missing}")
            known[name] = (
                row[theirs[0]] if len(theirs) == 1 else "_".join(str(row[each]) for each in theirs)
            )
        known |= {name: _number(known[name]) for name in _NUMBERS & known.keys()}
        if "fitness" not in known or not {"generation", "order"} & known.keys():
            raise LogFormatError(
                f"{path}:1: expected columns 'generation' (or 'order') and 'fitness', missing in "
                f"{sorted(known)}"
            )
        runs.setdefault(str(known.get("run", "")), []).append((where, known))
    if not runs:
        raise LogFormatError(f"{path}: expected at least one row, got none")
    return [_run(path, name, rows, ok, task, model) for name, rows in runs.items()]


def _rows(path: Path) -> Iterator[tuple[int, Row]]:
    """Rows with their line, numbers as numbers."""
    if path.name.endswith(".parquet"):
        try:
            import pandas as pd

            frame = pd.read_parquet(path)
        except (ImportError, OSError, ValueError) as error:
            raise LogFormatError(f"{path}: cannot be read as Parquet: {error}") from None
        yield from enumerate(({str(k): v for k, v in row.items()}
                              for row in frame.to_dict("records")), start=1)  # fmt: skip
        return
    text = read_text(path)
    if path.name.removesuffix(".gz").endswith(".jsonl"):
        for number, line in enumerate(text.splitlines(), start=1):
            try:
                row = json.loads(line) if line.strip() else None
            except (ValueError, RecursionError) as error:
                raise LogFormatError(f"{path}:{number}: not JSON: {error}") from None
            if row is not None and not isinstance(row, dict):
                raise LogFormatError(f"{path}:{number}: expected an object, got {row!r:.60}")
            if row is not None:
                yield number, row
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


def _whole(row: Row, name: str, where: str, most: int) -> int | None:
    value = finite(row.get(name))
    if row.get(name) is None:
        return None
    if value is None or not value.is_integer() or not 0 <= value <= most:
        raise LogFormatError(
            f"{where}: expected a whole number from 0 to {most} in column {name!r}, "
            f"got {row[name]!r:.60}"
        )
    return int(value)


def _run(
    path: Path,
    name: str,
    rows: list[tuple[str, Row]],
    ok: Collection[str],
    task: str,
    model: str,
) -> Imported:
    first: Row = rows[0][1]
    placed: dict[tuple[int, int], Child] = {}
    initial: Evaluation | None = None
    program: str | None = None
    if "generation" not in first:
        rows = sorted(rows, key=lambda row: finite(row[1]["order"]) or 0.0)
        rows = [(where, {**row, "generation": k}) for k, (where, row) in enumerate(rows, start=1)]
    counted: dict[int, int] = {}
    for where, row in rows:
        generation = _whole(row, "generation", where, _MOST_GENERATIONS)
        if generation is None:
            raise LogFormatError(
                f"{where}: expected a whole number in column 'generation', got None"
            )
        evaluation = _evaluation(row, ok)
        if generation == 0:
            initial, program = evaluation, row.get("program")
            continue
        index = _whole(row, "index", where, _MOST_GENERATIONS)
        index = counted.get(generation, 0) if index is None else index
        counted[generation] = index + 1
        if (generation, index) in placed:
            raise LogFormatError(f"{where}: run {name!r} has child {(generation, index)} twice")
        placed[generation, index] = _child(row, generation, index, evaluation, where)
    groups: list[list[Child]] = [[] for _ in range(max((g for g, _ in placed), default=0))]
    for (generation, _), child in sorted(placed.items(), key=lambda each: each[0]):
        groups[generation - 1].append(child)
    seed = _whole(first, "seed", rows[0][0], 2**53)
    lost = ["whatever the table has no column for"]
    if initial is None:
        lost.append("generation 0")
    return assemble(
        path,
        NAME,
        name=name.replace("/", "-") or path.name.partition(".")[0],
        task=str(first.get("task") or task),
        model=Model(name=str(first.get("model") or model)),
        seed=UNKNOWN_SEED if seed is None else seed,
        children=groups,
        n=max((index for _, index in placed), default=0) + 1,
        initial=initial,
        program=program if isinstance(program, str) else None,
        lost=lost,
    )  # fmt: skip


def _child(row: Row, generation: int, index: int, evaluation: Evaluation, where: str) -> Child:
    before = _whole(row, "parent_generation", where, generation - 1)
    cached = finite(row.get("cached_tokens"))
    return born(
        generation,
        evaluation,
        index=index,
        attempts=answered(
            row.get("prompt_tokens"),
            row.get("completion_tokens"),
            cost=finite(row.get("dollars")),
            prompt_tokens_details=None if cached is None else {"cached_tokens": cached},
        ),
        parent=None
        if before is None
        else (before, _whole(row, "parent_index", where, _MOST_GENERATIONS) or 0),
        island=_whole(row, "island", where, _MOST_GENERATIONS),
        program=row.get("program"),
    )


def _evaluation(row: Row, ok: Collection[str]) -> Evaluation:
    word = row.get("status")
    failure: Failure | None = None
    if word in _STATUSES and word not in ok:
        failure = (word, f"status {word!r}")
    elif word is not None and word not in ok:
        failure = (None, f"status {word!r}")
    elif word is None and finite(row.get("fitness")) is None:
        failure = (None, "no fitness and no status in the source")
    others = {name: _number(row[name]) for name in row.keys() - _COLUMNS}
    seconds = finite(row.get("seconds"))
    return judged(row.get("fitness"), failure=failure, seconds=seconds, metrics=others)
