"""Figures: tables in, matplotlib Axes out.

Every figure carries intervals and says on how many runs it rests. Each function draws on `ax`, or
on a figure of its own, in one of the themes of `replay.style`, and returns the Axes.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import NDArray

from replay.statistics import curve_band
from replay.style import (
    PALETTE,
    TEXT_SIZE,
    THEMES,
    Ink,
    Theme,
    head,
    label_axes,
    label_ends,
    label_rows,
    look,
    prepare,
    save,
    sentence,
    subplots,
    whole_numbers,
)

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes

__all__ = [
    "COSTS",
    "construction",
    "policy_curves",
    "pool_vs_allocation",
    "pulls_per_arm",
    "save",
    "subplots",
    "threshold_times",
    "trajectories",
]

FloatArray = NDArray[np.float64]
Cost = Literal["generation", "calls", "tokens", "flops", "dollars", "seconds"]

COSTS: dict[Cost, tuple[str, tuple[str, ...]]] = {
    "generation": ("generation", ()),
    "calls": ("LLM calls so far", ("n_calls",)),
    "tokens": ("prompt and completion tokens so far", ("prompt_tokens", "completion_tokens")),
    "flops": ("FLOPs so far", ("flops",)),
    "dollars": ("dollars so far", ("dollars",)),
    "seconds": ("wall time so far (s)", ("seconds",)),
}
"""Horizontal axes of `trajectories`: label, and the columns that add up to it."""

FITNESS = "best fitness so far (1 = best published)"

_MAX_POINTS = 400
"""Most points of a median line; the lines of single runs are drawn in full."""


def trajectories(
    frame: pd.DataFrame,
    *,
    x: Cost = "generation",
    by: str | Sequence[str] | None = None,
    ax: Axes | None = None,
    theme: Theme = "light",
) -> Axes:
    """Draw best fitness so far: median and 95 % interval over runs, and every run as a thin line.

    The median is solid where all runs of a group have a value and dashed where only some do,
    because the others have ended or nothing of theirs is ok yet.

    Args:
        frame: Rows of `replay.load`: run, generation, best_fitness and the columns of `x`.
        x: One of `COSTS`. Costs add up over generations.
        by: Column or columns that make groups; None: those of task, model and children that vary.
        ax: Axes to draw on.
        theme: See `replay.style`.

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
    _require(frame, "run", "generation", "best_fitness", *cost_columns, *keys)
    ax = prepare(ax, theme)
    label_axes(ax, theme, x=label, y=FITNESS)
    if frame["best_fitness"].isna().all():
        return sentence(ax, theme, "No run has a program that is ok.")
    ends, counts, dashed = [], [], False
    groups = frame.groupby(keys, sort=False, dropna=False) if keys else [((), frame)]
    for order, (values, part) in enumerate(groups):
        colour, style = look(order)
        curves = [_curve(run, cost_columns) for _, run in part.groupby("run", sort=False)]
        for position, fitness in curves:
            ax.step(position, fitness, where="post", color=colour, lw=0.7, alpha=0.45)
        height, all_known = _median(ax, curves, colour, style)
        counts.append(len(curves))
        dashed |= not all_known
        name = ", ".join(_value(k, v) for k, v in zip(keys, values, strict=True))
        nothing = ", nothing ok" if math.isnan(height) else ""
        ends.append((height, f"{name} (n = {len(curves)}{nothing})", colour))
    if keys:
        label_ends(ax, theme, ends)
    if x == "generation":
        whole_numbers(ax)
    fixed = [_value(c, frame[c].iloc[0]) for c in identity if c not in keys]
    head(ax, theme, ", ".join(fixed) or "Runs", _about(counts, dashed=dashed))
    return ax


def construction(
    picture: str, value: Any, *, ax: Axes | None = None, theme: Theme = "light"
) -> Axes:
    """Draw what a program returned.

    Args:
        picture: The task's `picture`: `circles`, `points` or `triangle`.
        value: The returned value as plain data or arrays: (centers, radii, ...), or points (n, 2).
        ax: Axes to draw on.
        theme: See `replay.style`.
    """
    draw: dict[str, Callable[..., tuple[str, str]]] = {
        "circles": _circles,
        "points": _points,
        "triangle": _triangle,
    }
    if picture not in draw:
        raise ValueError(f"expected a picture among {', '.join(draw)}, got {picture!r}")
    ax = subplots(width=5.0, height=5.2)[1][0] if ax is None else ax
    ax = prepare(ax, theme)
    title, subtitle = draw[picture](ax, value, THEMES[theme])
    ax.margins(0.04)
    ax.set_aspect("equal", adjustable="datalim")  # the layout counts on an unchanging box
    ax.set_axis_off()
    head(ax, theme, title, subtitle)
    return ax


