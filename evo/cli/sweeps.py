"""What the command says of a sweep that was made, or of one that has runs left."""

from __future__ import annotations

import math
import statistics
from shlex import quote
from typing import TYPE_CHECKING

from evo.cli.tables import FAILURE, number, table

if TYPE_CHECKING:
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
