"""Logs of ShinkaEvolve: its SQLite database of programs.

A generation of its own is one work item, numbered from 0, so N = 1. Fitness counts only where
`correct` is 1. Work items without a program are failed proposals, of which newer databases keep an
account in `attempt_log`.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Mapping
from pathlib import Path
from typing import Any
from urllib.parse import quote

from evo.records import Child, Evaluation, Sampling, Status
from replay.importers.foreign import (
    NOT_IN_SOURCE,
    Failure,
    Imported,
    LogFormatError,
    answered,
    assemble,
    born,
    common,
    failed,
    finite,
    judged,
    named,
    parse,
    told,
)

NAME = "ShinkaEvolve"
_FILES = ("programs.sqlite", "evolution_db.sqlite")
_MOST_GENERATIONS = 100_000

Row = Mapping[str, Any]


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
    programs, attempts = _tables(database)
    details = {row["id"]: _json(row, "metadata", database) for row in programs}
    own = [row for row in programs if not details[row["id"]].get("_is_island_copy")]
    by_generation: dict[int, list[Row]] = {}
    for row in own:
        by_generation.setdefault(_generation(row, database), []).append(row)
    failures: dict[int, Row] = {}
    for row in attempts:
        if row.get("status") == "failed":
            failures[_generation(row, database)] = row
    last = max([0, *by_generation, *failures])
    initial = by_generation.get(0, [])
    lost = ["seeds and the times of calls"]
    if copies := len(programs) - len(own):
        lost.append(f"{copies} copies of the initial program or between islands")
    places = {row["id"]: (_generation(row, database), 0) for row in programs}
    generations = []
    seconds: list[float | None] = []
    for number in range(1, last + 1):
        rows = by_generation.get(number, [])
        if len(rows) > 1:
            lost.append(f"{len(rows) - 1} further programs of generation {number}")
        if rows:
            known = details[rows[-1]["id"]]
            generations.append([_child(rows[-1], number, known, places, database)])
            seconds.append(finite(known.get("pipeline_seconds")))
        else:
            generations.append([_failure(failures.get(number), number, database)])
            seconds.append(None)
    absent = sum(group[0].evaluation.error == NOT_IN_SOURCE for group in generations)
    if absent:
        lost.append(f"{absent} of {last} proposals, counted as failed calls")
    stated = [details[row["id"]] for row in own]
    limit = common(found["max_tokens"] for found in stated if "max_tokens" in found)
    return [
        assemble(
            path,
            NAME,
            name=(path if path.is_dir() else path.parent).resolve().name,
            # "local/NAME@URL" is a model at an endpoint of one's own: where is not its name.
            model=named(
                str(found.get("model_name") or "").partition("@http")[0] for found in stated
            ),
            children=generations,
            initial=_evaluation(initial[0], details[initial[0]["id"]], database)
            if initial
            else None,
            program=_text(initial[0], "code") if initial else None,
            lost=lost,
            sampling=Sampling(
                temperature=common(f["temperature"] for f in stated if "temperature" in f),
                top_p=None,
                max_tokens=None if limit is None else int(limit),
            ),
            seconds=seconds,
        )
    ]


def _text(row: Row, column: str) -> str | None:
    value = row.get(column)
    return value if isinstance(value, str) else None


def _tables(database: Path) -> tuple[list[Row], list[Row]]:
    """Rows of `programs` in order of time, and of `attempt_log` where there is one."""
    uri = f"file:{quote(str(database.resolve()))}?mode=ro"
    try:
        connection = sqlite3.connect(uri, uri=True)
    except sqlite3.Error as error:
        raise LogFormatError(f"{database}: cannot be opened: {error}") from None
    try:
        columns = {row[1] for row in connection.execute("PRAGMA table_info(programs)")}
        needed = {"id", "generation", "combined_score", "correct"}
        if missing := needed - columns:
            raise LogFormatError(
                f"{database}: expected a table 'programs' with columns {sorted(needed)}, "
                f"missing {sorted(missing)}"
            )
        connection.row_factory = sqlite3.Row
        order = "generation, timestamp" if "timestamp" in columns else "generation"
        wanted = [
            name
            for name in ("id", "code", "parent_id", "generation", "combined_score", "correct",
                         "public_metrics", "text_feedback", "island_idx", "metadata")
            if name in columns
        ]  # fmt: skip
        programs: list[Row] = [
            dict(row)
            for row in connection.execute(
                f"SELECT {', '.join(wanted)} FROM programs ORDER BY {order}"
            )
        ]
        names = {
            row[0]
            for row in connection.execute("SELECT name FROM sqlite_master WHERE type='table'")
        }
        attempts: list[Row] = (
            [dict(row) for row in connection.execute("SELECT * FROM attempt_log ORDER BY id")]
            if "attempt_log" in names
            else []
        )
    except (sqlite3.Error, UnicodeError, OverflowError) as error:
        raise LogFormatError(f"{database}: not a database of ShinkaEvolve: {error}") from None
    finally:
        connection.close()
    return programs, attempts


def _generation(row: Row, database: Path) -> int:
    value = row.get("generation")
    if not isinstance(value, int) or not 0 <= value <= _MOST_GENERATIONS:
        raise LogFormatError(
            f"{database}: expected generations from 0 to {_MOST_GENERATIONS}, got {value!r}"
        )
    return value


def _json(row: Row, column: str, database: Path) -> dict[str, Any]:
    text = row.get(column)
    if text is None or text == "":
        return {}
    if not isinstance(text, str):
        raise LogFormatError(f"{database}: expected text in column {column!r}, got {text!r:.60}")
    where = f"{database}: {column} of {row.get('id')!r:.60}"
    return parse(text, dict[str, Any] | None, where) or {}  # type: ignore[arg-type]


def _child(
    row: Row,
    generation: int,
    metadata: Row,
    places: Mapping[str, tuple[int, int]],
    database: Path,
) -> Child:
    """A child; `places` tells the generation of each program, copies between islands included."""
    result = metadata.get("llm_result")
    result = result if isinstance(result, Mapping) else {}
    island = row.get("island_idx")
    return born(
        generation,
        _evaluation(row, metadata, database),
        attempts=answered(
            result.get("input_tokens"),
            _plus(result.get("output_tokens"), result.get("thinking_tokens")),
            cost=_cost(metadata),
        ),
        parent=places.get(str(row.get("parent_id"))),
        island=island if type(island) is int else None,
        program=row.get("code"),
        reply=result.get("content"),
        reasoning=_text(result, "thought") or None,
        prompt=[("system", result.get("system_msg")), ("user", result.get("msg"))],
    )


def _plus(output: object, thinking: object) -> float | None:
    """Completion tokens: ShinkaEvolve's `output_tokens` leave the reasoning out."""
    known = finite(output)
    return None if known is None else known + (finite(thinking) or 0.0)


