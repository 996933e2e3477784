"""What a live selection compares, and how samples of it are made: the frame of all kinds."""

from __future__ import annotations

import hashlib
import json
import math
import os
from abc import ABC, abstractmethod
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

import numpy as np

from evo.logs.cost import UNITS
from evo.logs.log import Log
from evo.logs.records import Header
from evo.logs.types import Fields, JsonObject
from evo.models.registry import find_model
from evo.plugins import MistakenType
from evo.studies.selection.base import Terms
from evo.studies.selection.race import Taken, rewards_of
from evo.studies.sweep.fields import POOL, Configuration, configure, dotted
from evo.studies.sweep.space import check_field
from evo.tasks.task import Task, load_task

if TYPE_CHECKING:
    from evo.policies.base import Floats, Ints
    from evo.studies.study import Study

Given = Sequence[Fields] | Fields
"""Choices, or a space whose grid is taken."""

SampleKey = tuple[int, int]
"""A choice and the number of one of its samples."""


@dataclass(frozen=True)
class Sample:
    """The result of a sample."""

    outcome: float  # NaN for a failure
    costs: Mapping[str, float]  # by unit, what was not paid before for another configuration
    price: float  # what it would have cost by itself, which breaks ties


@dataclass(frozen=True)
class ChoiceScoring:
    """How outcomes of samples become rewards; see `evo.studies.selection.race.rewards_of`.

    Attributes:
        terms: What the selection is held to.
        failure_value: What a sample without an outcome counts; None: the lower bound.
        stated: Whether the bounds were given; if not, most outcomes have to lie in [0, 1].
    """

    terms: Terms
    failure_value: float | None
    stated: bool

    def rewards(self, outcomes: Floats) -> Floats:
        """Returns the rewards of some outcomes."""
        return rewards_of(outcomes, self.terms, self.failure_value, stated=self.stated)


class Choices(ABC):
    """Choices, and samples of them that are made when asked for: see `race.Samples`.

    A kind of sample states its identity, opens what it needs, and makes samples. `values` are
    the fields of each choice, `ids` what identifies each, `sampled` in order the seeds, or the
    positions of problems or rows, `more` what else identifies the selection. Once it has begun,
    `outcomes` is (choices, size), NaN for a failure, or what is not sampled yet.
    """

    kind: Literal["seeds", "problems", "rows"]  # what a sample is called in selection.json
    unit = "sample"
    units: Collection[str] = UNITS.keys()
    configurations: Sequence[Configuration] = ()  # where calls of a model are made

    def __init__(
        self,
        name: str,
        values: Sequence[Mapping[str, object]],
        ids: Sequence[str],
        sampled: Sequence[int],
        more: Mapping[str, object] | None = None,
    ) -> None:
        self.name, self.values, self.ids, self.sampled = name, values, ids, sampled
        self.more = more or {}
        for k, id_ in enumerate(ids):
            if (first := ids.index(id_)) < k:
                raise ValueError(f"choices: {first} and {k} are the same, {values[k]!r}")

    @property
    def headers(self) -> list[Header]:
        """Of each choice, where calls of a model are made."""
        return [each.header for each in self.configurations]

    @property
    def runs(self) -> list[tuple[Header, int]]:
        """Header and T of each run where every sample is taken; the deepest of a log's."""
        deepest: dict[str, Configuration] = {}
        for each in sorted(self.configurations, key=lambda each: each.generations):
            deepest[each.run] = each
        runs = [(each.header, each.generations) for each in deepest.values()]
        return runs * (len(self.sampled) if self.kind == "seeds" else 1)

    def begin(self, study: Study, scoring: ChoiceScoring, most: float | None = None) -> None:
        """Prepares to make samples.

        Args:
            study: The selection at work.
            scoring: How outcomes become rewards.
            most: Samples at most; None: all there are.
        """
        count, size = len(self.ids), scoring.terms.size
        self.study, self._scoring = study, scoring
        self.shape, self.sizes = (1, count), np.full(count, size)
        self.outcomes: Floats = np.full((count, size), np.nan)
        self._left = count * size if most is None else math.ceil(most)
        self._bar = study.progress(count * size, self.unit, "select")

    @abstractmethod
    def make(self, wanted: Sequence[SampleKey]) -> list[Sample]:
        """Returns the samples in this order, fewer where the budget ended or a stop was asked."""

    def logs(self, counts: Ints) -> tuple[tuple[Log, ...], ...]:
        """Returns the logs of each configuration's first samples, (configurations,) of them."""
        return ()

    def take(self, first: Ints, number: Ints) -> Taken:
        """Makes the next samples of each configuration within the budget."""
        width = int(number.max())
        wanted = [
            (k, int(first[0, k]) + step)
            for step in range(width)
            for k in np.flatnonzero(step < number[0]).tolist()
        ][: max(0, self._left)]
        there, prices = np.zeros(self.shape, dtype=np.intp), np.zeros(self.shape)
        values = np.zeros((*self.shape, width))
        costs = {unit: np.zeros(self.shape) for unit in self.units}
        made = self.make(wanted) if wanted else []
        found = self._scoring.rewards(np.array([each.outcome for each in made]))
        for (k, i), sample, reward in zip(wanted, made, found, strict=False):
            self.outcomes[k, i] = sample.outcome
            values[0, k, there[0, k]] = reward
            there[0, k] += 1
            prices[0, k] += sample.price
            for unit in self.units:
                costs[unit][0, k] += sample.costs.get(unit, math.nan)
        self._left -= len(made)
        self._bar.update(len(made))
        return Taken(there, values, costs, prices)


