"""What a comparison over several tasks found, in words, tables and a picture."""

from __future__ import annotations

import math
from collections.abc import Hashable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import pandas as pd

from replay.claims.decision import FOUND

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

Measure = Literal["final", "area", "calls"]

NAMES = {"final": "best fitness", "area": "area under the curve", "calls": "calls saved"}
"""Measures in words, on an axis."""

LONG = 24
"""Characters of the names of a pair beyond which the figure has its panels below each other."""


@dataclass(frozen=True, kw_only=True)
class TaskComparison:
    """Configurations compared over tasks; made by `replay.compare(frame, by=...)`.

    `replay.advise` says which of them to use.

    Attributes:
        by: The column that tells the configurations apart.
        measure: `final`, `area` or `calls`.
        tasks: The tasks, in order of first appearance.
        budgets: Calls at which the runs of each task are compared.
        table: One row per configuration: its name, tasks, runs, value (interquartile mean of the
            normalised measure over all runs and tasks), low, high, and a column per task (mean of
            the measure as it is).
        verdicts: One row per pair: a, b, tasks, runs, effect (a less b, in standard deviations
            within tasks), low, high, level (of this interval, by Holm's rule over pairs), p,
            p_holm, verdict for these tasks; runs_needed (further runs of both for a power of .8 if
            the effect is the true one; 0: none, NaN: not known); further, further_low,
            further_high, further_p (for further tasks, 95 %), further_verdict, spread (standard
            deviation of the true effects between tasks), and better (probability that a run of a
            beats one of b, mean over tasks).
        effects: One row per pair and task: a, b, task, runs_a, runs_b, effect, error, and pooled,
            the effect drawn towards the mean over tasks.
        profiles: One row per configuration and level: share of the runs whose normalised measure
            reaches the level, mean over tasks.
        margin: Largest difference that counts as none, in the same units; 0: there is none.
        notes: How to read the numbers, and what was left out.
    """

    by: str
    measure: Measure
    tasks: tuple[str, ...]
    budgets: dict[str, int]
    table: pd.DataFrame
    verdicts: pd.DataFrame
    effects: pd.DataFrame
    profiles: pd.DataFrame
    margin: float
    notes: tuple[str, ...]

    @property
    def paragraph(self) -> str:
        """A paragraph for a methods section: each pair's verdict first."""
        return " ".join([*map(_sentence, self.verdicts.to_dict("records")), *self.notes])

    def __str__(self) -> str:
        """Render the verdicts, then the table."""
        return f"{self.paragraph}\n\n{self.table.to_string(index=False)}"

    def _repr_html_(self) -> str:
        from html import escape

        return f"<p>{escape(self.paragraph)}</p>{self.table.to_html(index=False)}"

    def figure(self) -> Figure:
        """Draws the summary of each configuration, their profiles, and each pair's effects."""
        from matplotlib.figure import Figure

        pairs = self.verdicts["a"].astype(str) + self.verdicts["b"].astype(str)
        heights = [0.45 * max(len(self.table), 3), 2.7, 0.45 * max(len(self.verdicts), 3)]
        if max(map(len, pairs)) > LONG:  # labels that leave no room beside each other
            made = Figure(figsize=(10, 2.4 + sum(heights)), layout="constrained")
            summary, profile, effects = made.subplots(3, 1, height_ratios=heights)
        else:
            made = Figure(figsize=(13, 1.6 + max(heights)), layout="constrained")
            summary, profile, effects = made.subplots(1, 3)
        _draw_summary(summary, self.table, self.measure)
        for name, part in self.profiles.groupby("configuration", sort=False):
            profile.step(part["level"], part["share"], where="post", label=str(name))
        profile.set(xlabel="normalised value", ylabel="share of runs at or above", ylim=(0, 1.02))
        profile.legend(frameon=False, fontsize="small", loc="upper left", bbox_to_anchor=(1, 1))
        _draw_effects(effects, self.verdicts, self.effects)
        titles = ("Interquartile means", "Profiles of the runs", "Differences")
        for ax, title in zip((summary, profile, effects), titles, strict=True):
            ax.set_title(title, loc="left", fontweight="bold")
            ax.spines[["top", "right"]].set_visible(False)
        return made


def _sentence(row: Mapping[Hashable, Any]) -> str:
    """One pair in words."""
    low, high = row["low"], row["high"]
    found = FOUND.get(row["verdict"], "Neither {a} nor {b} is shown to be better")
    better = found.format(a=row["a"], b=row["b"])
    text = f"{better}: {row['a']} less {row['b']} is {row['effect']:+.2g} sd"
    if isinstance(low, float) and math.isfinite(low):
        text += f" [{low:.2g}, {high:.2g}]"
    else:
        text += " (too few runs for an interval)"
    tasks = f"{row['tasks']} task{'s' * (row['tasks'] > 1)}"
    text += f" on {tasks} ({row['runs']} runs, p = {row['p_holm']:.3g} after Holm)"
    if isinstance(row["further_low"], float) and math.isfinite(row["further_low"]):
        text += (
            f"; for further tasks {row['further']:+.2g} "
            f"[{row['further_low']:.2g}, {row['further_high']:.2g}]: {row['further_verdict']}"
        )
    return f"{text}."


def _draw_summary(ax: Axes, table: pd.DataFrame, measure: Measure) -> None:
    at = np.arange(len(table))[::-1]
    ax.hlines(at, table["low"], table["high"], linewidth=3, color="C0", alpha=0.6)
    ax.plot(table["value"], at, "o", color="C0")
    ax.set_yticks(at, [f"{row.configuration} (n = {row.runs})" for row in table.itertuples()])
    ax.set(xlabel=f"{NAMES[measure]}, normalised", ylim=(-0.6, len(table) - 0.4))


def _draw_effects(ax: Axes, verdicts: pd.DataFrame, effects: pd.DataFrame) -> None:
    at = np.arange(len(verdicts))[::-1]
    ax.axvline(0, color="0.4", linewidth=1)
    ax.hlines(at, verdicts["low"], verdicts["high"], linewidth=3, color="C0", alpha=0.6,
              label="these tasks")  # fmt: skip
    ax.hlines(at - 0.2, verdicts["further_low"], verdicts["further_high"], linewidth=1.5,
              color="C1", label="further tasks")  # fmt: skip
    ax.plot(verdicts["effect"], at, "o", color="C0")
    for height, row in zip(at, verdicts.itertuples(), strict=True):
        own = effects[(effects["a"] == row.a) & (effects["b"] == row.b)]
        ax.plot(own["effect"], np.full(len(own), height + 0.2), "|", color="0.5")
    ax.set_yticks(at, [f"{row.a} less {row.b}: {row.verdict}" for row in verdicts.itertuples()])
    ax.set(xlabel="effect in standard deviations (ticks: tasks)", ylim=(-0.7, len(verdicts) - 0.3))
    ax.legend(frameon=False, fontsize="small", loc="upper left", bbox_to_anchor=(1, 1))
