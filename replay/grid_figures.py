"""Figures of the depth-breadth grid, the kernel and the planner: tables in, Axes out."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from replay.style import (
    PALETTE,
    TEXT_SIZE,
    THEMES,
    Theme,
    head,
    label_axes,
    label_ends,
    look,
    prepare,
    subplots,
)

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes

    from replay.bilinear import BilinearFit
    from replay.cells import FloatArray
    from replay.depth import DepthBreadth, Envelope
    from replay.forecast import Plan

FITNESS = "best fitness (1 = best published)"
_LIKELY = 0.1  # least probability of being best that is marked


def heatmap(
    grid: DepthBreadth,
    *,
    task: str | None = None,
    model: str | None = None,
    fit: BilinearFit | None = None,
    ax: Axes | None = None,
    theme: Theme = "light",
) -> Axes:
    """Draw fitness by depth and breadth, with budgets as diagonals and their best splits.

    A ring marks a split that may be the best of its budget; its area is the bootstrap probability.

    Args:
        grid: As `replay.depth_breadth` returns it.
        task: Which task; None if there is one.
        model: Which model; None if there is one.
        fit: Fit whose contours and, for each budget, plateau are drawn.
        ax: Axes to draw on; None makes a figure.
        theme: Inks.
    """
    table, task, model = _one(grid.cells, task, model)
    ax = prepare(subplots(height=5.4)[1][0] if ax is None else ax, theme)
    ink = THEMES[theme]
    x, y = (np.log2(table[name].to_numpy(np.float64)) for name in ("generations", "children"))
    values = np.full((int(y.max()) + 1, int(x.max()) + 1), np.nan)
    values[y.astype(int), x.astype(int)] = table["value"]
    mesh = ax.imshow(values, origin="lower", aspect="auto", cmap="cividis", zorder=1)
    dark = values < np.nanmean([np.nanmin(values), np.nanmax(values)])
    for row, column in zip(*np.nonzero(np.isfinite(values)), strict=True):
        ax.text(
            column, row - 0.3, f"{values[row, column]:.2f}", ha="center", va="center",
            fontsize=0.7 * TEXT_SIZE, color="white" if dark[row, column] else "black", zorder=5,
        )  # fmt: skip
    powers = np.unique(x + y)
    for power in powers[powers > 0]:
        ax.plot([power + 0.5, -0.5], [-0.5, power + 0.5], color=ink.faint, lw=0.6, zorder=2)
    likely = table[table["p_best"] >= _LIKELY]
    ax.scatter(
        np.log2(likely["generations"]), np.log2(likely["children"]), s=90 * likely["p_best"],
        facecolors="none", edgecolors=PALETTE[1], linewidths=1.6, zorder=4,
    )  # fmt: skip
    if fit is not None:
        _draw_fit(ax, fit, values.shape, powers)
    ax.set_xlim(-0.5, values.shape[1] - 0.5)
    ax.set_ylim(-0.5, values.shape[0] - 0.5)
    ax.set_xticks(range(values.shape[1]), [str(2**k) for k in range(values.shape[1])])
    ax.set_yticks(range(values.shape[0]), [str(2**k) for k in range(values.shape[0])])
    ax.grid(visible=False)
    label_axes(ax, theme, x="generations T", y="children per generation N")
    figure = ax.get_figure(root=True)
    if figure is not None:
        bar = figure.colorbar(mesh, ax=ax, pad=0.02)
        bar.ax.tick_params(colors=ink.text, labelsize=TEXT_SIZE)
        bar.set_label(f"mean {FITNESS}", color=ink.text, fontsize=TEXT_SIZE)
        bar.ax.spines[:].set_visible(False)
    counts = _counts(table["n"])
    text = (
        f"Mean of best fitness over runs, {counts} per cell. Diagonals are budgets C = T N, the "
        "number at either end; the larger a ring, the likelier its split is the budget's best."
    )
    if fit is not None:
        text += (
            f" Lines: bilinear fit (R2 {fit.r2:.2f}) at the same levels; bars: splits within 0.05 "
            "of its optimum in log(1 - V)."
        )
    head(ax, theme, f"Depth and breadth: {task}, {model}", text)
    return ax


def slices(
    grid: DepthBreadth,
    *,
    budgets: Sequence[int] | None = None,
    task: str | None = None,
    model: str | None = None,
    ax: Axes | None = None,
    theme: Theme = "light",
) -> Axes:
    """Draw fitness against N at fixed budgets, with intervals.

    Args:
        grid: As `replay.depth_breadth` returns it.
        budgets: Calls; None takes up to four, the largest and every second doubling below.
        task: Which task; None if there is one.
        model: Which model; None if there is one.
        ax: Axes to draw on; None makes a figure.
        theme: Inks.

    Raises:
        ValueError: If a budget has no cell.
    """
    table, task, model = _one(grid.cells, task, model)
    known = sorted(table.loc[table["p_best"].notna(), "calls"].unique().tolist())
    chosen = sorted(budgets) if budgets is not None else known[::-2][:4][::-1]
    if missing := sorted(set(chosen) - set(known)):
        raise ValueError(f"expected budgets among {known!r}, got {missing!r}")
    ax = prepare(ax, theme)
    ends = []
    for order, C in enumerate(chosen):
        part = table[table["calls"] == C].sort_values("children")
        colour, style = look(order)
        shift = 2 ** (0.06 * (order - (len(chosen) - 1) / 2))  # so that intervals stay apart
        N = part["children"].to_numpy(np.float64) * shift
        ax.errorbar(
            N, part["value"], yerr=[part["value"] - part["low"], part["high"] - part["value"]],
            color=colour, ls=style, marker="o", ms=4, lw=1.4, elinewidth=1,
        )  # fmt: skip
        ends.append((float(part["value"].iloc[-1]), f"C = {C}", colour))
    ax.set_xscale("log", base=2)
    _powers(ax, int(max(chosen)))
    label_ends(ax, theme, ends)
    label_axes(ax, theme, x="children per generation N (T = C / N)", y=FITNESS)
    text = f"Mean and {grid.level:.0%} interval over runs, {_counts(table['n'])} per cell; left is "
    head(ax, theme, f"Splits of a budget: {task}, {model}", text + "deep, right is broad.")
    return ax


def value_of_knowing(
    grid: DepthBreadth,
    *,
    task: str | None = None,
    model: str | None = None,
    ax: Axes | None = None,
    theme: Theme = "light",
) -> Axes:
    """Draw what the chosen split gains over each fixed rule, by budget.

    Args:
        grid: As `replay.depth_breadth` returns it.
        task: Which task; None if there is one.
        model: Which model; None if there is one.
        ax: Axes to draw on; None makes a figure.
        theme: Inks.
    """
    table, task, model = _one(grid.knowing, task, model)
    ax = prepare(ax, theme)
    ax.axhline(0, color=THEMES[theme].text, lw=0.8)
    ends = []
    for order, (rule, part) in enumerate(table.groupby("rule", sort=False)):
        colour, style = look(order)
        calls = part["calls"].to_numpy(np.float64) * 2 ** (0.12 * (order - 1))
        ax.errorbar(
            calls, part["gain"], yerr=[part["gain"] - part["low"], part["high"] - part["gain"]],
            color=colour, ls=style, marker="o", ms=4, lw=1.2, elinewidth=1,
        )  # fmt: skip
        ends.append((float(part["gain"].iloc[-1]), str(rule), colour))
    ax.set_xscale("log", base=2)
    _powers(ax, int(table["calls"].max()))
    label_ends(ax, theme, ends)
    label_axes(ax, theme, x="budget C (calls)", y="gain in best fitness")
    text = (
        "Fitness of the split chosen on the other runs, on the run left out, less that of the "
        f"rule. Mean and {grid.level:.0%} interval, {_counts(table['n'])}. Below 0: the rule wins."
    )
    head(ax, theme, f"What knowing the split is worth: {task}, {model}", text)
    return ax


def regime_probabilities(
    fit: BilinearFit,
    *,
    budgets: Sequence[int] = (8, 16, 32, 64, 128, 256, 512),
    ax: Axes | None = None,
    theme: Theme = "light",
) -> Axes:
    """Draw the bootstrap probability of each regime against the budget.

    Args:
        fit: As `replay.fit_bilinear` returns it.
        budgets: Calls, at least 4 each.
        ax: Axes to draw on; None makes a figure.
        theme: Inks.
    """
    ax = prepare(ax, theme)
    optima = [fit.optimum(C) for C in budgets]
    ends = []
    for order, regime in enumerate(optima[0].probabilities):
        colour, style = look(order)
        share = [optimum.probabilities[regime] for optimum in optima]
        ax.plot(budgets, share, color=colour, ls=style, marker="o", ms=4, lw=1.6)
        ends.append((share[-1], regime, colour))
    ax.set_ylim(-0.02, 1.02)
    ax.set_xscale("log", base=2)
    ax.set_xticks(list(budgets), [str(C) for C in budgets])
    ax.minorticks_off()
    label_ends(ax, theme, ends)
    label_axes(ax, theme, x="budget C (calls)", y="bootstrap probability")
    text = f"Share of {len(fit.draws)} resamples of {fit.n_runs} whole runs."
    head(ax, theme, f"Where the fitted optimum lies: {fit.task}, {fit.model}", text)
    return ax


def envelope_curves(
    envelope: Envelope,
    *,
    task: str | None = None,
    ax: Axes | None = None,
    theme: Theme = "light",
) -> Axes:
    """Draw best-in-sweep fitness against cost, one line per model.

    Args:
        envelope: As `replay.envelope` returns it.
        task: Which task; None if there is one.
        ax: Axes to draw on; None makes a figure.
        theme: Inks.
    """
    table, task, _ = _one(envelope.points, task, None, models=True)
    ax = prepare(ax, theme)
    ends = []
    for order, (model, part) in enumerate(table.groupby("model", sort=False)):
        colour, style = look(order)
        ax.step(part["cost"], part["maximum"], where="post", color=colour, ls=style, lw=0.9)
        ax.errorbar(
            part["cost"], part["value"],
            yerr=[part["value"] - part["low"], part["high"] - part["value"]],
            color=colour, ls="none", marker="o", ms=4, elinewidth=1,
        )  # fmt: skip
        ends.append((float(part["maximum"].iloc[-1]), str(model), colour))
    ax.set_xscale("log")
    if envelope.axis == "calls":
        ax.set_xscale("log", base=2)
        _powers(ax, int(table["cost"].max()))
    label_ends(ax, theme, ends)
    label_axes(ax, theme, x=f"{envelope.axis} of the sweep's cell", y=FITNESS)
    r2 = float(envelope.collapse.set_index("task")["r2"].loc[task])
    text = (
        "Line: largest cell mean within the cost, which flatters. Points: the cell chosen on all "
        f"runs but one, judged on that one, {envelope.level:.0%} interval, n = "
        f"{_counts(table['n'])}. One curve for all models has R2 {r2:.2f}."
    )
    head(ax, theme, f"Best in sweep: {task}", text)
    return ax


def planner_card(plan: Plan, *, theme: Theme = "light") -> list[Axes]:
    """Draw a plan: the splits, the fitness to expect, and the way to tau where there is one.

    Args:
        plan: As `replay.plan` returns it.
        theme: Inks.

    Returns:
        The axes of a figure of its own, from left to right.
    """
    _, axes = subplots(1, 2 if plan.tau is None else 3, width=12.0, height=4.0)
    _draw_splits(axes[0], plan, theme)
    _draw_outcomes(axes[1], plan, theme)
    if plan.tau is not None:
        _draw_way(axes[2], plan, theme)
    return axes


def _one(
    table: pd.DataFrame, task: str | None, model: str | None, *, models: bool = False
) -> tuple[pd.DataFrame, str, str]:
    """Rows of one task and (unless `models`) one model, and their names."""
    names = []
    for column, wanted in (("task", task), ("model", model)):
        if column == "model" and models:
            break
        known = table[column].unique().tolist()
        if wanted is None and len(known) > 1:
            raise ValueError(f"expected a {column} among {known!r}, got None")
        name = known[0] if wanted is None else wanted
        if name not in known:
            raise ValueError(f"expected a {column} among {known!r}, got {name!r}")
        table = table[table[column] == name]
        names.append(str(name))
    return table, names[0], names[-1]


def _counts(n: pd.Series[int]) -> str:
    """The number of runs, or its range."""
    low, high = int(n.min()), int(n.max())
    return f"{low} runs" if low == high else f"{low} to {high} runs"


def _powers(ax: Axes, most: int) -> None:
    """Tick a logarithmic horizontal axis at powers of two."""
    ticks = [2**power for power in range(most.bit_length())]
    ax.set_xticks(ticks, [str(tick) for tick in ticks])
    ax.minorticks_off()


def _draw_fit(ax: Axes, fit: BilinearFit, shape: tuple[int, ...], powers: FloatArray) -> None:
    """Contours of the fitted fitness and the plateau of each budget."""
    rows, columns = (np.linspace(-0.5, size - 0.5, 80) for size in shape)
    x, y = np.meshgrid(columns, rows)
    fitted = fit.predict(2.0 ** x.ravel(), 2.0 ** y.ravel()).reshape(x.shape)
    fitted[x + y > powers.max() + 0.5] = np.nan
    ax.contour(x, y, fitted, levels=6, colors="white", linewidths=0.8, linestyles="--", zorder=3)
    for power in powers[powers >= 2]:
        low, high = np.log2(fit.optimum(int(2**power)).plateau)
        ax.plot(
            [low, high], [power - low, power - high],
            color=PALETTE[3], lw=3, alpha=0.6, solid_capstyle="round", zorder=3,
        )  # fmt: skip


def _draw_splits(ax: Axes, plan: Plan, theme: Theme) -> None:
    """Predicted fitness of one run by N, the recommended N filled."""
    prepare(ax, theme)
    table = plan.options[plan.options["arms"] == 1].sort_values("children")
    N = table["children"].to_numpy(np.float64)
    value = table["value"].to_numpy(np.float64)
    ax.errorbar(
        N, value, yerr=[value - table["low"], table["high"] - value],
        color=PALETTE[0], ls="none", elinewidth=1, zorder=2,
    )  # fmt: skip
    chosen = plan.choice.children == N
    ink = THEMES[theme]
    ax.scatter(N, value, s=20 + 300 * table["p_best"], color=PALETTE[0], alpha=0.5, zorder=3)
    ax.scatter(N[chosen], value[chosen], s=40, color=PALETTE[1], edgecolors=ink.text, zorder=4)
    ax.set_xscale("log", base=2)
    ax.margins(x=0.05)
    _powers(ax, int(N.max()))
    label_axes(ax, theme, x="children per generation N", y=FITNESS)
    text = (
        f"{plan.task}, {plan.model}; pilot of {plan.pilot_runs} runs, {plan.pilot_calls} calls. "
        "Mean and 95 % of single searches, simulated; the larger a disc, the likelier its split is "
        "the best; filled: the plan's N."
    )
    head(ax, theme, f"One run with a budget of {plan.budget:g}", text)


def _draw_outcomes(ax: Axes, plan: Plan, theme: Theme) -> None:
    """Distribution of the final fitness under the recommendation."""
    prepare(ax, theme)
    ordered = np.sort(plan.outcomes)
    share = 1 - np.arange(len(ordered)) / len(ordered)
    ax.step(ordered, share, where="post", color=PALETTE[1], lw=1.6)
    ax.set_ylim(0, 1.02)
    label_axes(ax, theme, x=FITNESS, y="share of searches that reach it")
    low, high = np.quantile(ordered, [0.05, 0.95])
    if plan.tau is not None:
        ax.axvline(plan.tau, color=THEMES[theme].text, lw=0.8, ls=":")
    head(ax, theme, "What to expect", f"{plan.choice}. 90 % between {low:.3f} and {high:.3f}.")


def _draw_way(ax: Axes, plan: Plan, theme: Theme) -> None:
    """Probability to reach tau against the budget."""
    prepare(ax, theme)
    generation = plan.costs.of_generation(plan.choice.children)
    spent = generation * np.arange(1, len(plan.reached) + 1)
    ax.step(spent, plan.reached, where="post", color=PALETTE[2], lw=1.6)
    ax.axvline(plan.budget, color=THEMES[theme].text, lw=0.8, ls=":")
    ax.axhline(0.9, color=THEMES[theme].faint, lw=0.8)
    ax.set_ylim(0, 1.02)
    label_axes(ax, theme, x="budget", y=f"probability to reach {plan.tau:g}")
    bound = plan.budget_for_tau
    far = "beyond this axis" if bound is None or not np.isfinite(bound) else f"at {bound:.4g}"
    head(
        ax, theme, f"The way to {plan.tau:g}",
        f"{plan.p_tau:.0%} at the budget (dotted); 90 % is {far}.",
    )  # fmt: skip
