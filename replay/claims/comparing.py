"""`replay.compare`: two vectors of runs, or the configurations of a frame over its tasks."""

from __future__ import annotations

from typing import Any, overload

import pandas as pd
from numpy.typing import ArrayLike

from replay.claims.task_comparison import TaskComparison
from replay.claims.tasks import compare_tasks
from replay.logs.given import check_loaded, check_runs
from replay.statistics.comparison import MeanDifference
from replay.statistics.comparison import compare as compare_vectors


@overload
def compare(
    a: pd.DataFrame, b: None = None, *, by: str = "search", **settings: Any
) -> TaskComparison: ...


@overload
def compare(
    a: ArrayLike, b: ArrayLike, *, paired: bool = False, level: float = 0.95
) -> MeanDifference: ...


def compare(a: Any, b: Any = None, **settings: Any) -> TaskComparison | MeanDifference:
    """Compares two groups of runs, or configurations over several tasks.

    Args:
        a: Rows of `replay.load`, of one or more tasks; or one number per run of the baseline, (n,).
        b: Nothing beside a frame; else one number per run of what is compared with a, (m,).
        **settings: Of a frame those of `replay.claims.tasks.compare_tasks`: by ("search" by
            default), measure, calls, target, best, margin, level, seed. Of vectors those of
            `replay.statistics.comparison.compare`: paired, level.

    Returns:
        Of a frame a `TaskComparison`: `.table`, `.verdicts` and `.figure()`. Of vectors a
        `MeanDifference`: the difference of means and the probability of improvement.

    Raises:
        ValueError: As of these functions; a frame beside a second group.

    Example:
        >>> found = replay.compare([1.0, 2.0, 3.0, 2.0, 1.0], [2.0, 3.0, 4.0, 3.0, 2.0])
        >>> round(found.difference.value, 6)
        1.0
    """
    check_loaded("compare", a, "replay.load", numbers=True)
    if isinstance(a, pd.DataFrame):
        if b is not None:
            raise ValueError(
                "expected a frame alone, whose column `by` tells the configurations apart, or two "
                f"vectors; got a frame and {type(b).__name__}"
            )
        check_runs(a)
        return compare_tasks(a, **{"by": "search", **settings})
    return compare_vectors(a, b, **settings)
