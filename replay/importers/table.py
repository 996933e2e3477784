"""Any tool's runs as one table: CSV, TSV, JSON lines or Parquet, one row per evaluated child.

| column | |
|---|---|
| `run` | names the run, in every row; without such a column the table is one run |
| `task`, `model`, `seed` | of the run |
| `search` | of the run, which tells configurations apart: `greedy` where every child rewrites the best program so far, which `replay.plan` needs; anything else counts as a search of its own, and without it the search is called `table` |
| `generation` | of the child, 0 is the initial program; or `order`, any number by which a run's rows are sorted, then each row is a generation of its own |
| `index` | of the child in its generation, from 0; without it the rows of a generation are counted |
| `status` | `ok`, `no_reply`, `no_program`, `invalid`, `error` or `timeout`, or a word that plainly means one of them, such as `exception` or `sr_fail`; another word is kept as the error and the status stays missing; without it, a child with a fitness is ok |
| `fitness` | higher is better; empty where there is none |
| `parent_generation`, `parent_index`, `island` | where the child comes from |
| `prompt_tokens`, `completion_tokens`, `cached_tokens`, `dollars`, `seconds` | of its call; `seconds` of its evaluation |
| `prompt_tokens_so_far`, ... | the same four, counted from the beginning of the run; what lies between two numbers is that of the later row |
| `program` | its text; of generation 0 the initial program |

`generation` (or `order`) and `fitness` are needed. What is missing stays missing; further columns
are kept as metrics where they are numbers. A child that a generation lacks, up to the most that any
of the run has, is a failed call. Names may be written in capitals; a file that has others is read
with `columns=`, such as `replay.importers.load("mine.csv", columns={"run": "trial"})`, or
`replay import table mine.csv --columns run=trial`. A unit in brackets, such as `seconds (s)`, is no
part of a name where it is ours; columns that look like costs and are not taken are warned of.
"""  # noqa: E501

from __future__ import annotations

import collections
import itertools
import os
import re
from collections.abc import Collection, Hashable, Mapping, Sequence
from pathlib import Path
from typing import get_args

from evo.logs.records import Child, Model, SearchRecord, Status
from evo.logs.types import as_path
from evo.warning import and_more, warn
from replay.importers import cells, counters, foreign
from replay.importers.cells import SEVERAL_RUNS, CallTable, Named, Row
from replay.importers.foreign import Failure, Imported
from replay.importers.reading import LogFormatError

_NO_NUMBER = {"", "-", "nan", "na", "n/a", "none", "null"}
"""What tables write where there is no fitness."""

_Runs = dict[str, list[tuple[str, Row]]]
"""Rows by their run, each with where it stands."""

_COSTS = {
    "prompt_tokens",
    "completion_tokens",
    "cached_tokens",
    "dollars",
    "seconds",
    *cells.SO_FAR,
}
_WORDS = {"run", "task", "model", "search", "status"}
_PLAIN: dict[Status, str] = {
    "ok": "success succeeded successful passed correct valid",
    "error": "exception crash crashed runtime_error execution_error",
    "timeout": "timed_out time_out time_limit time_limit_exceeded",
    "invalid": "incorrect infeasible invalid_result",
    "no_program": "sr_fail sr_failed search_replace_failed diff_failed patch_failed no_code",
    "no_reply": "no_response empty_reply empty_response api_error llm_error request_failed",
}
"""Words of other tools for a status, in small letters."""
_STATUSES: dict[str, Status] = {
    **{status: status for status in get_args(Status)},
    **{word: status for status, words in _PLAIN.items() for word in words.split()},
}


def recognises(path: Path, columns: Named | None = None) -> bool:
    """Whether the path is a table with the columns that are needed."""
    if not cells.is_table(path):
        return False
    if path.name.endswith(".parquet"):
        return True
    names = cells.header_of(path)
    if names is None or any(each not in names for each in cells.theirs_of(columns or {})):
        return False
    return not cells.lacks(cells.ours_of(names, columns or {}))


