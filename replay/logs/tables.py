"""Logs to tidy tables: one row per generation, per child or per attempt.

Reading is typed and passes over replies and programs. What a source does not know is NaN or
missing, never zero.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Sequence
from itertools import compress
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pandas as pd

from evo.logs.cost import TimeoutRule
from evo.logs.journal import LogError
from evo.logs.log import Log
from evo.logs.records import Header
from replay.logs.costs import REPORTED, Calls, floats
from replay.logs.decode import LeanRun, Source, beyond_range, find_all, name_runs, read_run
from replay.logs.frames import GREEDY
from replay.warmup import prepare_pictures, uncollected

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Floats = NDArray[np.float64]

Logs = Source | Log | Iterable[Source | Log]
"""Logs, folders, glob patterns, allocation folders, or Log values."""


def load(
    *sources: Logs,
    strict: bool = True,
    timeouts: TimeoutRule = "worst_case",
    progress: bool | None = None,
) -> pd.DataFrame:
    """Reads logs into one row per run and complete generation, generation 0 included.

    Args:
        *sources: Logs, folders, glob patterns, allocation folders, or Log values.
        strict: Raise at a log that cannot be read; otherwise leave it out, warn, and list it
            with the reason in `frame.attrs["skipped"]`.
        timeouts: How attempts without usage count in tokens, FLOPs and dollars (arXiv
            2605.29268): `worst_case` as max_tokens of output, `exclude` as nothing, `bounded`
            as the median completion of the run's length-limited attempts.
        progress: Show a progress bar; None: for 50 files or more.

    Returns:
        Columns run, task, model, seed, children (N), search, header (hash; with `source` what a
        run is known by), forked_from (hash of what a fork shares with the run that it left; empty
        for others), copy (its number, else -1), root (hash of the header of the run that it began
        with, its own for others), rescored (whether it evaluates the programs of another log again
        that is read here too: it is the same run and cost nothing), mixed (first generation that
        may hold programs of other runs; NaN: none), protocol and condition, generation,
        best_fitness (so far), and of that alone generation_best, n_calls (those of evaluations,
        critics and other drafts too, as below; generation 0 has no others, and what a fork
        inherited cost nothing), n_ok, n_attempts, n_without_usage, prompt_tokens, cached_tokens,
        completion_tokens (as far as reported), tokens (prompt and completion under the rule),
        flops, dollars, call_seconds, evaluation_seconds, seconds (wall); source. NaN where unknown.

    Raises:
        LogError: A log cannot be read; names file and line.
    """
    [frame] = _collect(
        sources, lambda calls: [_generation_rows(calls, calls.spent(timeouts))], strict, progress
    )
    return frame


def children(
    *sources: Logs,
    strict: bool = True,
    timeouts: TimeoutRule = "worst_case",
    progress: bool | None = None,
) -> pd.DataFrame:
    """Reads logs into one row per child, those of a generation under way included.

    Arguments as for `load`.

    Returns:
        Columns run, task, model, seed, children (N), search, header, forked_from, copy, root,
        rescored, mixed, generation, index, status (None where another tool does not say), fitness
        (NaN unless ok; a child that was tried on some instances only is `partial` and has none),
        parent_fitness (NaN where another tool's log does not say), best_fitness (before the
        generation), improved (better than that), inherited (by a fork: costs nothing), parents
        (generation and index of each), operator, draws, fitness_sd, prompt_tokens, cached_tokens,
        completion_tokens, n_attempts, n_without_usage, finish_reason, tokens, flops, dollars,
        call_seconds, evaluation_seconds, objective, strict_fitness; source.
    """
    [frame] = _collect(
        sources, lambda calls: [_child_rows(calls, calls.spent(timeouts))], strict, progress
    )
    return frame


def attempts(*sources: Logs, strict: bool = True, progress: bool | None = None) -> pd.DataFrame:
    """Reads logs into one row per attempt, those that a fork inherited left out.

    Arguments as for `load`.

    Returns:
        Columns run, generation, index (-1 for calls of evaluations and critics,
        and for drafts that were not evaluated), attempt (from 0 in a
        call), status, latency (seconds), prompt_tokens, cached_tokens, completion_tokens,
        finish_reason, http_status, error; source.
    """
    [frame] = _collect(sources, lambda calls: [_attempt_rows(calls)], strict, progress)
    return frame


def instances(*sources: Logs, strict: bool = True, progress: bool | None = None) -> pd.DataFrame:
    """Reads logs of tasks with a data set into one row per evaluation and instance.

    Arguments as for `load`. Logs of other tasks have no rows.

    Returns:
        Columns as `children` up to mixed; generation, index, instance (its id), status, score (in
        [0, 1], NaN unless ok); source. Generation 0 is the initial program, index 0.
    """
    [frame] = _collect(sources, lambda calls: [_instance_rows(calls)], strict, progress)
    return frame


class Tables(NamedTuple):
    """Tables of the same logs, read once.

    Attributes:
        runs: One row per run: the first columns of `load` up to mixed, generations (T, complete
            ones), n_calls and sums of what `children` states over all calls, is_llm, compact, tool
            (that wrote the original), lost (in an import, in words), configuration (equal where
            all that identifies a run but N and seed is), n_tests (of rivals on fresh draws),
            n_accepted (of these), false_acceptances (that their error rates allow on average),
            gain (final less initial fitness), fresh_gain (the same on draws that no decision saw;
            NaN where there were none), source.
        generations: As `load` returns it.
        children: As `children` returns it.
    """

    runs: pd.DataFrame
    generations: pd.DataFrame
    children: pd.DataFrame


def load_tables(
    *sources: Logs,
    strict: bool = True,
    timeouts: TimeoutRule = "worst_case",
    progress: bool | None = None,
) -> Tables:
    """Reads logs into all that a report needs; arguments as for `load`."""

    def make(calls: Calls) -> list[Rows]:
        spent = calls.spent(timeouts)
        return [rows(calls, spent) for rows in (_run_row, _generation_rows, _child_rows)]

    return Tables(*_collect(sources, make, strict, progress))


_SUMMED = (
    *("n_attempts", "n_without_usage", *REPORTED, "tokens", "flops", "dollars"),
    *("call_seconds", "evaluation_seconds"),
)

Rows = dict[str, Any]


def _collect(
    sources: Sequence[Logs],
    make: Callable[[Calls], Sequence[Rows]],
    strict: bool,
    progress: bool | None,
) -> list[pd.DataFrame]:
    """Reads each log once and makes the rows of each table of it."""
    paths, skipped = find_all(sources)
    parts: list[Sequence[Rows]] = []
    foreign = len(skipped)
    names = name_runs(paths)
    shown: Iterable[Path] = paths
    if progress or (progress is None and len(paths) >= 50):
        from tqdm.auto import tqdm

        shown = tqdm(paths, desc="reading logs", unit="log", leave=False)
    prepare_pictures()
    rescored: list[tuple[int, LeanRun]] = []
    originals: dict[str, LeanRun] = {}
    with uncollected():
        for path in shown:
            try:
                run = read_run(path, names[path])
                part = _in_range(make, Calls(run))
            except LogError as error:
                if strict:
                    raise
                skipped.append((str(path), str(error)))
                continue
            if run.header.source.startswith(RESCORED):
                rescored.append((len(parts), run))
            else:
                originals.setdefault(_programs_of(run.header), run)
            parts.append(part)
        for place, run in rescored:  # what their originals are is known now
            if original := originals.get(_programs_of(run.header)):
                parts[place] = make(Calls(run, of=original.key))
    if not parts:
        raise LogError(
            f"none of {len(paths)} logs can be read; the first: {skipped[foreign][1]}"
            if len(skipped) > foreign
            else "expected at least one log, got none"
        )
    if skipped:
        warnings.warn(
            f"{len(skipped)} of {len(paths) + foreign} logs were left out; the first: "
            f"{skipped[0][0] if foreign else 'a log'}: {skipped[0][1]}",
            stacklevel=3,
        )
    frames = [_concatenate(rows) for rows in zip(*parts, strict=True)]
    for frame in frames:
        frame.attrs["skipped"] = skipped
    return frames


def _in_range(make: Callable[[Calls], Sequence[Rows]], calls: Calls) -> Sequence[Rows]:
    """The rows of a run, or an error that names the line whose number no table can hold."""
    try:
        return make(calls)
    except OverflowError:
        raise beyond_range(calls.run.path) from None


RESCORED = "evo rescore"
"""How the source of a log begins that evaluates the programs of another one again."""


def _programs_of(header: Header) -> str:
    """What says how a run's programs were made, and nothing of how they were evaluated."""
    fork = (header.fork.through, header.fork.copy) if header.fork else None
    search = (getattr(header, name) for name in _SETTINGS if name not in _EVALUATION)
    return repr((header.task.hash, header.model.id, header.children, header.seed, fork, *search))


