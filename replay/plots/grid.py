"""Depth and breadth, envelopes, plans."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from replay.plots import hits, style
from replay.plots.hits import ranged
from replay.plots.runs import COSTS
from replay.plots.shapes import cell_frame, cramped, draw_heat, lines, place
from replay.plots.style import FITNESS, PALETTE, THEMES, Theme, counted, intervals, look, number

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes

    from replay.planning.bilinear import BilinearFit
    from replay.planning.depth import DepthBreadth, Envelope
    from replay.planning.kernel import Kernel
    from replay.planning.planner import Plan

NO_FORECAST = "No forecast: beyond what the pilot saw, or several arms."
LIKELY = 0.1
"""Least probability of being best that is marked."""


def heatmap(
    grid: DepthBreadth,
    *,
    task: str | None = None,
    model: str | None = None,
    fit: BilinearFit | None = None,
    ax: Axes | None = None,
    theme: Theme = "light",
) -> Axes:
    """Draws fitness by depth and breadth; the splits of a budget lie on a diagonal.

    A frame marks a split that may be the best of its budget; a heavier frame means a higher
    probability. With a `fit`, its contours and the plateau of each budget replace the numbers and
    frames.

    Args:
        grid: The grid, from `replay.depth_breadth`.
        task: Name of the task, if the grid holds several.
        model: Name of the model, if the grid holds several.
        fit: A fit, from `replay.fit_bilinear`.
        ax: Axes to draw on (default: those of a new figure).
        theme: "light" or "dark".

    Returns:
        The axes.

    Example:
        >>> ax = replay.plots.heatmap(grid)
    """
    table, task, model = _one(grid.cells, task, model)
    ax = style.prepare(style.subplots(height=5.4)[1][0] if ax is None else ax, theme)
    N, T = (sorted(set(table[name].tolist())) for name in ("children", "generations"))
    y, x = (
        table[name].map(known.index).to_numpy()
        for name, known in (("children", N), ("generations", T))
    )
    values = np.full((len(N), len(T)), np.nan)
    values[y, x] = table["value"]
    draw_heat(
        ax,
        theme,
        values,
        ticks=(N, T),
        label=f"mean {style.fitness_name([task])}",
        written=fit is None,
    )
    for column, row, cell in zip(x, y, table.to_dict("records"), strict=True):
        shown = ranged(cell["value"], cell["low"], cell["high"])
        words = f"T = {T[column]}, N = {N[row]}, C = {number(cell['calls'])}\n"
        words += f"best fitness {shown}\nn = {cell['n']} runs"
        hits.mark(ax, (column - 0.5, row - 0.5, column + 0.5, row + 0.5), words)
    text = f"Mean of best fitness, {counted(table['n'])} per cell; a budget C = T N is a diagonal. "
    if fit is None:
        for column, row, p_best in zip(x, y, table["p_best"], strict=True):
            if p_best >= LIKELY:
                ax.add_patch(cell_frame(column, row, PALETTE[1], 1 + 2.5 * p_best))
        text += "Frames: may be the best of its budget, the heavier the likelier."
        text += " Cells: two decimals of the mean." if cramped(ax, len(T)) else ""
    else:
        _draw_fit(ax, fit, N, T, table["calls"])
        text += "Lines: bilinear fit. Bars: within 0.05 of its best log(1 - V). "
        text += f"R² = {fit.r2:.2f}."
    style.head(ax, theme, f"Depth and breadth: {task}, {model}", text)
    return ax


def _draw_fit(
    ax: Axes, fit: BilinearFit, N: Sequence[int], T: Sequence[int], budgets: pd.Series[int]
) -> None:
    """Contours of the fitted fitness and the plateau of each budget."""
    (rows, children), (columns, generations) = (
        (
            at := np.linspace(0, len(ticks) - 1, 80),
            np.exp2(np.interp(at, range(len(ticks)), np.log2(ticks))),
        )
        for ticks in (N, T)
    )
    x, y = np.meshgrid(generations, children)
    fitted = fit.predict(x.ravel(), y.ravel()).reshape(x.shape)
    fitted[x * y > 1.4 * budgets.max()] = np.nan
    ax.contour(columns, rows, fitted, levels=6, colors="white", linewidths=0.8, linestyles="--")
    for budget in sorted(set(budgets[budgets >= 4].tolist())):
        ends = fit.optimum(budget).plateau
        ax.plot(
            [place(T, end) for end in ends], [place(N, budget / end) for end in ends],
            color=PALETTE[1], lw=3, alpha=0.8, solid_capstyle="round",
        )  # fmt: skip


def slices(
    grid: DepthBreadth,
    *,
    budgets: Sequence[int] | None = None,
    task: str | None = None,
    model: str | None = None,
    ax: Axes | None = None,
    theme: Theme = "light",
) -> Axes:
    """Draws fitness against N at fixed budgets, with intervals over runs.

    Args:
        grid: The grid, from `replay.depth_breadth`.
        budgets: Budgets in calls (default: the largest, and up to three smaller ones, each a
            quarter of the next).
        task: Name of the task, if the grid holds several.
        model: Name of the model, if the grid holds several.
        ax: Axes to draw on (default: those of a new figure).
        theme: "light" or "dark".

    Returns:
        The axes.

    Raises:
        ValueError: A budget has no cell in the grid.

    Example:
        >>> ax = replay.plots.slices(grid, budgets=[4])
    """
    table, task, model = _one(grid.cells, task, model)
    known = sorted(table.loc[table["p_best"].notna(), "calls"].unique().tolist())
    chosen = sorted(budgets) if budgets is not None else known[::-2][:4][::-1]
    if missing := sorted(set(chosen) - set(known)):
        raise ValueError(f"expected budgets among {known!r}, got {missing!r}")
    if not chosen:
        raise ValueError(
            "expected at least one budget that was split in two ways, with five runs each, got none"
        )
    drawn = table[table["calls"].isin(chosen)].sort_values("calls", kind="stable")
    return lines(
        drawn.assign(C=drawn["calls"].map("C = {}".format)),
        title=f"Splits of a budget: {task}, {model}",
        about=f"{intervals(table, 'Mean', level=grid.level)}, {counted(table['n'])} per cell; "
        "left: deep, right: broad.",
        x="children per generation N (T = C / N)", y=FITNESS, by="C", at="children", limits="bars",
        scale="doublings", apart=0.06, ax=ax, theme=theme,
    )  # fmt: skip


def value_of_knowing(
    grid: DepthBreadth,
    *,
    task: str | None = None,
    model: str | None = None,
    ax: Axes | None = None,
    theme: Theme = "light",
) -> Axes:
    """Draws how much the chosen split gains over each fixed rule, by budget.

    Args:
        grid: The grid, from `replay.depth_breadth`.
        task: Name of the task, if the grid holds several.
        model: Name of the model, if the grid holds several.
        ax: Axes to draw on (default: those of a new figure).
        theme: "light" or "dark".

    Returns:
        The axes.
    """
    table, task, model = _one(grid.knowing, task, model)
    return lines(
        table.rename(columns={"gain": "value"}),
        title=f"What knowing the split is worth: {task}, {model}",
        about="Fitness of the split chosen on the other runs, on the run left out, less that of "
        f"the rule. {intervals(table, 'Mean', level=grid.level)}, {counted(table['n'])}. "
        "Below 0: the rule wins.",
        x="budget C (calls)", y="gain in best fitness", by="rule", at="calls", limits="bars",
        scale="doublings", apart=0.12, ax=ax, theme=theme,
    )  # fmt: skip


def regime_probabilities(
    fit: BilinearFit,
    *,
    budgets: Sequence[int] = (8, 16, 32, 64, 128, 256, 512),
    ax: Axes | None = None,
    theme: Theme = "light",
) -> Axes:
    """Draws the probability of each regime (deep, broad, interior) against the budget.

    Args:
        fit: The fit, from `replay.fit_bilinear`.
        budgets: Budgets in calls, each at least 4.
        ax: Axes to draw on (default: those of a new figure).
        theme: "light" or "dark".

    Returns:
        The axes.
    """
    import pandas as pd

    return lines(
        pd.DataFrame([fit.optimum(C).probabilities for C in budgets], index=list(budgets)),
        title=f"Where the fitted optimum lies: {fit.task}, {fit.model}",
        about=f"Share of {len(fit.draws):,} draws of the coefficients from the multivariate t "
        f"distribution around the fit to {fit.n_runs} runs.",
        x="budget C (calls)", y="probability", scale="doublings", ax=ax, theme=theme,
    )  # fmt: skip


def envelope_curves(
    envelope: Envelope,
    *,
    task: str | None = None,
    ax: Axes | None = None,
    theme: Theme = "light",
) -> Axes:
    """Draws the best fitness of a sweep against its cost, one line per model.

    Args:
        envelope: The envelope, from `replay.envelope`.
        task: Name of the task, if the envelope holds several.
        ax: Axes to draw on (default: those of a new figure).
        theme: "light" or "dark".

    Returns:
        The axes.
    """
    table, task, _ = _one(envelope.points, task, None, models=True)
    ax = style.prepare(ax, theme)
    if envelope.axis == "calls":
        style.doublings(ax, table["cost"].max())
    else:
        style.ratios(ax, 0.9 * table["cost"].min(), 1.1 * table["cost"].max())
    ends = []
    for order, (model, part) in enumerate(table.groupby("model", sort=False)):
        colour, dashes = look(order)
        ax.step(part["cost"], part["maximum"], where="post", color=colour, ls=dashes, lw=0.9)
        ax.vlines(part["cost"], part["low"], part["high"], color=colour, lw=1)
        ax.plot(part["cost"], part["value"], color=colour, ls="", marker="o", ms=4)
        ends.append((float(part["maximum"].iloc[-1]), str(model), colour))
    style.label_ends(ax, theme, ends)
    style.label_axes(
        ax, theme, x=f"{COSTS[envelope.axis][0].replace(' so far', '')} of a cell", y=FITNESS
    )
    r2 = float(envelope.collapse.set_index("task")["r2"].loc[task])
    chosen = "Points: the cell chosen on all runs but one, judged on that one"
    of = "all models" if table["model"].nunique() > 1 else "all cells"
    text = (
        "Line: largest cell mean within the cost, which flatters. "
        f"{intervals(table, chosen, level=envelope.level)}, {counted(table['n'])}. One curve for "
        f"{of}: R² = {r2:.2f}."
    )
    style.head(ax, theme, f"Best in sweep: {task}", text)
    return ax


def odds(
    kernel: Kernel, *, draws: int = 20, ax: Axes | None = None, theme: Theme = "light"
) -> Axes:
    """Draws how often a child is better than its parent, by the parent's fitness.

    The line is the median of these kernels, and the band holds 90 % of them.

    Args:
        kernel: The kernel, from `replay.fit_kernel`.
        draws: Number of kernels fitted to resampled runs.
        ax: Axes to draw on (default: those of a new figure).
        theme: "light" or "dark".

    Returns:
        The axes.
    """
    import pandas as pd

    seen = kernel.seen & np.isfinite(kernel.fitness)
    seen[0] = False  # the initial program is a state of its own
    shares = 100 * np.array([each.better[seen] for each in kernel.resampled(draws)])
    limits = np.quantile(shares, [0.05, 0.5, 0.95], axis=0)
    table = pd.DataFrame(limits.T, columns=["low", "value", "high"])
    return lines(
        table.assign(x=kernel.fitness[seen], line=""), by="line",
        title=f"Odds of a better child: {kernel.task}, {kernel.model}",
        about=f"Median and 90 % of {draws} kernels of resampled runs, {len(kernel.sizes)} runs.",
        x="fitness of the parent", y="better children (%)", ax=ax, theme=theme,
    )  # fmt: skip


def planner_card(plan: Plan, *, theme: Theme = "light") -> list[Axes]:
    """Draws a plan: its splits and, where they are forecast, the fitness and the time to reach tau.

    Args:
        plan: The plan, from `replay.plan`.
        theme: "light" or "dark".

    Returns:
        The axes of a new figure, from left to right.
    """
    count = 1 + plan.inside + (plan.inside and plan.tau is not None)
    figure, axes = style.subplots(1, count, width=6.0 + 3.0 * (count - 1), height=4.2)
    for ax in axes:
        style.prepare(ax, theme)
    heading = f"{plan.task}, {plan.model}: a budget of {number(plan.budget)} after a pilot of "
    heading += f"{plan.pilot_runs} runs, {number(plan.pilot_calls)} calls"
    if count > 1:
        size, ink = style.text_size(axes[0]) + 2, THEMES[theme].text
        figure.suptitle(heading, x=0.01, ha="left", color=ink, fontsize=size, fontweight="bold")
    _draw_splits(axes[0], plan, theme, "" if count > 1 else f"{heading}. ")
    if plan.inside:
        _draw_outcomes(axes[1], plan, theme)
    if plan.inside and plan.tau is not None:
        _draw_way(axes[2], plan, theme)
    return axes


def _draw_splits(ax: Axes, plan: Plan, theme: Theme, heading: str) -> None:
    """How far each N is ahead of the split nearest to T = N, the recommended N filled."""
    table = plan.options[plan.options["arms"] == 1].sort_values("children")
    N, ahead, margin = (table[name].to_numpy(float) for name in ("children", "ahead", "margin"))
    ax.axhline(0, color=THEMES[theme].faint, lw=0.8, zorder=1)
    ax.vlines(N, ahead - margin, ahead + margin, color=PALETTE[0], lw=1, zorder=2)
    chosen = plan.choice.children == N
    ax.scatter(N, ahead, s=20 + 300 * table["p_best"], color=PALETTE[0], alpha=0.5, zorder=3)
    edge = THEMES[theme].text
    ax.scatter(N[chosen], ahead[chosen], s=40, color=PALETTE[1], edgecolors=edge, zorder=4)
    style.doublings(ax, N.max())
    ax.margins(x=0.05)
    style.label_axes(
        ax, theme, x="children per generation N", y="fitness ahead of the split nearest to T = N"
    )
    text = f"{heading}Bars: what luck accounts for; large: likelier the best; filled: {plan.choice}"
    text += "." if plan.inside else f". {NO_FORECAST}"
    style.head(ax, theme, "Splits in one run", text)


def _draw_outcomes(ax: Axes, plan: Plan, theme: Theme) -> None:
    """Distribution of the final fitness under the recommendation, where it is forecast."""
    style.label_axes(ax, theme, x=FITNESS, y="share of searches that reach it")
    ax.set_ylim(0, 1.02)
    ordered = np.sort(plan.outcomes)
    share = 1 - np.arange(len(ordered)) / len(ordered)
    ax.step(ordered, share, where="post", color=PALETTE[1], lw=1.6)
    low, high = np.quantile(ordered, [0.05, 0.95])
    if plan.tau is not None:
        ax.axvline(plan.tau, color=THEMES[theme].text, lw=0.8, ls=":")
    about = f"{plan.choice}. 90 % between {low:.3f} and {high:.3f}."
    style.head(ax, theme, "What to expect", about)


def _draw_way(ax: Axes, plan: Plan, theme: Theme) -> None:
    """Probability to reach tau against the budget."""
    generation = plan.costs.of_generation(plan.choice.children)
    spent = generation * np.arange(1, len(plan.reached) + 1)
    ax.step(spent, plan.reached, where="post", color=PALETTE[2], lw=1.6)
    ax.axvline(plan.budget, color=THEMES[theme].text, lw=0.8, ls=":")
    ax.axhline(0.9, color=THEMES[theme].faint, lw=0.8)
    ax.set_ylim(0, 1.02)
    style.label_axes(ax, theme, x="budget", y=f"probability to reach {plan.tau:g}")
    bound = plan.budget_for_tau
    far = "beyond this axis" if bound is None or not np.isfinite(bound) else f"at {number(bound)}"
    about = f"{plan.p_tau:.0%} at the budget (dotted); 90 % is {far}."
    style.head(ax, theme, f"The way to {plan.tau:g}", about)


def _one(
    table: pd.DataFrame, task: str | None, model: str | None, *, models: bool = False
) -> tuple[pd.DataFrame, str, str]:
    """Rows of one task and (unless `models`) one model, and their names."""
    names = []
    for column, wanted in (("task", task), ("model", model))[: 1 if models else 2]:
        known = table[column].unique().tolist()
        name = known[0] if wanted is None and len(known) == 1 else wanted
        if name not in known:
            raise ValueError(f"expected a {column} among {known!r}, got {name!r}")
        table = table[table[column] == name]
        names.append(str(name))
    return table, names[0], names[-1]