def _cost(details: Row) -> float | None:
    """Dollars of a proposal, summed over what the source names; None if it names nothing."""
    parts = [
        finite(details.get(name))
        for name in ("api_costs", "embed_cost", "novelty_cost", "meta_cost")
    ]
    known = [part for part in parts if part is not None]
    return sum(known) if known else None


def _evaluation(row: Row, metadata: Row, database: Path) -> Evaluation:
    failure: Failure | None = None
    if row.get("correct") != 1:
        said = [row.get("text_feedback"), metadata.get("stderr_log")]
        words = "; ".join(text.strip()[-2000:] for text in said if isinstance(text, str) and text)
        failure = (told(words), words or "not correct; the source does not say why")
    return judged(
        row.get("combined_score"),
        failure=failure,
        metrics=_json(row, "public_metrics", database),
        seconds=finite(metadata.get("compute_time")),
    )


def _failure(row: Row | None, generation: int, database: Path) -> Child:
    """A failed proposal, as `attempt_log` tells it."""
    if row is None:
        return failed(generation, 0, None, NOT_IN_SOURCE)
    details = _json(row, "details", database)
    kind, reason = details.get("failure_class"), str(details.get("failure_reason") or "failed")
    status: Status = "no_program"
    if kind == "evaluation_submit_failed":
        status = "error"
    elif kind == "proposal_generation_failed" or "content was none" in reason.lower():
        status = "no_reply"
    return failed(generation, 0, status, reason)
