"""Logs to tidy tables: one row per generation, per child or per attempt.

Reading is typed and passes over replies and programs. What a source does not know is NaN or
missing, never zero.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

import numpy as np
import pandas as pd

from evo.cost import TimeoutRule
from evo.journal import LogError
from evo.log import Log
from evo.records import Header
from replay.costs import AttemptColumns, floats
from replay.frames import GREEDY, distinct_runs
from replay.reading import (
    LeanChild,
    LeanEvaluation,
    LeanRun,
    Source,
    find_all,
    name_runs,
    read_run,
)

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Floats = NDArray[np.float64]

T = TypeVar("T")


def load(
    *sources: Source | Log | Iterable[Source | Log],
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
        run is known by), forked_from, protocol, generation, best_fitness (so far), and of
        that generation alone generation_best, n_calls (those that evaluations made included, as
        in all below; generation 0 has no others), n_ok, n_attempts, n_without_usage,
        prompt_tokens, cached_tokens, completion_tokens (as far as reported), tokens (prompt and
        completion under the rule), flops, dollars, call_seconds, evaluation_seconds, seconds
        (wall); source. NaN where unknown.

    Raises:
        LogError: A log cannot be read; names file and line.
    """
    [frame] = _collect(sources, [lambda run: _generation_rows(run, timeouts)], strict, progress)
    return frame


def children(
    *sources: Source | Log | Iterable[Source | Log],
    strict: bool = True,
    timeouts: TimeoutRule = "worst_case",
    progress: bool | None = None,
) -> pd.DataFrame:
    """Reads logs into one row per child, those of a generation under way included.

    Arguments as for `load`.

    Returns:
        Columns run, task, model, seed, children (N), search, header, generation, index, status,
        fitness (NaN unless ok), parent_fitness (NaN where another tool's log does not say),
        best_fitness (before the generation), improved (better than that), parents (generation and
        index of each), operator, draws, fitness_sd, prompt_tokens, cached_tokens,
        completion_tokens, n_attempts, n_without_usage, finish_reason, tokens, flops, dollars,
        call_seconds, evaluation_seconds, objective, strict_fitness; source.
    """
    [frame] = _collect(sources, [lambda run: _child_rows(run, timeouts)], strict, progress)
    return frame


def attempts(
    *sources: Source | Log | Iterable[Source | Log],
    strict: bool = True,
    progress: bool | None = None,
) -> pd.DataFrame:
    """Reads logs into one row per attempt; arguments as for `load`.

    Returns:
        Columns run, generation, index (-1 for calls that evaluations made), attempt (from 0 in a
        call), status, latency (seconds),
        prompt_tokens, cached_tokens, completion_tokens, finish_reason, http_status, error.
    """
    [frame] = _collect(sources, [_attempt_rows], strict, progress)
    return frame


def instances(
    *sources: Source | Log | Iterable[Source | Log],
    strict: bool = True,
    progress: bool | None = None,
) -> pd.DataFrame:
    """Reads logs of tasks with a data set into one row per evaluation and instance.

    Arguments as for `load`. Logs of other tasks have no rows.

    Returns:
        Columns run, task, model, seed, children (N), generation, index, instance (its id), status,
        score (in [0, 1], NaN unless ok); source. Generation 0 is the initial program, index 0.
    """
    [frame] = _collect(sources, [_instance_rows], strict, progress)
    return frame


class Tables(NamedTuple):
    """Tables of the same logs, read once.

    Attributes:
        runs: One row per run: run, task, model, seed, children (N), generations (T, complete
            ones), n_calls and sums of what `children` states over all calls, is_llm, compact, tool
            (that wrote the original), lost (in an import, in words), configuration (equal where
            all that identifies a run but N and seed is), source.
        generations: As `load` returns it.
        children: As `children` returns it.
    """

    runs: pd.DataFrame
    generations: pd.DataFrame
    children: pd.DataFrame


