"""The charts of the allocation explorer: curves, pulls, threshold times and effects."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from replay.explorers.allocation_data import BASELINES, SHARE, AllocationView, when
from replay.plots.chart import Chart
from replay.plots.limits import with_room
from replay.plots.marks import RAMP, Bars, Cells, Line, Mark, Points, Rule
from replay.plots.medium import REFERENCE
from replay.plots.panel import Axis, ColorBar, Panel
from replay.plots.style import PALETTE, ranged

MOST_PLACES = 240
"""Rounds of a curve that are sent to the browser at most."""

ROW = 34
"""Height of a policy's row in pixels."""

DASHES = {"single": "12 3 5 3", "random": "6 3"}
"""Dash patterns of the baselines, which are both grey."""

GREY = "#8C8C8C"
UNEQUAL, FAIR = 1.5, 3
"""The brightest colour is that of an arm with at least and at most so many equal shares of the
pulls: where all are pulled alike, none stands out."""


class Texts(NamedTuple):
    """The texts of a panel: its title, the line below it, and the labels of its axes."""

    title: str
    about: str
    x: str
    y: str = ""


def texts_of(view: AllocationView) -> tuple[Texts, Texts, Texts, Texts]:
    """The texts of curves, pulls, threshold times and effects."""
    return (
        Texts(
            title="Best fitness over the arms",
            about=f"mean; band: {view.interval} of {view.shown}, n = {view.pools.runs} runs",
            x="rounds (pulls)",
            y="best fitness",
        ),
        Texts(
            title=f"Pulls of {view.shown}",
            about=f"share of the pulls by rank of the arm; an equal share: {100 / view.arms:.3g} %",
            x="round",
            y="rank of the arm",
        ),
        Texts(
            title="Rounds to reach τ",
            about=f"{100 * SHARE:g} % of replicates, {view.interval}; arrow: later or never",
            x="rounds",
        ),
        Texts(
            title="Gain over one run" if view.baseline == "single" else "Gain over random pulls",
            about=f"policy less {view.baseline}, on the same draws of arms",
            x="gain in best fitness after all rounds",
        ),
    )


def allocation_chart(view: AllocationView) -> Chart:
    """Best fitness and pulls above, threshold times and effects below."""
    names = list(view.played)
    looks = dict(zip(names, colours_of(names), strict=True))
    curves, pulls, times, effects = texts_of(view)
    return Chart(
        panels=[
            _curves(view, looks, curves),
            _pulls(view, pulls),
            _times(view, looks, times),
            _effects(view, looks, effects),
        ],
        columns=2,
    )


def _curves(view: AllocationView, looks: dict[str, str], texts: Texts) -> Panel:
    """Best fitness by round, with the band of the policy whose pulls are shown."""
    at = np.unique(np.linspace(1, view.rounds, min(view.rounds, MOST_PLACES)).round().astype(int))
    lines: list[Mark] = []
    for name, color in looks.items():
        curve = view.played[name].curve
        value, low, high = (column[at - 1] for column in (curve.value, curve.low, curve.high))
        lines.append(
            Line(
                x=at, y=value, low=low, high=high, color=color, label=name,
                dash=DASHES.get(name, ""), band=name == view.shown,
            )
        )  # fmt: skip
    width = width_of(view)
    return Panel(
        title=texts.title,
        about=texts.about,
        x=Axis(domain=(0, width), label=texts.x, whole=True),
        y=Axis(domain=fitness_range(view, width), label=texts.y),
        marks=[*lines, Rule(y=view.tau, dash=REFERENCE)],
        zoom=True,
        legend=True,
        shares="rounds",
    )


def _pulls(view: AllocationView, texts: Texts) -> Panel:
    """The share of pulls by rank of the arm and round."""
    ranks, arms = view.played[view.shown].ranks, view.arms
    most = min(1.0, FAIR / arms, max(float(np.nanmax(ranks)), UNEQUAL / arms))
    least = max(0.0, 2 / arms - most)  # an equal share lies in the middle
    cells = Cells(
        values=ranks, x0=0.5, x1=view.rounds + 0.5, y0=0.5, y1=arms + 0.5, colors=RAMP,
        least=least, most=most, names=("round", "rank"),
    )  # fmt: skip
    return Panel(
        title=texts.title,
        about=texts.about,
        x=Axis(domain=(0, width_of(view)), label=texts.x, whole=True),
        y=Axis(domain=(arms + 0.5, 0.5), label=texts.y, ticks=[(1, "best"), (arms, "worst")]),
        marks=[cells],
        bar=ColorBar(RAMP, 100 * least, 100 * most, "% of pulls"),
        zoom=True,
        shares="rounds",
    )


