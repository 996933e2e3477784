"""Logs to tidy tables: one row per generation, per child or per attempt.

Reading is typed and passes over replies and programs. What a source does not know is NaN or
missing, never zero.
"""

from __future__ import annotations

import glob
import os
import warnings
import zlib
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec
import numpy as np
import pandas as pd

from evo.cost import (
    TimeoutRule,
    assumed_completion,
    flops_of_tokens,
    is_turned_away,
    price_of_tokens,
)
from evo.log import BODY, PREFIX, Log, LogError, decode, read_bytes
from evo.records import End, Generation, Header, Initial, Session, Status

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Floats = NDArray[np.float64]
    Source = str | os.PathLike[str]

ENDINGS = (".jsonl", ".jsonl.gz")
ALLOCATION = "allocation.jsonl"  # lies beside the logs of a live allocation's arms


class _Details(msgspec.Struct):
    cached_tokens: float | None = None


class _Usage(msgspec.Struct):
    prompt_tokens: float | None = None
    completion_tokens: float | None = None
    prompt_tokens_details: _Details | None = None


class _Attempt(msgspec.Struct):
    status: str
    latency: float | None
    usage: _Usage | None = None
    finish_reason: str | None = None
    http_status: int | None = None
    error: str | None = None
    cached: bool = False
    sent: bool = True


class _Metrics(msgspec.Struct, frozen=True):
    objective: float | None = None
    strict_fitness: float | None = None


class _Evaluation(msgspec.Struct):
    status: Status
    fitness: float | None = None
    metrics: _Metrics = _Metrics()
    seconds: float | None = 0.0


class _Child(msgspec.Struct, tag_field="kind", tag="child"):
    generation: int
    index: int
    seed: int
    attempts: list[_Attempt]
    evaluation: _Evaluation


_decoder = msgspec.json.Decoder(Header | Session | Initial | _Child | Generation | End)


@dataclass(frozen=True)
class _Run:
    """One log, decoded without texts."""

    path: Path
    name: str
    header: Header
    initial: Initial | None
    children: list[_Child]
    generations: list[Generation]


def find_logs(*sources: Source | Log | Iterable[Source | Log]) -> list[Path]:
    """Returns the log files that paths, folders and glob patterns stand for, each once.

    A folder stands for all logs below it; an allocation's folder for its arms.

    Raises:
        LogError: A path does not exist, or a folder or pattern holds no log.
    """
    found: dict[Path, None] = {}
    for source in sources:
        if isinstance(source, Log | str | os.PathLike):
            found.update(dict.fromkeys(_expand(os.fspath(source))))
        else:
            found.update(dict.fromkeys(find_logs(*source)))
    return list(found)


def _expand(source: str) -> list[Path]:
    path = Path(source).expanduser()
    if path.is_dir():
        inside = sorted(p for p in path.rglob("*") if _looks_like_log(p))
        if not inside:
            raise LogError(f"{source}: no log in this folder (expected *.jsonl or *.jsonl.gz)")
        return inside
    if path.exists():
        return [path]
    matches = sorted(Path(match) for match in glob.glob(source, recursive=True))
    inside = [p for match in matches for p in (_expand(str(match)) if match.is_dir() else [match])]
    logs = [p for p in inside if _looks_like_log(p)]
    if not logs:
        what = "no log matches" if glob.has_magic(source) else "no such file or folder"
        raise LogError(f"{source}: {what}")
    return logs


