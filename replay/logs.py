"""Logs to tidy tables: one row per generation, per child or per attempt.

Reading is typed and passes over replies and programs. What a source does not know is NaN or
missing, never zero.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pandas as pd

from evo.cost import TimeoutRule
from evo.journal import LogError
from evo.log import Log
from evo.records import CriticCall, Evaluation, Header, Outcome
from replay.costs import CRITIC, AttemptColumns, floats
from replay.frames import GREEDY
from replay.reading import LeanRun, Source, find_all, name_runs, read_run

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
        with, its own for others), mixed (first generation that may hold programs of other runs;
        NaN: none), protocol and condition, generation, best_fitness (so far), and of that alone
        generation_best, n_calls (those of evaluations, critics and other drafts too, as below;
        generation 0 has no others, and what a fork inherited cost nothing), n_ok, n_attempts,
        n_without_usage, prompt_tokens, cached_tokens, completion_tokens (as far as reported),
        tokens (prompt and completion under the rule), flops, dollars, call_seconds,
        evaluation_seconds, seconds (wall); source. NaN where unknown.

    Raises:
        LogError: A log cannot be read; names file and line.
    """
    [frame] = _collect(sources, [lambda run: _generation_rows(run, timeouts)], strict, progress)
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
        mixed, generation, index, status (None where another tool does not say), fitness (NaN
        unless ok; a child that was tried on some instances only is `partial` and has none),
        parent_fitness (NaN where another tool's log does not say), best_fitness (before the
        generation), improved (better than that), inherited (by a fork: costs nothing), parents
        (generation and index of each), operator, draws, fitness_sd, prompt_tokens, cached_tokens,
        completion_tokens, n_attempts, n_without_usage, finish_reason, tokens, flops, dollars,
        call_seconds, evaluation_seconds, objective, strict_fitness; source.
    """
    [frame] = _collect(sources, [lambda run: _child_rows(run, timeouts)], strict, progress)
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
    [frame] = _collect(sources, [_attempt_rows], strict, progress)
    return frame


def instances(*sources: Logs, strict: bool = True, progress: bool | None = None) -> pd.DataFrame:
    """Reads logs of tasks with a data set into one row per evaluation and instance.

    Arguments as for `load`. Logs of other tasks have no rows.

    Returns:
        Columns as `children` up to mixed; generation, index, instance (its id), status, score (in
        [0, 1], NaN unless ok); source. Generation 0 is the initial program, index 0.
    """
    [frame] = _collect(sources, [_instance_rows], strict, progress)
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
    makers = [
        lambda run: _run_row(run, timeouts),
        lambda run: _generation_rows(run, timeouts),
        lambda run: _child_rows(run, timeouts),
    ]
    return Tables(*_collect(sources, makers, strict, progress))


REPORTED = ("prompt_tokens", "cached_tokens", "completion_tokens")
"""Columns of children that are sums of what the endpoint reported, as far as it did."""

_SUMMED = (
    *("n_attempts", "n_without_usage", *REPORTED, "tokens", "flops", "dollars"),
    *("call_seconds", "evaluation_seconds"),
)

Rows = dict[str, Any]


def _collect(
    sources: Sequence[Logs],
    makers: Sequence[Callable[[LeanRun], Rows]],
    strict: bool,
    progress: bool | None,
) -> list[pd.DataFrame]:
    """Reads each log once and lets every maker make its rows of it."""
    paths, skipped = find_all(sources)
    parts: list[list[Rows]] = []
    foreign = len(skipped)
    names = name_runs(paths)
    shown: Iterable[Path] = paths
    if progress or (progress is None and len(paths) >= 50):
        from tqdm.auto import tqdm

        shown = tqdm(paths, desc="reading logs", unit="log", leave=False)
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


def _identity(run: LeanRun) -> Rows:
    header, fork = run.header, run.header.fork
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
        "root": fork.root[:12] if fork else run.key,
        "mixed": np.nan if header.mixed is None else float(header.mixed),
    }


_GREEDY_TOOLS = ("evo", "self-evolving-allocation", "table")


def _search_of(header: Header) -> str:
    """Name of a run's search; of another tool's run that of the tool."""
    if header.search is None:
        return GREEDY if header.source in _GREEDY_TOOLS else header.source
    return header.search.name


_SETTINGS = (
    *("sampling", "min_improvement", "limits", "search", "statement", "feedback", "inspirations"),
    *("drafts", "critic", "batches", "draws", "confirm", "spending"),
)
"""What identifies a run beside its task, model, N and seed."""


def _run_row(run: LeanRun, timeouts: TimeoutRule) -> Rows:
    header = run.header
    calls = _child_rows(_with_calls(run), timeouts)
    identity = (header.task.hash, header.model.id, *(getattr(header, name) for name in _SETTINGS))
    best = _best_by_generation(run)
    fresh = [run.fresh.get(f"{end}_fitness", np.nan) for end in ("initial", "final")]
    return {
        **_identity(run),
        "generations": np.array([len(run.generations)]),
        "n_calls": np.array([int((~calls["inherited"]).sum())]),
        **{name: np.array([_total(name, calls[name])]) for name in _SUMMED},
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


def _child_rows(run: LeanRun, timeouts: TimeoutRule) -> Rows:
    columns, found = AttemptColumns(run), run.children
    judged = [child.evaluation for child in found]
    fitness = floats(each.fitness for each in judged)
    generation = np.array([child.generation for child in found], dtype=np.int64)
    best = _best_by_generation(run)
    before = best[np.clip(generation - 1, 0, len(best) - 1)]
    with np.errstate(invalid="ignore"):
        better = fitness > before + run.header.min_improvement
    inherited = np.array([child.inherited for child in found], dtype=np.bool_)
    costs = {
        **{name: columns.by_child(getattr(columns, name)) for name in REPORTED},
        "n_attempts": np.where(columns.per_child > 0, columns.per_child.astype(float), np.nan),
        "n_without_usage": columns.whole(columns.lacking.astype(float)),
        **columns.costs_by_child(timeouts),
        "call_seconds": columns.whole(floats(each.latency for each in columns.attempts)),
        "evaluation_seconds": floats(each.seconds for each in judged),
    }
    return {
        **_identity(run),
        "generation": generation,
        "index": np.array([child.index for child in found], dtype=np.int64),
        "status": [each.status for each in judged],
        "fitness": fitness,
        "parent_fitness": _parent_fitness(run, fitness, before),
        "best_fitness": before,
        "improved": better | (np.isnan(before) & ~np.isnan(fitness)),
        "inherited": inherited,
        "parents": [child.parents for child in found],
        "operator": [child.operator for child in found],
        "draws": np.array([each.draws for each in judged], dtype=np.int64),
        "fitness_sd": floats(each.fitness_sd for each in judged),
        "finish_reason": [c.attempts[-1].finish_reason if c.attempts else None for c in found],
        **{name: np.where(inherited, 0.0, spent) for name, spent in costs.items()},
        "objective": floats(each.metrics.get("objective") for each in judged),
        "strict_fitness": floats(each.metrics.get("strict_fitness") for each in judged),
        "source": str(run.path),
    }


def _best_by_generation(run: LeanRun) -> Floats:
    first = run.initial.evaluation.fitness if run.initial else None
    return floats([first, *(generation.best_fitness for generation in run.generations)])


def _with_calls(run: LeanRun) -> LeanRun:
    """The run with its other calls as further children, of index -1."""
    nothing = Evaluation(status=None)
    calls = [
        Outcome(
            generation=call.generation, index=-1, seed=0, prompt_hash="", attempts=call.attempts,
            evaluation=nothing, inherited=call.inherited,
            operator=CRITIC if isinstance(call, CriticCall) else "",
        )
        for call in run.calls
    ]  # fmt: skip
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
    rest = before if _search_of(run.header) == GREEDY else np.full(len(fitness), np.nan)
    stated = floats(
        known.get(child.parents[0]) if child.parents else None for child in run.children
    )
    return np.where([bool(child.parents) for child in run.children], stated, rest)


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
    paid = owner[~child["inherited"][inside]]
    waited = [0.0 if each.inherited else each.seconds for each in run.generations]
    return {
        **_identity(run),
        "generation": np.arange(last + 1),
        "best_fitness": best,
        "generation_best": generation_best,
        "protocol": run.header.protocol,
        "condition": run.header.condition,
        "n_calls": np.bincount(paid, minlength=last + 1),
        "n_ok": n_ok,
        **{name: total(name) for name in _SUMMED},
        "seconds": floats([0.0, *waited]),
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
        "score": floats(each.score for _, _, each in rows),
        "source": str(run.path),
    }


def _attempt_rows(run: LeanRun) -> Rows:
    whole = _with_calls(run)
    columns = AttemptColumns(
        replace(whole, children=[c for c in whole.children if not c.inherited])
    )
    owners = [child for child in columns.run.children for _ in child.attempts]
    made = columns.attempts
    return {
        "run": run.name,
        "generation": np.array([child.generation for child in owners], dtype=np.int64),
        "index": np.array([child.index for child in owners], dtype=np.int64),
        "attempt": np.array([k for n in columns.per_child for k in range(n)], dtype=np.int64),
        "status": [attempt.status for attempt in made],
        "latency": floats(attempt.latency for attempt in made),
        **{name: getattr(columns, name) for name in REPORTED},
        "finish_reason": [attempt.finish_reason for attempt in made],
        "http_status": floats(attempt.http_status for attempt in made),
        "error": [attempt.error for attempt in made],
        "source": str(run.path),
    }
