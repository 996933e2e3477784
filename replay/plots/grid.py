"""Depth and breadth, envelopes, plans."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, cast

import numpy as np

from replay.logs.given import check_result
from replay.planning.choices import NO_MARGIN
from replay.plots import style
from replay.plots.chart import Chart
from replay.plots.marks import End, Line, Mark, Points, Rule, Spans
from replay.plots.medium import REFERENCE
from replay.plots.panel import Axis, Panel
from replay.plots.runs import COSTS
from replay.plots.shapes import heat, lines, place
from replay.plots.style import FITNESS, PALETTE, counted, intervals, look, ranged
from replay.plots.ticks import doublings
from replay.statistics.numbers import amount, number

if TYPE_CHECKING:
    import pandas as pd

    from replay.planning.bilinear import BilinearFit
    from replay.planning.choices import BudgetPlan
    from replay.planning.depth import DepthBreadth, Envelope
    from replay.planning.kernel import Kernel
    from replay.plots.style import FloatArray

LIKELY = 0.1
"""Least probability of being best that is marked."""


def heatmap(
    grid: DepthBreadth,
    *,
    task: str | None = None,
    model: str | None = None,
    fit: BilinearFit | None = None,
) -> Chart:
    """Draws fitness by depth and breadth; the splits of a budget run from top left to bottom right.

    Columns are the T that `replay.depth_breadth` has cells at, whatever lies between them.

    A frame marks a split that may be the best of its budget; a heavier frame means a higher
    probability. With a `fit`, its contours and the plateau of each budget replace the numbers and
    frames.

    Args:
        grid: The grid, from `replay.depth_breadth`.
        task: Name of the task, if the grid holds several.
        model: Name of the model, if the grid holds several.
        fit: A fit, from `replay.fit_bilinear`.

    Example:
        >>> ax = replay.plots.heatmap(grid)
    """
    check_result("heatmap", grid, "DepthBreadth", "replay.depth_breadth")
    table, task, model = _one(grid.cells, task, model)
    N, T = (sorted(set(table[name].tolist())) for name in ("children", "generations"))
    y, x = (
        table[name].map(known.index).to_numpy()
        for name, known in (("children", N), ("generations", T))
    )
    values = np.full((len(N), len(T)), np.nan)
    values[y, x] = table["value"]
    texts = [[""] * len(T) for _ in N]
    for column, row, cell in zip(x, y, table.to_dict("records"), strict=True):
        texts[row][column] = (
            f"T = {T[column]}, N = {N[row]}, C = {number(cell['calls'])}\n"
            f"best fitness {ranged(cell['value'], cell['low'], cell['high'])}\n"
            f"n = {cell['n']} runs"
        )
    label = f"mean {style.fitness_name([task])}"
    drawn = heat(values, ticks=(N, T), label=label, texts=texts, written=fit is None)
    text = f"Mean of best fitness, {counted(table['n'])} per cell; "
    if any(at.bit_count() > 1 for at in T):
        text += "a budget is C = T N. "
        text += "Columns: T that are powers of two, ends of runs, or make equal budgets. "
    else:
        text += "a budget C = T N is a diagonal. "
    more: list[Mark]
    if fit is None:
        likely = (table["p_best"] >= LIKELY).to_numpy()
        at, up = x[likely], y[likely]
        more = [
            Spans(
                x0=at - 0.43, x1=at + 0.43, y0=up - 0.43, y1=up + 0.43, color=PALETTE[1],
                frame=1.4 + 3.5 * table["p_best"].to_numpy()[likely],
            )
        ]  # fmt: skip
        text += "Frames: may be the best of its budget, the heavier the likelier."
    else:
        more = _fitted(fit, N, T, table["calls"])
        text += "Lines: bilinear fit. Bars: within 0.05 of its best log(1 - V). "
        text += f"R² = {fit.r2:.2f}."
    title = f"Depth and breadth: {task}, {model}"
    panel = replace(drawn, title=title, about=text, marks=[*drawn.marks, *more])
    return Chart(panels=[panel])


def _fitted(
    fit: BilinearFit, N: Sequence[int], T: Sequence[int], budgets: pd.Series[int]
) -> list[Mark]:
    """Contours of the fitted fitness and the plateau of each budget."""
    from contourpy import contour_generator
    from matplotlib.ticker import MaxNLocator

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
    found = contour_generator(columns, rows, np.ma.masked_invalid(fitted))
    known = fitted[np.isfinite(fitted)]
    levels = MaxNLocator(7).tick_values(known.min(), known.max())
    marks: list[Mark] = [
        Line(x=way[:, 0], y=way[:, 1], color="#ffffff", width=1.1, dash="5 3", hover=False)
        for level in levels
        for way in cast("list[FloatArray]", found.lines(level))
    ]
    for budget in sorted(set(budgets[budgets >= 4].tolist())):
        ends = fit.optimum(budget).plateau
        marks.append(
            Line(
                x=[place(T, end) for end in ends], y=[place(N, budget / end) for end in ends],
                color=f"{PALETTE[1]}cc", width=4.2, hover=False,
            )
        )  # fmt: skip
    return marks


def slices(
    grid: DepthBreadth,
    *,
    budgets: Sequence[int] | None = None,
    task: str | None = None,
    model: str | None = None,
) -> Chart:
    """Draws fitness against N at fixed budgets, with intervals over runs.

    Args:
        grid: The grid, from `replay.depth_breadth`.
        budgets: Budgets in calls (default: the largest, and up to three smaller ones, each at most
            a quarter of the next).
        task: Name of the task, if the grid holds several.
        model: Name of the model, if the grid holds several.

    Raises:
        ValueError: A budget has no cell in the grid.

    Example:
        >>> ax = replay.plots.slices(grid, budgets=[4])
    """
    check_result("slices", grid, "DepthBreadth", "replay.depth_breadth")
    table, task, model = _one(grid.cells, task, model)
    known = sorted(table.loc[table["p_best"].notna(), "calls"].unique().tolist())
    chosen = sorted(budgets) if budgets is not None else _quarters(known)
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
        scale="doublings", apart=0.06,
    )  # fmt: skip


def _quarters(budgets: Sequence[int]) -> list[int]:
    """The largest of ascending budgets, and up to three, each at most a quarter of the next."""
    found = list(budgets[-1:])
    for C in reversed(budgets):
        if found[0] >= 4 * C and len(found) < 4:
            found.insert(0, C)
    return found


def value_of_knowing(
    grid: DepthBreadth, *, task: str | None = None, model: str | None = None
) -> Chart:
    """Draws how much the chosen split gains over each fixed rule, by budget.

    Args:
        grid: The grid, from `replay.depth_breadth`.
        task: Name of the task, if the grid holds several.
        model: Name of the model, if the grid holds several.

    Raises:
        ValueError: No budget of the task was split in two ways.

    Example:
        >>> replay.plots.value_of_knowing(grid).get_xlabel()
        'budget C (calls)'
    """
    check_result("value_of_knowing", grid, "DepthBreadth", "replay.depth_breadth")
    _, task, model = _one(grid.cells, task, model)
    table = grid.knowing.query("task == @task and model == @model")
    if table.empty:
        raise ValueError(
            f"{task}, {model}: expected at least one budget that was split in two ways, got none; "
            "make runs of another number of children"
        )
    return lines(
        table.rename(columns={"gain": "value"}),
        title=f"What knowing the split is worth: {task}, {model}",
        about="Fitness of the split chosen on the other runs, on the run left out, less that of "
        f"the rule. {intervals(table, 'Mean', level=grid.level)}, {counted(table['n'])}. "
        "Below 0: the rule wins.",
        x="budget C (calls)", y="gain in best fitness", by="rule", at="calls", limits="bars",
        scale="doublings", apart=0.12,
    )  # fmt: skip


def regime_probabilities(
    fit: BilinearFit, *, budgets: Sequence[int] = (8, 16, 32, 64, 128, 256, 512)
) -> Chart:
    """Draws the probability of each regime (deep, broad, interior) against the budget.

    Args:
        fit: The fit, from `replay.fit_bilinear`.
        budgets: Budgets in calls, each at least 4.

    Example:
        >>> fit = replay.fit_bilinear(frame, best=1.0, resamples=100)
        >>> replay.plots.regime_probabilities(fit).get_xlabel()
        'budget C (calls)'
    """
    check_result("regime_probabilities", fit, "BilinearFit", "replay.fit_bilinear")
    import pandas as pd

    return lines(
        pd.DataFrame([fit.optimum(C).probabilities for C in budgets], index=list(budgets)),
        title=f"Where the fitted optimum lies: {fit.task}, {fit.model}",
        about=f"Share of {len(fit.draws):,} draws of the coefficients from the multivariate t "
        f"distribution around the fit to {fit.n_runs} runs.",
        x="budget C (calls)", y="probability", scale="doublings",
    )  # fmt: skip


def envelope_curves(envelope: Envelope, *, task: str | None = None) -> Chart:
    """Draws the best fitness of a sweep against its cost, one line per model.

    Args:
        envelope: The envelope, from `replay.envelope`.
        task: Name of the task, if the envelope holds several.

    Example:
        >>> replay.plots.envelope_curves(replay.envelope(frame)).get_xlabel()
        'LLM calls of a cell'
    """
    check_result("envelope_curves", envelope, "Envelope", "replay.envelope")
    table, task, _ = _one(envelope.points, task, None, models=True)
    marks: list[Mark] = []
    ends: list[Mark] = []
    for order, (model, part) in enumerate(table.groupby("model", sort=False)):
        color, dash = look(order)
        cost, most = part["cost"].to_numpy(float), part["maximum"].to_numpy(float)
        value, low, high = (part[name].to_numpy(float) for name in ("value", "low", "high"))
        texts = [
            f"{model}: {ranged(*row)} at {number(at)}"
            for at, *row in zip(cost, value, low, high, strict=True)
        ]
        marks.append(
            Line(x=cost, y=most, color=color, dash=dash, width=1.3, step=True, hover=False)
        )
        marks.append(
            Points(x=cost, y=value, y_low=low, y_high=high, color=color, size=2.8, texts=texts)
        )
        ends.append(End(y=float(most[-1]), text=str(model), color=color, dash=dash))
    ticks = doublings(table["cost"].max()) if envelope.axis == "calls" else None
    r2 = float(envelope.collapse.set_index("task")["r2"].loc[task])
    chosen = "Points: the cell chosen on all runs but one, judged on that one"
    of = "all models" if table["model"].nunique() > 1 else "all cells"
    text = (
        "Line: largest cell mean within the cost, which flatters. "
        f"{intervals(table, chosen, level=envelope.level)}, {counted(table['n'])}."
    )
    if np.isfinite(r2):
        text += f" One curve for {of}: R² = {r2:.2f}."
    label = f"{COSTS[envelope.axis][0].replace(' so far', '')} of a cell"
    panel = Panel(
        title=f"Best in sweep: {task}", about=text, marks=[*marks, *ends], zoom=True,
        x=Axis(label=label, scale="log", ticks=ticks, grid=True), y=Axis(label=FITNESS), height=260,
    )  # fmt: skip
    return Chart(panels=[panel])


def odds(kernel: Kernel, *, draws: int = 20) -> Chart:
    """Draws how often a child is better than its parent, by the parent's fitness.

    The line is the median of these kernels, and the band holds 90 % of them.

    Args:
        kernel: The kernel, from `replay.fit_kernel`.
        draws: Number of kernels fitted to resampled runs.

    Example:
        >>> kernel = replay.fit_kernel(replay.children(path), best=0.01)
        >>> replay.plots.odds(kernel).get_xlabel()
        'fitness of the parent'
    """
    check_result("odds", kernel, "Kernel", "replay.fit_kernel")
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
        x="fitness of the parent", y="better children (%)",
    )  # fmt: skip


def planner_card(plan: BudgetPlan) -> Chart:
    """Draws a plan: its splits and, where they are forecast, the fitness and the time to reach tau.

    Args:
        plan: The plan, from `replay.plan`.

    Example:
        >>> plan = replay.plan(frame, budget=8, children=children, kernels=2)
        >>> len(replay.plots.charts.planner_card(plan).panels)
        2
    """
    check_result("planner_card", plan, "BudgetPlan", "replay.plan")
    heading = f"{plan.task}, {plan.model}: a budget of {number(plan.budget)} after a pilot of "
    calls = plan.pilot_calls
    heading += f"{amount(plan.pilot_runs, 'run')}, {number(calls)} call{'s' * (calls != 1)}"
    if not plan.inside:
        return Chart(panels=[_splits(plan, f"{heading}. ")])
    panels = [_splits(plan, ""), _outcomes(plan)]
    panels += [] if plan.tau is None else [_way(plan)]
    return Chart(panels=panels, columns=len(panels), title=heading)


def _splits(plan: BudgetPlan, heading: str) -> Panel:
    """How far each N is ahead of the split nearest to T = N, the recommended N filled."""
    table = plan.options[plan.options["arms"] == 1].sort_values("children")
    N, ahead, margin, best = (
        table[name].to_numpy(float) for name in ("children", "ahead", "margin", "p_best")
    )
    of_one = np.isinf(margin)
    margin = np.where(of_one, np.nan, margin)
    texts = [
        f"N = {n:g}: {ranged(a, a - m, a + m)}, best with probability {p:.2f}"
        for n, a, m, p in zip(N, ahead, margin, best, strict=True)
    ]
    chosen = plan.choice.children == N
    marks: list[Mark] = [
        Rule(y=0.0, color="faint"),
        Points(
            x=N, y=ahead, y_low=ahead - margin, y_high=ahead + margin, color=f"{PALETTE[0]}80",
            size=0.7 * np.sqrt(20 + 300 * best), texts=texts,
        ),
        Points(x=N[chosen], y=ahead[chosen], color=PALETTE[1], size=4.4, edge="ink"),
    ]  # fmt: skip
    bars = f"no bars: {NO_MARGIN}" if of_one.any() else "bars: what luck accounts for"
    text = f"{heading}{bars[0].upper()}{bars[1:]}; large: likelier the best; filled: the plan"
    text += "." if plan.inside else f". No forecast: {plan.beyond}."
    ticks = doublings(N.max())
    return Panel(
        title="Splits in one run", about=text, marks=marks, height=260,
        x=Axis(
            label="children per generation N", scale="log", ticks=ticks, grid=True,
            domain=(N.min() / 1.25, N.max() * 1.25),
        ),
        y=Axis(label="fitness ahead of T = N"),
    )  # fmt: skip


def _outcomes(plan: BudgetPlan) -> Panel:
    """Distribution of the final fitness under the recommendation, where it is forecast."""
    levels, reached = plan.expected
    low, high = plan.reached_by(0.95, 0.05)
    marks: list[Mark] = [Line(x=levels, y=reached, color=PALETTE[1], width=2.2, step=True)]
    marks += [] if plan.tau is None else [Rule(x=plan.tau, dash=REFERENCE)]
    aim = "" if plan.tau is None else f"; dotted: {plan.tau:g}"
    return Panel(
        title="What to expect", about=f"{plan.choice}. 90 % between {low:.3f} and {high:.3f}{aim}.",
        x=Axis(label=FITNESS), y=Axis(domain=(0, 1.02), label="share that reach it"),
        marks=marks, height=260,
    )  # fmt: skip


def _way(plan: BudgetPlan) -> Panel:
    """Probability to reach tau against the budget."""
    generation = plan.costs.of_generation(plan.choice.children)
    initial = plan.choice.arms * plan.costs.initial
    spent = initial + generation * np.arange(1, len(plan.reached) + 1)
    bound = plan.budget_for_tau
    far = "beyond this axis" if bound is None or not np.isfinite(bound) else f"at {number(bound)}"
    marks: list[Mark] = [
        Line(x=spent, y=plan.reached, color=PALETTE[2], width=2.2, step=True),
        Rule(x=float(plan.budget), dash=REFERENCE),
        Rule(y=0.9, color="faint"),
    ]
    return Panel(
        title=f"The way to {plan.tau:g}",
        about=f"{plan.p_tau:.0%} at the budget (dotted); 90 % is {far}.",
        x=Axis(label="budget"), marks=marks, height=260,
        y=Axis(domain=(0, 1.02), label=f"probability to reach {plan.tau:g}"),
    )  # fmt: skip


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