def _concatenate(parts: Sequence[Rows]) -> pd.DataFrame:
    lengths = [next(len(v) for v in part.values() if isinstance(v, np.ndarray)) for part in parts]
    columns: dict[str, Any] = {}
    for name, first in parts[0].items():
        if isinstance(first, np.ndarray):
            columns[name] = np.concatenate([part[name] for part in parts])
        elif isinstance(first, list):
            columns[name] = [cell for part in parts for cell in part[name]]
        else:  # one value for the whole run
            columns[name] = np.repeat(np.array([part[name] for part in parts]), lengths)
    return pd.DataFrame(columns)


def _identity(calls: Calls) -> Rows:
    run, header, fork = calls.run, calls.run.header, calls.run.header.fork
    return {
        "run": run.name,
        "task": header.task.name,
        "model": header.model.name,
        "seed": header.seed,
        "children": header.children,
        "search": _search_of(header),
        "header": run.key,
        "forked_from": fork.through[:12] if fork else "",
        "copy": fork.copy if fork else -1,
        "root": calls.rescores or (fork.root[:12] if fork else run.key),
        "rescored": calls.rescores is not None,
        "mixed": np.nan if header.mixed is None else float(header.mixed),
    }


_GREEDY_TOOLS = ("evo", "self-evolving-allocation", "table")


