"""The chart of a run: children as points by generation and fitness, failures in rows below.

Both pens draw it: on paper with the program that is shown, on the screen without one, where
`run_view.js` marks the program that somebody went to.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from evo.logs.records import STATUSES, Initial
from replay.explorers.run_data import NAMED, UNKNOWN, RunData, name, sentence
from replay.plots.chart import Chart
from replay.plots.limits import with_room
from replay.plots.marks import Label, Line, Mark, Points, Rule, Segments, Shape
from replay.plots.medium import REFERENCE
from replay.plots.panel import Axis, Panel
from replay.plots.style import FITNESS, PALETTE, FloatArray, fitness_name, usual_range

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from replay.logs.lineage import Place

GREY = "#8C8C8C"
LOOKS: dict[str, tuple[Shape, str]] = {
    "no_reply": ("below", GREY),
    "no_program": ("plus", PALETTE[5]),
    "rejected": ("slim", PALETTE[5]),
    "invalid": ("square", PALETTE[3]),
    "error": ("times", PALETTE[4]),
    "timeout": ("above", PALETTE[2]),
    "partial": ("hexagon", PALETTE[1]),
    UNKNOWN: ("dot", GREY),
}
"""Shape and colour of failures."""

SPREAD = 0.8
"""Share of a generation's width over which its children are spread."""

FEW, SOME = 300, 1_500
"""Numbers of programs above which points are smaller, and small."""

LONGEST = 160
"""Characters that are shown of an error."""


def run_chart(data: RunData, place: Place | None = None) -> Chart:
    """Returns the chart of a run; the keys of its points are the numbers of programs.

    The last three marks of each panel belong to the program at `place`: a line from its parent, a
    frame around that, and a ring around the program. Without a place they are empty.
    """
    failed = data.status != STATUSES.index("ok")
    spread = SPREAD * ((data.index + 0.5) / data.log.header.children - 0.5)
    across = np.round(data.generation + spread * (data.generation > 0), 4)
    last = max(len(data.trajectory) - 1, int(data.generation[-1]))
    axis = Axis(domain=(-0.7, last + 0.7), label="generation", whole=True)

    low, high = usual_range(data.fitness)
    limits, task = with_room(low, high), data.log.header.task.name
    heights = np.where(failed, np.nan, np.maximum(data.fitness, low))
    above = _Programs(data, across, heights, _texts(data))
    fitness = Panel(
        title="", height=290, legend=True, zoom=True, shares="x", x=replace(axis, named=False),
        y=Axis(domain=limits, label=fitness_name([task]).removeprefix("best ")),
        marks=[*_lines(data, low, limits), *above.ok(low), *above.signs(place, limits, named=True)],
    )  # fmt: skip

    found = [each for each in LOOKS if (failed & (data.status == NAMED.index(each))).any()]
    rows = [found.index(NAMED[k]) if bad else np.nan
            for k, bad in zip(data.status.tolist(), failed.tolist(), strict=True)]  # fmt: skip
    below = _Programs(data, across, np.array(rows), above.texts)
    names = [each.replace("_", " ") for each in found] or ["no failures"]
    span, size = (len(names) - 0.5, -0.5), 4.0 if len(rows) <= SOME else 2.0
    failures = Panel(
        title="", height=20 * len(names), zoom=True, shares="x", x=axis,
        y=Axis(domain=span, ticks=[(float(k), each) for k, each in enumerate(names)]),
        marks=[
            *(below.points(below.y == k, *LOOKS[each], size) for k, each in enumerate(found)),
            *below.signs(place, span),
        ],
    )  # fmt: skip
    return Chart(panels=[fitness, failures], title=data.label)