def read(
    path: str | os.PathLike[str],
    *,
    columns: Named | None = None,
    ok: Collection[str] = ("ok", "valid"),
    task: str = "unknown",
    model: str = "unknown",
) -> list[Imported]:
    """Reads a table.

    Args:
        path: One that ends in .csv, .tsv, .jsonl (each also with .gz) or .parquet.
        columns: What the file calls our columns, as {"generation": "epoch"}; several columns
            together may name the run.
        ok: Words of `status` that mean ok.
        task: Name of the task where the table has none.
        model: Name of the model where the table has none.

    Raises:
        LogFormatError: The file cannot be read, or a column or number is missing; names the line.
        ValueError: `columns` names what is no column of ours.
    """
    path = as_path("path", path)
    cells.check_columns(columns or {})
    table = cells.table_of(path, columns or {})
    renamed = {theirs[0] for name, theirs in table.ours.items() if name not in (columns or {})}
    runs: _Runs = {}
    for line, row in table.rows:
        known = {name: row[name] for name in row if name not in table.ours and name not in renamed}
        for name, theirs in table.ours.items():
            values = [_bare(row.get(each)) for each in theirs]
            empty = any(value in (None, "") for value in values)
            joined = None if empty else "_".join(map(str, values))
            known[name] = row.get(theirs[0]) if len(theirs) == 1 and name != "run" else joined
        known |= {name: _number(known[name]) for name in cells.NUMBERS & known.keys()}
        known |= {name: _bare(known[name]) for name in _WORDS & known.keys()}
        word = known.get("status")
        is_ok = (isinstance(word, Hashable) and word in ok) or _status_of(word) == "ok"
        known["status"] = "ok" if is_ok else word
        known = {"task": task, "model": model} | {k: v for k, v in known.items() if v is not None}
        runs.setdefault(str(known.get("run", "")), []).append((f"{path}:{line}", known))
    if "run" not in table.ours:
        _warn_of_one_run(table)
    elif "" in runs and len(runs) > 1:
        raise LogFormatError(_no_run(runs, table.ours["run"]))
    _warn_of_unknown_words(path, [row for rows in runs.values() for _, row in rows])
    runs = _with_costs_that_are_numbers(runs)
    for name in cells.SO_FAR.keys() & table.ours.keys():
        runs = {of: counters.taken_apart(rows, name) for of, rows in runs.items()}
    if words := cells.costs_not_taken(table):
        warn(f"{path}: {words}")
    if words := counters.rising(list(runs.values()), table.ours):
        warn(f"{path}: {words}")
    made = [_run(path, name, rows) for name, rows in runs.items()]
    if "run" in table.ours and "generation" not in table.ours:
        _warn_of_ties(table, runs)
    if "generation" in table.ours:
        there = [{row.get("generation") for _, row in rows} for rows in runs.values()]
        _warn_of_gaps(path, made, there)
    return made


def _status_of(word: object) -> Status | None:
    """What a word of another tool plainly says; None if that is not known."""
    if not isinstance(word, str):
        return None
    plain = re.sub(r"[^a-z]+", "_", word.lower()).strip("_")
    return _STATUSES.get(plain) or foreign.status_of(word)


def _warn_of_unknown_words(path: Path, rows: Sequence[Row]) -> None:
    """Warns of a status that is not known in rows that have a fitness, which do not count as ok.

    A fitness of 0 is what many tools write for a failure.
    """
    stated = [row.get("status") for row in rows if foreign.finite(row.get("fitness"))]
    words = [str(word) for word in stated if word is not None and _status_of(word) is None]
    if words:
        first = dict.fromkeys(words)
        warn(
            f"{path}: {len(words)} row{'s' * (len(words) > 1)} with a fitness ha"
            f"{'ve' if words[1:] else 's'} the status {', '.join(map(repr, [*first][:3]))}, which "
            "is none that is known: such children have no fitness; write 'ok' where they have one"
        )


