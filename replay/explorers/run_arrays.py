"""Everything that the browser needs to draw a run, as values that JSON holds.

All numbers are those of the log; `run_view.js` looks them up, scales and draws them.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from evo.logs.log import Log
from replay.explorers.run_data import UNKNOWN, Drawing, sentence
from replay.logs.lineage import Place, parent_of
from replay.plots.constructions import construct
from replay.plots.style import FITNESS, PALETTE, fitness_name, usual_range, with_room
from replay.statistics.numbers import amount

if TYPE_CHECKING:
    from evo.logs.types import JsonObject

GREY = "#8C8C8C"
LOOKS = {
    "no_reply": ("v", GREY),
    "no_program": ("P", PALETTE[5]),
    "rejected": ("d", PALETTE[5]),
    "invalid": ("s", PALETTE[3]),
    "error": ("X", PALETTE[4]),
    "timeout": ("^", PALETTE[2]),
    "partial": ("h", PALETTE[1]),
}
"""Marker and colour of failures, as matplotlib and `run_view.js` know them."""

NO_LOOK = ("o", GREY)
"""Marker and colour of failures of an unknown kind."""

NOWHERE = (-1, -1)
"""The place of no program."""

LONGEST = 160
"""Characters that are shown of an error."""


def run_arrays(log: Log, name: str) -> JsonObject:
    """Every program of a run in the order of the log, and the best so far.

    A child names its status, its parent and its error by their number; -1: `ok`, and no parent.

    Args:
        log: The log.
        name: What the run is called.
    """
    first = [((0, 0), log.initial.evaluation)] if log.initial else []
    every = [*first, *(((o.generation, o.index), o.evaluation) for o in log.outcomes)]
    places = [place for place, _ in every]
    fitness = [evaluation.fitness for _, evaluation in every]
    status = [evaluation.status or UNKNOWN for _, evaluation in every]
    failures = [each for each in (*LOOKS, UNKNOWN) if each in status]
    said = {
        number: text[:LONGEST]
        for number, (_, evaluation) in enumerate(every)
        if evaluation.status != "ok" and (text := sentence(evaluation.error))
    }
    said |= {
        number: each.kept_out[:LONGEST]
        for number, each in enumerate(log.outcomes, start=len(first))
        if each.kept_out
    }
    errors = {text: number for number, text in enumerate(dict.fromkeys(said.values()))}
    better = [each.best for each in log.generations if each.improved]
    numbers = {place: number for number, place in enumerate(places)}
    parents = parents_of(log)
    low, high = usual_range([math.nan if each is None else each for each in fitness])
    trajectory = log.trajectory.tolist()
    task = log.header.task.name
    references = [("best published", 1.0)] if fitness_name([task]) != FITNESS else []
    if fitness and first and fitness[0] is not None:
        references.append(("initial program", fitness[0]))
    ends = f"{trajectory[-1]:.6g}" if trajectory and not math.isnan(trajectory[-1]) else "unknown"
    return {
        "name": name,
        "words": f"every child of {name} by generation and fitness; the best so far ends at "
        f"{ends} after {amount(len(log.generations), 'generation')}",
        "y": fitness_name([task]).removeprefix("best "),
        "N": log.header.children,
        "last": max([len(log.generations), *(generation for generation, _ in places)]),
        "range": [low, high],
        "limits": with_room(low, high),
        "references": [list(each) for each in references],
        "statuses": [[each, *LOOKS.get(each, NO_LOOK)] for each in failures],
        "errors": list(errors),
        "best": [None if math.isnan(value) else value for value in trajectory],
        "children": {
            "generation": [generation for generation, _ in places],
            "index": [index for _, index in places],
            "status": [failures.index(each) if each != "ok" else -1 for each in status],
            "fitness": fitness,
            "parent": [numbers.get(parents.get(place, NOWHERE), -1) for place in places],
            "said": {str(number): errors[text] for number, text in said.items()},
            "better": [numbers[place] for place in better if place in numbers],
        },
    }


def parents_of(log: Log) -> dict[Place, Place]:
    """The program that each child rewrote, as far as the log tells."""
    found = {
        (o.generation, o.index): o.parents[0] if o.parents else parent_of(log, o.generation)
        for o in log.outcomes
    }
    return {place: parent for place, parent in found.items() if parent is not None}


def drawing_arrays(drawing: Drawing) -> JsonObject:
    """The construction of a program as lists of coordinates, or the reason why there is none."""
    if drawing.value is None:
        return {"reason": drawing.reason, "pictured": drawing.pictured}
    try:
        made = construct(drawing.picture, drawing.value)
    except ValueError as error:  # a stranger's log may hold anything
        return {"reason": str(error)[:300]}
    names = ("outline", "discs", "far", "near", "area", "points", "crosses")
    return {
        "title": made.title,
        "about": made.about,
        **{name: getattr(made, name).tolist() for name in names},
    }
