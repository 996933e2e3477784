"""The command `replay plan`: how to spend the next budget, for each configuration in the logs."""

from __future__ import annotations

import math
from collections.abc import Collection
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter

from evo.cli.options import Costs, Flag, Number, Seed
from evo.cli.tables import table
from evo.logs.journal import file_name
from evo.warning import warn
from replay.cli.options import Calls, Logs, Output, Theme, Where, picture

if TYPE_CHECKING:
    import pandas as pd


def plan(
    logs: Logs,
    *,
    budget: Calls,
    tau: Number = None,
    best: Number = None,
    cost: Costs = None,
    earlier: Annotated[list[str] | None, Parameter(negative=(), consume_multiple=True)] = None,
    seed: Seed = 0,
    where: Where = None,
    task: str | None = None,
    skip_damaged: Flag = False,
    output: Annotated[Path, Output] = Path("plan.png"),
    theme: Theme = "light",
) -> int:
    """Recommends from a pilot how to spend the next budget, for each configuration in the logs.

    Args:
        logs: Logs, folders or glob patterns.
        budget: What may be spent, such as calls=512; with --cost, in its unit.
        tau: A fitness that one would like to reach.
        best: The best known fitness of the task, on the scale of the runs (default: 1, if they come
            close to it); where none is known, the highest here plus what the runs span.
        cost: Of a call, evaluation or generation, in the unit of the budget; call=1 by default.
        earlier: Logs of at least three other tasks, which say what to expect of this one.
        seed: Of all draws.
        where: Plan from these runs alone, such as model=NAME; it may be given several times.
        task: The task of runs of other tools that do not say it themselves.
        skip_damaged: Leave out logs that cannot be read, and say so.
        output: The figure: .png, .svg or .pdf.
        theme: Of the figure.
    """
    from replay.importers.anything import load_tables
    from replay.logs.selected import chosen_tables
    from replay.planning.planner import plan as make
    from replay.plots import planner_card
    from replay.plots.output import save
    from replay.reports.report import OFFLINE_NOTE, groups

    output = picture(output)
    tables = load_tables(*logs, strict=not skip_damaged, task=task)
    parts = groups(chosen_tables(tables, where))
    unplanned, paths = [], set[Path]()
    for group in parts:
        of_model = ", ".join(filter(None, (group.model, group.setting)))
        name = f"{group.task}, {of_model}"
        try:
            made = make(
                group.tables.generations, budget=budget, children=group.tables.children,
                costs=cost, tau=tau, best=best, seed=seed or 0, earlier=earlier,
            )  # fmt: skip
        except ValueError as error:
            unplanned.append((name, error))
            continue
        made = replace(made, model=of_model)  # which heads the plan and its figure
        print(made)
        if not group.is_llm:
            print(f"  {OFFLINE_NOTE}")
        print(_options(made.options, departs=made.departs))
        path = _beside(output, name, paths) if len(parts) > 1 else output
        paths.add(path)
        print(f"figure: {save(planner_card(made, theme=theme)[0], path)}\n")
    if len(unplanned) == len(parts):
        name, why = unplanned[0]
        raise ValueError(f"{name}: {why}") from why
    reasons: dict[str, list[str]] = {}
    for name, why in unplanned:
        reasons.setdefault(str(why), []).append(name)
    for words, names in reasons.items():
        warn(f"{'; '.join(names)}: no plan is made: {words}")
    for of in dict.fromkeys((group.task, group.model, group.of) for group in parts if group.of):
        warn("{}, {}: of {} configurations those that reached most are planned".format(*of))
    return 0


def _beside(output: Path, name: str, taken: Collection[Path]) -> Path:
    """Returns the path of one of several figures, which no other has."""
    stem = f"{output.stem}-{file_name(name.replace(', ', '-'))}"
    stems = (stem, *(f"{stem}-{count}" for count in range(2, 2 + len(taken))))
    return next(path for path in map(output.with_stem, stems) if path not in taken)


def _options(options: pd.DataFrame, *, departs: bool) -> str:
    """The recommended way to spend a budget, or the default, marked, and others with their leads.

    Args:
        options: Of a plan.
        departs: Whether it recommends anything.
    """
    from replay.planning.choices import NO_MARGIN
    from replay.statistics.numbers import brackets

    rows = []
    top = options.head(10)
    ends = [brackets(*each, "{:z.4f}".format) for each in zip(top["low"], top["high"], strict=True)]
    for row, limits in zip(top.itertuples(), ends, strict=True):
        likely = limits if row.inside else "not forecast"
        spent = (row.generations, row.children, row.arms, row.policy)
        mark = "" if row.Index else "recommended" if departs else "default"
        asks = NO_MARGIN if row.margin == math.inf else f"needs {row.margin:.3f}"
        needs = "" if row.margin == 0 else f"{row.ahead:+.3f} ({asks})"
        rows.append((*spent, needs, likely, mark))
    return table(rows, ("rounds", "N", "K", "policy", "lead", "95% of searches", ""))
