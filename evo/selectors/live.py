"""What a live selection samples: runs on paired seeds, problems of a data set, rows of data."""

from __future__ import annotations

import asyncio
import contextlib
import dataclasses
import inspect
import itertools
import math
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec
import numpy as np

from evo import parallel
from evo.budget import UNITS, Ledger, Turns, Worst
from evo.configuration import Goal, Settings
from evo.cost import cost_of_calls
from evo.handle import Control
from evo.journal import Writer, go_on
from evo.llm.client import CallCancelled, EndpointRefused
from evo.log import Log, read_log
from evo.records import End, Header, Initial, Record
from evo.runs.arm import costs_of_log
from evo.runs.instances import InstanceEvaluator, last_error
from evo.runs.resources import Resources, open_resources
from evo.runs.session import Job, bring, open_log, session_line
from evo.selectors.base import Terms
from evo.selectors.race import Taken, rewards_of
from evo.sweeping.fields import Configuration

if TYPE_CHECKING:
    from evo.policies.base import Floats, Ints

Place = tuple[int, int]
"""A configuration and the number of one of its samples."""


@dataclass(frozen=True)
class Sample:
    """What a sample came to."""

    outcome: float  # NaN for a failure
    costs: Mapping[str, float]  # by unit, what was not paid before for another configuration
    price: float  # what it would have cost by itself, which breaks ties


@dataclass(frozen=True)
class Session:
    """What all samples of a live selection share; see `evo.selection.plan_selection`."""

    folder: Path
    terms: Terms
    failure_value: float | None
    stated: bool  # whether the bounds were given; if not, most outcomes have to lie in [0, 1]
    budget: Mapping[str, float]
    settings: Settings
    control: Control  # says when no further call may begin
    stack: ExitStack  # closes what is opened

    def open_resources(self) -> Resources:
        """Opens what calls need; the selection has a progress bar of its own."""
        quiet = dataclasses.replace(self.settings, progress=False)
        return self.stack.enter_context(open_resources(quiet, self.control))


class LiveSamples(ABC):
    """Samples of one replicate that are made when asked for; see `evo.selectors.race.Samples`.

    `outcomes` is (configurations, size), NaN for a failure, or what is not sampled yet.
    """

    unit = "sample"
    units: tuple[str, ...] = tuple(UNITS)

    def __init__(self, count: int, session: Session) -> None:
        from tqdm.auto import tqdm

        size = session.terms.size
        self.shape, self.sizes = (1, count), np.full(count, size)
        self.outcomes: Floats = np.full((count, size), np.nan)
        self.session = session
        limits = {unit: limit for unit, limit in session.budget.items() if unit != "samples"}
        self.ledger = Ledger(limits)
        self._left = math.ceil(session.budget.get("samples", count * size))
        shown = session.settings.progress
        self._bar = session.stack.enter_context(
            tqdm(total=count * size, unit=self.unit, desc="select", disable=not shown)
        )

    def take(self, first: Ints, number: Ints) -> Taken:
        """Makes the next samples of each configuration, as far as the budget goes."""
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
        terms, failed, stated = self.session.terms, self.session.failure_value, self.session.stated
        found = rewards_of(np.array([each.outcome for each in made]), terms, failed, stated=stated)
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

    @abstractmethod
    def make(self, wanted: Sequence[Place]) -> list[Sample]:
        """Returns the samples in this order, fewer where the budget ended or a stop was asked."""

    def logs(self, counts: Ints) -> tuple[tuple[Log, ...], ...]:
        """Returns the logs of each configuration's first samples, (configurations,) of them."""
        return ()


