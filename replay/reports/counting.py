"""Which runs a figure of a report counts."""

from __future__ import annotations

import numpy as np
import pandas as pd

from replay.logs.tables import Tables
from replay.statistics.intervals import FloatArray


def begun(tables: Tables) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Runs with a complete generation, and their rows; all, where there is no such run."""
    runs, generations = tables.runs, tables.generations
    left = runs[runs["generations"] > 0]
    if left.empty:
        return runs, generations
    return left, generations[generations["run"].isin(left["run"])]


def by_root(runs: pd.DataFrame, values: pd.Series[float]) -> FloatArray:
    """One value of each run; of its forks and rescored logs their mean, as they are no other runs.

    Others stand for themselves: runs of another tool may have one header.
    """
    related = (runs["forked_from"] != "") | runs["rescored"]
    forked = runs["root"].isin(runs.loc[related, "root"])
    apart = runs["root"].where(forked, "run " + runs["run"])
    roots = apart.set_axis(runs["run"]).loc[values.index]
    means = values.groupby(roots, sort=False).mean()
    return np.asarray(means, dtype=np.float64)