@dataclass(frozen=True, eq=False)
class _Programs:
    """The programs of a run in one of the panels."""

    data: RunData
    x: FloatArray
    y: FloatArray  # NaN for those of the other panel
    texts: list[str]

    def points(
        self, members: NDArray[np.bool_], shape: Shape, color: str, size: float, label: str = ""
    ) -> Points:
        """Some of the programs."""
        numbers = np.flatnonzero(members).tolist()
        texts = [self.texts[k] for k in numbers]
        return Points(
            x=self.x[members], y=self.y[members], shape=shape, color=color, size=size,
            label=label if numbers else "", texts=texts, keys=numbers,
        )  # fmt: skip

    def ok(self, low: float) -> Iterator[Points]:
        """Programs with a fitness; those below the axis stand at its foot."""
        better, fitness, blue = self.data.improved, self.data.fitness, PALETTE[0]
        size = 3.2 if len(self.x) <= FEW else 2.4 if len(self.x) <= SOME else 1.6
        plain = ~np.isnan(self.y) & ~better
        yield self.points(plain & (fitness >= low), "dot", blue, size, "ok")
        if (under := plain & (fitness < low)).any():
            yield self.points(under, "below", blue, size + 0.8, "below the axis")
        yield self.points(better, "diamond", PALETTE[1], size + 2.2, "better than all before")

    def signs(
        self, place: Place | None, domain: tuple[float, float], *, named: bool = False
    ) -> Iterator[Mark]:
        """A line to the program at a place from its parent, a frame around that, and a ring.

        A line to the other panel goes on at the edge.
        """
        shown = -1 if place is None else self.data.number(place)
        parent = -1 if shown < 0 else self.data.parents[shown]
        here = [k for k in (parent, shown) if k >= 0 and not np.isnan(self.y[k])]
        ends = (parent, shown) if parent >= 0 and here else ()
        x = [float(self.x[k if k in here else shown]) for k in ends]
        y = [float(self.y[k]) if k in here else min(domain) for k in ends]
        yield Segments(x0=x[:1], y0=y[:1], x1=x[1:], y1=y[1:], dash="1.5 3", width=1.2)
        kinds: tuple[tuple[int, Shape, float, str, str], ...] = (
            (parent, "frame", 5.5, "ink", "its parent"),
            (shown, "ring", 8.0, PALETTE[1], "shown"),
        )
        for number, shape, size, color, label in kinds:
            own = [k for k in here if k == number]
            yield Points(
                x=self.x[own], y=self.y[own], shape=shape, size=size, color=color,
                label=label if named else "",
            )  # fmt: skip


def _lines(data: RunData, low: float, limits: tuple[float, float]) -> Iterator[Mark]:
    """References, and the best so far, which is known after the last child of a generation."""
    found = {"best published": 1.0} if fitness_name([data.log.header.task.name]) != FITNESS else {}
    if data.places[0] == (0, 0):
        found["initial program"] = float(data.fitness[0])
    for text, value in found.items():
        if limits[0] <= value <= limits[1]:
            yield Rule(y=value, text=text, dash=REFERENCE)
    best, generation = data.trajectory, np.arange(len(data.trajectory))
    is_ok = not np.isnan(data.fitness).all()
    after = SPREAD / 2 if data.log.header.children > 1 else 0.0
    texts = [f"best so far after generation {g}: {value:.6g}" for g, value in enumerate(best)]
    yield Line(
        x=[*(generation + after * (generation > 0)), len(best) - 0.5],
        y=np.maximum([*best, *best[-1:]], low), step=True, width=1.4,
        label="best so far" if is_ok else "", texts=[*texts, *texts[-1:]],
    )  # fmt: skip
    if not is_ok:
        middle = (limits[0] + limits[1]) / 2
        at = (len(data.trajectory) - 1) / 2
        yield Label(x=at, y=middle, text="nothing is ok yet", anchor="middle")


def _texts(data: RunData) -> list[str]:
    """What is known of each program, in words."""
    found = []
    for k, (place, each) in enumerate(data.records.items()):
        lines = [f"{name(place)}: {_how(data, k)}"]
        if data.improved[k]:
            lines[0] += ", better than all before"
        kept_out = "" if isinstance(each, Initial) else each.kept_out
        error = "" if each.evaluation.status == "ok" else sentence(each.evaluation.error)
        lines += [text[:LONGEST] for text in [kept_out or error] if text]
        if (parent := data.parents[k]) >= 0:
            fitness = data.fitness[parent]
            known = "" if np.isnan(fitness) else f", fitness {fitness:.6g}"
            lines.append(f"rewrites {name(data.places[parent])}{known}")
        found.append("\n".join(lines))
    return found


def _how(data: RunData, k: int) -> str:
    """Status and fitness of a program."""
    status, fitness = NAMED[data.status[k]].replace("_", " "), data.fitness[k]
    return status if np.isnan(fitness) else f"{status}, fitness {fitness:.6g}"