class RunSamples(LiveSamples):
    """A sample is a run, and its outcome the best fitness after the last generation."""

    unit = "run"

    def __init__(
        self, configurations: Sequence[Configuration], seeds: Sequence[int], session: Session
    ) -> None:
        super().__init__(len(configurations), session)
        self._configurations, self._seeds = configurations, seeds
        self._resources = session.open_resources()
        self._logs: dict[Place, Log] = {}
        self._paid: dict[Path, int] = {}  # generations of each log, 0 included

    def logs(self, counts: Ints) -> tuple[tuple[Log, ...], ...]:
        """Returns the logs of each configuration's first samples, one per seed."""
        return tuple(
            tuple(self._logs[k, i] for i in range(count)) for k, count in enumerate(counts.tolist())
        )

    def make(self, wanted: Sequence[Place]) -> list[Sample]:
        """Brings the logs of these samples to their goals, all at once."""
        jobs: dict[Path, Job] = {}
        for k, i in wanted:
            configuration, path = self._configurations[k], self._path(k, i)
            header = msgspec.structs.replace(configuration.header, seed=self._seeds[i])
            before = jobs[path].goal.generations if path in jobs else 0
            jobs[path] = Job(path, header, Goal(max(before, configuration.generations)))
        done = bring(list(jobs.values()), self._resources, ledger=self.ledger, label="select")
        logs = {each.job.path: each.log for each in done}
        made = []
        for k, i in wanted:
            goal, log = self._configurations[k].generations, logs[self._path(k, i)]
            if log is None or len(log.generations) < goal:
                break
            costs, paid = costs_of_log(log)[: goal + 1], self._paid.get(log.path, 0)
            self._paid[log.path] = max(paid, goal + 1)
            self._logs[k, i] = log
            new = {unit: sum(each[unit] for each in costs[paid:]) for unit in UNITS}
            price = sum(each["calls"] for each in costs)
            made.append(Sample(float(log.trajectory[goal]), new, price))
        return made

    def _path(self, k: int, i: int) -> Path:
        """Returns where a run's log lies; configurations that differ in T alone share it."""
        run = self._configurations[k].run
        owner = [each.run for each in self._configurations].index(run)
        return self.session.folder / f"{owner:03}-{run}-s{self._seeds[i]}.jsonl"


class ProblemSamples(LiveSamples):
    """A sample is a call on one problem of a data set, and its outcome the score of the reply.

    Each configuration has a log, that of a run whose initial text is being evaluated, which is
    complete once it was tried on every problem. So `evo.resume` goes on with it by evolving its
    text, and makes none of these calls again.
    """

    unit = "problem"

    def __init__(
        self, configurations: Sequence[Configuration], order: Sequence[int], session: Session
    ) -> None:
        super().__init__(len(configurations), session)
        self._order, resources = order, session.open_resources()
        scored = any(each.header.task.score == "critic" for each in configurations)
        self._most = 2 if scored else 1
        self._texts: list[tuple[Header, Writer, InstanceEvaluator]] = []
        self._evaluated: set[int] = set()
        for k, each in enumerate(configurations):
            path, header = session.folder / f"{k:03}-{each.run}.jsonl", each.header
            writer, log = open_log(path, header, session_line(resources, Goal(0)))
            session.stack.callback(self._close, writer)
            evaluator = InstanceEvaluator(header, resources, writer.append)
            known = [*log.instance_calls, *log.critic_calls] if log else []
            # What failed may do better now, as in a run.
            evaluator.learn([call for call in known if call.reply is not None])
            self._texts.append((header, writer, evaluator))
            if log is not None and log.initial is not None:
                self._evaluated.add(k)

    def _close(self, writer: Writer) -> None:
        stopped = self.session.control.stopping.is_set()
        writer.append(End(reason="interrupted" if stopped else "completed"))
        writer.close()

    def logs(self, counts: Ints) -> tuple[tuple[Log, ...], ...]:
        """Returns the one log of each configuration that was sampled."""
        return tuple(
            (read_log(writer.path),) if count else ()
            for (_, writer, _), count in zip(self._texts, counts.tolist(), strict=True)
        )

    def make(self, wanted: Sequence[Place]) -> list[Sample]:
        """Asks the problems: of several configurations at once, unless a budget counts tokens."""
        if "calls" in self.ledger.limits:  # each sample is one, or two with its critic's
            left = self.ledger.limits["calls"] - self.ledger.total.get("calls", 0.0)
            wanted = wanted[: max(0, math.ceil(left / self._most))]
        found: dict[Place, Sample] = {}
        if self.ledger.limits.keys() - {"calls"}:
            for place in wanted:
                if self.ledger.open().all():
                    self._settle(found, self._ask([place]))
        else:
            groups: dict[int, list[Place]] = {}
            for place in wanted:
                groups.setdefault(place[0], []).append(place)
            jobs = min(len(groups), self.session.settings.max_concurrent) or 1
            # All are asked, and what came is logged, before the first error is raised.
            for part in parallel.map(self._ask, groups.values(), max_workers=jobs):
                self._settle(found, part)
        return [found[place] for place in itertools.takewhile(found.__contains__, wanted)]

    def _settle(self, found: dict[Place, Sample], part: dict[Place, Sample]) -> None:
        found |= part
        for sample in part.values():
            self.ledger.settle(sample.costs)

    def _ask(self, places: Sequence[Place]) -> dict[Place, Sample]:
        """Asks the problems of one configuration; none once a stop was asked for."""
        k, last = places[-1]
        header, writer, evaluator = self._texts[k]
        text = header.task.files[header.task.program_file]
        try:
            tried = evaluator.attempt(text, [self._order[i] for _, i in places], header.limits)
        except CallCancelled:
            return {}
        if all(each.calls[0].reply is None for each in tried):
            reason = last_error([each.calls[0] for each in tried])
            raise EndpointRefused(
                f"{reason}; the same arguments and folder go on once that is mended"
            )
        if last == len(self._order) - 1 and k not in self._evaluated:
            whole = evaluator.evaluate(header.task, text, header.limits)
            if whole.status != "no_reply":
                writer.append(Initial(evaluation=whole))
            self._evaluated.add(k)
        made = {}
        for place, each in zip(places, tried, strict=True):
            cost = cost_of_calls(each.calls, header)
            score = math.nan if each.instance.score is None else each.instance.score
            made[place] = Sample(score, cost.by_unit(cost.seconds), 1.0)
        return made


