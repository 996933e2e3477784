"""What a live selection samples: searches on paired seeds, or calls on a data set's problems."""

from __future__ import annotations

import contextlib
import math
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec
import numpy as np

from evo.configuration import Settings, identity
from evo.cost import cost_of_children
from evo.journal import LogError
from evo.llm.client import EndpointRefused
from evo.log import Log, LogWriter, read_log
from evo.records import End, Initial
from evo.runs.instances import InstanceEvaluator, last_error
from evo.runs.resources import open_resources
from evo.runs.session import Goal, Job, bring, open_log, session_line
from evo.selectors import Terms
from evo.selectors.race import Taken, rewards_of
from evo.sweeping.fields import Configuration, hash_of
from evo.task import hash_of as hash_of_task

if TYPE_CHECKING:
    from evo.policies.base import Floats, Ints

UNITS = ("samples", "calls", "tokens", "flops", "dollars", "seconds")

Amounts = dict[str, float]
"""By unit out of `UNITS`; NaN where unknown."""

Place = tuple[int, int]
"""A configuration and the number of one of its samples."""


class LiveSamples(ABC):
    """Samples of one replicate that are made when asked for; see `evo.race.Samples`.

    Args:
        configurations: What is compared.
        size: Samples of each at most.
        folder: Of the logs.
        settings: How the session works.
        stack: Closes what is opened here.
        terms: Of the selection.
        failure_value: What a failure counts.
        budget: Limits by unit.

    Attributes:
        outcomes: (configurations, size), NaN for a failure, or what is not sampled yet.
        rewards: The same as the selector is told them.
    """

    unit: str
    """What a sample is called."""

    def __init__(
        self,
        configurations: Sequence[Configuration],
        size: int,
        folder: Path,
        settings: Settings,
        stack: contextlib.ExitStack,
        terms: Terms,
        failure_value: float | None,
        budget: Mapping[str, float],
    ) -> None:
        from tqdm.auto import tqdm

        self.shape = (1, len(configurations))
        self.sizes = np.full(len(configurations), size)
        self.outcomes: Floats = np.full((len(configurations), size), np.nan)
        self.rewards = rewards_of(self.outcomes, terms, failure_value)
        self._configurations, self._folder, self._settings = configurations, folder, settings
        self._terms, self._failure_value = terms, failure_value
        self._budget, self._taken = dict(budget), 0
        self._spent = {unit: 0.0 for unit in budget if unit != "samples"}
        shown = settings.progress
        settings = replace(settings, progress=False)
        self._bar = stack.enter_context(
            tqdm(total=self.outcomes.size, unit=self.unit, desc="select", disable=not shown)
        )
        self._resources = stack.enter_context(open_resources(settings))

    def take(self, first: Ints, number: Ints) -> Taken:
        """Makes the next samples of each configuration, as far as the budget goes."""
        steps, places = range(int(number.max())), range(self.shape[1])
        wanted = [
            (k, int(first[0, k]) + step) for step in steps for k in places if step < number[0, k]
        ]
        if "samples" in self._budget:
            wanted = wanted[: max(0, math.ceil(self._budget["samples"] - self._taken))]
        if any(self._spent[unit] >= self._budget[unit] for unit in self._spent):
            wanted = []
        there = np.zeros(self.shape, dtype=np.intp)
        values = np.zeros((*self.shape, int(number.max())))
        costs = {unit: np.zeros(self.shape) for unit in UNITS[1:]}
        prices = np.zeros(self.shape)
        for (k, i), (outcome, paid, price) in (self._make(wanted) if wanted else {}).items():
            self.outcomes[k, i] = outcome
            prices[0, k] += price
            there[0, k] += 1
            for unit, amount in paid.items():
                costs[unit][0, k] += amount
        self.rewards = rewards_of(self.outcomes, self._terms, self._failure_value)
        for k, i in wanted:
            values[0, k, i - int(first[0, k])] = self.rewards.values[k, i]
        self._taken += len(wanted)
        for unit in self._spent:
            self._spent[unit] += float(costs[unit].sum())
            if math.isnan(self._spent[unit]):
                raise ValueError(f"budget: what a sample cost in {unit} is unknown")
        self._bar.update(len(wanted))
        return Taken(there, values, costs, prices)

    @abstractmethod
    def _make(self, wanted: Sequence[Place]) -> dict[Place, tuple[float, Amounts, float]]:
        """Returns what each sample came to, NaN for a failure, and its cost."""

    @abstractmethod
    def logs(self, counts: Ints) -> tuple[tuple[Log, ...], ...]:
        """Returns the logs of each configuration's first samples, (configurations,) of them."""


