"""Runs: their trajectories, and what their programs returned."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from replay.logs.frames import counted_once, is_stand_in
from replay.plots import hits, style
from replay.plots.constructions import Construction, construct
from replay.plots.strips import Strips, axes_for, strips_for
from replay.plots.style import PALETTE, THEMES, FloatArray, Ink, Theme, look
from replay.statistics.intervals import curve_band

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes
    from numpy.typing import ArrayLike

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

MOST_POINTS = 400
"""Most points of a median line; the lines of single runs are drawn in full."""


def trajectories(
    frame: pd.DataFrame,
    *,
    x: Cost = "generation",
    by: str | Sequence[str] | None = None,
    references: Mapping[str, float] | None = None,
    together: bool = False,
    ax: Axes | None = None,
    theme: Theme = "light",
) -> Axes:
    """Draw best fitness so far: median and interval over runs, and every run as a thin line.

    Each group of several runs is drawn in a strip of its own, one below the other over the same
    range, where grey lines show the medians of the others; with `together`, in one panel, where
    bands may hide each other and the thin lines of more than six groups are left out.

    The median is solid where all runs of a group have a value and dashed where half or more do,
    because the others have ended or nothing of theirs is ok yet.

    `frame` has rows of `replay.load`. `x` is one of `COSTS`, which add up over generations. `by`
    names the columns that make groups; None: those of task, model and children that vary.
    `references` are fitness by name, such as of textbook rules, drawn as dotted lines.

    Raises:
        ValueError: A column is missing, or the cost of a run is unknown.
    """
    if x not in COSTS:
        raise ValueError(f"expected x to be one of {', '.join(COSTS)}, got {x!r}")
    label, cost_columns = COSTS[x]
    identity = [name for name in ("task", "model", "children") if name in frame]
    if by is None:
        keys = [name for name in identity if frame[name].nunique(dropna=False) > 1]
    else:
        keys = [by] if isinstance(by, str) else list(by)
    style.require(frame, "run", "generation", "best_fitness", *cost_columns, *keys)
    frame = counted_once(frame, stacklevel=2)
    if frame["best_fitness"].isna().all():
        return style.sentence(ax, theme, "No run has a program that is ok.")
    parts = list(frame.groupby(keys, sort=False, dropna=False)) if keys else [((), frame)]
    groups = [_group(_named(keys, of), part, cost_columns) for of, part in parts]
    split = sum(len(each.curves) > 1 for each in groups) > 1 and not together
    ax = style.prepare(axes_for(len(groups) if split else 1, ax), theme)
    style.label_axes(ax, theme, x=label, y=style.fitness_name(frame.get("task", ("",))))
    known = {name.replace("_", " "): value for name, value in (references or {}).items()}
    drawn: list[ArrayLike] = [fitness for each in groups for _, fitness in each.curves]
    strips = strips_for(ax, len(groups) if split else 1, [*drawn, list(known.values())])
    ends = _draw_groups(ax, theme, groups, strips, thin=split or len(groups) <= len(PALETTE))
    for name, value in known.items():
        for order in range(strips.count):
            ax.axhline(strips.end(order, value), color=THEMES[theme].text, lw=0.8, ls=":")
        ends.append((strips.end(0, value), name, THEMES[theme].text))
    ax.set_xmargin(0.02)  # room for the dots at the ends
    strips.finish(ax, theme, ends)
    if x == "generation":
        style.whole_numbers(ax)
    else:
        ax.xaxis.set_major_formatter(style.number)
    fixed = [_value(c, frame[c].iloc[0]) for c in identity if frame[c].nunique(dropna=False) == 1]
    fixed = [each for each in fixed if each != "unknown"]
    about = _about(groups, split=split)
    style.head(ax, theme, f"Best so far: {', '.join(fixed)}".removesuffix(": "), about)
    return ax


def _draw_groups(
    ax: Axes, theme: Theme, groups: Sequence[_Group], strips: Strips, *, thin: bool
) -> list[tuple[float, str, str]]:
    """Draw the runs, medians and bands of all groups, and return the ends of their lines.

    Without `thin`, single runs are left out, since their lines would hide everything.
    """
    ends = []
    same = len({len(each.curves) for each in groups}) == 1
    for order, group in enumerate(groups):
        colour, dashes = style.look_of(ax, group.name, order)
        at = group.band["at"].to_numpy(np.float64)
        strips.show_elsewhere(ax, theme, order, at, group.band["value"], steps=True)
        for position, fitness in group.curves if thin else ():
            height = strips.place(order, fitness)
            _steps(ax, position, height, dot=2.0, color=colour, lw=0.7, alpha=0.45)
        _median(ax, group, strips, order, colour, dashes, 0.2 if thin else 0.08)
        notes = [] if same else [f"n = {len(group.curves)}"]
        notes += ["nothing ok"] if math.isnan(group.end) else []
        text = group.name + (f" ({', '.join(notes)})" if notes else "")
        ends.append((strips.end(order, group.end), text, colour))
    return ends


def worth(
    frame: pd.DataFrame,
    *,
    by: str | Sequence[str] | None = None,
    x: Cost = "calls",
    ax: Axes | None = None,
    theme: Theme = "light",
) -> Axes:
    """Draws what the next calls gain from one state: the fitness of its forks above the state.

    Intervals are over the copies, so they are conditional on this state;
    `replay.judge` pairs copies.

    Args:
        frame: Rows of `replay.load`, of forks of one state; other runs are left out.
        by: Columns that make groups, as in `trajectories`.
        x: The cost, as in `trajectories`, counted from the fork on.
        ax: Axes to draw on (default: those of a new figure).
        theme: "light" or "dark".

    Returns:
        The axes.

    Raises:
        ValueError: There are no forks, or forks of several states.
    """
    style.require(frame, "run", "generation", "best_fitness", "forked_from", "n_calls")
    frame = counted_once(frame, stacklevel=2)
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
    ax = trajectories(moved, x=x, by=by, ax=ax, theme=theme)
    heading = vars(ax)["heading"]
    heading["title"] = heading["title"].replace("Best so far", "What the next calls are worth", 1)
    for run, copy in (("runs", "copies"), ("run", "copy")):
        heading["subtitle"] = heading["subtitle"].replace(run, copy)
    vars(ax)["fit_head"]()
    ax.set_xlabel(f"{ax.get_xlabel().removesuffix(' so far')} from the fork on")
    ax.set_ylabel("gain over the state of the fork")
    return ax


def pulls(
    allocation: Allocation, *, of: str = "", ax: Axes | None = None, theme: Theme = "light"
) -> Axes:
    """Draws which arm a live allocation pulled in each round.

    Args:
        allocation: The allocation, from `evo.allocate_live`.
        of: Name of the allocation, for the title.
        ax: Axes to draw on (default: those of a new figure).
        theme: "light" or "dark".

    Returns:
        The axes.
    """
    made = allocation.pulls[allocation.pulls >= 0]
    arms = len(allocation.arms)
    ax = style.prepare(ax, theme)
    ax.scatter(np.arange(1, len(made) + 1), made + 1, c=[look(arm)[0] for arm in made], s=25)
    ax.set_ylim(arms + 0.6, 0.4)
    ax.set_yticks(range(1, arms + 1))
    style.whole_numbers(ax)
    style.label_axes(ax, theme, x="round", y="arm")
    style.head(ax, theme, f"Arm pulled: {of}".removesuffix(": "), "One allocation; n = 1.")
    return ax


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
    return _Group(name, curves, band.assign(at=grid))


def _median(
    ax: Axes, group: _Group, strips: Strips, order: int, colour: str, dashes: str, fill: float
) -> None:
    """Draw the median and the band of a group, which can be pointed at."""
    band = group.band
    grid = band["at"].to_numpy(np.float64)
    value, low, high = (strips.place(order, band[name]) for name in ("value", "low", "high"))
    ax.fill_between(grid, low, high, step="post", color=colour, alpha=fill, lw=0)
    for last in np.flatnonzero(~np.isnan(low))[-1:]:  # the band's last value has no width
        ax.vlines(grid[last], low[last], high[last], color=colour, lw=2, alpha=0.5)
    everyone = (band["n"] == len(group.curves)).to_numpy()
    _steps(ax, grid, value, dot=4.0, color=colour, lw=1.2, ls=(0, (2, 2)))
    _steps(ax, grid, np.where(everyone, value, np.nan), color=colour, lw=2.2, ls=dashes)
    rows = band[["value", "low", "high"]].itertuples(index=False, name=None)
    texts = [
        f"{hits.ranged(*row)} at {style.number(at)}, n = {n}"
        for row, at, n in zip(rows, grid, band["n"], strict=True)
    ]
    hits.curve(ax, grid, value, texts, f"{group.name or 'median'}: ")


def _steps(
    ax: Axes, position: FloatArray, fitness: object, *, dot: float = 0.0, **look: Any
) -> None:
    """Draw fitness as steps that end at the last position, where a dot shows the last value."""
    height = np.asarray(fitness, dtype=np.float64)
    [line] = ax.step(position, height, where="post", **look)
    if dot:
        line.set(marker="o", markersize=dot, markeredgewidth=0)
        line.set_markevery(np.flatnonzero(np.isfinite(height))[-1:].tolist())


def _named(keys: Sequence[str], values: tuple[object, ...]) -> str:
    """The name of a group."""
    return ", ".join(_value(key, value) for key, value in zip(keys, values, strict=True))


def _value(column: str, value: object) -> str:
    if column == "model" and is_stand_in(value):
        return f"{value} model (not an LLM)"
    return f"N = {value}" if column == "children" else str(value)


def _about(groups: Sequence[_Group], *, split: bool) -> str:
    """Say what `trajectories` drew of groups."""
    import pandas as pd

    counts = [len(each.curves) for each in groups]
    if max(counts) == 1:
        return "A single run" + (" each, so" if len(counts) > 1 else ",") + " no interval"
    about = style.intervals(pd.concat([each.band for each in groups]), "Median")
    if not all(each.everyone for each in groups):
        about += ", dashed where only some have a value"
    about += "; grey: the other medians" if split else ""
    about += "; thin: every run" if split or len(groups) <= len(PALETTE) else ""
    each = " each" if len(counts) > 1 else ""
    same = f"n = {counts[0]}{each}" if len(set(counts)) == 1 else "n beside each line"
    return f"{about}; {same}"


def construction(
    picture: str, value: object, *, ax: Axes | None = None, theme: Theme = "light"
) -> Axes:
    """Draws the value that a program returned.

    Args:
        picture: The kind of picture of the task: "circles", "points" or "triangle".
        value: The value as plain data or arrays: (centers, radii, ...), or points of shape (n, 2).
        ax: Axes to draw on (default: those of a new figure).
        theme: "light" or "dark".

    Returns:
        The axes.

    Raises:
        ValueError: There is no such picture, or the value does not fit it.

    Example:
        >>> points = [[0.0, 0.0], [1.0, 0.0], [0.5, 0.8]]
        >>> ax = replay.plots.construction("points", points)
    """
    made = construct(picture, value)
    ax = style.subplots(width=5.0, height=5.2)[1][0] if ax is None else ax
    ax = style.prepare(ax, theme)
    _draw(ax, made, THEMES[theme])
    ax.margins(0.04)
    ax.set_aspect("equal", adjustable="datalim")  # the layout counts on an unchanging box
    ax.set_axis_off()
    style.head(ax, theme, made.title, made.about)
    return ax


def _draw(ax: Axes, made: Construction, ink: Ink) -> None:
    """Draw the shapes of a construction."""
    from matplotlib.collections import PatchCollection
    from matplotlib.patches import Circle

    if len(made.outline):
        ax.fill(*made.outline.T, fill=False, ec=ink.text, lw=1.2)
    discs = [Circle((x, y), r) for x, y, r in made.discs.tolist()]
    if discs:
        faces, edges = f"{PALETTE[0]}40", PALETTE[0]
        ax.add_collection(PatchCollection(discs, facecolor=faces, edgecolor=edges, lw=1.2))
    for lines, colour, dashes in ((made.far, ink.faint, "--"), (made.near, PALETTE[1], "-")):
        for ends in lines:
            ax.plot(*ends.T, color=colour, ls=dashes, lw=1.2, zorder=1)
    if len(made.area):
        ax.fill(*made.area.T, fc=f"{PALETTE[1]}55", ec=PALETTE[1], lw=1.2)
    for places, marker, ms, colour in (
        (made.points, "o", 7, PALETTE[0]),
        (made.crosses, "x", 5, PALETTE[1]),
    ):
        if len(places):
            ax.plot(*places.T, ls="", marker=marker, ms=ms, color=colour, zorder=2)