def _looks_like_log(path: Path) -> bool:
    return path.name.endswith(ENDINGS) and path.name != ALLOCATION and path.is_file()


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
        Columns run, task, model, seed, children (N), generation, best_fitness (so far), and of
        that generation alone generation_best, n_calls, n_ok, n_attempts, n_without_usage,
        prompt_tokens, cached_tokens, completion_tokens (as reported), tokens (prompt and
        completion under the rule), flops, dollars, call_seconds, evaluation_seconds, seconds
        (wall); source. NaN where unknown.

    Raises:
        LogError: A log cannot be read; names file and line.
    """
    return _collect(sources, lambda run: _generation_rows(run, timeouts), strict, progress)


def children(
    *sources: Source | Log | Iterable[Source | Log],
    strict: bool = True,
    timeouts: TimeoutRule = "worst_case",
    progress: bool | None = None,
) -> pd.DataFrame:
    """Reads logs into one row per child, those of a generation under way included.

    Arguments as for `load`.

    Returns:
        Columns run, task, model, seed, children (N), generation, index, status, fitness (NaN
        unless ok), parent_fitness, improved (better than the parent), prompt_tokens,
        cached_tokens, completion_tokens, n_attempts, n_without_usage, finish_reason, tokens,
        flops, dollars, call_seconds, evaluation_seconds, objective, strict_fitness; source.
    """
    return _collect(sources, lambda run: _child_rows(run, timeouts), strict, progress)


def attempts(
    *sources: Source | Log | Iterable[Source | Log],
    strict: bool = True,
    progress: bool | None = None,
) -> pd.DataFrame:
    """Reads logs into one row per attempt; arguments as for `load`.

    Returns:
        Columns run, generation, index, attempt (from 0), status, latency (seconds),
        prompt_tokens, cached_tokens, completion_tokens, finish_reason, http_status, error.
    """
    return _collect(sources, _attempt_rows, strict, progress)


def fitness_matrix(frame: pd.DataFrame) -> Floats:
    """Returns best fitness so far by run and generation.

    Args:
        frame: As from `load`.

    Returns:
        Shape (runs, generations + 1), runs in order of first appearance; NaN after a run's end.
    """
    return _matrix(frame, "best_fitness")


def _matrix(frame: pd.DataFrame, column: str) -> Floats:
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

Rows = dict[str, Any]


def _collect(
    sources: Sequence[Source | Log | Iterable[Source | Log]],
    rows_of: Callable[[_Run], Rows],
    strict: bool,
    progress: bool | None,
) -> pd.DataFrame:
    paths = find_logs(*sources)
    parts: list[Rows] = []
    skipped: list[tuple[str, str]] = []
    names = _names(paths)
    if progress or (progress is None and len(paths) >= 50):
        from tqdm.auto import tqdm

        shown: Iterable[Path] = tqdm(paths, desc="reading logs", unit="log", leave=False)
    else:
        shown = paths
    for path in shown:
        try:
            parts.append(rows_of(_read(path, names[path])))
        except LogError as error:
            if strict:
                raise
            skipped.append((str(path), str(error)))
    if skipped:
        warnings.warn(
            f"{len(skipped)} of {len(paths)} logs were left out; the first: {skipped[0][1]}",
            stacklevel=3,
        )
    frame = _concatenate(parts)
    frame.attrs["skipped"] = skipped
    return frame


def _concatenate(parts: list[Rows]) -> pd.DataFrame:
    if not parts:
        return pd.DataFrame()
    lengths = [len(part["generation"]) for part in parts]
    columns: dict[str, Any] = {}
    for name, first in parts[0].items():
        if isinstance(first, np.ndarray):
            columns[name] = np.concatenate([part[name] for part in parts])
        elif isinstance(first, list):
            columns[name] = [cell for part in parts for cell in part[name]]
        else:  # one value for the whole run
            columns[name] = np.repeat(np.array([part[name] for part in parts]), lengths)
    return pd.DataFrame(columns)


def _names(paths: Sequence[Path]) -> dict[Path, str]:
    """Names runs after their files, with as many folders as it takes to tell them apart."""
    stems = {path: path.name.removesuffix(".gz").removesuffix(".jsonl") for path in paths}
    if len(set(stems.values())) == len(paths):
        return stems
    roots = {path: path.resolve() for path in paths}
    common = os.path.commonpath([root.parent for root in roots.values()])
    return {
        path: (roots[path].relative_to(common).parent / stems[path]).as_posix() for path in paths
    }


def _read(path: Path, name: str) -> _Run:
    """Decodes a log in one go; on any doubt `evo.log.decode` finds the line to blame."""
    data = read_bytes(path)
    lines = data[: data.rfind(b"\n") + 1]
    try:
        records: list[Any] = _decoder.decode_lines(lines)
        sound = _checksums_match(lines) and bool(records) and isinstance(records[0], Header)
    except (msgspec.DecodeError, ValueError):
        sound = False
    if not sound or any(isinstance(record, Header) for record in records[1:]):
        for _ in decode(path, data):
            pass
        raise LogError(f"{path}:1: not a log of evo: expected a header line, got {data[:40]!r}")
    children = [record for record in records if isinstance(record, _Child)]
    children.sort(key=lambda child: (child.generation, child.index))
    return _Run(
        path=path,
        name=name,
        header=records[0],
        initial=next((record for record in records if isinstance(record, Initial)), None),
        children=children,
        generations=[record for record in records if isinstance(record, Generation)],
    )


def _checksums_match(lines: bytes) -> bool:
    crc32, body, digits = zlib.crc32, BODY, slice(len(PREFIX), len(PREFIX) + 8)
    return all(
        line[digits] == b"%08x" % crc32(line[body:]) and line.startswith(PREFIX)
        for line in lines.split(b"\n")[:-1]
    )


def _identity(run: _Run) -> Rows:
    header = run.header
    return {
        "run": run.name,
        "task": header.task.name,
        "model": header.model.name,
        "seed": header.seed,
        "children": header.children,
    }


def _floats(values: Iterable[float | None], count: int) -> Floats:
    return np.fromiter((np.nan if v is None else v for v in values), np.float64, count)


class _AttemptColumns:
    """The attempts of a run as arrays, and sums of them by child."""

    def __init__(self, run: _Run) -> None:
        self.run = run
        self.per_child = np.array([len(child.attempts) for child in run.children], dtype=np.int64)
        self.attempts = [attempt for child in run.children for attempt in child.attempts]
        count = len(self.attempts)
        usages = [_NONE if attempt.usage is None else attempt.usage for attempt in self.attempts]
        self.prompt = _floats((usage.prompt_tokens for usage in usages), count)
        self.completion = _floats((usage.completion_tokens for usage in usages), count)
        details = (usage.prompt_tokens_details for usage in usages)
        cached = _floats((None if d is None else d.cached_tokens for d in details), count)
        # An endpoint that states its prompt tokens and nothing of a cache has none.
        self.cached = np.where(np.isnan(cached) & ~np.isnan(self.prompt), 0.0, cached)
        uncounted = np.isnan(self.prompt) | np.isnan(self.completion)
        computed = (not a.cached and a.sent and not is_turned_away(a) for a in self.attempts)
        self.lacking = uncounted & np.fromiter(computed, np.bool_, count)
        self.free = uncounted & ~self.lacking
        self.free |= np.fromiter((a.cached for a in self.attempts), np.bool_, count)

    def by_child(self, values: Floats) -> Floats:
        """Sums known values over each child's attempts; NaN where none is known."""
        known = ~np.isnan(values)
        owner = np.repeat(np.arange(len(self.per_child)), self.per_child)
        sums = np.bincount(owner[known], values[known], minlength=len(self.per_child))
        counts = np.bincount(owner[known], minlength=len(self.per_child))
        return np.where(counts > 0, sums, np.nan)

    def lacking_by_child(self) -> Floats:
        """Attempts without usage of each child; NaN where the attempts are unknown."""
        owner = np.repeat(np.arange(len(self.per_child)), self.per_child)
        counts = np.bincount(owner[self.lacking], minlength=len(self.per_child)).astype(float)
        return np.where(self.per_child > 0, counts, np.nan)

    def costs_by_child(self, timeouts: TimeoutRule) -> dict[str, Floats]:
        """Tokens, FLOPs and dollars of each child; NaN where a part is unknown."""
        header = self.run.header
        limited = [
            a.usage.completion_tokens
            for a in self.attempts
            if a.finish_reason == "length" and a.usage and a.usage.completion_tokens is not None
        ]
        assumed = assumed_completion(
            timeouts,
            max_tokens=header.sampling.max_tokens,
            bounded_completion=float(np.median(limited)) if limited else None,
        )
        answered = np.fromiter((a.status == "ok" for a in self.attempts), np.bool_, self.free.size)
        if timeouts == "exclude":  # an answer without usage did compute something
            completion = np.where(self.lacking & answered, np.nan, assumed)
        else:
            completion = np.full(self.free.size, assumed)
        completion = np.where(self.lacking, completion, np.where(self.free, 0.0, self.completion))
        idle = self.lacking | self.free
        prompt, cached = np.where(idle, 0.0, self.prompt), np.where(idle, 0.0, self.cached)
        by_attempt = {
            "tokens": prompt + completion,
            "flops": flops_of_tokens(prompt, cached, completion, model=header.model),
            "dollars": price_of_tokens(prompt, cached, completion, model=header.model),
        }
        return {unit: self._sum(values) for unit, values in by_attempt.items()}

    def _sum(self, values: Floats) -> Floats:
        """Sums over each child's attempts; NaN where any of them, or their number, is unknown."""
        owner = np.repeat(np.arange(len(self.per_child)), self.per_child)
        sums = np.bincount(owner, values, minlength=len(self.per_child))
        return np.where(self.per_child > 0, sums, np.nan)


