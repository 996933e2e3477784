"""What the command says of a sweep that was made, or of one that has runs left."""

from __future__ import annotations

import math
import statistics
import tempfile
from collections.abc import Mapping
from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING, Any

from evo.cli.tables import FAILURE, number, table

if TYPE_CHECKING:
    from evo.runs.options import SweepOptions
    from evo.studies.sweep.design import Design
    from evo.studies.sweep.summary import Summary, Sweep


def print_sweep(done: Sweep) -> int:
    """Prints the fitness of each configuration, best first, and the sweep's progress."""
    from evo.studies.sweep.summary import standings

    rows = []
    for configuration, values, found in standings(done.folder):
        known = found or [-math.inf]
        figures = (sum(known) / len(known), statistics.median(known), min(known), max(known))
        what = " ".join(f"{name}={value}" for name, value in values.items()) or "base"
        shown = [number(each if math.isfinite(each) else None, ".5f", "none") for each in figures]
        rows.append((configuration, what, len(found), *shown))
    heads = ("configuration", "values", "runs", "mean fitness", "median", "lowest", "highest")
    print(table(rows, heads))
    summary = done.summary
    print(summary)
    if left := what_goes_on(summary):
        print(left)
    return FAILURE if summary.failed else 0


def what_goes_on(summary: Summary) -> str:
    """Returns how far the runs are that a sweep has left, and what goes on with them, if any."""
    from evo.studies.sweep.events import EventLog

    command = f"evo sweep {quote(str(summary.folder))}"
    left = summary.pending + summary.cancelled
    if summary.ended == "running" or not (left or summary.failed):
        return ""
    if not left:
        return f"`{command}` tries again what failed"
    limits = EventLog(summary.folder).state.budget if summary.ended == "budget" else {}
    command += "".join(f" --budget {unit}=NUMBER" for unit in limits)
    begun = f"{summary.begun} of them begun" if summary.begun else "none of them begun"
    why = "; the budget is used up, and a higher one goes on" if limits else "; going on"
    return f"runs left: {left}, {begun}{why}: `{command}`"


def print_outlook(
    file: str, budget: Mapping[str, float] | None, options: SweepOptions, **given: Any
) -> int:
    """Prints what a sweep may cost; a new one is prepared in a folder that does not stay."""
    from evo.studies.sweep.design import is_sweep
    from evo.studies.sweep.driver import prepare_sweep

    begun = Path(given.pop("log_dir", file))
    with tempfile.TemporaryDirectory(prefix="evo-dry-run-") as folder:
        if not is_sweep(file):
            given["log_dir"] = begun if is_sweep(begun) else folder
        prepared = prepare_sweep(file, budget=budget, **given, **options)
    print(f"{cost_of_sweep(prepared.design, begun, prepared.limits)}; nothing was called")
    return 0


def cost_of_sweep(design: Design, folder: Path, budget: Mapping[str, float] | None) -> str:
    """Returns what a sweep may cost, and how much of it its folder holds."""
    from evo.cli.estimates import outlook_of_sweep
    from evo.studies.sweep.design import is_sweep
    from evo.studies.sweep.events import EventLog

    done = len(EventLog(folder).state.completed) if is_sweep(folder) else 0
    known = f"; {done} of the runs are complete already and cost nothing more" if done else ""
    return f"{outlook_of_sweep(design, budget)}{known}"