def _search_of(header: Header) -> str:
    """Name of a run's search; of another tool's run that of the tool."""
    if header.search is None:
        return GREEDY if header.source in _GREEDY_TOOLS else header.source
    return header.search.name


_EVALUATION = ("limits", "draws", "confirm")
_SETTINGS = (
    *("sampling", "min_improvement", "limits", "search", "statement", "feedback", "inspirations"),
    *("drafts", "critic", "batches", "draws", "confirm", "spending"),
)
"""What identifies a run beside its task, model, N and seed."""


def _run_row(calls: Calls, spent: dict[str, Floats]) -> Rows:
    run, header = calls.run, calls.run.header
    identity = (header.task.hash, header.model.id, *(getattr(header, name) for name in _SETTINGS))
    best = _best_by_generation(run)
    fresh = [run.fresh.get(f"{end}_fitness", np.nan) for end in ("initial", "final")]
    return {
        **_identity(calls),
        "generations": np.array([len(run.generations)]),
        "n_calls": np.array([int((~calls.inherited).sum())]),
        **{name: np.array([_total(name, spent[name])]) for name in _SUMMED},
        "is_llm": header.model.is_llm,
        "compact": header.compact,
        "tool": header.source,
        "lost": [header.lost],
        "configuration": [repr(identity)],
        "n_tests": len(run.tests),
        "n_accepted": sum(test.accepted for test in run.tests),
        "false_acceptances": sum(test.alpha for test in run.tests),
        "gain": best[-1] - best[0],
        "fresh_gain": fresh[1] - fresh[0],
        "source": str(run.path),
    }


def _child_rows(calls: Calls, spent: dict[str, Floats]) -> Rows:
    run, found = calls.run, calls.run.children
    judged = [child.evaluation for child in found]
    fitness = floats(each.fitness for each in judged)
    best = _best_by_generation(run)
    generation = calls.generation[: len(found)]
    before = best[np.clip(generation - 1, 0, len(best) - 1)]
    return {
        **_identity(calls),
        "generation": generation,
        "index": np.array([child.index for child in found], dtype=np.int64),
        "status": [each.status for each in judged],
        "fitness": fitness,
        "parent_fitness": _parent_fitness(run, fitness, before),
        "best_fitness": before,
        "improved": (fitness > before + run.header.min_improvement)
        | (np.isnan(before) & ~np.isnan(fitness)),
        "inherited": calls.inherited[: len(found)],
        "parents": [child.parents for child in found],
        "operator": [child.operator for child in found],
        "draws": np.array([each.draws for each in judged], dtype=np.int64),
        "fitness_sd": floats(each.fitness_sd for each in judged),
        "finish_reason": [c.attempts[-1].finish_reason if c.attempts else None for c in found],
        **{name: values[: len(found)] for name, values in spent.items()},
        "objective": floats(each.metrics.get("objective") for each in judged),
        "strict_fitness": floats(each.metrics.get("strict_fitness") for each in judged),
        "source": str(run.path),
    }


def _best_by_generation(run: LeanRun) -> Floats:
    first = run.initial.evaluation.fitness if run.initial else None
    return floats([first, *(generation.best_fitness for generation in run.generations)])


