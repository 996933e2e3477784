"""A bench of policies: what each gains over one run, in worlds whose truth is known and on logs."""

from __future__ import annotations

import functools
import os
import runpy
import time
import warnings
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from evo.plugins import MistakenType
from evo.policies import POLICIES, BasePolicy, PolicyClass, find_policy, learns
from evo.policies.base import Floats, Ints
from evo.warning import warn
from replay.claims.decision import decide
from replay.logs.columns import FAMILY, varies
from replay.logs.frames import Brief, ReplayWarning
from replay.logs.tables import load
from replay.progress import shown
from replay.simulation.arms import pool_of
from replay.simulation.earlier import FEWEST_OTHERS, OTHERS
from replay.simulation.pools import Pools
from replay.simulation.simulate import Policies, labelled
from replay.simulation.sizes import default_arms, usual_runs
from replay.simulation.worlds import WORLDS

CORPUS = Path(__file__).parents[2] / "logs" / "corpus"
"""The shipped logs, in a clone of the repository."""

BASELINE = "single"
LEAST_RUNS, LEAST_GENERATIONS = usual_runs(2), 8
"""Runs of a pool of logs, and generations of its shortest run, without which it is left out."""

WORLD_RUNS, WORLD_EARLIER, WORLD_ROUNDS, WORLD_ARMS = 300, 60, 24, 8
"""Runs of a world that are judged, further ones from which policies learn, T, and K."""

_COLUMNS = (
    *("policy", "where", "pool", "runs", "arms", "rounds", "gain", "low", "high", "spread"),
    *("verdict", "seconds", "note"),
)


@dataclass(frozen=True, kw_only=True, repr=False)
class Bench(Brief):
    """What policies gain over one run of the same budget.

    Attributes:
        table: One row per policy and pool: policy, where ("world" or "logs"), pool, runs, arms,
            rounds, gain (final fitness less that of `single`), low and high (its interval over
            runs), spread (standard deviation of the final fitness of a run), verdict, seconds and
            note (why there is no verdict).
        summary: One row per policy: greater, less, undetermined (numbers of pools), worlds and logs
            (mean gain in standard deviations of a run's final fitness), wins and loses (names of
            the pools) and seconds. The verdicts of one policy are not adjusted for their number.
    """

    table: pd.DataFrame
    summary: pd.DataFrame

    def __repr__(self) -> str:
        """Render the summary."""
        shown = self.summary.round({"worlds": 2, "logs": 2, "seconds": 1})
        head = (
            f"Gain over one run on {self.table['pool'].nunique()} pools, in standard deviations "
            "of a run's final fitness:"
        )
        return f"{head}\n{shown.to_string(index=False)}"


