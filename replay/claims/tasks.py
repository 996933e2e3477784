"""Configurations compared over several tasks: a table, a verdict for each pair, and a figure.

A paper compares searches, models or tools on several tasks at equal calls. Each pair gets two
answers, which are named apart: for these tasks (runs exchanged within tasks) and for further tasks
(random effects over tasks); see `replay.statistics.strata`. Verdicts are of the first. Holm's rule
shares the error among the pairs, and each pair's interval has the level at which it was decided, so
that interval, p and verdict agree. Summaries are those of Agarwal et al. (2021, rliable).
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Hashable, Iterator, Mapping, Sequence

import numpy as np
import pandas as pd

from evo.plugins import MistakenType
from evo.warning import warn
from replay.claims.decision import checked_margin
from replay.claims.pairs import decided
from replay.claims.task_comparison import Measure, TaskComparison
from replay.logs.columns import in_order, varies
from replay.logs.frames import (
    ReplayWarning,
    distinct_runs,
    fitness_matrix,
    independent_runs,
    run_lengths,
    tasks_apart,
)
from replay.statistics.intervals import FloatArray
from replay.statistics.strata import (
    Stratum,
    compare_strata,
    further_tasks,
    stratified,
)

MEASURES: tuple[Measure, ...] = ("final", "area", "calls")

_ALIASES = {"engine": "search", "policy": "search"}
"""Columns that hold what is asked for: another tool's name, and that of a live allocation's."""

_LEVELS = 41
"""Levels of the normalised value at which profiles are stated."""


def compare_tasks(
    frame: pd.DataFrame,
    *,
    by: str,
    measure: Measure = "final",
    calls: int | None = None,
    target: float | Mapping[str, float] | None = None,
    best: float | Mapping[str, float] | None = None,
    margin: float | None = None,
    level: float = 0.95,
    highest: int | None = None,
    seed: int = 0,
) -> TaskComparison:
    """Compares configurations on several tasks together.

    Args:
        frame: Rows of `replay.load`, of one or more tasks. Versions of a task are tasks of their
            own.
        by: The column that tells the configurations apart: "search", "model", "children", any other
            column; "engine" and "policy" stand for "search", which names both.
        measure: `final`: best fitness; `area`: its mean over the calls; `calls`: calls until
            `target` is reached (a run that never reaches it counts with the whole budget).
        calls: Budget at which runs are compared; None: per task the most that all its runs have.
        target: Fitness to reach, or one by task, for the measure `calls`.
        best: Best known fitness, or one by task, to normalise by: (f - initial) / (best - initial).
            None: 1; on a task on which a run exceeds that, the highest fitness of these runs.
        margin: Largest difference that counts as none, in standard deviations within tasks.
        level: Coverage of the intervals of the pairs together.
        highest: Compare only so many configurations, those of the highest value; the pairs of all
            share the error, since these were chosen for what they reached. None: all.
        seed: Key of all draws.

    Returns:
        The table, the verdict of each pair, and a figure.

    Raises:
        ValueError: No such column; fewer than two configurations; no task that two of them share
            with at least two runs each; runs too short for the budget; a target that is missing.

    Example:
        >>> halves = frame.assign(half=frame["seed"] % 2)
        >>> found = replay.compare(halves, by="half")
        >>> found.verdicts["verdict"].tolist()
        ['undetermined']
    """
    if not isinstance(by, str):
        raise MistakenType(
            f"compare: expected by= to be the name of one column, got {by!r}; make one of several: "
            "frame.assign(both=frame['search'] + ' ' + frame['model']), then by='both'"
        )
    if measure not in MEASURES:
        raise ValueError(f"expected measure to be one of {', '.join(MEASURES)}, got {measure!r}")
    if (measure == "calls") != (target is not None):
        raise ValueError(
            "expected a target= with measure='calls', and with no other measure, got "
            f"measure={measure!r} and target={target!r}"
        )
    if highest is not None and highest < 2:
        raise ValueError(f"expected highest= to be 2 or more configurations, got {highest!r}")
    column = by if by in frame else _ALIASES.get(by, by)
    if column not in frame:
        raise ValueError(f"expected a column to compare by, got {by!r}; there are {[*frame]}")
    frame = independent_runs(distinct_runs(frame))
    _warn_of_settings(frame, column)
    runs, budgets, scales = _measured(frame, column, measure, calls, target, best)
    names = [*dict.fromkeys(runs["configuration"])]
    if len(names) < 2:
        raise ValueError(f"expected at least two values in the column {by!r}, got {names}")
    runs, alone = _shared(runs)
    names = [name for name in names if name in set(runs["configuration"])]
    table, of, family = _table(runs, names, level, seed), len(names), 0
    if highest is not None and highest < of:
        family, table = math.comb(of, 2), table.head(highest)
        names = [name for name in names if name in set(table["configuration"])]
        every, runs = runs, runs[runs["configuration"].isin(names)]
        table = table.drop(columns=[*{*every["task"]} - {*runs["task"]}])
    budgets = {task: budgets[task] for task in dict.fromkeys(runs["task"])}
    pairs = [
        pair for one, other in itertools.combinations(names, 2)
        if (pair := _pair(runs, one, other, level, seed)) is not None
    ]  # fmt: skip
    if not pairs:
        raise ValueError(
            "expected a task on which two of the configurations have at least two runs each that "
            f"differ, got none. {' '.join(alone)}"
        )
    verdicts = decided(pd.DataFrame([row for row, _, _ in pairs]), [s for _, _, s in pairs],
                        checked_margin(margin), level, seed, family)  # fmt: skip
    return TaskComparison(
        by=by, measure=measure, tasks=tuple(dict.fromkeys(runs["task"])),
        budgets=budgets, table=table, of=of, verdicts=verdicts,
        effects=pd.concat([part for _, part, _ in pairs], ignore_index=True),
        profiles=_profiles(runs, in_order(names)), margin=checked_margin(margin),
        notes=(*_notes(runs, budgets, measure), *scales, *alone, *_uncompared(runs, pairs)),
    )  # fmt: skip


def _shared(runs: pd.DataFrame) -> tuple[pd.DataFrame, list[str]]:
    """Runs on tasks on which some pair can be compared, and a sentence about the others."""
    counts = runs.groupby(["task", "configuration"], sort=False).size()
    sides = (counts >= 2).groupby("task", sort=False).sum()
    lone = [str(task) for task in sides.index[sides < 2]]
    if not lone:
        return runs, []
    left = runs["task"].isin(lone)
    said = []
    for task, part in runs[left].groupby("task", sort=False):
        of = ", ".join(f"{n} of {name}" for name, n in part["configuration"].value_counts().items())
        said.append(f"{task} ({of})")
    note = (
        f"Left out {'is 1 run' if left.sum() == 1 else f'are {left.sum()} runs'} on tasks on which "
        f"fewer than two configurations have two runs: {'; '.join(said)}."
    )
    return runs[~left], [note]


def _uncompared(
    runs: pd.DataFrame, pairs: Sequence[tuple[dict[str, object], pd.DataFrame, list[Stratum]]]
) -> Iterator[str]:
    """A sentence for each pair that is not compared on all tasks that one of the two has."""
    for row, effects, _ in pairs:
        both = runs[runs["configuration"].isin([row["a"], row["b"]])]
        compared = set(effects["task"])
        left = [str(task) for task in dict.fromkeys(both["task"]) if task not in compared]
        if left:
            yield (
                f"{row['a']} and {row['b']} are not compared on {', '.join(left)}, where one of "
                "them has fewer than two runs, or all their runs are alike."
            )


def _measured(
    frame: pd.DataFrame,
    column: str,
    measure: Measure,
    calls: int | None,
    target: float | Mapping[str, float] | None,
    best: float | Mapping[str, float] | None,
) -> tuple[pd.DataFrame, dict[str, int], list[str]]:
    """One row per run: task, configuration, seed, value (higher is better), shown, normalised."""
    parts, budgets, scales = [], {}, list[str]()
    for task, part in frame.groupby(tasks_apart(frame), sort=False):
        plain = str(part["task"].iloc[0])
        first = part.groupby("run", sort=False).first()
        sizes = first["children"].to_numpy(np.int64)
        lengths, fitness = run_lengths(part), fitness_matrix(part, repeats=True)
        budget = calls or int((lengths * sizes).min())
        depth = budget // sizes
        if (depth < 1).any() or (lengths < depth).any():
            raise ValueError(
                f"expected runs of {budget} calls on {task}, the shortest has "
                f"{int((lengths * sizes).min())}"
            )
        goal = _of(target, plain, "target") if target is not None else math.nan
        known = np.fmax.accumulate(fitness, axis=1)
        values = np.array([
            _value(known[i, : depth[i] + 1], int(sizes[i]), budget, measure, goal)
            for i in range(len(first))
        ])  # fmt: skip
        if np.isnan(values).any():
            lost = int(np.isnan(values).sum())
            warn(
                f"{lost} runs on {task} have no fitness at all and are left out: compare them by "
                "measure='calls', where a run that never reaches the target has a value",
                ReplayWarning,
            )  # fmt: skip
        initial = float(np.nanmean(known[:, 0])) if not np.isnan(known[:, 0]).all() else 0.0
        if measure == "calls":
            top = float(budget)
        else:
            given = None if best is None else _of(best, plain, "best")
            top, said = _room(str(task), known, initial, given)
            scales += said
        normal = 1 + values / top if measure == "calls" else (values - initial) / top
        parts.append(pd.DataFrame({
            "task": str(task), "configuration": first[column].astype(str).to_numpy(),
            "seed": first["seed"].to_numpy(), "value": values, "normalised": normal,
            "shown": -values if measure == "calls" else values,
        }))  # fmt: skip
        budgets[str(task)] = budget
    return pd.concat(parts, ignore_index=True).dropna(subset="value"), budgets, scales


def _room(
    task: str, known: FloatArray, initial: float, best: float | None
) -> tuple[float, list[str]]:
    """What lies between the initial program and the best known fitness, and how that is known."""
    highest = float(np.fmax.reduce(known, axis=None, initial=initial))
    if best is not None and best <= initial:
        raise ValueError(
            f"best: expected a fitness above that of the initial program of {task}, {initial:.5g}, "
            f"got {best:g}; the highest that was reached is {highest:.5g}"
        )
    if best is not None or highest <= 1:
        return (1.0 if best is None else best) - initial or 1.0, []
    note = (
        f"On {task} the highest fitness of these runs, {highest:.5g}, stands for the best known "
        "one in what is normalised; best= gives another."
    )
    return highest - initial or 1.0, [note]


def _warn_of_settings(frame: pd.DataFrame, column: str) -> None:
    """Warns where runs of one configuration differ in settings that the column does not name."""
    if "settings" not in frame:
        return
    mixed = [
        str(name) for name, part in frame.groupby(column, sort=False)
        if varies(part, "settings").any()
    ]  # fmt: skip
    if mixed:
        warn(
            f"runs of {column} {', '.join(mixed)} differ in their settings and are taken together; "
            "the column settings says how, and frame[frame.settings == ...] or `--where "
            "settings=VALUE` selects some",
            ReplayWarning,
        )  # fmt: skip


def _of(given: float | Mapping[str, float], task: str, what: str) -> float:
    """A number of a task: the same for all, or by name."""
    if not isinstance(given, Mapping):
        return float(given)
    if task not in given:
        raise ValueError(f"expected {what}= for the task {task!r}, got it for {sorted(given)}")
    return float(given[task])


def _value(curve: FloatArray, size: int, budget: int, measure: Measure, goal: float) -> float:
    """The measure of one run, whose best fitness by generation is the curve."""
    if measure == "final":
        return float(curve[-1])
    if measure == "area":
        return float(np.mean(curve[1:]))
    reached = np.flatnonzero(curve >= goal)
    return -float(min(size * int(reached[0]), budget) if len(reached) else budget)


def _strata(runs: pd.DataFrame, one: str, other: str) -> dict[str, Stratum]:
    """The tasks on which both have two runs or more, pairs of one seed first."""
    found = {}
    for task, part in runs.groupby("task", sort=False):
        sides = [part[part["configuration"] == name] for name in (one, other)]
        if min(map(len, sides)) < 2:
            continue
        seeds = [side["seed"] for side in sides]
        unique = not any(each.duplicated().any() or (each < 0).any() for each in seeds)
        shared = set(seeds[0]) & set(seeds[1]) if unique else set()
        ordered = [
            pd.concat([
                side[side["seed"].isin(shared)].sort_values("seed"),
                side[~side["seed"].isin(shared)].sort_values("seed", kind="stable"),
            ])["value"].to_numpy(np.float64)
            for side in sides
        ]  # fmt: skip
        found[str(task)] = Stratum(ordered[0], ordered[1], len(shared))
    return found


def _pair(
    runs: pd.DataFrame, one: str, other: str, level: float, seed: int
) -> tuple[dict[str, object], pd.DataFrame, list[Stratum]] | None:
    """What is known of a pair before the verdicts, its effects by task, and its tasks."""
    raw = _strata(runs, one, other)
    tasks = {task: each.over(each.scale) for task, each in raw.items() if each.scale > 0}
    if not tasks:
        return None
    strata = [*tasks.values()]
    values = np.array([each.left.mean() - each.right.mean() for each in strata])
    errors = np.array([compare_strata([each], seed=seed).error for each in strata])
    errors = np.maximum(errors, 1e-9)
    further = further_tasks(values, errors, level)
    wins = [
        np.mean((s.left[:, None] > s.right) + 0.5 * (s.left[:, None] == s.right)) for s in strata
    ]
    row: dict[str, object] = {
        "a": one, "b": other, "tasks": len(tasks),
        "runs": sum(len(each.left) + len(each.right) for each in strata),
        "further": further.value, "further_low": further.low, "further_high": further.high,
        "further_p": further.p, "spread": further.spread, "better": float(np.mean(wins)),
    }  # fmt: skip
    effects = pd.DataFrame({
        "a": one, "b": other, "task": [*tasks], "runs_a": [len(s.left) for s in strata],
        "runs_b": [len(s.right) for s in strata], "effect": values, "error": errors,
        "pooled": further.pooled,
    })  # fmt: skip
    return row, effects, strata


def _table(runs: pd.DataFrame, names: Sequence[str], level: float, seed: int) -> pd.DataFrame:
    """The summary of each configuration, the best first; empty of none."""
    rows = []
    for name in names:
        parts = runs[runs["configuration"] == name].groupby("task", sort=False)
        value, low, high = stratified(
            [part["normalised"].to_numpy(np.float64) for _, part in parts], level=level, seed=seed
        )
        rows.append({
            "configuration": name, "tasks": len(parts), "runs": parts.size().sum(), "value": value,
            "low": low, "high": high, **parts["shown"].mean().to_dict(),
        })  # fmt: skip
    table = pd.DataFrame(rows, columns=None if rows else ["value"])
    return table.sort_values("value", ascending=False, ignore_index=True)


def _profiles(runs: pd.DataFrame, names: Sequence[Hashable]) -> pd.DataFrame:
    """Shares of runs at or above each level, mean over tasks."""
    levels = np.linspace(
        min(0.0, float(runs["normalised"].min())), max(1.0, float(runs["normalised"].max())),
        _LEVELS,
    )  # fmt: skip
    parts = []
    for name in names:
        own = runs[runs["configuration"] == name].groupby("task", sort=False)["normalised"]
        shares = np.mean(
            [(part.to_numpy()[:, None] >= levels).mean(axis=0) for _, part in own], axis=0
        )
        parts.append(pd.DataFrame({"configuration": name, "level": levels, "share": shares}))
    return pd.concat(parts, ignore_index=True)


def _notes(runs: pd.DataFrame, budgets: Mapping[str, int], measure: Measure) -> tuple[str, ...]:
    """How to read the numbers."""
    what = {
        "final": "Best fitness", "area": "Mean best fitness over the calls",
        "calls": "Calls until the target (the whole budget where it was not reached; fewer count "
                 "as better)",
    }[measure]  # fmt: skip
    spent = sorted(set(budgets.values()))
    at = f"{spent[0]:,} calls" if len(spent) == 1 else f"{spent[0]:,} to {spent[-1]:,} calls a task"
    count = runs.groupby(["task", "configuration"]).size()
    each = f"{count.min()}" if count.min() == count.max() else f"{count.min()} to {count.max()}"
    return (
        f"{what} at {at}; {each} runs of a configuration on a task.",
        "Effects are in standard deviations within tasks. The verdict is for these tasks: runs "
        "were exchanged within tasks and Holm's rule shares the error among pairs. For further "
        "tasks, whose effects may differ, the second interval holds (random effects over tasks).",
    )
