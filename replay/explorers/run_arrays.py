"""A run, and what one of its programs returned, as values that JSON holds, for the browser.

Charts are described in `run_chart.py`; `run_view.js` has the pen draw them.
"""

from __future__ import annotations

import json
import math
from typing import TYPE_CHECKING, Any

from evo.logs.log import Log
from replay.explorers.run_chart import run_chart
from replay.explorers.run_data import Drawing, RunData
from replay.logs.lineage import Place, first_parents
from replay.plots.chart import pack
from replay.plots.constructions import construction
from replay.statistics.numbers import amount

if TYPE_CHECKING:
    from evo.logs.types import JsonObject


def run_arrays(log: Log, name: str) -> dict[str, Any]:
    """The chart of a run, and what leads from its points to programs and between these.

    `places` are the programs in the order of the log, `parents` their parents by number (-1: none),
    `better` the numbers of those that became the next parent, and `points` the panel, the mark and
    the numbers of each mark whose points are programs.

    Args:
        log: The log.
        name: What the run is called.
    """
    if log.initial is None and not log.outcomes:
        return {"name": name, "message": "No program was evaluated yet.", "places": []}
    data = RunData(log)
    chart, best = run_chart(data), data.trajectory
    ends = f"{best[-1]:.6g}" if len(best) and not math.isnan(best[-1]) else "unknown"
    return {
        "name": name,
        "words": f"every child of {name} by generation and fitness; the best so far ends at "
        f"{ends} after {amount(len(log.generations), 'generation')}",
        "chart": json.loads(pack(chart)),
        "points": [[*at, list(numbers)] for at, numbers in chart.keys().items()],
        "places": [list(place) for place in data.places],
        "parents": data.parents,
        "better": data.improved.nonzero()[0].tolist(),
    }


def parents_of(log: Log) -> dict[Place, Place]:
    """The program that each child rewrote, as far as the log tells."""
    found = first_parents(log)
    return {place: parent for place, parent in found.items() if parent is not None}


def drawing_arrays(drawing: Drawing) -> JsonObject:
    """The chart of what a program returned, or the reason why there is none."""
    if drawing.value is None:
        return {"reason": drawing.reason, "pictured": drawing.pictured}
    try:
        return {"chart": json.loads(pack(construction(drawing.picture, drawing.value)))}
    except ValueError as error:  # a stranger's log may hold anything
        return {"reason": str(error)[:300]}
