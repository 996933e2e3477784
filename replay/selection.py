"""Post-hoc selection: which configuration wins over logged seeds, and how many were needed."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import numpy.typing as npt

from evo.policies import Draws
from evo.policies.base import Bools, Floats, Ints
from evo.selectors import Kind, SelectorClass, Terms, find_selector, neighbours, selector_name
from evo.selectors.race import (
    LoggedSamples,
    Races,
    Selection,
    Standing,
    race,
    rewards_of,
    selection_of,
)

if TYPE_CHECKING:
    import pandas as pd

Missing = Literal["drop", "stop"]

MEASURES = frozenset(
    {"run", "generation", "generation_best", "best_fitness", "fitness", "initial_fitness", "status"}
    | {"n_calls", "n_ok", "n_attempts", "n_without_usage", "flops", "dollars", "seconds"}
    | {"prompt_tokens", "cached_tokens", "completion_tokens", "tokens", "call_seconds"}
    | {"evaluation_seconds", "source", "log", "path", "hash", "id"}
)
"""Columns that describe how a run went, and so tell no configurations apart."""

_PAIRS = 2_000_000
"""Pairs of configurations, over replicates, that are raced at once; only memory depends on it."""


def select(
    data: pd.DataFrame | npt.ArrayLike,
    *,
    selector: str | SelectorClass = "arm_elimination",
    parameters: Mapping[str, Any] | None = None,
    delta: float = 0.05,
    batch: int = 1,
    bounds: tuple[float, float] | None = None,
    failure_value: float | None = None,
    interval: Kind = "anytime",
    c: float = 1.0,
    budget: Mapping[str, float] | None = None,
    fields: Sequence[str] | None = None,
    value: str | None = None,
    sample: str = "seed",
    orders: Mapping[str, Sequence[Any]] | None = None,
    missing: Missing = "drop",
    shuffles: int = 0,
    seed: int = 0,
) -> Selection:
    """Plays a selection over samples that were logged: who wins, and after how many samples.

    Sample i of every configuration is paired: the same seed, or the same problem of a data set.
    With `shuffles`, the same is done under other orders of the samples, since what suffices
    depends on which came first.

    Args:
        data: (configurations, samples), NaN for a failure; or a frame, such as `replay.load` makes,
            in which a run counts with its last generation and a missing value is a failure; of a
            sweep's (`replay.load_sweep`) the runs that are completed or failed count.
        selector: Name, or a callable (shape, terms, *, rng) -> selector.
        parameters: Of the selector, such as {"threshold": 0.9} or {"epsilon": 0.01}.
        delta: Probability with which the winner may be wrong.
        batch: Samples of a configuration in a round, at least.
        bounds: Least and largest reward there is; what lies outside is clipped and counted. None:
            [0, 1], in which most outcomes then have to lie.
        failure_value: What a failure counts; None: the lower bound.
        interval: `anytime`, or `compat` for mean +- c * SE, which is wrong far more often.
        c: Standard errors, for `compat`.
        budget: Limits by unit: samples, and calls where a frame states them.
        fields: Columns that name a configuration; None: all that vary and are no measure.
        value: Column of the reward; None: best_fitness, else fitness.
        sample: Column that pairs samples.
        orders: Of the values of a field, for `hill_climbing`; otherwise numbers go by size.
        missing: What to do about seeds that some configurations lack. `drop`: leave them out and
            warn. `stop`: end the race where one is asked for (logs of live selections).
        shuffles: Other orders of the samples to try.
        seed: Of the selector and the shuffles.

    Raises:
        ValueError: An argument out of range, a frame without what it needs, or no common samples.
    """
    outcomes, sizes, costs, configurations = _samples(data, fields, value, sample, missing)
    low, high = (0.0, 1.0) if bounds is None else bounds
    terms = Terms(
        size=outcomes.shape[1],
        batch=batch,
        delta=delta,
        low=float(low),
        high=float(high),
        interval=interval,
        c=c,
        neighbours=neighbours(configurations, orders) if configurations else None,
    )
    if shuffles and (sizes < outcomes.shape[1]).any():
        raise ValueError("shuffles: some configurations lack samples, leave them out (missing)")
    build = find_selector(selector, **(parameters or {}))
    rewards = rewards_of(outcomes, terms, failure_value, stated=bounds is not None)
    shuffler = np.random.default_rng([seed, 1])
    size, count = terms.size, 1 + shuffles
    ranks = np.stack([np.arange(size), *(shuffler.permutation(size) for _ in range(shuffles))])
    piece = max(1, _PAIRS // len(outcomes) ** 2)
    parts: list[Races] = []
    rounds: list[Standing] = []
    for first in range(0, count, piece):
        ordered = np.moveaxis(rewards[:, ranks[first : first + piece]], 1, 0)
        chooser = build(ordered.shape[:2], terms, rng=Draws(seed + first, len(ordered)))
        races = race(
            chooser,
            LoggedSamples(ordered, sizes=sizes, costs=costs, budget=budget),
            watcher=None if first else rounds.append,
        )
        parts.append(races)
    return selection_of(
        parts[0],
        rounds,
        outcomes,
        terms,
        labels=_labels(configurations, len(outcomes)),
        selector=selector_name(build),
        more=parts[1:],
    )


def _labels(configurations: Sequence[Mapping[str, Any]], count: int) -> tuple[str, ...]:
    import pandas as pd

    if not configurations:
        return tuple(f"configuration {k}" for k in range(count))
    return tuple(
        ", ".join(f"{k}={v}" for k, v in each.items() if not pd.isna(v)) for each in configurations
    )


def _samples(
    data: pd.DataFrame | npt.ArrayLike,
    fields: Sequence[str] | None,
    value: str | None,
    sample: str,
    missing: Missing,
) -> tuple[Floats, Ints, dict[str, Floats], list[dict[str, Any]]]:
    """Outcomes (configurations, samples), samples of each, costs, and the configurations' fields.

    The costs of a matrix are unknown, and its configurations have no fields.
    """
    import pandas as pd

    if missing not in ("drop", "stop"):
        raise ValueError(f"expected missing to be 'drop' or 'stop', got {missing!r}")
    if isinstance(data, pd.DataFrame):
        return _of_frame(data, fields, value, sample, missing)
    matrix = np.asarray(data, dtype=np.float64)
    if matrix.ndim != 2 or 0 in matrix.shape:
        raise ValueError(
            f"expected rewards of shape (configurations, samples), got shape {matrix.shape!r}"
        )
    return matrix, np.full(len(matrix), matrix.shape[1]), {}, []


def _of_frame(
    frame: pd.DataFrame,
    fields: Sequence[str] | None,
    value: str | None,
    sample: str,
    missing: Missing,
) -> tuple[Floats, Ints, dict[str, Floats], list[dict[str, Any]]]:
    """The same of a frame."""
    value = value or ("best_fitness" if "best_fitness" in frame else "fitness")
    if fields is None and "fields" in frame.attrs:  # a sweep's
        frame = frame[frame["status"].isin(["completed", "failed"])]
        fields = [n for n in frame.attrs["fields"] if frame[n].nunique(dropna=False) > 1]
    if fields is None:
        others = [n for n in map(str, frame) if n not in MEASURES and n not in (value, sample)]
        fields = [n for n in others if frame[n].nunique(dropna=False) > 1]
    needed = [sample, value, *fields]
    if absent := [name for name in needed if name not in frame]:
        raise ValueError(
            f"expected a column {absent[0]!r}, got columns {', '.join(map(str, frame))}"
        )
    if not fields:
        raise ValueError("fields: no column tells configurations apart; name some")
    keys = [*fields, sample]
    last = frame = frame.reset_index(drop=True)
    if "generation" in frame:
        ordered = frame.sort_values("generation", kind="stable")
        last = ordered.groupby(keys, dropna=False).tail(1).sort_index()
    if last.duplicated(keys).any():
        twice = last.loc[last.duplicated(keys), keys].iloc[0].to_dict()
        raise ValueError(f"two rows of {twice}; name all fields that differ, got {list(fields)}")
    place = last.groupby(list(fields), sort=False, dropna=False).ngroup().to_numpy()
    seeds, column = np.unique(last[sample].to_numpy(), return_inverse=True)
    distinct = last[list(fields)].drop_duplicates().to_dict("records")
    configurations = [{str(name): field for name, field in each.items()} for each in distinct]
    shape = (len(configurations), len(seeds))
    outcomes, present = np.full(shape, np.nan), np.zeros(shape, dtype=bool)
    outcomes[place, column] = last[value].to_numpy(dtype=np.float64)
    present[place, column] = True
    costs: dict[str, Floats] = {}
    if "n_calls" in frame:
        total = frame.groupby(keys, dropna=False)["n_calls"].sum(min_count=1)
        calls = np.full(shape, np.nan)
        calls[place, column] = last.join(total.rename("calls_"), on=keys)["calls_"].to_numpy()
        costs["calls"] = calls
    kept, sizes = _common(present, missing)
    costs = {unit: cost[:, kept] for unit, cost in costs.items()}
    return outcomes[:, kept], sizes, costs, configurations


def _common(present: Bools, missing: Missing) -> tuple[Bools, Ints]:
    """Which samples are used, and how many each configuration has of them."""
    common: Bools = np.asarray(present.all(axis=0))
    if missing == "stop":
        sizes: Ints = np.cumprod(present, axis=1).sum(axis=1)
        common = np.ones(present.shape[1], dtype=bool)
    else:
        sizes = np.full(len(present), common.sum())
    if (sizes == 0).any():
        raise ValueError(
            "no sample is common to all configurations; leave out those that have few, or pair by "
            "another column (sample)"
        )
    if not common.all():
        warnings.warn(
            f"{int((~common).sum())} of {common.size} samples are not of all configurations and "
            f"are left out",
            stacklevel=5,
        )
    return common, sizes