def policy_curves(
    curves: pd.DataFrame,
    *,
    statistic: str = "mean",
    of: str = "",
    ax: Axes | None = None,
    theme: Theme = "light",
) -> Axes:
    """Draw best fitness over the arms against the number of pulls, one line and band per policy.

    Args:
        curves: One row per policy and round: policy, round (from 1), value, low, high and n, the
            logged runs it rests on. For a replay they come from `jackknife_interval(best_fitness,
            arms)` of `replay.effects`, as replicates are no runs.
        statistic: What `value` is, for the title.
        of: What the runs are of, for the title.
        ax: Axes to draw on.
        theme: See `replay.style`.
    """
    _require(curves, "policy", "round", "value", "low", "high", "n")
    ax = prepare(ax, theme)
    label_axes(ax, theme, x="pulls", y=FITNESS)
    if curves["value"].isna().all():
        return sentence(ax, theme, "No policy has a fitness to show.")
    ends = []
    fill = 0.4 / (1 + curves["policy"].nunique())  # bands that overlap must not hide each other
    for order, (policy, group) in enumerate(curves.groupby("policy", sort=False)):
        part = group.sort_values("round")
        colour, style = look(order)
        ax.fill_between(part["round"], part["low"], part["high"], color=colour, alpha=fill, lw=0)
        ax.plot(part["round"], part[["low", "high"]], color=colour, ls=style, lw=0.6, alpha=0.5)
        ax.plot(part["round"], part["value"], color=colour, ls=style, lw=1.7)
        ends.append((float(part["value"].iloc[-1]), str(policy), colour))
    label_ends(ax, theme, ends)
    whole_numbers(ax)
    about = f"{statistic.capitalize()} and 95 % interval over runs; {_runs(curves)}"
    head(ax, theme, _titled("Best fitness over the arms", of), about)
    return ax


def pulls_per_arm(
    pulls: pd.DataFrame, *, of: str = "", ax: Axes | None = None, theme: Theme = "light"
) -> Axes:
    """Draw which arms each policy pulls, by how good the arm turns out to be.

    Args:
        pulls: One row per policy and rank: policy, rank (1 is the arm with the best final fitness),
            value (its share of the pulls, in [0, 1]), low, high and n, the logged runs.
        of: What the runs are of, for the title.
        ax: Axes to draw on.
        theme: See `replay.style`.
    """
    _require(pulls, "policy", "rank", "value", "low", "high", "n")
    ax = prepare(ax, theme)
    label_axes(ax, theme, x="arm, by rank of its final fitness (1 = best)", y="share of pulls (%)")
    if pulls.empty:
        return sentence(ax, theme, "No pulls to show.")
    policies = list(dict.fromkeys(pulls["policy"]))
    ends = []
    for order, policy in enumerate(policies):
        part = pulls[pulls["policy"] == policy].sort_values("rank")
        colour, style = look(order)
        at = part["rank"] + 0.3 * ((order + 0.5) / len(policies) - 0.5)
        share = 100 * part[["value", "low", "high"]]
        ax.vlines(at, share["low"], share["high"], color=colour, lw=1.2, alpha=0.6)
        ax.plot(at, share["value"], color=colour, ls=style, lw=1.2, marker="o", ms=4)
        ends.append((float(share["value"].iloc[-1]), policy, colour))
    arms = int(pulls["rank"].max())
    ax.axhline(100 / arms, color=THEMES[theme].faint, lw=1, zorder=0)
    ax.set_xticks(range(1, arms + 1))
    ax.set_ylim(bottom=0)
    label_ends(ax, theme, ends)
    about = f"Mean and 95 % interval over runs; grey: equal shares; {_runs(pulls)}"
    head(ax, theme, _titled("Pulls per arm", of), about)
    return ax