def load_tables(
    *sources: Source | Log | Iterable[Source | Log],
    strict: bool = True,
    timeouts: TimeoutRule = "worst_case",
    progress: bool | None = None,
) -> Tables:
    """Reads logs into all that a report needs; arguments as for `load`."""
    makers = [
        lambda run: _run_row(run, timeouts),
        lambda run: _generation_rows(run, timeouts),
        lambda run: _child_rows(run, timeouts),
    ]
    return Tables(*_collect(sources, makers, strict, progress))


def fitness_matrix(frame: pd.DataFrame) -> Floats:
    """Returns best fitness so far by run and generation.

    Args:
        frame: As from `load`.

    Returns:
        Shape (runs, generations + 1), runs in order of first appearance; NaN after a run's end.
    """
    return _matrix(frame, "best_fitness")


def _matrix(frame: pd.DataFrame, column: str) -> Floats:
    frame = distinct_runs(frame)
    rows, _ = pd.factorize(frame["run"], sort=False)
    generation = frame["generation"].to_numpy(dtype=np.int64)
    shape = (int(rows.max()) + 1, int(generation.max()) + 1) if len(frame) else (0, 0)
    matrix = np.full(shape, np.nan)
    matrix[rows, generation] = frame[column].to_numpy(dtype=np.float64)
    return matrix


COSTS = {
    "calls": "n_calls",
    "tokens": "tokens",
    "flops": "flops",
    "dollars": "dollars",
    "seconds": "seconds",
}
"""Units of cost and their columns in a frame of `load`."""


def cost_matrices(frame: pd.DataFrame) -> dict[str, Floats]:
    """Returns what each generation cost, by unit, in the shape of `fitness_matrix`.

    Args:
        frame: As from `load`.

    Returns:
        For calls, tokens, flops, dollars and seconds an array (runs, generations + 1); NaN where
        unknown and after a run's end.
    """
    return {
        unit: _matrix(frame, column) for unit, column in COSTS.items() if column in frame.columns
    }


SUMMED = (
    "n_attempts",
    "n_without_usage",
    "prompt_tokens",
    "cached_tokens",
    "completion_tokens",
    "tokens",
    "flops",
    "dollars",
    "call_seconds",
    "evaluation_seconds",
)
"""Columns of children that `load` sums by generation."""

REPORTED = frozenset({"prompt_tokens", "cached_tokens", "completion_tokens"})
"""Those of them that are sums of what the endpoint reported, as far as it did."""

Rows = dict[str, Any]


def _collect(
    sources: Sequence[Source | Log | Iterable[Source | Log]],
    makers: Sequence[Callable[[LeanRun], Rows]],
    strict: bool,
    progress: bool | None,
) -> list[pd.DataFrame]:
    """Reads each log once and lets every maker make its rows of it."""
    paths, skipped = find_all(sources)
    parts: list[list[Rows]] = []
    foreign = len(skipped)
    names = name_runs(paths)
    if progress or (progress is None and len(paths) >= 50):
        from tqdm.auto import tqdm

        shown: Iterable[Path] = tqdm(paths, desc="reading logs", unit="log", leave=False)
    else:
        shown = paths
    for path in shown:
        try:
            run = read_run(path, names[path])
            parts.append([make(run) for make in makers])
        except LogError as error:
            if strict:
                raise
            skipped.append((str(path), str(error)))
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


def _concatenate(parts: Sequence[Rows]) -> pd.DataFrame:
    lengths = [
        next(len(cells) for cells in part.values() if isinstance(cells, np.ndarray))
        for part in parts
    ]
    columns: dict[str, Any] = {}
    for name, first in parts[0].items():
        if isinstance(first, np.ndarray):
            columns[name] = np.concatenate([part[name] for part in parts])
        elif isinstance(first, list):
            columns[name] = [cell for part in parts for cell in part[name]]
        else:  # one value for the whole run
            columns[name] = np.repeat(np.array([part[name] for part in parts]), lengths)
    return pd.DataFrame(columns)