class SeedSamples(LiveSamples):
    """A sample is a run, and its outcome the best fitness after the last generation.

    Args:
        seeds: In the order in which they are run.
        *rest: As for `LiveSamples`, without the size.
    """

    unit = "run"

    def __init__(
        self, seeds: Sequence[int], configurations: Sequence[Configuration], *rest: Any
    ) -> None:
        super().__init__(configurations, len(seeds), *rest)
        self._seeds = seeds
        self._logs: dict[Place, Log] = {}
        self._paid: dict[Path, int] = {}

    def logs(self, counts: Ints) -> tuple[tuple[Log, ...], ...]:
        """Returns the logs of each configuration's first samples, one per seed."""
        return tuple(
            tuple(self._logs[k, i] for i in range(count)) for k, count in enumerate(counts.tolist())
        )

    def _make(self, wanted: Sequence[Place]) -> dict[Place, tuple[float, Amounts, float]]:
        made, found = self._run(wanted), {}
        for k, i in wanted:
            goal, path = self._configurations[k].generations, self._path(k, i)
            log = made.get(path)
            if log is None or len(log.generations) < goal:
                raise LogError(
                    f"{path}: stopped before its goal; the same arguments and folder go on"
                )
            self._logs[k, i] = log
            since = self._paid.get(path, -1)  # a log that configurations share is paid once
            self._paid[path] = max(since, goal)
            calls = [each for each in log.calls if each.generation <= goal]
            new = [each for each in calls if each.generation > since]
            cost = cost_of_children(new, log.header.model, log.header.sampling)
            walls = [each.seconds for each in log.generations[max(0, since) : goal]]
            wall = math.fsum(math.nan if wall is None else wall for wall in walls)
            found[k, i] = (float(log.trajectory[goal]), cost.by_unit(wall), float(len(calls)))
        return found

    def _path(self, k: int, i: int) -> Path:
        """Returns where a run's log lies; configurations that differ in T alone share it."""
        run = self._configurations[k].run
        owner = [each.run for each in self._configurations].index(run)
        return self._folder / f"{owner:03}-{run}-s{self._seeds[i]}.jsonl"

    def _run(self, wanted: Sequence[Place]) -> dict[Path, Log]:
        """Brings the logs of these samples to their goals and returns them."""
        jobs: dict[Path, Job] = {}
        for k, i in sorted(wanted, key=lambda each: self._configurations[each[0]].generations):
            configuration, path = self._configurations[k], self._path(k, i)
            header = msgspec.structs.replace(configuration.header, seed=self._seeds[i])
            jobs[path] = Job(path, header, Goal(configuration.generations))
        done = bring(list(jobs.values()), self._resources)
        return {each.log.path: each.log for each in done if each.log is not None}


@dataclass
class _Asked:
    """A configuration's log under way: what evaluates its text, and what the log holds."""

    text: str
    writer: LogWriter
    evaluator: InstanceEvaluator
    evaluated: bool