def _times(view: AllocationView, looks: dict[str, str], texts: Texts) -> Panel:
    """Rounds to reach tau, a row per policy; a click on a row shows the pulls of its policy."""
    width, found = width_of(view), list(view.times.values())
    late = [math.isinf(each.high) or math.isinf(each.time) for each in found]
    rows = list(range(len(found)))
    marks: list[Mark] = [
        Points(
            x=[each.time for each in found],
            y=rows,
            x_low=[min(each.low, width) for each in found],
            x_high=[min(each.high, width) for each in found],
            color=list(looks.values()),
        ),
        Points(
            x=[width if each else math.nan for each in late],
            y=rows,
            color=list(looks.values()),
            shape="later",
        ),
        Bars(
            x0=[0] * len(rows), x1=[1.03 * width] * len(rows), y=rows, thickness=0.9, opacity=0,
            texts=[when(name, each, view.arms, view.rounds) for name, each in view.times.items()],
            keys=[(("shown", name),) for name in view.times],
        ),
    ]  # fmt: skip
    return Panel(
        title=texts.title,
        about=texts.about,
        x=Axis(domain=(0, 1.03 * width), label=texts.x, whole=True),
        y=_rows(list(looks), len(rows)),
        marks=marks,
        height=float(ROW * len(rows)),
    )


def _effects(view: AllocationView, looks: dict[str, str], texts: Texts) -> Panel:
    """What each policy gains over the baseline, a row each."""
    found, ends, names = list(view.effects.values()), reach(view), list(view.effects)
    rows, every = list(range(len(found))), [looks.get(name, GREY) for name in names]
    value, low, high = ([getattr(each, n) for each in found] for n in ("value", "low", "high"))
    marks: list[Mark] = [
        Rule(x=0.0),
        Bars(x0=[0] * len(rows), x1=value, y=rows, color=every, opacity=0.4, thickness=0.45),
        Points(x=value, y=rows, x_low=low, x_high=high, color=every),
        Bars(
            x0=[-ends] * len(rows), x1=[ends] * len(rows), y=rows, thickness=0.9, opacity=0,
            texts=[
                f"{name} gains {ranged(each.value, each.low, each.high)}"
                for name, each in view.effects.items()
            ],
            keys=[(("shown", name),) for name in names],
        ),
    ]  # fmt: skip
    return Panel(
        title=texts.title,
        about=texts.about,
        x=Axis(domain=(-ends, ends), label=texts.x),
        y=_rows(names, len(view.times)),
        marks=marks,
        height=float(ROW * len(view.times)),
    )


def _rows(names: list[str], most: int) -> Axis:
    """An axis with names from the top down, and room for `most` of them."""
    spare = (most - len(names)) / 2
    ticks = [(float(row), short_name(name)) for row, name in enumerate(names)]
    return Axis(domain=(len(names) - 0.5 + spare, -0.5 - spare), ticks=ticks)


def width_of(view: AllocationView) -> int:
    """The end of the axis of rounds: the next power of two, so that it seldom changes."""
    return int(2 ** math.ceil(math.log2(max(view.rounds, 2))))


def fitness_range(view: AllocationView, width: int) -> tuple[float, float]:
    """The axis of best fitness."""
    low, high = view.pools.limits(width)
    return with_room(low, high, 0.05)


def reach(view: AllocationView) -> float:
    """Half the width of the axis of effects, the same for all views of much the same size."""
    ends = [end for each in view.effects.values() for end in (each.value, each.low, each.high)]
    widest = max((abs(end) for end in ends if math.isfinite(end)), default=0.0)
    reach = 10.0 ** math.ceil(math.log10(max(1.2 * widest, 1e-3)))
    return next(part * reach for part in (0.2, 0.5, 1.0, 2.0) if part * reach >= 1.2 * widest)


def short_name(name: str) -> str:
    """A policy's name, in two lines if it is long."""
    return name.replace("_", "\n", 1) if len(name) > 12 else name


def colours_of(names: Sequence[str]) -> list[str]:
    """Grey for the baselines, the palette for policies."""
    palette = iter(PALETTE)
    return [GREY if name in BASELINES else next(palette) for name in names]