Agent = Callable[..., Any]
"""agent(row, **choice) -> a score, or a score and its cost; a score of None is a failure."""


class Scored(Record, frozen=True, kw_only=True):
    """A line of agent.jsonl: what an agent made of a row."""

    choice: int
    row: int
    score: float | None
    cost: float = 0.0
    seconds: float


_decoder = msgspec.json.Decoder(Scored)


class RowSamples(LiveSamples):
    """A sample is a row of data tried by an agent: its score less what its cost weighs.

    Each is a line of agent.jsonl as soon as it is there, and is not made again. What the agent
    raises ends the selection, which goes on by the same call.
    """

    unit = "row"
    units = ("cost", "seconds")

    def __init__(
        self,
        agent: Agent,
        choices: Sequence[Mapping[str, Any]],
        rows: Sequence[Any],
        order: Sequence[int],
        cost_weight: float,
        session: Session,
    ) -> None:
        super().__init__(len(choices), session)
        self._agent, self._choices, self._weight = agent, choices, cost_weight
        self._rows, self._order = rows, order
        path = session.folder / "agent.jsonl"
        self._writer, lines = go_on(path, _decoder, what="journal of a selection", wait=True)
        session.stack.enter_context(self._writer)
        self._known = {(line.choice, line.row): line for line in lines}

    def make(self, wanted: Sequence[Place]) -> list[Sample]:
        """Calls the agent, several times at once; under a budget as if one after another."""
        worst = Worst({"cost": math.inf}, {"cost": 0.0}, generations=0)
        turns = Turns(self.ledger, [(place, worst) for place in wanted])
        stopped = self.session.control.stopping.is_set

        def one(turn: tuple[int, Place]) -> Sample | None:
            place, sample = turn
            try:
                if not turns.may_begin(place, stopped):
                    return None
                made = self._sample(*sample)
                turns.settle(place, [made.costs])
                return made
            finally:
                turns.finish(place)

        jobs = min(len(wanted), self.session.settings.max_concurrent)
        with contextlib.closing(turns):
            found = parallel.map(one, enumerate(wanted), max_workers=jobs)
        return list(itertools.takewhile(lambda each: each is not None, found))

    def _sample(self, k: int, i: int) -> Sample:
        row = self._order[i]
        if (line := self._known.get((k, row))) is None:
            began = time.monotonic()
            said = self._agent(self._rows[row], **self._choices[k])
            if inspect.iscoroutine(said):
                said = asyncio.run(said)
            score, cost = said if isinstance(said, tuple) else (said, 0.0)
            line = Scored(
                choice=k,
                row=row,
                score=None if score is None or math.isnan(score) else float(score),
                cost=float(cost),
                seconds=time.monotonic() - began,
            )
            self._writer.append(line)
        score = math.nan if line.score is None else line.score - self._weight * line.cost
        return Sample(score, {"cost": line.cost, "seconds": line.seconds}, line.cost)
