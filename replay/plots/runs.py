"""Runs: their trajectories, and what their programs returned."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from replay.logs.columns import FAMILY, NESTED, groups_in_order, varies
from replay.logs.frames import is_stand_in, unrepeated
from replay.logs.given import check_loaded, check_result
from replay.logs.versions import told_apart
from replay.plots import style
from replay.plots.chart import Chart
from replay.plots.marks import End, Line, Mark, Points, Rule
from replay.plots.medium import PARTIAL, REFERENCE
from replay.plots.panel import Axis, Panel
from replay.plots.strips import Elsewhere, Strips, strips_for
from replay.plots.style import PALETTE, FloatArray, look, ranged
from replay.statistics.intervals import curve_band
from replay.statistics.numbers import number

if TYPE_CHECKING:
    import pandas as pd
    from numpy.typing import ArrayLike, NDArray

    from evo import Allocation

Cost = Literal["generation", "calls", "tokens", "flops", "dollars", "seconds"]

COSTS: dict[Cost, tuple[str, tuple[str, ...]]] = {
    "generation": ("generation", ()),
    "calls": ("LLM calls so far", ("n_calls",)),
    "tokens": ("tokens so far", ("prompt_tokens", "completion_tokens")),
    "flops": ("FLOPs so far", ("flops",)),
    "dollars": ("dollars so far", ("dollars",)),
    "seconds": ("wall time so far (s)", ("seconds",)),
}
"""Horizontal axes of `trajectories`: label, and the columns that add up to it."""

STATED = (("y", "value"), ("low", "low"), ("high", "high"))
"""Columns of tables of a chart, and of a band."""

APART = ("task", "model", "children", "search")
"""Columns whose values have curves of their own, whatever groups the runs."""

SMALLEST_GAP = 1e-9
"""The least that is shown to be missing to a fitness of 1."""

MOST_POINTS = 400
"""Most points of a median line; the lines of single runs are drawn in full."""


def trajectories(
    frame: pd.DataFrame,
    *,
    x: Cost = "generation",
    by: str | Sequence[str] | None = None,
    references: Mapping[str, float] | None = None,
    together: bool = False,
    gap: bool = False,
    reach: tuple[float, float] | None = None,
) -> Chart:
    """Draws best fitness so far: median and interval over runs, and every run as a thin line.

    Each group of several runs is drawn in a strip of its own, one below the other over the same
    range, where grey lines show the medians of the others of its task; with `together`, in one
    panel, where bands may hide each other and the thin lines of more than six groups are left out.

    The median is solid where all runs of a group have a value and in short dashes where half or
    more do, because the others have ended or nothing of theirs is ok yet.

    Args:
        frame: Rows of `replay.load`.
        x: One of `COSTS`, which add up over generations.
        by: Columns that make groups; where runs of one group differ in task, model, children or
            search, whose curves have nothing in common, these make groups as well. None: those of
            task, task_version, model, children, search and settings that tell runs apart.
        references: Fitness by name, such as of textbook rules, drawn as dotted lines.
        together: Draw all groups in one panel.
        gap: Draw what is missing to a fitness of 1 on a logarithmic axis that points downwards, so
            that runs near the optimum can be told apart; a fitness of 1 or more lies at its end.
        reach: Two values of fitness that the vertical axis holds in any case, such as the least
            and the greatest of all figures that are compared.

    Raises:
        ValueError: A column is missing, or the cost of a run is unknown.

    Example:
        >>> ax = replay.plots.trajectories(frame, x="calls")
    """
    check_loaded("trajectories", frame, "replay.load")
    if x not in COSTS:
        raise ValueError(f"expected x to be one of {', '.join(COSTS)}, got {x!r}")
    label, cost_columns = COSTS[x]
    identity = [name for name in ("task", "model", "children") if name in frame]
    if by is None:
        known = [name for name in FAMILY if name in frame]
        keys = [name for name in known if varies(frame, name).any()]
        named = {name: told_apart(name, frame[name]) for name in NESTED if name in keys}
        frame = frame.assign(**named)
    else:
        keys = [by] if isinstance(by, str) else list(by)
        keys += _mixed_within(frame, keys)
    style.require(frame, "run", "generation", "best_fitness", *cost_columns, *keys)
    frame = unrepeated(frame)
    if gap:
        frame = frame.assign(best_fitness=_of_gap(frame["best_fitness"]))
        references = {name: float(_of_gap(each)) for name, each in (references or {}).items()}
        reach = reach and (float(_of_gap(reach[0])), float(_of_gap(reach[1])))
    if frame["best_fitness"].isna().all():
        return Chart(message="No run has a program that is ok.")
    parts = groups_in_order(frame, keys) if keys else [((), frame)]
    groups = [_group(_named(keys, of), part, cost_columns) for of, part in parts]
    split = sum(len(each.curves) > 1 for each in groups) > 1 and not together
    levels = {name.replace("_", " "): value for name, value in (references or {}).items()}
    drawn: list[ArrayLike] = [fitness for each in groups for _, fitness in each.curves]
    strips = strips_for(len(groups) if split else 1, [*drawn, list(levels.values()), reach or ()])
    thin = split or len(groups) <= len(PALETTE)
    marks = _draw_groups(groups, strips, thin=thin, gap=gap)
    for name, value in levels.items():
        marks += [Rule(y=strips.end(order, value), dash=REFERENCE) for order in range(strips.count)]
        marks.append(End(y=strips.end(0, value), text=name, dash=REFERENCE))
    if reach and strips.count == 1:  # it widens the axis and is not seen
        marks.append(Points(x=[math.nan] * 2, y=reach, stated={}))
    fixed = [_value(c, frame[c].iloc[0]) for c in identity if frame[c].nunique(dropna=False) == 1]
    fixed = [each for each in fixed if each != "unknown"]
    panel = Panel(
        title=f"Best so far: {', '.join(fixed)}".removesuffix(": "),
        about=_about(groups, split=split) + ("; dotted: references" if levels else ""),
        x=Axis(label=label, whole=x in ("generation", "calls")),
        y=_gaps(strips) if gap else strips.axis(style.fitness_name(frame.get("task", ("",)))),
        marks=marks,
        height=strips.height,
        zoom=True,
    )
    return Chart(panels=[panel])


def _mixed_within(frame: pd.DataFrame, keys: Sequence[str]) -> list[str]:
    """Columns whose values some group holds several of, and which no median is taken over."""
    style.require(frame, *keys)
    others = [name for name in APART if name in frame and name not in keys]
    if not keys or not others:
        return []
    counts = frame.groupby(list(keys), dropna=False)[others].nunique(dropna=False).max()
    return [name for name in others if counts[name] > 1]


def _of_gap(fitness: Any) -> Any:
    """The height of a fitness on an axis of what is missing to 1."""
    return -np.log10(np.maximum(1 - fitness, SMALLEST_GAP))


def _gaps(strips: Strips) -> Axis:
    """The axis of what is missing to a fitness of 1, with ticks at powers of ten."""
    low, high = math.floor(strips.low), math.ceil(strips.high)
    powers = [power for power in range(low, high + 1) if strips.low <= power <= strips.high]
    ticks = [float(power) for power in powers] if len(powers) > 1 else [strips.low, strips.high]
    places = [
        (float(strips.place(group, tick)), number(10**-tick))
        for group in range(strips.count)
        for tick in ticks
    ]
    domain = (0.0, float(strips.count)) if strips.count > 1 else None
    return Axis(domain=domain, label="1 - best fitness", ticks=places, grid=True)


def _draw_groups(groups: Sequence[_Group], strips: Strips, *, thin: bool, gap: bool) -> list[Mark]:
    """The runs, medians and bands of all groups, and the names at the ends of their lines.

    Without `thin`, single runs are left out, since their lines would hide everything.
    """
    seen = [
        Elsewhere(each.band["at"].to_numpy(np.float64), each.band["value"], each.task)
        for each in groups
    ]
    marks: list[Mark] = [*strips.rules(), *strips.elsewhere(seen, step=True)]
    same = len({len(each.curves) for each in groups}) == 1
    for order, group in enumerate(groups):
        color, dash = style.look_of(group.name, order)
        faint = f"{color}73"
        for position, fitness in group.curves if thin else ():
            marks.append(
                Line(
                    x=position, y=strips.place(order, fitness), color=faint, width=1.0, step=True,
                    hover=False, stated={"y": 1 - 10.0**-fitness if gap else fitness},
                )
            )  # fmt: skip
        if thin:
            ends = [_last(position, fitness) for position, fitness in group.curves]
            heights = strips.place(order, [height for _, height in ends])
            marks.append(
                Points(x=[x for x, _ in ends], y=heights, color=faint, size=1.5, stated={})
            )
        marks += _median(group, strips, order, color, dash, gap=gap)
        notes = [] if same else [f"n = {len(group.curves)}"]
        notes += ["nothing ok"] if math.isnan(group.end) else []
        text = group.name + (f" ({', '.join(notes)})" if notes else "")
        if text:
            marks.append(End(y=strips.end(order, group.end), text=text, color=color, dash=dash))
    return marks


def _last(position: FloatArray, fitness: FloatArray) -> tuple[float, float]:
    """The last place with a value."""
    known = np.flatnonzero(np.isfinite(fitness))
    return (float(position[known[-1]]), float(fitness[known[-1]])) if known.size else (0, math.nan)


def worth(
    frame: pd.DataFrame,
    *,
    by: str | Sequence[str] | None = None,
    x: Cost = "calls",
) -> Chart:
    """Draws what the next calls gain from one state: the fitness of its forks above the state.

    Intervals are over the copies, so they are conditional on this state;
    `replay.judge` pairs copies.

    Args:
        frame: Rows of `replay.load`, of forks of one state; other runs are left out.
        by: Columns that make groups, as in `trajectories`.
        x: The cost, as in `trajectories`, counted from the fork on.

    Raises:
        ValueError: There are no forks, or forks of several states.

    Example:
        >>> forks = evo.fork(path, at=1, copies=3, log_dir=new(""), progress=False)
        >>> replay.plots.worth(replay.load(*forks)).get_xlabel()
        'LLM calls from the fork on'
    """
    check_loaded("worth", frame, "replay.load")
    style.require(frame, "run", "generation", "best_fitness", "forked_from", "n_calls")
    frame = unrepeated(frame)
    forks = frame[frame["forked_from"] != ""].sort_values(["run", "generation"])
    if (states := forks["forked_from"].nunique()) != 1:
        raise ValueError(f"expected forks of one state (column forked_from), got {states} states")
    paid = forks["generation"].where(forks["n_calls"] > 0)
    after = forks[forks["generation"] >= paid.groupby(forks["run"]).transform("min") - 1]
    start = after.groupby("run")[["generation", "best_fitness"]].transform("first")
    moved = after.assign(
        generation=after["generation"] - start["generation"],
        best_fitness=after["best_fitness"] - start["best_fitness"],
    )
    [panel] = trajectories(moved, x=x, by=by).panels
    about = panel.about.replace("runs", "copies").replace("run", "copy")
    title = panel.title.replace("Best so far", "What the next calls are worth", 1)
    label = f"{panel.x.label.removesuffix(' so far')} from the fork on"
    gain = replace(panel.y, label="gain over the state of the fork")
    shown = replace(panel, title=title, about=about, x=replace(panel.x, label=label), y=gain)
    return Chart(panels=[shown])


def pulls(allocation: Allocation, *, of: str = "") -> Chart:
    """Draws which arm a live allocation pulled in each round.

    Args:
        allocation: The allocation, from `evo.allocate_live`.
        of: Name of the allocation, for the title.

    Example:
        >>> settings = {"children": 1, "log_dir": new(""), "progress": False}
        >>> made = evo.allocate_live("mmd", "ucb1", arms=2, rounds=3, **settings)
        >>> replay.plots.pulls(made).get_xlabel()
        'round'
    """
    check_result("pulls", allocation, "Allocation", "evo.allocate_live")
    return pulled(allocation.pulls[allocation.pulls >= 0], len(allocation.arms), of=of)


def pulled(made: NDArray[np.integer[Any]], arms: int, *, of: str = "") -> Chart:
    """The chart of `pulls`, of the arm (from 0) pulled in each round."""
    points = Points(
        x=np.arange(1, len(made) + 1), y=made + 1, color=[look(int(arm))[0] for arm in made],
        size=3.5, texts=[f"round {k}: arm {arm + 1}" for k, arm in enumerate(made.tolist(), 1)],
    )  # fmt: skip
    ticks = [(float(arm), str(arm)) for arm in range(1, arms + 1)]
    panel = Panel(
        title=f"Arm pulled: {of}".removesuffix(": "), about="One allocation; n = 1.",
        x=Axis(label="round", whole=True), marks=[points], height=max(120.0, 22.0 * arms),
        y=Axis(domain=(arms + 0.6, 0.4), label="arm", ticks=ticks),
    )  # fmt: skip
    return Chart(panels=[panel])


def _curve(run: pd.DataFrame, columns: Sequence[str]) -> tuple[FloatArray, FloatArray]:
    """Position and best fitness of one run after each generation."""
    run = run.sort_values("generation")
    position = run["generation"].to_numpy(dtype=np.float64)
    if columns:
        spent = run[list(columns)].to_numpy(dtype=np.float64).sum(axis=1)
        spent[(position == 0) & np.isnan(spent)] = 0.0  # the initial program takes no call
        if np.isnan(spent).any():
            raise ValueError(
                f"run {run['run'].iloc[0]!r} does not say its {' and '.join(columns)} in "
                f"{int(np.isnan(spent).sum())} generations; choose another axis or leave it out"
            )
        position = spent.cumsum()
    return position, run["best_fitness"].to_numpy(dtype=np.float64)


@dataclass(frozen=True)
class _Group:
    """Runs that are drawn alike: their curves, and the band of all, whose column `at` is x."""

    name: str
    task: str
    curves: Sequence[tuple[FloatArray, FloatArray]]
    band: pd.DataFrame

    @property
    def everyone(self) -> bool:
        """Whether all runs have a value throughout."""
        return bool((self.band["n"] == len(self.curves)).all())

    @property
    def end(self) -> float:
        """The last median; NaN where nothing is ok."""
        known = self.band["value"].dropna()
        return float(known.iloc[-1]) if len(known) else math.nan


def _group(name: str, runs: pd.DataFrame, columns: Sequence[str]) -> _Group:
    """Curves and band of the runs of one group."""
    curves = [_curve(run, columns) for _, run in runs.groupby("run", sort=False)]
    grid = np.unique(np.concatenate([position for position, _ in curves]))
    if len(grid) > MOST_POINTS:
        grid = grid[np.unique(np.linspace(0, len(grid) - 1, MOST_POINTS).astype(int))]
    matrix = np.full((len(curves), len(grid)), np.nan)
    for row, (position, fitness) in zip(matrix, curves, strict=True):
        at = np.searchsorted(position, grid, side="right") - 1
        known = (at >= 0) & (grid <= position[-1])
        row[known] = fitness[at[known]]
    band = curve_band(matrix)
    few = 2 * band["n"] < len(curves)  # the median of those that go on would mislead
    if not few[band["n"] > 0].all():
        band.loc[few, ["value", "low", "high"]] = np.nan
    task = str(runs["task"].iloc[0]) if "task" in runs else ""
    return _Group(name, task, curves, band.assign(at=grid))


def _median(
    group: _Group, strips: Strips, order: int, color: str, dash: str, *, gap: bool
) -> list[Mark]:
    """The median and the band of a group, which can be pointed at."""
    band = group.band
    grid = band["at"].to_numpy(np.float64)
    value = strips.place(order, band["value"])
    low, high = (strips.limit(order, band[name]) for name in ("low", "high"))
    everyone = (band["n"] == len(group.curves)).to_numpy()
    shown = band[["value", "low", "high"]]
    shown = 1 - 10.0**-shown if gap else shown
    rows = shown.itertuples(index=False, name=None)
    texts = [
        f"{group.name or 'median'}: {ranged(*row)} at {number(at)}, n = {n}"
        for row, at, n in zip(rows, grid, band["n"], strict=True)
    ]
    marks: list[Mark] = [
        Line(
            x=grid, y=value, low=low, high=high, color=color, width=1.7, dash=PARTIAL, step=True,
            texts=texts, label=group.name or "median",
            stated={name: shown[of].to_numpy(np.float64) for name, of in STATED},
        ),
        Line(
            x=grid, y=np.where(everyone, value, np.nan), color=color, width=3.0, dash=dash,
            step=True, hover=False, stated={},
        ),
    ]  # fmt: skip
    x, y = _last(grid, value)
    ends = [each[np.flatnonzero(~np.isnan(low))[-1:]] for each in (grid, low, high)]
    marks.append(Points(x=[x], y=[y], color=color, size=2.8, stated={}))
    if ends[0].size:  # the band's last value has no width
        place, below, above = ends
        marks.append(
            Points(x=place, y=[math.nan], y_low=below, y_high=above, color=color, stated={})
        )
    return marks


def _named(keys: Sequence[str], values: tuple[object, ...]) -> str:
    """The name of a group."""
    return ", ".join(_value(key, value) for key, value in zip(keys, values, strict=True))


def _value(column: str, value: object) -> str:
    if column == "model" and is_stand_in(value):
        return f"{value} model"
    return f"N = {value}" if column == "children" else str(value)


def _about(groups: Sequence[_Group], *, split: bool) -> str:
    """Say what `trajectories` drew of groups."""
    import pandas as pd

    counts = [len(each.curves) for each in groups]
    if max(counts) == 1:
        return "A single run" + (" each, so" if len(counts) > 1 else ",") + " no interval"
    about = style.intervals(pd.concat([each.band for each in groups]), "Median")
    if not all(each.everyone for each in groups):
        about += ", in short dashes where only some have a value"
    if split:
        tasks = len({each.task for each in groups}) > 1
        about += f"; grey: the other medians{' of the same task' if tasks else ''}"
    about += "; thin: every run" if split or len(groups) <= len(PALETTE) else ""
    each = " each" if len(counts) > 1 else ""
    same = f"n = {counts[0]}{each}" if len(set(counts)) == 1 else "n beside each line"
    return f"{about}; {same}"
