"""Strategies: which configurations a sweep tries next.

A strategy proposes trials in batches. A batch depends on the seed, on the number of its first
trial and on the results of all trials before it, and on nothing else: not on the order in which
runs end, nor on how often the sweep was interrupted, nor on the scale of fitness.
"""

from __future__ import annotations

import functools
import hashlib
import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import msgspec

from evo.logs.inputs import at_least
from evo.plugins import meant, with_parameters
from evo.studies.sweep.space import Dimension, Space

if TYPE_CHECKING:
    import optuna

TRIALS = 100


@dataclass(frozen=True)
class Trial:
    """A trial whose runs are over."""

    values: Mapping[str, object]
    fitness: float | None  # mean over its seeds of the best; None if a run failed or had none


Batch = list[dict[str, object]]


class RandomTrials:
    """Independent draws, `planned` in all; more trials begin with the same ones."""

    def __init__(self, space: Space, *, seed: int, trials: int | None) -> None:
        self.planned = TRIALS if trials is None else at_least("trials", trials, 1)
        self._space, self._seed = space, seed

    def propose(self, history: Sequence[Trial]) -> Batch:
        """Returns the next batch, given every trial so far; empty once all were proposed."""
        return self._drawn(len(history), self.planned)

    def _drawn(self, first: int, stop: int) -> Batch:
        return [self._space.draw(f"{self._seed}/{trial}") for trial in range(first, stop)]


class GridTrials(RandomTrials):
    """Every combination once, keys sorted."""

    def __init__(self, space: Space, *, seed: int, trials: int | None) -> None:
        if trials is not None:
            raise ValueError(
                "trials: a grid, which is the strategy unless another is named, tries every "
                "combination; a number of trials goes with the strategy random, guided or bayesian"
            )
        super().__init__(space, seed=seed, trials=None)
        self._all = space.grid()
        self.planned = len(self._all)

    def propose(self, history: Sequence[Trial]) -> Batch:
        """Returns what is left of the grid, which may have been a smaller one before."""
        tried = {msgspec.json.encode(trial.values) for trial in history}
        return [values for values in self._all if msgspec.json.encode(values) not in tried]


class GuidedTrials(RandomTrials):
    """Some random trials, then one changed field of the best ones, in turn.

    The random ones are a share of `explore_ratio`, at least one; the `top_k` best are changed in
    turn, which is also the size of a batch.
    """

    def __init__(
        self,
        space: Space,
        *,
        seed: int,
        trials: int | None,
        explore_ratio: float = 0.3,
        top_k: int = 5,
    ) -> None:
        super().__init__(space, seed=seed, trials=trials)
        if not 0 <= explore_ratio <= 1:
            raise ValueError(f"explore_ratio: expected a share from 0 to 1, got {explore_ratio!r}")
        self._explored = max(1, int(self.planned * explore_ratio))
        self._top_k = at_least("top_k", top_k, 1)

    def propose(self, history: Sequence[Trial]) -> Batch:
        """Returns the random trials, then a batch of changed ones."""
        first = len(history)
        if first < self._explored:
            return self._drawn(first, self._explored)
        stop = min(self.planned, first + self._top_k)
        known = [(trial.fitness, trial.values) for trial in history if trial.fitness is not None]
        best = {msgspec.json.encode(v): v for _, v in sorted(known, key=lambda each: -each[0])}
        top = [*best.values()][: self._top_k]
        if not top:
            return self._drawn(first, stop)
        return [
            self._space.perturb(top[(trial - self._explored) % len(top)], f"{self._seed}/{trial}")
            for trial in range(first, stop)
        ]


class OptunaTrials(RandomTrials):
    """Optuna's tree-structured Parzen estimator, made anew for every batch from the results so far.

    So a sweep that was interrupted goes on as it would have. Trials without a fitness count as
    failed ones, which it leaves aside. Those of a `batch` know nothing of each other.
    """

    def __init__(self, space: Space, *, seed: int, trials: int | None, batch: int = 8) -> None:
        _import_optuna()
        super().__init__(space, seed=seed, trials=trials)
        self._batch = at_least("batch", batch, 1)

    def propose(self, history: Sequence[Trial]) -> Batch:
        """Returns the next batch."""
        optuna = _import_optuna()
        first = len(history)
        key = int.from_bytes(hashlib.sha256(f"{self._seed}/{first}".encode()).digest()[:4], "big")
        before = optuna.logging.get_verbosity()
        optuna.logging.set_verbosity(logging.WARNING)  # else it announces every study
        try:
            sampler = optuna.samplers.TPESampler(seed=key)
            study = optuna.create_study(direction="maximize", sampler=sampler)
            study.add_trials([self._finished(trial) for trial in history])
            count = max(0, min(self._batch, self.planned - first))
            asked = (functools.partial(_suggested, study.ask()) for _ in range(count))
            return [self._space.complete(each) for each in asked]
        finally:
            optuna.logging.set_verbosity(before)

    def _finished(self, trial: Trial) -> optuna.trial.FrozenTrial:
        made = _import_optuna().trial
        state = made.TrialState.FAIL if trial.fitness is None else made.TrialState.COMPLETE
        params, distributions = {}, {}
        for each in self._space.dimensions:
            if (name := each.name) in trial.values:
                value = trial.values[name]
                params[name] = value if each.values is None else each.values.index(value)
                distributions[name] = _distribution(each)
        return made.create_trial(
            state=state, value=trial.fitness, params=params, distributions=distributions
        )


def _distribution(dimension: Dimension) -> Any:
    """The values of a dimension as Optuna has them: of listed ones their places."""
    made = _import_optuna().distributions
    low, high, log = dimension.low, dimension.high, dimension.log
    if dimension.values is not None:
        places = range(len(dimension.values))
        if dimension.ordered:
            return made.IntDistribution(0, places[-1])
        return made.CategoricalDistribution(places)
    if dimension.whole:
        return made.IntDistribution(int(low), int(high), log=log)
    return made.FloatDistribution(low, high, log=log)


def _suggested(trial: optuna.Trial, dimension: Dimension) -> object:
    name, values, within = dimension.name, dimension.values, _distribution(dimension)
    if values is not None and not dimension.ordered:
        return values[trial.suggest_categorical(name, within.choices)]
    whole = values is not None or dimension.whole
    suggest: Callable[..., Any] = trial.suggest_int if whole else trial.suggest_float
    number = suggest(name, within.low, within.high, log=within.log)
    return dimension.rounded(number) if values is None else values[number]


def _import_optuna() -> Any:
    try:
        import optuna
    except ImportError:
        raise ValueError(
            "strategy 'bayesian' needs Optuna: pip install 'evo-replay[sweep]'"
        ) from None
    return optuna


STRATEGIES: dict[str, type[RandomTrials]] = {
    "grid": GridTrials,
    "random": RandomTrials,
    "guided": GuidedTrials,
    "bayesian": OptunaTrials,
}
"""Every strategy by name."""


def build_strategy(
    name: str, options: Mapping[str, object], space: Space, *, seed: int, trials: int | None
) -> RandomTrials:
    """Returns a strategy; `trials` None: 100, or the whole of a grid."""
    if name not in STRATEGIES:
        hint = meant(name, STRATEGIES)
        raise ValueError(f"unknown strategy {name!r}{hint} (known: {', '.join(STRATEGIES)})")
    common = ("space", "seed", "trials")
    options = {k: v for k, v in options.items() if (k, v) != ("sampler", "tpe")}  # once a choice
    build = with_parameters(f"strategy {name}", STRATEGIES[name], options, common)
    return build(space, seed=seed, trials=trials)