def _with_costs_that_are_numbers(runs: Mapping[str, list[tuple[str, Row]]]) -> _Runs:
    """Rows without costs that are no numbers, or no whole ones of tokens, which are warned of.

    A point before the last three digits is one of thousands where tokens are counted.
    """
    kept: _Runs = {}
    wrong: dict[str, list[tuple[str, object]]] = {}
    for of, rows in runs.items():
        for where, row in rows:
            left = [name for name in sorted(_COSTS & row.keys()) if _is_no_cost(name, row[name])]
            for name in left:
                if str(row[name]).strip().lower() not in _NO_NUMBER:
                    wrong.setdefault(name, []).append((where, row[name]))
            kept.setdefault(of, []).append((where, {k: v for k, v in row.items() if k not in left}))
    for name, found in wrong.items():
        places = and_more([where for where, _ in found])
        kind = "whole number" if "tokens" in name else "number"
        warn(
            f"{places}: expected a {kind} in column {name!r}, with a point before "
            f"decimals and nothing between thousands, got {found[0][1]!r:.60}; such cells are "
            "taken for empty"
        )
    return kept


def _is_no_cost(name: str, cell: object) -> bool:
    return isinstance(cell, str) or ("tokens" in name and isinstance(cell, float) and cell % 1 != 0)


def _warn_of_one_run(table: CallTable) -> None:
    """Warns where a table that does not name its runs looks as if it held several."""
    rows, names = [row for _, row in table.rows], []
    for name in cells.close_to("run", table.names):
        values = {str(row.get(name)) for row in rows}
        if 1 < len(values) <= len(rows) / 2:
            names.append(name)
    taken = f"{table.path}: has no column 'run', so its {len(rows)} rows are taken for one run"
    if names:
        warn(
            f"{taken}; {' and '.join(map(repr, names))} may name the runs: if so, pass "
            f"columns={{'run': {names[0]!r}}} to replay.importers.load, or `--columns "
            f"run={names[0]}` to `replay import table`"
        )
    elif "order" in table.ours and "generation" not in table.ours:
        order = [str(row.get(table.ours["order"][0])) for row in rows]
        if len(set(order)) < len(order):
            warn(
                f"{taken}, but numbers of {table.ours['order'][0]!r} stand there several times: if "
                "it holds several runs, name each row's in a column 'run'"
            )


def _warn_of_ties(table: CallTable, runs: Mapping[str, Sequence[tuple[str, Row]]]) -> None:
    """Warns where numbers of `order` recur in a run, which may be several runs or generations."""
    tied, most = [], 1
    for name, rows in runs.items():
        times = max(collections.Counter(row.get("order") for _, row in rows).values())
        most = max(most, times)
        if times > 1:
            tied.append(name)
    if tied:
        more = f" and {len(tied) - 1} more of {len(runs)} runs" if tied[1:] else ""
        order, run = table.ours["order"][0], [*table.ours["run"], "COLUMN"]
        with_one = ",".join(f"run={name}" for name in run)
        warn(
            f"{table.path}: in run {tied[0]!r}{more}, numbers of {order!r} stand up to {most} "
            "times; their rows are taken for generations of one child, in the order of the file: "
            "if they are of several runs, name these by several columns, as columns={'run': "
            f"{run}}} or `--columns {with_one}`; if they are "
            "children of one generation, give the numbers, from 1, as 'generation'"
        )


def _no_run(runs: Mapping[str, Sequence[tuple[str, Row]]], theirs: Sequence[str]) -> str:
    """Says which rows do not name their run where others do."""
    rows = runs[""]
    more = f", nor in {len(rows) - 1} more rows" if rows[1:] else ""
    return (
        f"{rows[0][0]}: expected the name of a run in {' and '.join(map(repr, theirs))}, as in "
        f"other rows, got none there{more}; name each row's run, or leave the row out"
    )


def _bare(cell: object) -> object:
    """A cell without the spaces around its text."""
    return cell.strip() if isinstance(cell, str) else cell


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


def _order(row: tuple[str, Row]) -> float:
    """What a row is sorted by."""
    where, known = row
    order = foreign.finite(known.get("order"))
    if order is None:
        raise LogFormatError(
            f"{where}: expected a number in column 'order', got {known.get('order')!r:.60}"
        )
    return order


