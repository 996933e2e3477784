"""Configurations compared over all tasks of some logs: the last tables of a report."""

from __future__ import annotations

import json
import math
import warnings

import pandas as pd

from replay.claims.decision import FOUND
from replay.claims.task_comparison import TaskComparison
from replay.claims.tasks import compare_tasks
from replay.logs.frames import ReplayWarning, split_repeats
from replay.logs.tables import Tables
from replay.reports.configurations import configuration_labels
from replay.reports.tables import Cell, Section, exact, stack

MOST_COMPARED = 6
"""Configurations of which each pair is compared in a report."""


def comparison_sections(tables: Tables) -> list[Section]:
    """Returns the comparison of the configurations at equal calls, on all tasks together.

    A configuration is what a run was made with but task and seed: model, search, settings and N.
    There is none where two of them do not share a task with two runs each.

    Args:
        tables: The tables of the logs, from `replay.load_tables`.

    Example:
        >>> replay.reports.comparison_sections(replay.load_tables(path))
        []
    """
    _, made, why = comparison_with_sections(tables)
    if why:
        warnings.warn(f"configurations are not compared: {why}", stacklevel=2)
    return made


def comparison_with_sections(tables: Tables) -> tuple[TaskComparison | None, list[Section], str]:
    """The comparison, for its figure, and its tables; else None, no tables, and perhaps why."""
    runs, _ = split_repeats(tables.runs)
    runs = runs[runs["generations"] > 0].assign(configuration=_names)
    calls = runs["children"] * runs["generations"]
    whole = 2 * calls >= calls.groupby(runs["task"]).transform("median")
    notes = [f"{(~whole).sum()} runs of less than half the usual calls are left out"]
    notes = notes if not whole.all() else []
    runs = runs[whole]
    counts = runs.groupby(["task", "configuration"], sort=False).size()
    shared = counts[counts >= 2].groupby("task").transform("size")
    known = counts.loc[shared[shared >= 2].index].groupby("configuration", sort=False).sum()
    if known.empty:
        return None, [], ""
    chosen = known.sort_values(ascending=False, kind="stable").index[:MOST_COMPARED]
    if len(known) > len(chosen):
        notes.append(
            f"the {len(chosen)} configurations with the most runs of {len(known)}; "
            "`replay.compare` takes any"
        )
    names = runs.set_index("run")["configuration"]
    names = names[names.isin(chosen)]
    frame = tables.generations
    frame = frame[frame["run"].isin(names.index)]
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", ReplayWarning)
        try:
            found = compare_tasks(
                frame.assign(configuration=frame["run"].map(names)), by="configuration"
            )
        except ValueError as error:  # such as runs that are all alike
            return None, [], str(error)
    notes += dict.fromkeys(str(each.message) for each in caught)
    return found, _sections(found, runs[runs["run"].isin(names.index)], notes), ""


def _names(runs: pd.DataFrame) -> pd.Series[str]:
    """The configuration of each run in words, whatever its task."""
    apart = [{**json.loads(text), "task": ""} for text in runs["configuration"]]
    limits = sorted({key for each in apart for key in each if key.startswith("limits.")})
    for key in limits:  # a limit that differs between tasks alone is the task's
        known = pd.Series([str(each.get(key)) for each in apart], index=runs.index)
        if (known.groupby(runs["task"]).nunique() == 1).all():
            apart = [{k: v for k, v in each.items() if k != key} for each in apart]
    texts = pd.Series([json.dumps(each, sort_keys=True) for each in apart], index=runs.index)
    parts = []
    if runs["model"].nunique() > 1:
        parts.append(runs["model"].astype(str))
    if texts.nunique() > 1:
        parts.append(configuration_labels(texts))
    if runs["children"].nunique() > 1:
        parts.append("N = " + runs["children"].astype(str))
    rows = zip(*parts, strict=True) if parts else [("all",)] * len(runs)
    return pd.Series([", ".join(row) for row in rows], index=runs.index)


def _sections(found: TaskComparison, runs: pd.DataFrame, notes: list[str]) -> list[Section]:
    """The summary of each configuration, and the difference of each pair."""
    rows = {
        str(row["configuration"]): [
            exact("tasks", row["tasks"], row["runs"], "count"),
            exact("runs", row["runs"], row["runs"], "count"),
            _estimated(
                "interquartile mean", row["value"], row["low"], row["high"], row["runs"], 0.95
            ),
        ]
        for row in found.table.to_dict("records")
    }
    several = len(found.tasks) > 1
    pairs = {
        f"{row['a']} less {row['b']}": [
            _estimated("these tasks" if several else "difference", row["effect"], row["low"],
                       row["high"], row["runs"], round(row["level"], 4)),
            *([_estimated("further tasks", row["further"], row["further_low"], row["further_high"],
                          row["runs"], 0.95)] if several else []),
            exact("p (Holm)", row["p_holm"], row["runs"], "p"),
        ]
        for row in found.verdicts.to_dict("records")
    }  # fmt: skip
    verdicts = [
        FOUND[row["verdict"]].format(a=row["a"], b=row["b"])
        for row in found.verdicts.to_dict("records")
        if row["verdict"] in FOUND
    ]
    task = f"{len(found.tasks)} tasks" if several else found.tasks[0]
    model, is_llm = ", ".join(dict.fromkeys(runs["model"])), bool(runs["is_llm"].all())
    alone = "effects are in standard deviations; Holm's rule shares the error among the pairs"
    read = found.notes if several else (found.notes[0], alone)
    normal = "normalised: (fitness - initial) / (best known - initial)"
    read = (*(verdicts or ["no difference is determined"]), *read)
    parts = (
        ("Configurations at equal calls", "configuration", rows, (normal, *notes)),
        ("Differences, in standard deviations within tasks", "pair", pairs, read),
    )
    return [
        Section(
            title=title, heading=heading, cells=stack(cells), notes=said,
            task=task, model=model, is_llm=is_llm,
        )
        for title, heading, cells, said in parts
    ]  # fmt: skip


def _estimated(
    quantity: str, value: float, low: float, high: float, runs: int, level: float
) -> Cell:
    """A cell of an interval whose coverage was not measured apart."""
    without = "too few runs for an interval" if math.isnan(low) else ""
    level = math.nan if without else level
    return Cell(quantity, value, low, high, runs, "difference", level, math.nan, without)
