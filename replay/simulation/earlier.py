"""Earlier runs from which policies learn, and never those on which they are judged."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from evo.logs.log import Log
from evo.policies.base import Floats, Ints
from replay.logs.columns import FAMILY
from replay.logs.frames import one_family
from replay.logs.tables import load
from replay.simulation.arms import Logged, pool_of
from replay.statistics.numbers import as_numbers

OTHERS = "others"
"""Each replicate learns from the runs that are not its arms."""

FEWEST_OTHERS = 20
"""Runs that must be left to learn from where a replicate learns from the others."""

Earlier = (
    str
    | os.PathLike[str]
    | Log
    | Sequence[str | os.PathLike[str] | Log]
    | pd.DataFrame
    | npt.NDArray[np.float64]
)
"""Rows of `load`, logs as it takes them, a matrix (runs, generations + 1), or "others"."""


def earlier_runs(earlier: Earlier | None, judged: object) -> Floats | str | None:
    """Returns the best fitness of earlier runs, (runs, generations + 1), or "others".

    Args:
        earlier: As of `replay.simulate`.
        judged: The runs that are replayed: a frame, or a matrix, whose runs are unknown.

    Raises:
        ValueError: Earlier runs of several tasks, models or N, or of others than the judged ones;
            or a judged run is among them.
    """
    if earlier is None or (isinstance(earlier, str) and earlier == OTHERS):
        return earlier
    if isinstance(earlier, np.ndarray) or _is_matrix(earlier):
        return as_numbers("earlier", earlier)
    if isinstance(earlier, pd.DataFrame):
        frame = earlier
    else:
        frame = load(*([earlier] if isinstance(earlier, str | os.PathLike | Log) else earlier))
    if isinstance(judged, pd.DataFrame):
        refuse_judged(frame, judged)
    return pool_of(frame, "policies learn")[0]


def _is_matrix(earlier: Any) -> bool:
    """Whether a list holds rows of numbers."""
    return (
        isinstance(earlier, list | tuple)
        and bool(earlier)
        and not isinstance(earlier[0], str | os.PathLike | Log)
    )


def refuse_judged(earlier: pd.DataFrame, judged: pd.DataFrame) -> None:
    """Raises ValueError if a run is in both frames, or they differ in a setting of FAMILY."""
    both = [name for name in FAMILY if name in earlier and name in judged]
    one_family(pd.concat([earlier[both], judged[both]]), "policies learn from earlier runs")
    key = "root" if "root" in earlier and "root" in judged else "run"
    if twice := sorted(set(earlier[key]) & set(judged[key])):
        names = sorted(map(str, earlier.loc[earlier[key].isin(twice), "run"].unique()))
        raise ValueError(
            f"earlier: expected runs that are not judged, got {', '.join(names[:3])}"
            f"{' ...' if len(names) > 3 else ''} in both; split the runs, or give "
            'earlier="others", which leaves out the arms of each replicate'
        )


def others_of(logged: Logged, rows: Ints) -> Floats:
    """Fitness of the runs that are not a replicate's arms, (replicates, runs, generations + 1)."""
    runs, arms = len(logged.fitness), rows.shape[1]
    if runs - arms < FEWEST_OTHERS:
        raise ValueError(
            f'earlier="others" needs at least {FEWEST_OTHERS} runs besides the {arms} arms, got '
            f"{runs} runs in all; give earlier runs, or fewer arms"
        )
    chosen = np.zeros((len(rows), runs), dtype=bool)
    np.put_along_axis(chosen, rows, values=True, axis=1)
    others = chosen.argsort(axis=1, kind="stable")[:, : runs - arms]
    return np.asarray(logged.fitness[others])