def threshold_times(
    times: pd.DataFrame, *, of: str = "", ax: Axes | None = None, theme: Theme = "light"
) -> Axes:
    """Draw after how many pulls each policy reaches a fitness.

    Args:
        times: One row per policy and threshold: policy, and the fields of
            `replay.effects.ThresholdTime`: tau, time, low, high (infinite if not reached), share,
            share_reached and n.
        of: What the runs are of, for the title.
        ax: Axes to draw on.
        theme: See `replay.style`.
    """
    _require(times, "policy", "tau", "time", "low", "high", "share", "share_reached", "n")
    ax = prepare(ax, theme)
    if times.empty:
        return sentence(ax, theme, "No threshold to show.")
    policies, taus = (list(dict.fromkeys(times[name])) for name in ("policy", "tau"))
    ends = times[["time", "low", "high"]].to_numpy(dtype=np.float64)
    finite = ends[np.isfinite(ends)]
    edge = 1.08 * float(finite.max()) if finite.size else 1.0
    ax.set_xlim(0, edge)
    for row in times.to_dict("records"):
        part = taus.index(row["tau"])
        colour, _ = look(part)
        y = policies.index(row["policy"]) + 0.6 * ((part + 0.5) / len(taus) - 0.5)
        ax.hlines(y, min(row["low"], edge), min(row["high"], edge), color=colour, lw=2, alpha=0.5)
        if math.isinf(row["high"]):
            ax.plot(edge, y, marker=">", color=colour, ms=7, clip_on=False)
        if math.isfinite(row["time"]):
            ax.plot(row["time"], y, marker="o", color=colour, ms=6)
        else:
            ax.annotate(
                f"only {_percent(row['share_reached'])} do", (edge, y), (8, 0),
                textcoords="offset points", ha="left", va="center", color=THEMES[theme].text,
                fontsize=TEXT_SIZE, annotation_clip=False,
            )  # fmt: skip
    label_rows(ax, policies)
    label_axes(ax, theme, x="pulls", y="")
    share = _percent(times["share"].iloc[0])
    title = f"Time to fitness {taus[0]:g}" if len(taus) == 1 else "Time to threshold"
    about = f"Pulls until {share} of the samples reach it, 95 % interval; {_runs(times)}"
    legend = [(f"fitness {tau:g}", look(k)[0]) for k, tau in enumerate(taus)]
    head(ax, theme, _titled(title, of), about, legend=legend if len(taus) > 1 else ())
    return ax


def pool_vs_allocation(
    effects: pd.DataFrame, *, of: str = "", ax: Axes | None = None, theme: Theme = "light"
) -> Axes:
    """Draw what a pool of arms is worth, and what choosing among them adds.

    Args:
        effects: One row per policy and effect: policy, effect (`pool` or `allocation`), value (a
            difference of best fitness), low, high and n, the logged runs.
        of: What the runs are of, for the title.
        ax: Axes to draw on.
        theme: See `replay.style`.
    """
    _require(effects, "policy", "effect", "value", "low", "high", "n")
    ax = prepare(ax, theme)
    if effects.empty:
        return sentence(ax, theme, "No effect to show.")
    policies = list(dict.fromkeys(effects["policy"]))
    names = {"pool": "pool: random less single run", "allocation": "allocation: policy less random"}
    unknown = set(effects["effect"]) - set(names)
    if unknown:
        raise ValueError(f"expected effects {' and '.join(names)}, got {sorted(unknown)!r}")
    for row in effects.to_dict("records"):
        part = list(names).index(row["effect"])
        colour, _ = look(part)
        y = policies.index(row["policy"]) + (part - 0.5) * 0.36
        ax.barh(y, row["value"], height=0.32, color=colour, alpha=0.45)
        ax.hlines(y, row["low"], row["high"], color=colour, lw=2)
        ax.plot(row["value"], y, marker="o", color=colour, ms=5)
    ax.axvline(0, color=THEMES[theme].text, lw=0.8)
    label_rows(ax, policies)
    label_axes(ax, theme, x="gain in best fitness", y="")
    about = f"Mean difference and 95 % interval over runs; {_runs(effects)}"
    legend = [(text, look(k)[0]) for k, text in enumerate(names.values())]
    head(ax, theme, _titled("Pool effect and allocation effect", of), about, legend=legend)
    return ax


def _titled(title: str, of: str) -> str:
    return f"{title}: {of}" if of else title


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


def _median(
    ax: Axes, curves: Sequence[tuple[FloatArray, FloatArray]], colour: str, style: str
) -> tuple[float, bool]:
    """Draw median and band of step functions.

    Returns:
        Where the median ends, and whether every run has a value everywhere.
    """
    grid = np.unique(np.concatenate([position for position, _ in curves]))
    if len(grid) > _MAX_POINTS:
        grid = grid[np.unique(np.linspace(0, len(grid) - 1, _MAX_POINTS).astype(int))]
    matrix = np.full((len(curves), len(grid)), np.nan)
    for row, (position, fitness) in zip(matrix, curves, strict=True):
        at = np.searchsorted(position, grid, side="right") - 1
        known = (at >= 0) & (grid <= position[-1])
        row[known] = fitness[at[known]]
    band = curve_band(matrix)
    ax.fill_between(grid, band["low"], band["high"], step="post", color=colour, alpha=0.2, lw=0)
    everyone = (band["n"] == len(curves)).to_numpy()
    ax.step(grid, band["value"], where="post", color=colour, lw=1.2, ls=(0, (2, 2)))
    ax.step(grid, band["value"].where(everyone), where="post", color=colour, lw=2.2, ls=style)
    known_values = band["value"].dropna()
    end = float(known_values.iloc[-1]) if len(known_values) else math.nan
    return end, bool(everyone.all())