_NONE = _Usage()


def _child_rows(run: _Run, timeouts: TimeoutRule) -> Rows:
    columns, children = _AttemptColumns(run), run.children
    count = len(children)
    fitness = _floats((child.evaluation.fitness for child in children), count)
    generation = np.array([child.generation for child in children], dtype=np.int64)
    best = _best_by_generation(run)
    parent = best[np.clip(generation - 1, 0, len(best) - 1)]
    with np.errstate(invalid="ignore"):
        better = fitness > parent + run.header.min_improvement
    improved = better | (np.isnan(parent) & ~np.isnan(fitness))
    attempts = np.where(columns.per_child > 0, columns.per_child.astype(float), np.nan)
    last = [child.attempts[-1].finish_reason if child.attempts else None for child in children]
    return {
        **_identity(run),
        "generation": generation,
        "index": np.array([child.index for child in children], dtype=np.int64),
        "status": [child.evaluation.status for child in children],
        "fitness": fitness,
        "parent_fitness": parent,
        "improved": improved,
        "prompt_tokens": columns.by_child(columns.prompt),
        "cached_tokens": columns.by_child(columns.cached),
        "completion_tokens": columns.by_child(columns.completion),
        "n_attempts": attempts,
        "n_without_usage": columns.lacking_by_child(),
        "finish_reason": last,
        **columns.costs_by_child(timeouts),
        "call_seconds": columns.by_child(
            _floats((attempt.latency for attempt in columns.attempts), len(columns.attempts))
        ),
        "evaluation_seconds": _floats((child.evaluation.seconds for child in children), count),
        "objective": _floats((child.evaluation.metrics.objective for child in children), count),
        "strict_fitness": _floats(
            (child.evaluation.metrics.strict_fitness for child in children), count
        ),
        "source": str(run.path),
    }


