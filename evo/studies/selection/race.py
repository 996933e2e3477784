"""The one loop of selection: a selector samples configurations within a budget, live or logged."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Literal, Protocol, Required, TypedDict, Unpack

import numpy as np

from evo.logs.inputs import as_number
from evo.policies.base import Bools, Floats, Ints
from evo.studies.selection.base import BaseSelector, Terms
from evo.studies.selection.losses import RULES, Losses

if TYPE_CHECKING:
    import pandas as pd

End = Literal["certain", "exhausted", "budget", "stopped"]
"""Why a race ended: what the selector is after holds at 1 - delta; it has no further samples to
ask for; what was spent reached the budget; a stop was asked for."""

ENDS: tuple[End, ...] = ("certain", "exhausted", "budget")


@dataclass(frozen=True)
class Taken:
    """Samples of one round; arrays are (replicates, configurations) unless stated otherwise."""

    number: Ints  # how many there are, fewer than asked for where the budget ended
    values: Floats  # (replicates, configurations, width); the first `number` count
    costs: Mapping[str, Floats]  # by unit; what two configurations share counts once
    prices: Floats  # what each would cost by itself; breaks ties


class Samples(Protocol):
    """The source of a selector's samples: live runs (one replicate) or logged ones (many).

    `shape` is (replicates, configurations), `sizes` (configurations,) how many there are of each.
    """

    shape: tuple[int, int]
    sizes: Ints

    def take(self, first: Ints, number: Ints) -> Taken:
        """The samples first ... first + number - 1 of each; both (replicates, configurations).

        They are served in order, all configurations' first one, then all their second: each as
        long as what is settled before it is below every limit.
        """


@dataclass(frozen=True)
class Standing:
    """State of a race after a round, arrays (replicates, configurations); see `BaseSelector`."""

    count: Ints
    mean: Floats
    lower: Floats
    upper: Floats
    alive: Bools


@dataclass(frozen=True)
class Races:
    """Results of the races of all replicates."""

    winner: Ints  # (replicates,), the winning configuration; -1 if none is left
    standing: Standing  # after the last round
    spent: dict[str, Floats]  # by unit, `samples` among them, (replicates, configurations)
    end: Ints  # (replicates,), place in `ENDS`
    rounds: int  # of the longest race
    losses: Losses

    @property
    def survivors(self) -> Bools:
        """(replicates, configurations), not retired, and sampled or the winner."""
        won: Bools = np.arange(self.standing.alive.shape[1]) == self.winner[:, None]
        return np.asarray(self.standing.alive & ((self.standing.count > 0) | won))


def race(
    selector: BaseSelector,
    samples: Samples,
    watcher: Callable[[Standing], None] | None = None,
) -> Races:
    """Let a selector sample configurations until it is certain, out of samples or out of budget."""
    spent: dict[str, Floats] = {"samples": np.zeros(samples.shape)}
    broke = np.zeros(samples.shape[0], dtype=bool)
    over = broke.copy()
    rounds = 0
    while (wanted := np.where(over[:, None], 0, selector.ask())).any():
        there = np.clip(samples.sizes - selector.count, 0, wanted)
        taken = samples.take(selector.count, there)
        for unit, cost in {"samples": taken.number.astype(float), **taken.costs}.items():
            spent[unit] = spent.get(unit, 0.0) + cost
        over |= (there < wanted).any(axis=1)
        if taken.number.any():
            selector.tell(taken.number, taken.values, taken.prices)
            rounds += 1
            if watcher:
                watcher(_standing(selector))
        broke |= ~selector.certain & (taken.number < there).any(axis=1)
        over |= broke
    return Races(
        winner=selector.winner(),
        standing=_standing(selector),
        spent=spent,
        end=np.where(selector.certain, 0, np.where(broke, 2, 1)),
        rounds=rounds,
        losses=selector.losses,
    )


def _standing(selector: BaseSelector) -> Standing:
    return Standing(
        selector.count.copy(), selector.mean, selector.lower, selector.upper, selector.alive.copy()
    )


class LoggedSamples:
    """Rows of logged rewards as the samples of many replicates; see `Samples`.

    The rewards are (replicates, configurations, samples), or without the first for all replicates;
    `sizes` holds the number of samples of each configuration (None: as many as columns),
    `costs` go by unit, (configurations, samples) or what is broadcast to it.
    """

    def __init__(
        self,
        rewards: Floats,
        *,
        sizes: Ints | None = None,
        costs: Mapping[str, Floats] | None = None,
    ) -> None:
        self._rewards = rewards if rewards.ndim == 3 else rewards[None]
        replicates, arms, size = self._rewards.shape
        self.shape = (replicates, arms)
        self.sizes = np.full(arms, size) if sizes is None else sizes
        counted = costs or {"samples": np.ones(1)}
        self._costs = {unit: np.broadcast_to(cost, (arms, size)) for unit, cost in counted.items()}

    def take(self, first: Ints, number: Ints) -> Taken:
        """The next samples of each row."""
        step = np.arange(int(number.max()))
        at = np.minimum(first[:, :, None] + step, self._rewards.shape[2] - 1)
        given = step < number[:, :, None]
        values = np.where(given, np.take_along_axis(self._rewards, at, axis=2), 0.0)
        row = np.arange(self.shape[1])[:, None]
        costs = {
            unit: np.where(given, cost[row, at], 0.0).sum(axis=2)
            for unit, cost in self._costs.items()
        }
        return Taken(number, values, costs, next(iter(costs.values())))


def rewards_of(
    outcomes: Floats, terms: Terms, failure_value: float | None = None, *, stated: bool = True
) -> Floats:
    """Turn outcomes of any shape into rewards: NaN is a failure, the rest is clipped to the bounds.

    A failure counts as its value, within the bounds; None: the lower one. Where nobody `stated` the
    bounds, most outcomes have to lie within, else it is a ValueError.
    """
    low, high = terms.low, terms.high
    value = low if failure_value is None else as_number("failure_value", failure_value)
    if not low <= value <= high:
        raise ValueError(
            f"failure_value: expected a reward within the bounds [{low}, {high}], got "
            f"{failure_value!r}"
        )
    slack = (high - low) / 4  # records lie a little above 1, the best published
    beyond = outcomes[(outcomes < low - slack) | (outcomes > high + slack)]
    if not stated and beyond.size > (~np.isnan(outcomes)).sum() / 2:
        raise ValueError(
            f"bounds: outcomes are taken to lie in [{low}, {high}], but most do not, such as "
            f"{float(beyond[0])!r}; give bounds=(low, high) (--low, --high), the least and the "
            "largest there is"
        )
    rewards: Floats = np.where(np.isnan(outcomes), value, np.clip(outcomes, low, high))
    return rewards


@dataclass(frozen=True, kw_only=True)
class Selection:
    """Result of a selection. Arrays are (configurations,) unless stated otherwise.

    Attributes:
        winner: Place of the winning configuration, or of the one that leads where it is not
            `decided`; None if none is left.
        survivors: Places of those sampled and not retired, best mean first.
        end: Why it ended, see `End`.
        labels: Name of each configuration.
        mean: Mean reward; NaN before the first sample.
        lower: Lower end of its interval.
        upper: Upper end.
        samples: How many were taken.
        failures: How many of them failed and count at the failures' value.
        clipped: How many lay outside the bounds and count as the nearer of them.
        spent: By unit, what the samples cost; what two configurations share counts once.
        selector: Name of the selector.
        terms: What it was held to; `terms.size` is how many samples brute force takes of each.
        rounds: Where the race stood after each round; arrays of (1, configurations).
        outcomes: (configurations, size), as they came: NaN for failures and what was not sampled.
        losses: By which comparison each was retired, arrays (1, configurations); see `loss`.
        shuffled: (shuffles,), samples in all under other orders of the seeds, where asked for.
        shuffled_winner: (shuffles,), who won there; -1 for none.
        shuffled_certain: (shuffles,), whether that was certain, or the samples ended before.
        configurations: The fields of each configuration, of a live selection, as all below.
        logs: Of each configuration, its logs by seed, or the one log of its problems.
        path: Folder of the logs.

    Example:
        >>> def agent(row, words):
        ...     return float(len(row["text"].split()) >= words)
        >>> rows = [{"text": "one two three"}] * 200
        >>> chosen = evo.select_best(
        ...     {"words": [1, 5]}, evaluate=agent, data=rows, log_dir=new(""), progress=False
        ... )
        >>> chosen.mean.tolist()
        [1.0, 0.0]
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
    losses: Losses
    shuffled: Ints
    shuffled_winner: Ints
    shuffled_certain: Bools
    configurations: tuple[Mapping[str, object], ...] = ()
    logs: tuple[tuple[object, ...], ...] = ()
    path: Path | None = None

    def __repr__(self) -> str:
        total, most = int(self.samples.sum()), self.samples.size * self.terms.size
        who = "none" if self.winner is None else self.labels[self.winner]
        who += "" if self.decided else " leads, not decided"
        who += ", by its mean alone" * self.by_mean
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

    @property
    def decided(self) -> bool:
        """Whether the winner was found: by the evidence, or by all samples that there are."""
        return self.end in ("certain", "exhausted")

    @property
    def by_mean(self) -> bool:
        """Whether all samples are made and others are left, so that the mean alone decides."""
        return self.end == "exhausted" and len(self.survivors) > 1

    @property
    def decisive(self) -> float:
        """The p of a comparison by bets at which a configuration is retired."""
        return self.terms.delta / max(1, len(self.labels) - 1)

    def loss(self, place: int) -> str:
        """By which comparison a configuration was retired, in words; empty: it was not."""
        rule, rival, shared, p = (each[0, place] for each in vars(self.losses).values())
        ahead = f"{self.labels[rival]} on {shared} shared samples"
        c = self.terms.c
        return {
            "": "",
            "bets": f"lost to {ahead}, p = {p:.2g}",
            "intervals": f"lost to {ahead}, by intervals of the mean ± {c:g} SE",
            "mean": f"behind {ahead}, by the mean alone",
            "threshold": f"below the threshold: its interval ends at {self.upper[place]:.4g} "
            f"(n = {shared})",
        }[RULES[rule]]

    def frame(self) -> pd.DataFrame:
        """One row per configuration, survivors first, by mean.

        A retired one states to which it lost (`lost_to`), on how many samples that both have
        (`shared`) and, where bets on their differences decided, with what `p`.
        """
        import pandas as pd

        by_mean = np.argsort(-np.nan_to_num(self.mean, nan=-np.inf), kind="stable").tolist()
        place = [*self.survivors, *(k for k in by_mean if k not in self.survivors)]
        columns = ("mean", "lower", "upper", "samples", "failures", "clipped")
        frame = pd.DataFrame(
            {
                "configuration": self.labels,
                "survives": np.isin(np.arange(len(self.labels)), self.survivors),
                **{name: getattr(self, name) for name in columns},
                "lost_to": ["" if k < 0 else self.labels[k] for k in self.losses.rival[0]],
                "shared": self.losses.shared[0],
                "p": self.losses.p[0],
                **{unit: cost for unit, cost in self.spent.items() if unit != "samples"},
            }
        )
        return frame.loc[place]