def bench(
    policies: Policies | None = None,
    *,
    logs: str | os.PathLike[str] | Sequence[str | os.PathLike[str]] | pd.DataFrame | None = None,
    worlds: Iterable[str] = tuple(WORLDS),
    replicates: int = 4000,
    seed: int = 0,
    progress: bool = False,
) -> Bench:
    """Judges policies against one run, in worlds whose truth is known and on logged runs.

    The worlds come first: in `ceilings` and `rates` a bandit can win, so one sees whether a policy
    detects it, in `null` it cannot, so one sees whether it abstains. Policies that learn from
    earlier runs learn there from further runs of the world, and on logs from the runs that are not
    a replicate's arms, where there are enough.

    Args:
        policies: Names and policies of one's own in a list, or either by label; None: all that are
            shipped.
        logs: Folders, files or patterns of logs, or a frame of `replay.load`; None: the shipped
            logs, where this is a clone of the repository; empty: none. Runs of one task, model, N,
            search and folder are a pool; pools of fewer than 10 runs, or of runs of fewer than 8
            generations, are left out.
        worlds: Names out of `replay.simulation.worlds.WORLDS`.
        replicates: Replicates of each policy and pool.
        seed: Key of all draws.
        progress: Whether to show a progress bar.

    Raises:
        ValueError: An unknown policy or world, there is no pool at all, or every policy failed on
            all of them.

    Warns:
        ReplayWarning: A policy failed on some pools, where it has no verdict; says how.

    Example:
        >>> made = replay.bench(["ucb1"], logs=[], worlds=["null"], replicates=200)
        >>> made.table["policy"].tolist()
        ['ucb1']
    """
    chosen = labelled(
        [name for name in POLICIES if name != BASELINE] if policies is None else policies
    )
    builds = {label: find_policy(policy) for label, policy in chosen.items()}
    pools = [*_worlds(worlds, replicates, seed), *_logged(_frame(logs), replicates, seed)]
    if not pools:
        raise ValueError(
            f"expected a world, or a pool of at least {LEAST_RUNS} runs of {LEAST_GENERATIONS} "
            "generations of one task, model and N; got none"
        )
    rows = []
    failed: dict[str, list[Exception]] = {}
    pairs = [(name, build, pool) for name, build in builds.items() for pool in pools]
    for label, build, (where, name, pool) in shown(pairs, "bench", "pool", progress=progress):
        try:
            judged = _judged(build, pool)
        except (ValueError, MistakenType) as error:
            failed.setdefault(label, []).append(error)
            judged = (*[np.nan] * 4, "undetermined", 0.0, f"failed: {error}")
        rows.append((label, where, name, pool.n, pool.K, pool.rounds, *judged))
    errors = [error for each in failed.values() for error in each]
    if len(errors) == len(pairs):
        raise errors[0]
    for label, own in failed.items():
        many = f"{len(own)} of {len(pools)} pools"
        warn(f"{label} failed on {many}, where it has no verdict: {own[0]}", ReplayWarning)
    table = pd.DataFrame(rows, columns=_COLUMNS)
    return Bench(table=table, summary=_summary(table))


def policies_in(path: str | os.PathLike[str]) -> dict[str, PolicyClass]:
    """Runs a Python file of the user's and returns the policies that it defines.

    These are the values of its dictionary `POLICIES`, else its classes that have `ask` and `tell`.

    Raises:
        ValueError: It cannot be run, or defines none.
    """
    try:
        names = runpy.run_path(str(path), run_name="policies")
    except Exception as error:  # a stranger's file may raise anything
        raise ValueError(
            f"{os.fspath(path)} cannot be run: {type(error).__name__}: {error}"
        ) from error
    if isinstance(listed := names.get("POLICIES"), dict) and listed is not POLICIES:
        return dict(listed)
    found: dict[str, Any] = {
        name: value
        for name, value in names.items()
        if isinstance(value, type)
        and value.__module__ == "policies"
        and (issubclass(value, BasePolicy) or (hasattr(value, "ask") and hasattr(value, "tell")))
    }
    if not found:
        raise ValueError(
            f"{os.fspath(path)}: expected a class with `ask` and `tell`, or a dictionary POLICIES "
            "of such classes by name, found neither"
        )
    return found


def _judged(build: PolicyClass, pool: Pools) -> tuple[object, ...]:
    """Gain, low, high, spread, verdict, seconds and note of a policy on a pool."""
    spread = float(np.nanstd(np.fmax.reduce(pool.fitness[:, : pool.rounds + 1], axis=1), ddof=1))
    if learns(build) and pool.earlier is None and not _taught(build):
        note = f"learns from {FEWEST_OTHERS} runs besides its {pool.K} arms, there are {pool.n}"
        return np.nan, np.nan, np.nan, spread, "undetermined", 0.0, note
    start = time.perf_counter()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ReplayWarning)
        found = pool.effect(build, BASELINE)
    verdict = decide(found.low, found.high) if np.isfinite(found.low) else "undetermined"
    seconds = time.perf_counter() - start
    return found.value, found.low, found.high, spread, verdict, seconds, found.note


def _taught(build: PolicyClass) -> bool:
    """Whether a policy was given its earlier runs by the caller."""
    given = build.keywords if isinstance(build, functools.partial) else {}
    return given.get("earlier") is not None or given.get("learned") is not None


