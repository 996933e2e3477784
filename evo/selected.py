"""What a selection found, and how outcomes become the rewards that it goes by."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from evo.log import Log
from evo.policies.base import Bools, Floats, Ints
from evo.race import ENDS, End, Races, Standing
from evo.records import Evaluation
from evo.selectors import Terms

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True)
class Rewards:
    """Raw outcomes as the rewards of a selection.

    Attributes:
        values: Of the outcomes' shape, all within the bounds.
        failed: Likewise, which are failures and count at the failures' value.
        clipped: Likewise, which lay outside the bounds and count as the nearer of them.
    """

    values: Floats
    failed: Bools
    clipped: Bools


def rewards_of(outcomes: Floats, terms: Terms, failure_value: float | None = None) -> Rewards:
    """Turn outcomes into rewards: NaN is a failure, what lies outside the bounds is clipped.

    Args:
        outcomes: Any shape.
        terms: States the bounds.
        failure_value: What a failure counts, within the bounds; None: the lower one.

    Raises:
        ValueError: The failures' value lies outside the bounds.
    """
    value = terms.low if failure_value is None else failure_value
    if not terms.low <= value <= terms.high:
        raise ValueError(
            f"failure_value: expected a reward within the bounds [{terms.low}, {terms.high}], "
            f"got {failure_value!r}"
        )
    failed = np.isnan(outcomes)
    values = np.where(failed, value, np.clip(outcomes, terms.low, terms.high))
    return Rewards(values, failed, ~failed & (values != outcomes))


@dataclass(frozen=True, kw_only=True)
class Selection:
    """What a selection found. Arrays are (configurations,) unless said otherwise.

    Attributes:
        winner: Place of the winning configuration; None if none is left.
        survivors: Places of those sampled and not retired, best mean first.
        end: Why it ended, see `End`.
        labels: Name of each configuration.
        mean: Mean reward; NaN before the first sample.
        lower: Lower end of its interval.
        upper: Upper end.
        samples: How many were taken.
        failures: How many of them failed and count at the failures' value.
        clipped: How many lay outside the bounds and count as the nearer of them.
        spent: By unit, what the samples cost.
        selector: Name of the selector.
        terms: What it was held to; `terms.size` is how many samples brute force takes of each.
        rounds: Where the race stood after each round; arrays of (1, configurations).
        outcomes: (configurations, size), as they came: NaN for failures and what was not sampled.
        shuffled: (shuffles,), samples in all under other orders of the seeds, where asked for.
        shuffled_winner: (shuffles,), who won there; -1 for none.
    """

    winner: int | None
    survivors: tuple[int, ...]
    end: End
    labels: tuple[str, ...]
    mean: Floats
    lower: Floats
    upper: Floats
    samples: Ints
    failures: Ints
    clipped: Ints
    spent: dict[str, Floats]
    selector: str
    terms: Terms
    rounds: tuple[Standing, ...]
    outcomes: Floats
    shuffled: Ints
    shuffled_winner: Ints

    def __repr__(self) -> str:
        total, most = int(self.samples.sum()), self.samples.size * self.terms.size
        who = "none" if self.winner is None else self.labels[self.winner]
        sure = f"{self.end}, {self.terms.interval} at delta {self.terms.delta:g}"
        rest = "".join(
            f", {int(each.sum())} {name}"
            for name, each in (("failed", self.failures), ("clipped", self.clipped))
            if each.any()
        )
        return (
            f"<Selection by {self.selector}: {who} ({sure}; {len(self.survivors)} of "
            f"{len(self.labels)} left; {total} of {most} samples{rest})>"
        )

    def frame(self) -> pd.DataFrame:
        """One row per configuration, survivors first, by mean."""
        import pandas as pd

        place = [*self.survivors, *(k for k in self._by_mean() if k not in self.survivors)]
        frame = pd.DataFrame(
            {
                "configuration": self.labels,
                "survives": np.isin(np.arange(len(self.labels)), self.survivors),
                "mean": self.mean,
                "lower": self.lower,
                "upper": self.upper,
                "samples": self.samples,
                "failures": self.failures,
                "clipped": self.clipped,
                **{unit: cost for unit, cost in self.spent.items() if unit != "samples"},
            }
        )
        return frame.loc[place]

    def _by_mean(self) -> list[int]:
        order = np.argsort(-np.nan_to_num(self.mean, nan=-np.inf), kind="stable")
        return [int(k) for k in order]


def selection_of(
    races: Races,
    rounds: Sequence[Standing],
    outcomes: Floats,
    rewards: Rewards,
    *,
    more: Sequence[Races] = (),
    **rest: Any,
) -> Selection:
    """The selection that replicate 0 of a race makes.

    Args:
        races: How the races ended; replicates after the first are other orders.
        rounds: Where they stood after each round; the first replicate is kept.
        outcomes: (configurations, size), NaN for failures.
        rewards: What became of them, of the same shape.
        more: Races of further orders.
        **rest: labels, selector and terms.
    """
    counts = races.standing.count
    taken = np.arange(outcomes.shape[1]) < counts[0][:, None]
    winner = int(races.winner[0])
    mean = races.standing.mean[0]
    left = np.flatnonzero(races.survivors[0])
    kept = [
        Standing(*(np.array(value[:1]) for value in vars(each).values()))
        for each in rounds
        if each.count[0].sum() <= counts[0].sum()
    ]
    last = sum(each.count[0].sum() < counts[0].sum() for each in kept) + 1
    return Selection(
        winner=None if winner < 0 else winner,
        survivors=tuple(left[np.lexsort((left, left != winner, -mean[left]))].tolist()),
        end=ENDS[int(races.end[0])],
        mean=mean,
        lower=races.standing.lower[0],
        upper=races.standing.upper[0],
        samples=counts[0],
        failures=(rewards.failed & taken).sum(axis=1),
        clipped=(rewards.clipped & taken).sum(axis=1),
        spent={unit: cost[0] for unit, cost in races.spent.items()},
        rounds=tuple(kept[:last]),
        outcomes=np.where(taken, outcomes, np.nan),
        shuffled=np.concatenate([each.standing.count.sum(axis=1) for each in (races, *more)])[1:],
        shuffled_winner=np.concatenate([each.winner for each in (races, *more)])[1:],
        **rest,
    )


def instance_matrix(sources: Sequence[Evaluation | Log]) -> Floats:
    """Scores on the instances of a data set, as `replay.select` takes them: a sample per problem.

    Args:
        sources: Evaluations of programs or texts on the same data set, or logs, of which the best
            program counts.

    Returns:
        (sources, instances), in the order of the first source's instances; NaN where an instance
        has no score.

    Raises:
        ValueError: A source has no instances, or others than the first.
    """
    found = [each.best.evaluation if isinstance(each, Log) else each for each in sources]
    ids = [instance.id for instance in found[0].instances] if found else []
    rows = []
    for place, evaluation in enumerate(found):
        scores = {each.id: each.score for each in evaluation.instances}
        if not scores or scores.keys() != set(ids):
            raise ValueError(
                f"source {place}: expected scores on the {len(ids)} instances of the first, got "
                f"{len(scores)}"
            )
        rows.append([np.nan if scores[id_] is None else scores[id_] for id_ in ids])
    return np.array(rows, dtype=np.float64).reshape(len(rows), len(ids))