def _circles(ax: Axes, value: Any, ink: Ink) -> tuple[str, str]:
    from matplotlib.collections import PatchCollection
    from matplotlib.patches import Circle, Rectangle

    centers, radii = (np.asarray(part, dtype=np.float64) for part in value[:2])
    ax.add_patch(Rectangle((0, 0), 1, 1, fill=False, ec=ink.text, lw=1.2))
    discs = PatchCollection(
        [Circle((x, y), r) for (x, y), r in zip(centers, radii, strict=True)],
        facecolor=PALETTE[0] + "40", edgecolor=PALETTE[0], lw=1.2,
    )  # fmt: skip
    ax.add_collection(discs)
    points = radii < 2e-3
    ax.plot(*centers[points].T, ls="", marker="x", ms=5, color=PALETTE[1])
    small = f"; crosses: {points.sum()} circles too small to see" if points.any() else ""
    return f"Sum of radii {math.fsum(radii):.6f}", f"{len(radii)} circles in the unit square{small}"


def _points(ax: Axes, value: Any, ink: Ink) -> tuple[str, str]:
    points = np.asarray(value, dtype=np.float64)
    first, second = np.triu_indices(len(points), 1)
    distance = np.hypot(*(points[first] - points[second]).T)
    least, most = float(distance.min()), float(distance.max())
    for length, colour, style in ((most, ink.faint, "--"), (least, PALETTE[1], "-")):
        for pair in np.flatnonzero(np.isclose(distance, length, rtol=1e-4, atol=0)):
            ends = points[[first[pair], second[pair]]]
            ax.plot(*ends.T, color=colour, ls=style, lw=1.2, zorder=1)
    ax.plot(*points.T, ls="", marker="o", ms=7, color=PALETTE[0], zorder=2)
    ratio = f"{least / most:.6f}" if most else "undefined"
    return f"Distance ratio {ratio}", (
        f"{len(points)} points; orange: least distances, dashed: greatest"
    )


def _triangle(ax: Axes, value: Any, ink: Ink) -> tuple[str, str]:
    from itertools import combinations

    points = np.asarray(value, dtype=np.float64)
    corners = np.array([[0, 0], [1, 0], [0.5, math.sqrt(3) / 2]])
    triples = np.array(list(combinations(range(len(points)), 3)))
    u, v = (points[triples[:, k]] - points[triples[:, 0]] for k in (1, 2))
    ratio = np.abs(u[:, 0] * v[:, 1] - u[:, 1] * v[:, 0]) * 2 / math.sqrt(3)
    ax.fill(*corners.T, fill=False, ec=ink.text, lw=1.2)
    smallest = points[triples[ratio.argmin()]]
    ax.fill(*smallest.T, fc=PALETTE[1] + "55", ec=PALETTE[1], lw=1.2)
    ax.plot(*points.T, ls="", marker="o", ms=7, color=PALETTE[0])
    return f"Least area ratio {ratio.min():.6f}", (
        f"{len(points)} points; orange: the smallest of {len(triples)} triangles"
    )


def _value(column: str, value: Any) -> str:
    if column == "model" and str(value).startswith("offline"):
        return f"{value} model (not an LLM)"
    return f"N = {value}" if column == "children" else str(value)


def _about(counts: Sequence[int], *, dashed: bool) -> str:
    """Say what `trajectories` drew of groups with these numbers of runs."""
    if max(counts) == 1:
        return (
            "A single run each, so no interval" if len(counts) > 1 else "A single run, no interval"
        )
    drawn = "Median and 95 % interval over runs"
    drawn += ", dashed where only some have a value" if dashed else ""
    number = f"n = {counts[0]}" if len(set(counts)) == 1 else "n beside each line"
    each = " each" if len(counts) > 1 and len(set(counts)) == 1 else ""
    return f"{drawn}; thin: every run; {number}{each}"


def _percent(share: float) -> str:
    return f"{100 * share:.3g} %"


def _runs(table: pd.DataFrame) -> str:
    low, high = int(table["n"].min()), int(table["n"].max())
    return f"n = {low} runs" if low == high else f"n = {low} to {high} runs"


def _require(table: pd.DataFrame, *columns: str) -> None:
    missing = [name for name in columns if name not in table]
    if missing:
        raise ValueError(f"expected columns {', '.join(columns)}; {', '.join(missing)} missing")