class About(TypedDict, total=False):
    """The fields of a `Selection` that describe its configurations."""

    labels: Required[tuple[str, ...]]
    selector: Required[str]
    configurations: tuple[Mapping[str, object], ...]
    logs: tuple[tuple[object, ...], ...]
    path: Path | None


def selection_of(
    races: Races,
    rounds: Sequence[Standing],
    outcomes: Floats,
    terms: Terms,
    *,
    more: Sequence[Races] = (),
    **rest: Unpack[About],
) -> Selection:
    """The selection that replicate 0 of a race makes; all other replicates are other orders."""
    counts, mean, all_ = races.standing.count[0], races.standing.mean[0], (races, *more)
    taken = np.arange(outcomes.shape[1]) < counts[:, None]
    winner, left = int(races.winner[0]), np.flatnonzero(races.survivors[0])
    needed = sum(each.count[0].sum() < counts.sum() for each in rounds) + 1
    return Selection(
        winner=None if winner < 0 else winner,
        survivors=tuple(left[np.lexsort((left, left != winner, -mean[left]))].tolist()),
        end=ENDS[int(races.end[0])],
        mean=mean,
        lower=races.standing.lower[0],
        upper=races.standing.upper[0],
        samples=counts,
        failures=(np.isnan(outcomes) & taken).sum(axis=1),
        clipped=(((outcomes < terms.low) | (outcomes > terms.high)) & taken).sum(axis=1),
        spent={unit: cost[0] for unit, cost in races.spent.items()},
        rounds=tuple(Standing(*(v[:1].copy() for v in vars(r).values())) for r in rounds[:needed]),
        outcomes=np.where(taken, outcomes, np.nan),
        losses=races.losses.at(0),
        shuffled=np.concatenate([each.standing.count.sum(axis=1) for each in all_])[1:],
        shuffled_winner=np.concatenate([each.winner for each in all_])[1:],
        shuffled_certain=np.concatenate([each.end for each in all_])[1:] == ENDS.index("certain"),
        terms=terms,
        **rest,
    )