class ProblemSamples(LiveSamples):
    """A sample is a call on one problem of a data set, and its outcome the score of the reply.

    Each configuration has a log, that of a run whose initial text is being evaluated: its calls go
    there, and once a text was tried on every problem, its evaluation. So `evo.resume` goes on with
    a log by evolving its text, and makes none of these calls again.

    Args:
        order: Positions of the problems in the order in which they are asked.
        *rest: As for `LiveSamples`, without the size.
    """

    unit = "problem"

    def __init__(
        self, order: Sequence[int], configurations: Sequence[Configuration], *rest: Any
    ) -> None:
        super().__init__(configurations, len(order), *rest)
        self._order = order
        *_, stack, _, _, _ = rest
        self._stopping = self._resources.stopping
        self._asked = [self._open(k, stack) for k in range(len(configurations))]

    def logs(self, counts: Ints) -> tuple[tuple[Log, ...], ...]:
        """Returns the one log of each configuration that was sampled."""
        return tuple(
            (read_log(asked.writer.path),) if count else ()
            for asked, count in zip(self._asked, counts.tolist(), strict=True)
        )

    def _path(self, k: int) -> Path:
        return self._folder / f"{k:03}-{self._configurations[k].run}.jsonl"

    def _open(self, k: int, stack: contextlib.ExitStack) -> _Asked:
        configuration = self._configurations[k]
        header, resources = configuration.header, self._resources
        writer, log = open_log(self._path(k), header, session_line(resources, Goal(0)))
        stack.callback(self._close, writer)
        # What failed may do better now, as in a run.
        known = [call for call in log.instance_calls if call.reply is not None] if log else []
        evaluated = log is not None and log.initial is not None
        evaluator = InstanceEvaluator(
            header,
            resources.evaluator.evaluate,
            resources.caller(header),
            max_concurrent=resources.max_concurrent,
            stopping=resources.stopping,
            on_call=writer.append,
        )
        evaluator.learn(known)
        text = header.task.files[header.task.program_file]
        return _Asked(text, writer, evaluator, evaluated)

    def _close(self, writer: LogWriter) -> None:
        writer.append(End(reason="interrupted" if self._stopping.is_set() else "completed"))
        writer.close()

    def _make(self, wanted: Sequence[Place]) -> dict[Place, tuple[float, Amounts, float]]:
        from joblib import Parallel, delayed

        batches: dict[int, list[int]] = {}
        for k, i in wanted:
            batches.setdefault(k, []).append(i)
        try:
            done = Parallel(
                n_jobs=min(len(batches), self._settings.max_concurrent), backend="threading"
            )(delayed(self._ask)(k, batch) for k, batch in batches.items())
        except BaseException as error:
            for k in batches:
                self._resources.wind_down(self._path(k), error)
            raise
        return {place: found for part in done for place, found in part.items()}

    def _ask(self, k: int, batch: Sequence[int]) -> dict[Place, tuple[float, Amounts, float]]:
        active, key = self._resources.active, (self._path(k), 0)
        active.add(key)
        try:
            return self._try(k, batch)
        finally:
            active.discard(key)

    def _try(self, k: int, batch: Sequence[int]) -> dict[Place, tuple[float, Amounts, float]]:
        header, asked = self._configurations[k].header, self._asked[k]
        problems = [self._order[i] for i in batch]
        tried = asked.evaluator.attempt(asked.text, problems, header.limits)
        if all(call.reply is None for _, call in tried):
            raise EndpointRefused(
                f"{last_error([call for _, call in tried])}; the same arguments and folder go on "
                "once that is mended"
            )
        found = {}
        for i, (instance, call) in zip(batch, tried, strict=True):
            cost = cost_of_children([call], header.model, header.sampling)
            score = math.nan if instance.score is None else instance.score
            found[k, i] = (score, cost.by_unit(cost.seconds), 1.0)
        if batch[-1] == len(self._order) - 1 and not asked.evaluated:
            whole = asked.evaluator.evaluate(header.task, asked.text, header.limits)
            if whole.status != "no_reply":
                asked.writer.append(Initial(evaluation=whole))
            asked.evaluated = True
        return found


def with_text(configuration: Configuration, text: str | None) -> Configuration:
    """Returns a configuration of which a sample is a problem: its text, and no generations.

    Args:
        configuration: Of a task with a data set on which a model is asked.
        text: What is tried; None: the task's initial text.

    Raises:
        ValueError: The task is another kind, or the text is empty.
    """
    header = configuration.header
    task = header.task
    if not (task.asks_model and task.instances_file):
        raise ValueError(
            f"task {task.name}: a sample is a problem only where a model is asked a data set; "
            "programs are scored on all problems at once, see evo.instance_matrix"
        )
    if text is not None and (not isinstance(text, str) or not text.strip()):
        raise ValueError(f"text: expected what the model shall be told, got {text!r}")
    if text is not None and text.strip() != task.files[task.program_file].strip():
        task = msgspec.structs.replace(task, files={**task.files, task.program_file: text})
        task = msgspec.structs.replace(task, hash=hash_of_task(task))
    header = msgspec.structs.replace(header, task=task, children=1)
    run = hash_of(identity(header))
    return Configuration(header, 0, run, hash_of([run, 0]))
