"""Tables of one row per call, in CSV: the caller says which column is what."""

from __future__ import annotations

import csv
import io
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path

from evo.records import Child, Model, Status
from replay.importers.foreign import (
    UNKNOWN_SEED,
    Imported,
    LogFormatError,
    answered,
    assemble,
    failed,
    finite,
    judged,
    read_text,
)

NAME = "table"
_MOST_ROUNDS = 100_000

Row = Mapping[str, str | None]


def read(
    path: Path,
    *,
    run: Sequence[str],
    generation: str,
    fitness: str,
    outcome: str | None = None,
    ok: Collection[str] = ("ok", "valid"),
    tokens: tuple[str, str] | None = None,
    task: str = "unknown",
    model: str = "unknown",
) -> list[Imported]:
    """Reads a CSV file, plain or gzip, with one row per run and call.

    Every row is a child of its own generation (N = 1); there is no generation 0. Rows of a run
    whose generation is missing are failed calls. The first generation, whatever its number in the
    file, becomes 1.

    Args:
        path: The file; its first line names the columns.
        run: Columns that together name a run.
        generation: Column that orders its rows, whole numbers.
        fitness: Column of the child's fitness; empty or not finite is a failure.
        outcome: Column that says how it ended; None: every finite fitness is ok.
        ok: Values of `outcome` that mean ok; `timeout`, `invalid` and the other statuses of this
            package are kept, anything else becomes `error` with the word itself.
        tokens: Columns of prompt and completion tokens of that call.
        task: Name of the task.
        model: Name of the model.

    Raises:
        LogFormatError: The file cannot be read, or a column or number is missing; names the line.
    """
    reader = csv.DictReader(io.StringIO(read_text(path), newline=""))
    needed = [*run, generation, fitness, *([outcome] if outcome else []), *(tokens or ())]
    runs: dict[tuple[str, ...], dict[int, Row]] = {}
    try:
        missing = [name for name in needed if name not in (reader.fieldnames or ())]
        if missing:
            raise LogFormatError(f"{path}:1: expected columns {needed}, missing {missing}")
        for row in reader:
            where = f"{path}:{reader.line_num}"
            key = tuple(row[name] or "" for name in run)
            number = _number(row[generation])
            if number is None or not number.is_integer():
                raise LogFormatError(
                    f"{where}: expected a whole number in column {generation!r}, "
                    f"got {row[generation]!r:.60}"
                )
            if int(number) in runs.setdefault(key, {}):
                raise LogFormatError(f"{where}: run {key} has generation {int(number)} twice")
            runs[key][int(number)] = row
    except csv.Error as error:
        raise LogFormatError(f"{path}:{reader.line_num}: not CSV: {error}") from None
    if not runs:
        raise LogFormatError(f"{path}: expected at least one row, got none")
    first = min(number for rows in runs.values() for number in rows)
    last = max(number for rows in runs.values() for number in rows)
    if last - first > _MOST_ROUNDS:
        raise LogFormatError(f"{path}: expected at most {_MOST_ROUNDS} generations, got {last}")
    made = []
    for key, rows in runs.items():
        children = [
            [
                _child(rows[number], number - first + 1, fitness, outcome, ok, tokens)
                if number in rows
                else failed(number - first + 1, 0, "no_reply", "not in the source")
            ]
            for number in range(first, max(rows) + 1)
        ]
        made.append(
            assemble(
                path,
                NAME,
                name="_".join(part.replace("/", "-") for part in key) or path.stem,
                task=task,
                model=Model(name=model),
                children=children,
                initial=None,
                lost=("whatever the table has no column for", "generation 0"),
            )
        )
    return made


def _child(
    row: Row,
    generation: int,
    fitness: str,
    outcome: str | None,
    ok: Collection[str],
    tokens: tuple[str, str] | None,
) -> Child:
    failure: tuple[Status, str] | None = None
    word = row[outcome] if outcome else None
    if outcome and word not in ok:
        kept: dict[str, Status] = {
            "no_reply": "no_reply",
            "no_program": "no_program",
            "invalid": "invalid",
            "timeout": "timeout",
        }
        failure = (kept.get(word or "", "error"), f"outcome {word!r}")
    prompt, completion = (_number(row[name]) for name in tokens) if tokens else (None, None)
    return Child(
        generation=generation,
        index=0,
        seed=UNKNOWN_SEED,
        prompt_hash="",
        attempts=answered(prompt, completion),
        evaluation=judged(_number(row[fitness]), failure=failure),
    )


def _number(text: str | None) -> float | None:
    """The number in a cell; None for an empty cell or one that holds no finite number."""
    try:
        return finite(float(text)) if text else None
    except ValueError:
        return None
