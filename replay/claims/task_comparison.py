"""What a comparison over several tasks found, in words, tables and a picture."""

from __future__ import annotations

import math
from collections.abc import Hashable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

import pandas as pd

from replay.claims.decision import FEW, FOUND, MANY, OPEN, in_family
from replay.claims.further import further_tasks
from replay.claims.verdict import NO_SPREAD
from replay.markup import card
from replay.statistics.numbers import brackets

if TYPE_CHECKING:
    from matplotlib.figure import Figure

Measure = Literal["final", "area", "calls"]


@dataclass(frozen=True, kw_only=True)
class TaskComparison:
    """Configurations compared over tasks; made by `replay.compare(frame, by=...)`.

    `replay.advise` says which of them to use.

    Attributes:
        by: The column that tells the configurations apart.
        measure: `final`, `area` or `calls`.
        tasks: The tasks on which two configurations have two runs or more, in order of first
            appearance.
        budgets: Calls at which the runs of each task are compared.
        table: One row per configuration: its name, tasks, runs, value (interquartile mean of the
            normalised measure over all runs and tasks), low, high, and a column per task (mean of
            the measure as it is).
        verdicts: One row per pair: a, b, tasks, runs, effect (a less b, in standard deviations
            within tasks), low, high, level (of this interval, by Holm's rule over pairs), p (of
            this pair alone, as of `replay.judge`; without one where no run of a side differs from
            another), p_holm (among all pairs), verdict for these
            tasks; why (of `undetermined` the reason: too few runs, too many comparisons at once,
            margin, or no clear difference); alone_low, alone_high (the interval of this pair
            alone); runs_needed (further runs of both for a power of .8 if
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
        of: How many configurations there are, where only those of the highest values are compared.
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
    of: int = 0

    @property
    def family(self) -> int:
        """The pairs among which the error is shared: those here, or those of all configurations."""
        return math.comb(self.of, 2) if self.chosen else len(self.verdicts)

    @property
    def chosen(self) -> str:
        """Of how many configurations these are the highest, in words; else empty."""
        count = len(self.table)
        return f"the {count} of the highest values of {self.of}" if count < self.of else ""

    @property
    def summary(self) -> tuple[str, str]:
        """What the pairs decide in a sentence; then n, and why pairs are open."""
        rows = self.verdicts.to_dict("records")
        found = [row for row in rows if row["verdict"] in FOUND]
        first = "; ".join(FOUND[row["verdict"]].format(a=row["a"], b=row["b"]) for row in found)
        tasks = f"{len(self.tasks)} task{'s' * (len(self.tasks) > 1)}"
        text = f"n = {self.table['runs'].sum()} runs on {tasks}"
        if self.chosen:
            text += f"; {self.chosen} configurations"
        if len(rows) > 1:
            text += f"; verdicts share their error among {self.family} pairs (Holm)"
        counts = self.verdicts.loc[self.verdicts["why"] != "", "why"].value_counts()
        left = ", ".join(f"{why} ({count})" for why, count in counts.items())
        text += f". Undetermined, by reason: {left}." if left else "."
        return f"{first or 'No pair is shown to differ'}.", text

    @property
    def paragraph(self) -> str:
        """A paragraph for a methods section: each pair's verdict first."""
        rows = self.verdicts.to_dict("records")
        said = (_sentence(row, self.margin, self.family) for row in rows)
        return " ".join([*said, *self.notes])

    def __str__(self) -> str:
        """Render the summary, each pair's verdict, then the table."""
        said = "\n".join(self.summary)
        return f"{said}\n\n{self.paragraph}\n\n{self.table.to_string(index=False)}"

    def __repr__(self) -> str:
        return "\n".join(self.summary)

    def _repr_html_(self) -> str:
        return card(*self.summary, self.paragraph, self.table.to_html(index=False))

    def figure(self, theme: Literal["light", "dark"] = "light") -> Figure:
        """Draws the summary of each configuration, each pair's difference, and their profiles.

        `replay.plots.charts.comparison` is the same as a chart that answers to the mouse.
        """
        import replay  # figures stand in a row above

        return replay.plots.charts.comparison(self).figure(theme)


def _sentence(row: Mapping[Hashable, Any], margin: float, pairs: int) -> str:
    """One pair in words."""
    found = FOUND.get(row["verdict"], "Neither {a} nor {b} is shown to be better")
    better = found.format(a=row["a"], b=row["b"])
    text = f"{better}: {row['a']} less {row['b']} is {row['effect']:+.2g} sd {limits_of(row)}"
    tasks = f"{row['tasks']} task{'s' * (row['tasks'] > 1)}"
    known = in_family(row["p"], row["p_holm"], pairs)
    text += f" on {tasks} ({row['runs']} runs, {known})"
    if row["why"] == MANY:
        text += f": {OPEN[MANY]}"
    limits = (float(row["further_low"]), float(row["further_high"]))
    if math.isfinite(limits[0]):
        text += f"; {further_tasks(row['further'], *limits, margin)}"
    return f"{text}."


def limits_of(row: Mapping[Any, Any]) -> str:
    """The interval of a pair in brackets, or that of the pair alone, or why there is none."""
    write = "{:.2g}".format
    low, high = float(row["low"]), float(row["high"])
    if math.isfinite(low):
        return brackets(low, high, write)
    low, high = float(row["alone_low"]), float(row["alone_high"])
    if math.isfinite(low):
        alone = brackets(low, high, write)
        return f"(alone {alone}; none at the level that all pairs ask for)"
    return "(too few runs for an interval)" if row["why"] == FEW else f"({NO_SPREAD})"
