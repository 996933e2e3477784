"""Logs of ShinkaEvolve: its SQLite database of programs.

A generation of its own is one work item, numbered from 0, so N = 1. Fitness counts only where
`correct` is 1. Work items without a program are failed proposals; newer databases keep their
account in `attempt_log`.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Mapping
from contextlib import closing
from pathlib import Path
from urllib.parse import quote

from evo.logs.records import Child, Status
from evo.logs.types import Fields
from replay.importers import foreign, reading
from replay.importers.foreign import Failure, Imported
from replay.importers.reading import LogFormatError

_FILES = ("programs.sqlite", "evolution_db.sqlite")
_NEEDED = ("id", "generation", "combined_score", "correct")
_COLUMNS = (*_NEEDED, "code", "parent_id", "public_metrics", "text_feedback", "island_idx")
_FAILED: dict[str, Status] = {
    "llm_output_invalid": "no_program",
    "patch_apply_failed": "no_program",
}
"""Its own classes of failed proposals that say what became of the call."""
_COPIES = ("_is_island_copy", "_spawned_island")
"""Marks of copies: onto the islands of the beginning, and onto one that begins later."""
_COSTS = ("api_costs", "embed_cost", "novelty_cost", "meta_cost")

Row = Fields


def recognises(path: Path) -> bool:
    """Whether the path is such a database, or a folder with one."""
    return _database(path) is not None


def _database(path: Path) -> Path | None:
    candidates = [path / name for name in _FILES] if path.is_dir() else [path]
    return next((c for c in candidates if c.is_file() and c.suffix == ".sqlite"), None)


def read(path: Path) -> list[Imported]:
    """Reads a results folder, or its database."""
    database = _database(path)
    if database is None:
        raise LogFormatError(f"{path}: expected {' or '.join(_FILES)}")
    programs, failures = _tables(database)
    own = [row for row in programs if not any(row["metadata"].get(mark) for mark in _COPIES)]
    by_generation: dict[int, list[Row]] = {}
    for row in own:
        by_generation.setdefault(row["generation"], []).append(row)
    lost = ["seeds and the times of calls", "all calls but the last for each program"]
    if copies := len(programs) - len(own):
        what = "copy" if copies == 1 else "copies"
        lost.append(f"{copies} {what} of the initial program or between islands")
    places = {row["id"]: (row["generation"], 0) for row in programs}
    children: list[Child] = []
    seconds: list[float | None] = []
    for number in range(1, max([0, *by_generation, *failures]) + 1):
        rows = by_generation.get(number, [])
        if len(rows) > 1:
            further = "program" if len(rows) == 2 else "programs"
            lost.append(f"{len(rows) - 1} further {further} of generation {number}")
        children.append(_child(rows[-1], places) if rows else _failure(number, failures))
        seconds.append(
            foreign.finite(rows[-1]["metadata"].get("pipeline_seconds")) if rows else None
        )
    if absent := sum(child.evaluation.error == foreign.NOT_IN_SOURCE for child in children):
        lost.append(f"{absent} of {len(children)} proposals, counted as failed calls")
    first = by_generation.get(0, [None])[0]
    stated = [row["metadata"] for row in own]
    set_to = {
        name: foreign.common(known[name] for known in stated if name in known)
        for name in ("temperature", "max_tokens")
    }
    # "local/NAME@URL" is a model at an endpoint of one's own: where is not its name.
    models = (str(known.get("model_name") or "").partition("@http")[0] for known in stated)
    run = foreign.assemble(
        path,
        "ShinkaEvolve",
        name=(path if path.is_dir() else path.parent).resolve().name,
        model=foreign.named(models),
        children=[[child] for child in children],
        initial=None if first is None else _child(first, places),
        lost=lost,
        sampling=set_to,
        seconds=seconds,
    )
    return [run]


def _tables(database: Path) -> tuple[list[Row], dict[int, Row]]:
    """Rows of `programs` in order of time, and the details of failed proposals by generation."""
    uri = f"file:{quote(str(database.resolve()))}?mode=ro"
    try:
        with closing(sqlite3.connect(uri, uri=True)) as connection:
            connection.row_factory = sqlite3.Row
            columns = {row["name"] for row in connection.execute("PRAGMA table_info(programs)")}
            if missing := sorted(set(_NEEDED) - columns):
                raise LogFormatError(
                    f"{database}: expected a table 'programs' with columns {sorted(_NEEDED)}, "
                    f"missing {missing}"
                )
            order = "generation, timestamp" if "timestamp" in columns else "generation"
            wanted = ", ".join(name for name in (*_COLUMNS, "metadata") if name in columns)
            programs = connection.execute(f"SELECT {wanted} FROM programs ORDER BY {order}")
            rows = [_checked(dict(row), database) for row in programs]
            names = connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")
            log = "SELECT * FROM attempt_log ORDER BY id"
            attempts = connection.execute(log) if ("attempt_log",) in map(tuple, names) else ()
            failures = [
                _checked(dict(row), database)
                for row in attempts
                if dict(row).get("status") == "failed"
            ]
    except (sqlite3.Error, UnicodeError, OverflowError) as error:
        raise LogFormatError(f"{database}: not a database of ShinkaEvolve: {error}") from None
    return rows, {row["generation"]: row["details"] for row in failures}


def _checked(row: dict[str, object], database: Path) -> Row:
    """The row with a generation that is one, and its JSON as dicts."""
    where = f"{database}: program or attempt {row.get('id')!r:.60}"
    row["generation"] = foreign.within(row.get("generation"), where)
    for column in ("metadata", "public_metrics", "details"):
        found = row.get(column) or "{}"
        if not isinstance(found, str):
            raise LogFormatError(f"{where}: expected text in column {column!r}, got {found!r:.60}")
        row[column] = reading.parse(found, dict[str, object] | None, f"{where}: {column}") or {}  # type: ignore[arg-type]
    return row


def _child(row: Row, places: Mapping[str, tuple[int, int]]) -> Child:
    """A child; `places` tells the generation of each program, copies between islands included."""
    metadata, metrics = row["metadata"], row["public_metrics"]
    result = foreign.mapping(metadata.get("llm_result"))
    # Its output tokens leave the reasoning out.
    output, thinking = (
        foreign.finite(result.get(f"{kind}_tokens")) for kind in ("output", "thinking")
    )
    costs = [known for name in _COSTS if (known := foreign.finite(metadata.get(name))) is not None]
    failure: Failure | None = None
    if row["correct"] != 1:
        texts = [row.get("text_feedback"), metadata.get("stderr_log")]
        words = "; ".join(each.strip()[-2000:] for each in texts if isinstance(each, str) and each)
        failure = (foreign.status_of(words), words or "not correct; the source does not say why")
    seconds = foreign.finite(metadata.get("compute_time"))
    return foreign.born(
        row["generation"],
        foreign.judged(row["combined_score"], failure=failure, metrics=metrics, seconds=seconds),
        attempts=foreign.answered(
            result.get("input_tokens"),
            None if output is None else output + (thinking or 0.0),
            dollars=sum(costs) or None,  # it writes 0 for a model whose price it does not know
        ),
        parent=places.get(str(row.get("parent_id"))),
        island=row.get("island_idx"),
        program=row.get("code"),
        reply=result.get("content"),
        reasoning=result.get("thought"),
        prompt=[("system", result.get("system_msg")), ("user", result.get("msg"))],
    )


def _failure(generation: int, failures: Mapping[int, Row]) -> Child:
    """A failed proposal, as recorded in `attempt_log`."""
    if generation not in failures:
        return foreign.failed(generation, (None, foreign.NOT_IN_SOURCE))
    details = failures[generation]
    reason = str(details.get("failure_reason") or "failed")
    status = _FAILED.get(str(details.get("failure_class")))
    return foreign.failed(
        generation, ("no_reply" if "content was none" in reason.lower() else status, reason)
    )