def listed(choices: object) -> Given:
    """Returns the choices as they are, or as a list; raises MistakenType for anything else."""
    several = isinstance(choices, Iterable) and not isinstance(choices, str | bytes | Mapping)
    found: object = list(choices) if several else choices  # type: ignore[call-overload]
    each_one = found if isinstance(found, list) else [found]
    if not all(isinstance(each, Mapping) for each in each_one):
        raise MistakenType(
            "choices: expected a list of dicts, or a dict of lists, such as "
            f"{{'drafts': [1, 2]}}, got {found!r:.80}"
        )
    return found  # type: ignore[return-value]


def with_models(choices: Given) -> Given:
    """Returns the choices with the models that their functions are, and each limit as a field."""

    def read(name: str, value: object) -> object:
        if name.partition(".")[0] not in ("model", "models", "critic"):
            return value
        if isinstance(value, Mapping) and "values" in value:
            return {**value, "values": read(name, value["values"])}
        if isinstance(value, list | tuple):
            return [read(name, each) for each in value]
        return find_model(value) if callable(value) else value

    if isinstance(choices, Mapping):
        return {name: read(name, value) for name, value in dotted(choices).items()}
    return [{name: read(name, value) for name, value in dotted(each).items()} for each in choices]


def configured(
    values: Sequence[JsonObject], task: str | os.PathLike[str] | Task | None
) -> list[Configuration]:
    """Returns the configuration of each choice, which names its task."""
    if not values:
        raise ValueError("choices: expected at least one")
    tasks: dict[str, Task] = {}
    for each in values:
        for name in each:
            check_field(name)
            if name in POOL:
                raise ValueError(f"{name}: a field of sweeps alone, whose runs may be allocations")
        if each.setdefault("task", task) is None:
            raise ValueError("task: expected one, as argument or in each configuration")
        loaded = load_task(each["task"])
        same = tasks.setdefault(loaded.name, loaded).record.hash == loaded.record.hash
        each["task"] = loaded.name if same else f"{loaded.name}-{loaded.record.hash[:12]}"
        tasks[each["task"]] = loaded
    return [configure(each, tasks) for each in values]


def shuffled(count: int, seed: int) -> list[int]:
    """Returns positions in an order of their own for each seed."""
    order: list[int] = np.random.default_rng([seed, count]).permutation(count).tolist()
    return order


def digest(value: object) -> str:
    """Returns twelve hex digits of the SHA-256 of a value as JSON or by its repr."""
    text = json.dumps(value, sort_keys=True, default=repr)
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:12]