def _identity(run: LeanRun) -> Rows:
    header = run.header
    return {
        "run": run.name,
        "task": header.task.name,
        "model": header.model.name,
        "seed": header.seed,
        "children": header.children,
        "search": search_of(header),
        "header": run.key,
    }


_GREEDY_TOOLS = ("evo", "self-evolving-allocation", "table")


def search_of(header: Header) -> str:
    """Name of a run's search; of another tool's run that of the tool."""
    if header.search is None:
        return GREEDY if header.source in _GREEDY_TOOLS else header.source
    return header.search.name


def _run_row(run: LeanRun, timeouts: TimeoutRule) -> Rows:
    header = run.header
    calls = _child_rows(_with_calls(run), timeouts)
    sampling = (header.sampling.temperature, header.sampling.top_p, header.sampling.max_tokens)
    return {
        **_identity(run),
        "generations": np.array([len(run.generations)]),
        "n_calls": np.array([len(calls["generation"])]),
        **{name: np.array([_total(name, calls[name])]) for name in SUMMED},
        "is_llm": header.model.is_llm,
        "compact": header.compact,
        "tool": header.source,
        "lost": [header.lost],
        "configuration": [
            repr((header.task.hash, header.model.id, sampling, header.min_improvement))
        ],
        "source": str(run.path),
    }


def _child_rows(run: LeanRun, timeouts: TimeoutRule) -> Rows:
    columns, children = AttemptColumns(run), run.children
    count = len(children)
    fitness = floats((child.evaluation.fitness for child in children), count)
    generation = np.array([child.generation for child in children], dtype=np.int64)
    best = _best_by_generation(run)
    before = best[np.clip(generation - 1, 0, len(best) - 1)]
    parent = _parent_fitness(run, fitness, before)
    with np.errstate(invalid="ignore"):
        better = fitness > before + run.header.min_improvement
    improved = better | (np.isnan(before) & ~np.isnan(fitness))
    attempts = np.where(columns.per_child > 0, columns.per_child.astype(float), np.nan)
    last = [child.attempts[-1].finish_reason if child.attempts else None for child in children]
    return {
        **_identity(run),
        "generation": generation,
        "index": np.array([child.index for child in children], dtype=np.int64),
        "status": [child.evaluation.status for child in children],
        "fitness": fitness,
        "parent_fitness": parent,
        "best_fitness": before,
        "improved": improved,
        "parents": [child.parents for child in children],
        "operator": [child.operator for child in children],
        "draws": np.array([child.evaluation.draws for child in children], dtype=np.int64),
        "fitness_sd": floats((child.evaluation.fitness_sd for child in children), count),
        "prompt_tokens": columns.by_child(columns.prompt),
        "cached_tokens": columns.by_child(columns.cached),
        "completion_tokens": columns.by_child(columns.completion),
        "n_attempts": attempts,
        "n_without_usage": columns.lacking_by_child(),
        "finish_reason": last,
        **columns.costs_by_child(timeouts),
        "call_seconds": columns.whole(
            floats((attempt.latency for attempt in columns.attempts), len(columns.attempts))
        ),
        "evaluation_seconds": floats((child.evaluation.seconds for child in children), count),
        "objective": floats((child.evaluation.metrics.objective for child in children), count),
        "strict_fitness": floats(
            (child.evaluation.metrics.strict_fitness for child in children), count
        ),
        "source": str(run.path),
    }


def _best_by_generation(run: LeanRun) -> Floats:
    first = run.initial.evaluation.fitness if run.initial else None
    stated = [first, *(generation.best_fitness for generation in run.generations)]
    return floats(stated, len(stated))


