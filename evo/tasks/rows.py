"""The rows of a data set, from whatever a notebook has them in."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, cast

from evo.plugins import MistakenType

if TYPE_CHECKING:
    import pandas

    Rows = Iterable[Mapping[str, object]] | pandas.DataFrame | Path


def lines_of(instances: Rows, held_out: Rows | None, column: str, *, asked: bool = False) -> str:
    """Returns a data set as a folder holds it.

    Args:
        instances: Its rows.
        held_out: Rows that no search sees.
        column: What each row has to have; empty: nothing.
        asked: Whether a model is asked that, so that it has to be a text.
    """
    rows = rows_of(instances, column, "instances", asked=asked)
    held = [] if held_out is None else rows_of(held_out, column, "held_out", asked=asked)
    return as_lines(rows, held)


def rows_of(given: Rows, column: str, what: str, *, asked: bool = False) -> list[dict[str, object]]:
    """Returns rows as dicts of plain data; each has the column that is asked or given."""
    rows: list[Mapping[str, object]]
    if isinstance(given, Path):
        rows = _read_rows(given, what)
    elif hasattr(given, "to_dict") and hasattr(given, "columns"):
        rows = cast(list[Mapping[str, object]], given.to_dict("records"))
    elif isinstance(given, str | Mapping) or not isinstance(given, Iterable):
        file = f"; a file is Path({given!r:.80})" if isinstance(given, str) else ""
        raise ValueError(
            f"{what}: expected rows, as dicts, a DataFrame or a Path, got {given!r:.80}{file}"
        )
    else:
        rows = list(given)
    for number, row in enumerate(rows):
        if not isinstance(row, Mapping):
            raise ValueError(f"{what}: row {number}: expected a dict, got {row!r:.80}")
        if column and column not in row:
            have = ", ".join(map(str, row)) or "nothing"
            raise ValueError(
                f"{what}: row {number} has {have}, and no {column!r}; prompt='NAME' says which "
                "column is asked, or given to the program"
            )
        if asked and not isinstance(row[column], str):
            raise ValueError(
                f"{what}: row {number}: a model is asked its {column!r}, which has to be a text, "
                f"got {row[column]!r:.80}"
            )
    if not rows:
        raise ValueError(f"{what}: expected at least one row")
    return [{str(name): value for name, value in row.items()} for row in rows]


def _read_rows(path: Path, what: str) -> list[Mapping[str, object]]:
    if path.suffix == ".jsonl":
        lines = filter(str.strip, read_text(path, what).split("\n"))
        try:
            return [json.loads(line) for line in lines]
        except ValueError as error:
            raise ValueError(f"{what}: {path}: not JSON lines: {error}") from None
    if path.suffix in (".csv", ".parquet"):
        import pandas

        read = pandas.read_csv if path.suffix == ".csv" else pandas.read_parquet
        try:
            table = read(path.expanduser())
        except (OSError, ValueError) as error:
            raise ValueError(f"{what}: cannot read {str(path)!r}: {error}") from None
        return cast(list[Mapping[str, object]], table.to_dict("records"))
    raise ValueError(f"{what}: expected a .jsonl, .csv or .parquet file, got {str(path)!r}")


def as_lines(rows: Sequence[dict[str, object]], held: Sequence[dict[str, object]]) -> str:
    """Returns a data set as a folder holds it, a row to a line, with an `id` for each."""
    lines = []
    for place, row in enumerate([*rows, *held]):
        whole = {"id": str(row.get("id", place)), **row}
        whole["id"] = str(whole["id"])
        if place >= len(rows):
            whole["check"] = True
        try:
            lines.append(json.dumps(whole, ensure_ascii=False, default=_plain))
        except (TypeError, ValueError) as error:
            raise ValueError(
                f"instances: row {place}: a log holds plain data, numbers, texts and lists: {error}"
            ) from None
    return "".join(f"{line}\n" for line in lines)


def _plain(value: object) -> object:
    """Returns what stands in a log for an array, one of its numbers, or a date."""
    for name in ("tolist", "isoformat"):
        if callable(made := getattr(value, name, None)):
            return made()
    if isinstance(value, set | frozenset):
        return sorted(value)
    raise MistakenType(f"{type(value).__name__} {value!r:.40}")


def read_text(path: Path, what: str) -> str:
    """Returns the text of a file of the user's."""
    try:
        return path.expanduser().read_text(encoding="utf-8").removeprefix("\ufeff")
    except (OSError, UnicodeDecodeError) as error:
        raise ValueError(f"{what}: cannot read {str(path)!r}: {error}") from None