def _total(name: str, values: Floats) -> float:
    """Sum over calls: NaN where one is unknown; of what endpoints report, where each is."""
    if name in REPORTED and not np.isnan(values).all():
        return float(np.nansum(values))
    return float(values.sum())


def _parent_fitness(run: LeanRun, fitness: Floats, before: Floats) -> Floats:
    """Fitness of what each child rewrote: as its line says, under greedy the best so far."""
    first = run.initial.evaluation.fitness if run.initial else None
    known = {(0, 0): np.nan if first is None else first}
    places = ((child.generation, child.index) for child in run.children)
    known.update(zip(places, fitness.tolist(), strict=True))
    rest = before if _search_of(run.header) == GREEDY else np.full(len(fitness), np.nan)
    stated = floats(
        known.get(child.parents[0]) if child.parents else None for child in run.children
    )
    return np.where([bool(child.parents) for child in run.children], stated, rest)


def _generation_rows(calls: Calls, spent: dict[str, Floats]) -> Rows:
    run, owner = calls.run, calls.generation
    end = len(run.generations) + 1

    def total(values: Any) -> Any:
        """Sums over each generation's calls; 0 without any."""
        return np.bincount(owner, values, minlength=end)[:end]

    fitness = np.full(len(owner), np.nan)
    fitness[: len(run.children)] = [child.evaluation.fitness for child in run.children]
    ok = ~np.isnan(fitness) & (owner < end)
    generation_best = np.full(end, -np.inf)
    np.maximum.at(generation_best, owner[ok], fitness[ok])
    generation_best[np.isneginf(generation_best)] = np.nan
    best = _best_by_generation(run)
    generation_best[0] = best[0]
    n_ok = total(ok).astype(np.int64)
    n_ok[0] = int(not np.isnan(best[0]))
    costs = {name: total(spent[name]) for name in _SUMMED}
    for name in REPORTED:  # what endpoints report is summed as far as they do
        known = ~np.isnan(spent[name])
        sums = total(np.where(known, spent[name], 0.0))
        costs[name] = np.where((total(known) > 0) | (total(None) == 0), sums, np.nan)
    free = calls.rescores is not None
    waited = [0.0 if free or each.inherited else each.seconds for each in run.generations]
    return {
        **_identity(calls),
        "generation": np.arange(end),
        "best_fitness": best,
        "generation_best": generation_best,
        "protocol": run.header.protocol,
        "condition": run.header.condition,
        "n_calls": total(~calls.inherited).astype(np.int64),
        "n_ok": n_ok,
        **costs,
        "seconds": floats([0.0, *waited]),
        "source": str(run.path),
    }


def _instance_rows(calls: Calls) -> Rows:
    run = calls.run
    found = [(0, 0, run.initial.evaluation.instances)] if run.initial else []
    found += [(child.generation, child.index, child.evaluation.instances) for child in run.children]
    rows = [(generation, index, each) for generation, index, many in found for each in many]
    return {
        **_identity(calls),
        "generation": np.array([generation for generation, _, _ in rows], dtype=np.int64),
        "index": np.array([index for _, index, _ in rows], dtype=np.int64),
        "instance": [each.id for _, _, each in rows],
        "status": [each.status for _, _, each in rows],
        "score": floats(each.score for _, _, each in rows),
        "source": str(run.path),
    }


def _attempt_rows(calls: Calls) -> Rows:
    children = len(calls.run.children)
    places = [
        (call.generation, call.index if k < children else -1, number)
        for k, call in enumerate(calls.made)
        for number in range(len(call.attempts))
    ]
    generation, index, number = np.array(places, dtype=np.int64).reshape(-1, 3).T
    columns: dict[str, Any] = {
        "generation": generation,
        "index": index,
        "attempt": number,
        "status": [attempt.status for attempt in calls.attempts],
        "latency": floats(attempt.latency for attempt in calls.attempts),
        **calls.reported,
        "finish_reason": [attempt.finish_reason for attempt in calls.attempts],
        "http_status": floats(attempt.http_status for attempt in calls.attempts),
        "error": [attempt.error for attempt in calls.attempts],
    }
    own = np.repeat(~calls.inherited, calls.per_call)
    return {
        "run": calls.run.name,
        **{
            name: values[own] if isinstance(values, np.ndarray) else [*compress(values, own)]
            for name, values in columns.items()
        },
        "source": str(calls.run.path),
    }