def _with_calls(run: LeanRun) -> LeanRun:
    """The run with the calls that its evaluations made as further children, of index -1."""
    nothing = LeanEvaluation(status="ok")
    calls = [LeanChild(call.generation, -1, call.attempts, nothing) for call in run.calls]
    return replace(run, children=[*run.children, *calls])


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
    greedy = search_of(run.header) == GREEDY
    stated = [known.get(child.parents[0]) if child.parents else None for child in run.children]
    rest = before if greedy else np.full(len(fitness), np.nan)
    found = floats(stated, len(stated))
    return np.where([bool(child.parents) for child in run.children], found, rest)


def _generation_rows(run: LeanRun, timeouts: TimeoutRule) -> Rows:
    child = _child_rows(_with_calls(run), timeouts)
    last = len(run.generations)
    inside = child["generation"] <= last
    owner = child["generation"][inside]

    def total(name: str) -> Floats:
        """Sums a column over each generation's calls; without any it costs 0.

        NaN where a child's value is unknown; of what endpoints report, where every child's is.
        """
        values = child[name][inside]
        counted = ~np.isnan(values) if name in REPORTED else np.ones(len(values), dtype=np.bool_)
        sums = np.bincount(owner[counted], values[counted], minlength=last + 1)
        counts = np.bincount(owner[counted], minlength=last + 1)
        present = np.bincount(owner, minlength=last + 1)
        return np.where((counts > 0) | (present == 0), sums, np.nan)

    fitness = child["fitness"][inside]
    ok = ~np.isnan(fitness)
    generation_best = np.full(last + 1, -np.inf)
    np.maximum.at(generation_best, owner[ok], fitness[ok])
    generation_best[np.isneginf(generation_best)] = np.nan
    best = _best_by_generation(run)
    generation_best[0] = best[0]
    n_ok = np.bincount(owner[ok], minlength=last + 1)
    n_ok[0] = int(not np.isnan(best[0]))
    return {
        **_identity(run),
        "generation": np.arange(last + 1),
        "best_fitness": best,
        "generation_best": generation_best,
        "forked_from": str(getattr(run.header, "forked_from", None) or ""),
        "protocol": run.header.protocol,
        "n_calls": np.bincount(owner, minlength=last + 1),
        "n_ok": n_ok,
        **{name: total(name) for name in SUMMED},
        "seconds": floats([0.0, *(generation.seconds for generation in run.generations)], last + 1),
        "source": str(run.path),
    }


def _instance_rows(run: LeanRun) -> Rows:
    found = [(0, 0, run.initial.evaluation.instances)] if run.initial else []
    found += [(child.generation, child.index, child.evaluation.instances) for child in run.children]
    rows = [(generation, index, each) for generation, index, many in found for each in many]
    return {
        **_identity(run),
        "generation": np.array([generation for generation, _, _ in rows], dtype=np.int64),
        "index": np.array([index for _, index, _ in rows], dtype=np.int64),
        "instance": [each.id for _, _, each in rows],
        "status": [each.status for _, _, each in rows],
        "score": floats((each.score for _, _, each in rows), len(rows)),
        "source": str(run.path),
    }


def _attempt_rows(run: LeanRun) -> Rows:
    columns = AttemptColumns(_with_calls(run))
    owners = [child for child in columns.run.children for _ in child.attempts]
    return {
        "run": run.name,
        "generation": np.array([child.generation for child in owners], dtype=np.int64),
        "index": np.array([child.index for child in owners], dtype=np.int64),
        "attempt": np.array([k for n in columns.per_child for k in range(n)], dtype=np.int64),
        "status": [attempt.status for attempt in columns.attempts],
        "latency": floats((attempt.latency for attempt in columns.attempts), len(columns.attempts)),
        "prompt_tokens": columns.prompt,
        "cached_tokens": columns.cached,
        "completion_tokens": columns.completion,
        "finish_reason": [attempt.finish_reason for attempt in columns.attempts],
        "http_status": floats(
            (attempt.http_status for attempt in columns.attempts), len(columns.attempts)
        ),
        "error": [attempt.error for attempt in columns.attempts],
        "source": str(run.path),
    }
