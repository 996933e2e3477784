"""Logs to tidy tables: one row per generation, per child or per attempt.

Reading is typed and passes over replies and programs. What a source does not know is NaN or
missing, never zero.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pandas as pd

from evo.logs.cost import TimeoutRule
from evo.logs.journal import LogError
from evo.logs.log import Log
from evo.warning import warn
from replay.logs import cache as store
from replay.logs.costs import Calls
from replay.logs.decode import LeanRun, find_all, name_runs, read_run
from replay.logs.others import Source, how_to_go_on, in_words, lasting_name, with_origin
from replay.logs.repeats import Lines, lines_of, repeats_of
from replay.logs.rows import (
    RESCORED,
    UNNAMED,
    Rows,
    attempt_rows,
    child_rows,
    generation_rows,
    instance_rows,
    programs_of,
    run_row,
)
from replay.progress import shown
from replay.warmup import prepare_pictures, uncollected

ROUNDED = 1e-3
"""Fitness of equal programs may differ by so much, since tools round it."""

Logs = Source | Log | Iterable[Source | Log]
"""Logs, folders, glob patterns, allocation folders, or Log values."""


def load(
    *sources: Logs,
    strict: bool = True,
    timeouts: TimeoutRule = "worst_case",
    progress: bool | None = None,
    cache: bool | None = None,
    task: str | None = None,
) -> pd.DataFrame:
    """Reads logs into one row per run and complete generation, generation 0 included.

    Args:
        *sources: Logs, folders, glob patterns, allocation folders, or Log values.
        strict: Raise at a log that cannot be read; otherwise leave it out, warn, and list it
            with the reason in `frame.attrs["skipped"]`.
        timeouts: How attempts without usage count in tokens, FLOPs and dollars (arXiv
            2605.29268): `worst_case` as max_tokens of output, `exclude` as nothing, `bounded`
            as the median completion of the run's length-limited attempts.
        progress: Show a progress bar; None: on a screen, where reading takes more than a moment.
        cache: Whether the table is kept in the user's cache folder and taken from there the next
            time, if no log has changed; None: where reading takes more than a second.
        task: The task of runs of other tools that do not say it themselves (default: unknown).

    Returns:
        Columns run, task, task_version (two hashes: of what scores programs, and, after a point, of
        the statement and the first program; empty where a log does not hold its task), model, seed,
        children (N), search, settings (what else a run was made with, as far as it is not the
        default, such as `feedback; temperature 1.0`), unit_scale (whether the task's fitness lies
        in [0, 1]), header (hash; with `source` what a
        run is known by), forked_from (hash of what a fork shares with the run that it left; empty
        for others), copy (its number, else -1), root (hash of the header of the run that it began
        with, its own for others), rescored (whether it evaluates the programs of another log again
        that is read here too: it is the same run and cost nothing), repeat_of (name of the run
        here that holds the same configuration, seed and children, as where a cell was run twice;
        empty for runs that count), mixed (first generation that
        may hold programs of other runs; NaN: none), protocol and condition, generation,
        best_fitness (so far), and of that alone generation_best (of what no filter kept out),
        n_calls (those of evaluations,
        critics and other drafts too, as below, but not those for embeddings, which count in tokens
        and costs alone; generation 0 has no others, and what a fork
        inherited cost nothing), n_ok, n_repeats (children whose program is not new in the run; NaN
        in other tools' logs), n_attempts, n_without_usage, prompt_tokens, cached_tokens,
        completion_tokens (as far as reported), tokens (prompt and completion under the rule),
        flops, dollars (as another tool states them, else at the model's prices), call_seconds,
        evaluation_seconds (of generation 0 those of the initial program, which `children` does not
        list), seconds (wall; 0 for generation 0, of which no line states it); source. NaN where
        unknown.

    Raises:
        LogError: A log cannot be read; names file and line.

    Example:
        >>> len(replay.load(path, progress=False))  # generation 0 and two more
        3
    """
    check_task(task)
    [frame] = _kept(
        f"generations {timeouts}", sources,
        lambda calls: [generation_rows(calls, calls.spent(timeouts))], strict, progress, cache,
    )  # fmt: skip
    frame = _of_task(frame, task)
    _say_what_was_pooled(frame)
    return frame


def children(
    *sources: Logs,
    strict: bool = True,
    timeouts: TimeoutRule = "worst_case",
    progress: bool | None = None,
    cache: bool | None = None,
    task: str | None = None,
) -> pd.DataFrame:
    """Reads logs into one row per child, those of a generation under way included.

    Arguments as for `load`.

    Returns:
        Columns run, task, task_version, model, seed, children (N), search, settings, unit_scale,
        header, forked_from, copy, root, rescored, repeat_of, mixed, generation, index, status (None
        where another tool does not say), fitness (NaN unless ok; a child that was tried on some
        instances only is `partial` and has none), parent_fitness (NaN where another tool's log does
        not say), best_fitness (before the generation), improved (better than that, and no filter
        kept it out), inherited (by a fork: costs nothing), parents (generation and index of each),
        operator, edits (what its reply was asked to be, rewrite or diff; None where another tool
        does not say), asked_model (of several, the one that it was asked of), island (from 0, as
        another tool numbers them; NaN without), repeats (generation and index of the first with
        this program; None if it is new), kept_out (which filter kept it out of the archive after
        its evaluation, and why; empty if none did), draws, fitness_sd, stages (how many of its
        evaluation's stages gave a score; 0 without), audit_status and audit_fitness (of one that a
        stage refused and that was evaluated in full all the same), prompt_tokens, cached_tokens,
        completion_tokens, n_attempts, n_without_usage, finish_reason, tokens, flops, dollars,
        call_seconds (from prompt_tokens on, of the one call whose reply was evaluated: other
        drafts, and calls of critics, on instances, for embeddings and for advice, are counted by
        `load` and not here), evaluation_seconds, objective, strict_fitness, notes (the evaluator's
        words), error (why the child failed, or a warning about one that is ok); source.

    Example:
        >>> replay.children(path)["generation"].tolist()
        [1, 2]
    """
    check_task(task)
    [frame] = _kept(
        f"children {timeouts}", sources,
        lambda calls: [child_rows(calls, calls.spent(timeouts))], strict, progress, cache,
    )  # fmt: skip
    return _of_task(frame, task)


def attempts(*sources: Logs, strict: bool = True, progress: bool | None = None) -> pd.DataFrame:
    """Reads logs into one row per HTTP request; requests that a fork inherited are left out.

    Args:
        *sources: Logs, folders or patterns, as for `load`.
        strict: Whether a log that cannot be read is an error; if not, it is left out with a
            warning.
        progress: Whether to show a progress bar (default: if reading takes long).

    Returns:
        Columns run, generation, index (-1 for calls of evaluations and critics and for embeddings,
        and for drafts that were not evaluated), attempt (from 0 in a call), status, latency
        (seconds), prompt_tokens, cached_tokens, completion_tokens, finish_reason, http_status,
        error, source.

    Raises:
        LogError: A log cannot be read; the message names file and line.

    Example:
        >>> replay.attempts(path, progress=False)["status"].unique().tolist()
        ['ok']
    """
    [frame] = _kept("", sources, lambda calls: [attempt_rows(calls)], strict, progress, False)
    return frame


def instances(*sources: Logs, strict: bool = True, progress: bool | None = None) -> pd.DataFrame:
    """Reads logs of tasks with a data set into one row per evaluation and instance.

    Logs of other tasks have no rows.

    Args:
        *sources: Logs, folders or patterns, as for `load`.
        strict: Whether a log that cannot be read is an error; if not, it is left out with a
            warning.
        progress: Whether to show a progress bar (default: if reading takes long).

    Returns:
        The columns of `children` up to mixed, and generation, index, instance (its id), status,
        score (in [0, 1], NaN unless ok), source. Generation 0 is the initial program, with index 0.

    Raises:
        LogError: A log cannot be read; the message names file and line.

    Example:
        >>> settings = {"generations": 1, "children": 1, "log_dir": new(""), "progress": False}
        >>> runs = evo.run_many("obp", seeds=[1], **settings)
        >>> replay.instances(*runs).columns.tolist()[-3:]
        ['status', 'score', 'source']
    """
    [frame] = _kept("", sources, lambda calls: [instance_rows(calls)], strict, progress, False)
    return frame


class Tables(NamedTuple):
    """Tables of the same logs, read once.

    Attributes:
        runs: One row per run: the first columns of `load` up to mixed, generations (T, complete
            ones), n_calls and sums of what `children` states over all calls, is_llm, compact, tool
            (that wrote the original), lost (in an import, in words),
            configuration (JSON of all that identifies a run but N
            and seed), ending (what the end of the log lacks, in words), noise (that evaluations are
            noisy and the run does not allow for it, in words; empty of others),
            n_tests (of rivals on fresh draws), n_accepted (of these),
            false_acceptances (that their error rates allow on average),
            gain (final less initial fitness), fresh_gain (the same on draws that no decision saw;
            NaN where there were none), source.
        generations: As `load` returns it.
        children: As `children` returns it.
    """

    runs: pd.DataFrame
    generations: pd.DataFrame
    children: pd.DataFrame

    def copy(self) -> Tables:
        """The same rows in tables of their own."""
        return Tables(*(table.copy() for table in self))


def load_tables(
    *sources: Logs,
    strict: bool = True,
    timeouts: TimeoutRule = "worst_case",
    progress: bool | None = None,
    cache: bool | None = None,
    task: str | None = None,
) -> Tables:
    """Reads logs once and returns all tables that a report needs.

    Args:
        *sources: Logs, folders or patterns, as for `load`.
        strict: Whether a log that cannot be read is an error; if not, it is left out with a
            warning.
        timeouts: How calls without usage are counted: "worst_case", "bounded" or "exclude".
        progress: Whether to show a progress bar (default: if reading takes long).
        cache: Whether to keep the tables in the user's cache folder (default: if reading is slow).
        task: The task of runs of other tools that do not say it themselves (default: unknown).

    Returns:
        The tables `runs`, `generations` and `children`.

    Raises:
        LogError: A log cannot be read; the message names file and line.

    Example:
        >>> tables = replay.load_tables(path)
        >>> len(tables.runs), len(tables.generations)
        (1, 3)
    """

    def make(calls: Calls) -> list[Rows]:
        spent = calls.spent(timeouts)
        return [rows(calls, spent) for rows in (run_row, generation_rows, child_rows)]

    check_task(task)
    read = _kept(f"tables {timeouts}", sources, make, strict, progress, cache)
    tables = Tables(*(_of_task(table, task) for table in read))
    _say_what_was_pooled(tables.generations)
    return tables


def check_task(task: object) -> None:
    """Raises ValueError for what cannot be the name of a task."""
    if task is not None and not (isinstance(task, str) and task.strip()):
        raise ValueError(f"task: expected the name of the runs' task, got {task!r:.80}")


def _of_task(table: pd.DataFrame, task: str | None) -> pd.DataFrame:
    """A table in which runs that do not say their task are of the one that is given."""
    if task is None:
        return table
    named = table.assign(task=table["task"].replace(UNNAMED, task))
    named.attrs = table.attrs
    return named


def _kept(
    what: str,
    sources: Sequence[Logs],
    make: Callable[[Calls], Sequence[Rows]],
    strict: bool,
    progress: bool | None,
    cache: bool | None,
) -> list[pd.DataFrame]:
    """The tables of `_collect`, out of the cache where it has them; `what` names them there."""
    paths, skipped = find_all(sources, strict=strict)
    marks = None if cache is False else store.marks_of(paths)
    name, foreign = store.name_of(what, marks) if marks else "", len(skipped)
    if marks and (found := store.fetch(name, marks)) is not None:
        for frame in found:
            frame.attrs["skipped"] = skipped
        _say_what_was_left(skipped, len(paths) + foreign)
        return found
    start = time.perf_counter()
    frames = _collect(paths, skipped, make, strict, progress)
    slow = time.perf_counter() - start > store.SLOW
    if marks and (cache or slow) and len(skipped) == foreign:
        store.keep(name, marks, frames)
    return frames


def _collect(
    paths: Sequence[Path],
    skipped: list[tuple[str, str]],
    make: Callable[[Calls], Sequence[Rows]],
    strict: bool,
    progress: bool | None,
) -> list[pd.DataFrame]:
    """Reads each log once and makes the rows of each table of it; adds to what was left out."""
    parts: list[Sequence[Rows]] = []
    foreign = len(skipped)
    names = name_runs(paths)
    prepare_pictures()
    rescored: list[tuple[int, LeanRun]] = []
    originals: dict[str, LeanRun] = {}
    lines: list[Lines] = []
    with uncollected():
        for path in shown(paths, "reading logs", "log", progress=progress):
            try:
                run = read_run(path, names[path])
            except LogError as error:
                words = with_origin(error, path)
                if strict:
                    words += how_to_go_on(path, others=len(paths) > 1)
                    raise type(error)(words) from None
                skipped.append((lasting_name(path), words))
                continue
            if run.header.source.startswith(RESCORED):
                rescored.append((len(parts), run))
            else:
                originals.setdefault(programs_of(run.header), run)
            parts.append(make(Calls(run)))
            lines.append(lines_of(run))
        for place, run in rescored:  # what their originals are is known now
            if original := originals.get(programs_of(run.header)):
                parts[place] = make(Calls(run, of=original))
    repeats = repeats_of(lines)
    for run_lines, part in zip(lines, parts, strict=True):
        for rows in part:
            if "repeat_of" in rows:
                rows["repeat_of"] = repeats.get(run_lines.name, "")
    if not parts:
        unread = skipped[foreign:] or ([] if paths else skipped)
        raise LogError(
            f"none of {len(unread)} logs can be read; the first: {unread[0][1]}"
            if unread
            else "expected at least one log, got none"
        )
    _say_what_was_left(skipped, len(paths) + foreign)
    frames = [_concatenate(rows) for rows in zip(*parts, strict=True)]
    for frame in frames:
        frame.attrs["skipped"] = skipped
    return frames


def _say_what_was_left(skipped: Sequence[tuple[str, str]], logs: int) -> None:
    if skipped:
        warn(f"{len(skipped)} of {logs} logs were left out: {in_words(skipped)}")


def _say_what_was_pooled(generations: pd.DataFrame) -> None:
    """Warns where runs whose task nobody named begin unlike, and so are hardly of one task."""
    first = generations[(generations["generation"] == 0) & (generations["task"] == UNNAMED)]
    first = first.dropna(subset=["best_fitness"]).sort_values("best_fitness", kind="stable")
    if len(first) < 2:
        return
    least, most = first.iloc[0], first.iloc[-1]
    low, high = least["best_fitness"], most["best_fitness"]
    if not math.isclose(low, high, rel_tol=ROUNDED, abs_tol=ROUNDED):
        warn(
            f"{len(first)} runs do not say what task they are of and count as runs of one, but "
            f"they begin with a fitness from {low:.4g} ({least['run']}) to {high:.4g} "
            f"({most['run']}); if they are of one, name it (task=, `--task NAME`); if of several, "
            "load those of each with the name of theirs"
        )


def _concatenate(parts: Sequence[Rows]) -> pd.DataFrame:
    lengths = [next(len(v) for v in part.values() if isinstance(v, np.ndarray)) for part in parts]
    columns: dict[str, object] = {}
    for name, first in parts[0].items():
        if isinstance(first, np.ndarray):
            columns[name] = np.concatenate([part[name] for part in parts])
        elif isinstance(first, list):
            columns[name] = [cell for part in parts for cell in part[name]]
        else:  # one value for the whole run
            columns[name] = np.repeat(np.array([part[name] for part in parts]), lengths)
    try:
        return pd.DataFrame(columns)
    except UnicodeEncodeError:  # a path that is not UTF-8 has no place in a column of Arrow's
        kept = {
            name: pd.Series(values, dtype=object)
            if np.asarray(values).dtype.kind in "UO"
            else values
            for name, values in columns.items()
        }
        return pd.DataFrame(kept)