def _worlds(names: Iterable[str], replicates: int, seed: int) -> Iterator[tuple[str, str, Pools]]:
    """Runs of each world, judged, and others from which policies learn."""
    for name in names:
        if name not in WORLDS:
            raise ValueError(f"expected worlds out of {[*WORLDS]}, got {name!r}")
        rng = np.random.default_rng([seed, [*WORLDS].index(name)])
        runs = WORLDS[name](rng, WORLD_RUNS + WORLD_EARLIER, WORLD_ROUNDS)
        lengths = np.full(WORLD_RUNS, WORLD_ROUNDS)
        yield (
            "world", name,
            Pools.of(
                runs[:WORLD_RUNS], lengths, arms=WORLD_ARMS, rounds=WORLD_ROUNDS,
                replicates=replicates, seed=seed, earlier=runs[WORLD_RUNS:],
            ),
        )  # fmt: skip


def _frame(logs: object) -> pd.DataFrame:
    """The logged runs to judge on; empty without any."""
    if isinstance(logs, pd.DataFrame):
        return logs
    if logs is None:
        logs = [CORPUS] if CORPUS.is_dir() else []
    sources = [logs] if isinstance(logs, str | os.PathLike) else list(logs)  # type: ignore[call-overload]
    return load(*sources, strict=False) if sources else pd.DataFrame()


def _logged(frame: pd.DataFrame, replicates: int, seed: int) -> Iterator[tuple[str, str, Pools]]:
    """Pools of runs that agree in FAMILY and lie in one folder, named by what varies."""
    if frame.empty:
        return
    folder = [str(Path(each).parent) for each in frame.get("source", pd.Series("", frame.index))]
    keys = [name for name in FAMILY if name in frame]
    apart = varies(frame, "settings") if "settings" in frame else pd.Series(False, frame.index)
    by = frame.assign(folder_=folder).groupby([*keys, "folder_"], sort=False, dropna=False)
    for key, part in by:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ReplayWarning)
            try:
                fitness, lengths = pool_of(part, "policies are judged")
            except ValueError:  # nothing but forks
                continue
        pool = _pool(fitness, lengths, replicates, seed)
        if pool is not None:
            about = dict(zip(keys, key, strict=False))
            name = f"{about['task']} {about['model']} N={about['children']}"
            search = about.get("search", "greedy")
            name += "" if search == "greedy" else f" {search}"
            name += f" {about['settings']}" if apart[part.index].any() and about["settings"] else ""
            where = Path(str(key[-1])).name
            yield "logs", f"{name} ({where})" if where else name, pool


def _pool(fitness: Floats, lengths: Ints, replicates: int, seed: int) -> Pools | None:
    """Pools of these runs; None where they are too few, too short, or without any fitness."""
    n = len(fitness)
    if n < LEAST_RUNS or (rounds := int(lengths.min())) < LEAST_GENERATIONS:
        return None
    if np.isnan(fitness[:, rounds]).any() or np.ptp(fitness[:, rounds]) == 0:
        return None
    K = default_arms(n)
    return Pools.of(
        fitness, lengths, arms=K, rounds=rounds, replicates=replicates, seed=seed,
        earlier=OTHERS if n - K >= FEWEST_OTHERS else None,
    )  # fmt: skip


def _summary(table: pd.DataFrame) -> pd.DataFrame:
    """See `Bench.summary`."""
    rows = []
    for policy, part in table.groupby("policy", sort=False):
        size = part["gain"] / part["spread"]
        verdicts = part["verdict"]
        judged = part["gain"].notna()
        rows.append({
            "policy": policy, "greater": (verdicts == "greater").sum(),
            "less": (verdicts == "less").sum(),
            "undetermined": (judged & (verdicts == "undetermined")).sum(),
            "worlds": size[part["where"] == "world"].mean(),
            "logs": size[part["where"] == "logs"].mean(),
            "wins": ", ".join(part.loc[verdicts == "greater", "pool"]),
            "loses": ", ".join(part.loc[verdicts == "less", "pool"]),
            "seconds": part["seconds"].sum(),
        })  # fmt: skip
    return pd.DataFrame(rows)
