"""Configurations compared over all tasks of some logs: the last tables of a report."""

from __future__ import annotations

import json
import math
import shlex
import warnings

import pandas as pd

from evo.warning import warn
from replay.claims.decision import FEW, FOUND, MANY, OPEN, in_family
from replay.claims.task_comparison import TaskComparison
from replay.claims.tasks import compare_tasks
from replay.claims.verdict import NO_SPREAD
from replay.logs.frames import ReplayWarning, split_repeats, tasks_apart
from replay.logs.tables import Tables
from replay.reports.configurations import configuration_labels
from replay.reports.tables import Cell, Section, exact, stack

MOST_COMPARED = 6
"""A report compares each pair of at most so many configurations, those that reached most."""

VERSIONS = (
    "there are runs of several versions of {tasks} (column task_version), which are compared "
    "with runs of the same version alone"
)


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
        warn(f"configurations are not compared: {why}")
    return made


def comparison_with_sections(tables: Tables) -> tuple[TaskComparison | None, list[Section], str]:
    """The comparison, for its figure, and its tables; else None, no tables, and perhaps why."""
    runs, _ = split_repeats(tables.runs)
    several = tasks_apart(runs) != runs["task"]
    notes = [VERSIONS.format(tasks=", ".join(runs.loc[several, "task"].unique()))]
    notes = notes if several.any() else []
    runs = named_runs(tables)
    calls = runs["children"] * runs["generations"]
    whole = 2 * calls >= calls.groupby(runs["task"]).transform("median")
    if not whole.all():
        left = int((~whole).sum())
        said = "1 run of {} is left out" if left == 1 else f"{left} runs of {{}} are left out"
        notes.append(said.format("less than half the usual calls"))
    runs = runs[whole]
    counts = runs.groupby(["task", "configuration"], sort=False).size()
    shared = counts[counts >= 2].groupby("task").transform("size")
    known = counts.loc[shared[shared >= 2].index].groupby("configuration", sort=False).sum()
    if known.empty:
        return None, [], notes[0] if several.any() else ""
    names = runs.set_index("run")["configuration"]
    names = names[names.isin(known.index)]
    frame = tables.generations
    frame = frame[frame["run"].isin(names.index)]
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", ReplayWarning)
        try:
            found = compare_tasks(
                frame.assign(configuration=frame["run"].map(names)),
                by="configuration", highest=MOST_COMPARED,
            )  # fmt: skip
        except ValueError as error:  # such as runs that are all alike
            return None, [], str(error)
    notes += dict.fromkeys(str(each.message) for each in caught)
    if found.chosen:
        notes.append(f"{found.chosen} configurations; `replay.compare` takes any")
    names = names[names.isin(found.table["configuration"])]
    return found, _sections(found, runs[runs["run"].isin(names.index)], notes), ""


def named_runs(tables: Tables) -> pd.DataFrame:
    """The runs with a generation, without repeats, with their configurations in words."""
    runs = split_repeats(tables.runs)[0].assign(task=tasks_apart)
    return runs[runs["generations"] > 0].assign(configuration=_names)


def asked_alone(tables: Tables, a: str, b: str) -> str:
    """The command that judges one pair of configurations by itself.

    Its sides are values of columns where these single out the runs, else the logs of each.
    """
    runs = named_runs(tables)
    parts = {name: runs[runs["configuration"] == name] for name in (a, b)}
    names = [name for name in ("model", "search", "children") if runs[name].nunique() > 1]
    sides = []
    for part in parts.values():
        value = part[names].iloc[0]
        if len(runs[(runs[names] == value).all(axis=1)]) != len(part):
            return f"`replay judge A B`, where A and B are the logs of {a} and of {b}"
        sides.append(shlex.quote(",".join(f"{key}={one}" for key, one in value.items())))
    return f"`replay judge {' '.join(sides)} LOGS`"


def _names(runs: pd.DataFrame) -> pd.Series[str]:
    """The configuration of each run in words, whatever its task."""
    apart = [{**json.loads(text), "task": ""} for text in runs["configuration"]]
    limits = sorted({key for each in apart for key in each if key.startswith("limits.")})
    for key in limits:  # a limit that differs between tasks alone is the task's
        known = pd.Series([str(each.get(key)) for each in apart], index=runs.index)
        if (known.groupby(runs["task"]).nunique() == 1).all():
            apart = [{k: v for k, v in each.items() if k != key} for each in apart]
    texts = pd.Series([json.dumps(each, sort_keys=True) for each in apart], index=runs.index)
    others = [name for name in ("model", "children") if runs[name].nunique() > 1]
    parts = {"model": runs["model"].astype(str), "children": "N = " + runs["children"].astype(str)}
    parts = {name: part for name, part in parts.items() if name in others}
    if texts.groupby([runs[name] for name in others] or (lambda _: 0)).nunique().max() > 1:
        parts["settings"] = configuration_labels(texts)
    named = [parts[name] for name in ("model", "settings", "children") if name in parts]
    rows = zip(*named, strict=True) if named else [("all",)] * len(runs)
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
    shared = found.family
    pairs = {
        f"{row['a']} less {row['b']}": [
            _estimated("these tasks" if several else "difference", row["effect"], row["low"],
                       row["high"], row["runs"], round(row["level"], 4), row["why"], shared),
            *([_estimated("further tasks", row["further"], row["further_low"], row["further_high"],
                          row["runs"], 0.95)] if several else []),
            *([exact("p alone", row["p"], row["runs"], "p")] if shared > 1 else []),
            exact(f"p among {shared} (Holm)" if shared > 1 else "p", row["p_holm"], row["runs"],
                  "p"),
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
    read = found.notes if several else (found.notes[0], alone, *found.notes[2:])
    normal = "normalised: (fitness - initial) / (best known - initial)"
    read = (*(verdicts or ["no difference is determined"]), *_held(found), *read)
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


def _held(found: TaskComparison) -> list[str]:
    """Which pairs would be decided alone, and that the number of pairs leaves them open."""
    rows = found.verdicts[found.verdicts["why"] == MANY]
    return [
        f"{row['a']} less {row['b']}: "
        f"{in_family(row['p'], row['p_holm'], found.family)}; {OPEN[MANY]}"
        for row in rows.to_dict("records")
    ]


def _estimated(
    quantity: str, value: float, low: float, high: float, runs: int, level: float,
    why: str = FEW, shared: int = 1,
) -> Cell:  # fmt: skip
    """A cell of an interval whose coverage was not measured apart."""
    without = ""
    if math.isnan(low):
        without = "too few runs for an interval" if why else NO_SPREAD
        if why not in (FEW, ""):
            without += f" at {100 * level:.4g} %, which Holm's rule asks of {shared} pairs"
    level = math.nan if without else level
    return Cell(quantity, value, low, high, runs, "difference", level, math.nan, without)
