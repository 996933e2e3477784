"""Which runs a figure of a report counts, and how far their logs go."""

from __future__ import annotations

import numpy as np
import pandas as pd

from evo.warning import and_more
from replay.logs.tables import Tables
from replay.statistics.intervals import FloatArray

MOST_NAMED = 5
"""Logs that a note names."""


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


def unended_note(runs: pd.DataFrame) -> str:
    """Says which runs of `load_tables` have logs without an end; empty if all have one."""
    open_ends = runs[runs["ending"] != ""]
    if open_ends.empty:
        return ""
    named = [
        f"{source} (whole up to generation {T}, {why})"
        for source, T, why in open_ends[["source", "generations", "ending"]].itertuples(index=False)
    ]
    return (
        f"{len(open_ends)} of {len(runs)} logs did not end: {and_more(named, MOST_NAMED)}; "
        "what was cut or killed, or is being written, counts as far as it is whole; `evo resume` "
        "goes on with a run that was stopped, or its log can be left out"
    )


def noise_note(runs: pd.DataFrame) -> str:
    """Says of runs of `load_tables` that their evaluations are noisy; empty if none is known so."""
    noisy = runs[runs["noise"] != ""]
    if noisy.empty:
        return ""
    which = "" if len(noisy) == len(runs) else f"in {len(noisy)} of {len(runs)} runs "
    return which + str(noisy["noise"].iloc[0])