def _warn_of_gaps(path: Path, runs: Sequence[Imported], rows: Sequence[Collection[object]]) -> None:
    """Warns where runs have no row of a generation before their last; `rows` has those there."""
    calls, first, gappy = 0, "", 0
    for run, there in zip(runs, rows, strict=True):
        gaps = sorted({*range(1, len(run.generations) + 1)} - {*there})
        calls += len(gaps) * run.header.children
        gappy += bool(gaps)
        if gaps and not first:
            first = f"run {run.name!r} of generation{'s' if gaps[1:] else ''} "
            first += ", ".join(map(str, gaps[:5])) + (", ..." if gaps[5:] else "")
    if gappy:
        several = (
            f"{gappy} of {len(runs)} runs lack rows of generations, such as " if runs[1:] else ""
        )
        counted = "1 failed call is" if calls == 1 else f"{calls:,} failed calls are"
        lack = first if several else f"{first.replace(' of ', ' has no row of ', 1)}"
        warn(f"{path}: {several}{lack}: {counted} counted in their place")


def _run(path: Path, name: str, rows: list[tuple[str, Row]]) -> Imported:
    where, first = rows[0]
    _check_one_run(name, rows)
    _warn_of_doubles(name, rows)
    if not any("generation" in row for _, row in rows):
        rows = sorted(rows, key=_order)
        rows = [(line, {**row, "generation": k}) for k, (line, row) in enumerate(rows, start=1)]
    start, placed = _placed(name, rows)
    last = max(placed, default=0)
    n = max((index for members in placed.values() for index in members), default=0) + 1
    seed = _whole(first, "seed", where, 2**53)
    return foreign.assemble(
        path,
        "table",
        name=name.replace("/", "-") or path.name.partition(".")[0],
        task=str(first["task"]),
        model=Model(name=str(first["model"])),
        seed=foreign.UNKNOWN_SEED if seed is None else seed,
        children=[list(placed.get(number, {}).values()) for number in range(1, last + 1)],
        n=n,
        initial=start,
        search=SearchRecord(name=str(first["search"])) if first.get("search") else None,
        lost=["whatever the table has no column for", *([] if start else ["generation 0"])],
    )


def _check_one_run(name: str, rows: Sequence[tuple[str, Row]]) -> None:
    """Raises where rows of one name are of several runs."""
    _, first = rows[0]
    for column, (line, row) in itertools.product(("task", "model", "seed", "search"), rows):
        if str(row.get(column)) != str(first.get(column)):
            raise LogFormatError(
                f"{line}: run {name!r} has more than one {column}, {first.get(column)!r:.60} and "
                f"{row.get(column)!r:.60}; give each run a name of its own in column 'run'; "
                f"{SEVERAL_RUNS}"
            )


def _placed(
    name: str, rows: Sequence[tuple[str, Row]]
) -> tuple[Child | None, dict[int, dict[int, Child]]]:
    """The initial program, if it is there, and the children by generation and index."""
    placed: dict[int, dict[int, Child]] = {}
    start: Child | None = None
    for line, row in rows:
        generation = _whole(row, "generation", line)
        if generation is None:
            raise LogFormatError(f"{line}: expected a whole number in column 'generation'")
        if generation == 0:
            given = _child({**row, "parent_generation": None}, 0, 0, line)
            if start not in (None, given):
                raise LogFormatError(
                    f"{line}: run {name!r} has several rows of generation 0, expected at most one, "
                    "of its initial program; if the generations of children are counted from 0, "
                    "add 1 to each"
                )
            start = given
            continue
        members = placed.setdefault(generation, {})
        index = _whole(row, "index", line)
        index = max(members, default=-1) + 1 if index is None else index
        if index in members:
            raise LogFormatError(f"{line}: run {name!r} has child {(generation, index)} twice")
        members[index] = _child(row, generation, index, line)
    return start, placed


def _child(row: Row, generation: int, index: int, where: str) -> Child:
    word, fitness = row.get("status"), foreign.finite(row.get("fitness"))
    if isinstance(text := row.get("fitness"), str) and text.strip().lower() not in _NO_NUMBER:
        raise LogFormatError(
            f"{where}: expected a number in column 'fitness', with a point before its decimals, or "
            f"nothing where there is none, got {text!r:.60}"
        )
    foreign.require_in_reach(fitness, where)
    failure: Failure | None = None
    if word is not None and word != "ok":
        failure = (_status_of(word), f"status {word!r}")
    elif word is None and fitness is None:
        failure = (None, "no fitness and no status in the source")
    others = {name: _number(row[name]) for name in row if name not in cells.COLUMNS}
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