def _best_by_generation(run: _Run) -> Floats:
    first = run.initial.evaluation.fitness if run.initial else None
    stated = [first, *(generation.best_fitness for generation in run.generations)]
    return _floats(stated, len(stated))


def _generation_rows(run: _Run, timeouts: TimeoutRule) -> Rows:
    child = _child_rows(run, timeouts)
    last = len(run.generations)
    inside = child["generation"] <= last
    owner = child["generation"][inside]

    def total(values: Floats) -> Floats:
        """Sums children's values by generation; NaN where none is known. Generation 0 costs 0."""
        values = values[inside]
        known = ~np.isnan(values)
        sums = np.bincount(owner[known], values[known], minlength=last + 1)
        counts = np.bincount(owner[known], minlength=last + 1)
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
        "n_calls": np.bincount(owner, minlength=last + 1),
        "n_ok": n_ok,
        **{name: total(child[name]) for name in SUMMED},
        "seconds": _floats(
            [0.0, *(generation.seconds for generation in run.generations)], last + 1
        ),
        "source": str(run.path),
    }


def _attempt_rows(run: _Run) -> Rows:
    columns = _AttemptColumns(run)
    owners = [child for child in run.children for _ in child.attempts]
    return {
        "run": run.name,
        "generation": np.array([child.generation for child in owners], dtype=np.int64),
        "index": np.array([child.index for child in owners], dtype=np.int64),
        "attempt": np.array([k for n in columns.per_child for k in range(n)], dtype=np.int64),
        "status": [attempt.status for attempt in columns.attempts],
        "latency": _floats(
            (attempt.latency for attempt in columns.attempts), len(columns.attempts)
        ),
        "prompt_tokens": columns.prompt,
        "cached_tokens": columns.cached,
        "completion_tokens": columns.completion,
        "finish_reason": [attempt.finish_reason for attempt in columns.attempts],
        "http_status": _floats(
            (attempt.http_status for attempt in columns.attempts), len(columns.attempts)
        ),
        "error": [attempt.error for attempt in columns.attempts],
        "source": str(run.path),
    }
