"""The kinds of samples of a live selection: runs on paired seeds, problems of a data set, rows."""

from __future__ import annotations

import asyncio
import contextlib
import functools
import inspect
import itertools
import math
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Sized
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from evo import parallel
from evo.logs.cost import UNITS, added, cost_of_calls
from evo.logs.hashes import hash_of_task
from evo.logs.inputs import as_float
from evo.logs.journal import Writer
from evo.logs.log import Log, read_log
from evo.logs.records import Header, Initial, Record, RunEnd
from evo.logs.types import Fields
from evo.models.client import CallCancelled, EndpointRefused
from evo.models.critics import known_of
from evo.runs.configuration import seeds_of
from evo.runs.dataset import InstanceEvaluator, last_error
from evo.runs.opening import open_log, session_line
from evo.runs.options import EndOptions
from evo.runs.resources import listening
from evo.runs.session import RunJob, run_jobs
from evo.runs.settings import Goal, every_goal
from evo.runs.state import costs_of_log
from evo.runs.waves import Payer, Waves, payable
from evo.studies.folders import AGENT
from evo.studies.selection.choices import (
    Choices,
    ChoiceScoring,
    Given,
    Sample,
    SampleKey,
    configured,
    digest,
    shuffled,
    with_models,
)
from evo.studies.sweep.fields import Configuration, configuration_of
from evo.studies.sweep.space import parse_space
from evo.tasks.instances import read_instances
from evo.tasks.task import Task

if TYPE_CHECKING:
    import os

    from evo.policies.base import Ints
    from evo.studies.study import Study


class RunSamples(Choices):
    """A sample is a run, and its outcome the best fitness where it ends."""

    kind, unit = "seeds", "run"

    def __init__(
        self,
        choices: Given,
        shared: Fields,
        task: str | os.PathLike[str] | Task | None,
        seeds: Iterable[int] | str,
    ) -> None:
        choices = with_models(choices)
        listed = parse_space(choices).grid() if isinstance(choices, Mapping) else choices
        values = [{**shared, **each} for each in listed]
        self.configurations = configured(values, task)
        ids, name = [each.id for each in self.configurations], self.headers[0].task.name
        super().__init__(name, values, ids, seeds_of(seeds))

    def begin(self, study: Study, scoring: ChoiceScoring, most: float | None = None) -> None:
        """Opens what calls need."""
        super().begin(study, scoring, most)
        self._resources = study.enter(study.resources(quiet=True))
        self._logs: dict[SampleKey, Log] = {}
        self._paid: dict[Path, int] = {}  # generations of each log, 0 included

    def logs(self, counts: Ints) -> tuple[tuple[Log, ...], ...]:
        """Returns the logs of each configuration's first samples, one per seed."""
        return tuple(
            tuple(self._logs[k, i] for i in range(count)) for k, count in enumerate(counts.tolist())
        )

    def make(self, wanted: Sequence[SampleKey]) -> list[Sample]:
        """Brings the logs of these samples to their goals, all at once."""
        goals: dict[Path, list[Goal]] = {}
        headers: dict[Path, Header] = {}
        for k, i in wanted:
            configuration, path = self.configurations[k], self._path(k, i)
            headers[path] = msgspec.structs.replace(configuration.header, seed=self.sampled[i])
            goals.setdefault(path, []).append(configuration.goal)
        jobs = [RunJob(path, headers[path], every_goal(each)) for path, each in goals.items()]
        done = run_jobs(
            jobs, self._resources, ledger=self.study.ledger, whole=True,
            label="select",
        )  # fmt: skip
        logs = {each.job.path: each.log for each in done}
        made = []
        for k, i in wanted:
            log = logs[self._path(k, i)]
            end = None if log is None else self.configurations[k].goal.end_in(log)
            if log is None or end is None:
                break
            costs, paid = costs_of_log(log)[: end + 1], self._paid.get(log.path, 0)
            self._paid[log.path] = max(paid, end + 1)
            self._logs[k, i] = log
            new = {unit: added(each[unit] for each in costs[paid:]) for unit in UNITS}
            price = sum(each["calls"] for each in costs)
            made.append(Sample(float(log.trajectory[end]), new, price))
        return made

    def _path(self, k: int, i: int) -> Path:
        """Returns where a run's log lies; configurations that differ in their goal share it."""
        run = self.configurations[k].run
        owner = [each.run for each in self.configurations].index(run)
        return self.study.folder / f"{owner:03}-{run}-s{self.sampled[i]}.jsonl"


class ProblemSamples(Choices):
    """A sample is a call on one problem of a data set, and its outcome the score of the reply.

    Each configuration has a log, that of a run whose initial text is being evaluated, which is
    complete once it was tried on every problem. So `evo.resume` goes on with it by evolving its
    text, and makes none of these calls again.
    """

    kind, unit = "problems", "problem"

    def __init__(
        self,
        choices: Given,
        shared: Fields,
        task: str | os.PathLike[str] | Task | None,
        seed: int,
    ) -> None:
        choices = with_models(choices)
        if isinstance(choices, Mapping):
            space = dict(choices)
            given = space.pop("text", None)
            texts = given if isinstance(given, list) else [given]
            grid = parse_space(space).grid()
            choices = [{**each, "text": text} for text in texts for each in grid]
        values = [{**shared, **each} for each in choices]
        texts = [_text_of(each.pop("text", None)) for each in values]
        for name in ("generations", "children", *EndOptions.__annotations__):
            if any(name in each for each in values):
                raise ValueError(f"{name}: nothing evolves where samples are problems; omit it")
        plain = configured(values, task)
        known = [_with_text(each.header, text) for each, text in zip(plain, texts, strict=True)]
        first, self.configurations = known[0].header.task, known
        if len({each.header.task.files[each.header.task.instances_file] for each in known}) > 1:
            raise ValueError("choices: samples can be problems only if all share one data set")
        for each, text in zip(values, texts, strict=True):
            each.update({} if text is None else {"text": text})
        order = shuffled(len(read_instances(first)), seed)
        super().__init__(first.name, values, [each.id for each in known], order)

    def begin(self, study: Study, scoring: ChoiceScoring, most: float | None = None) -> None:
        """Opens the log of each configuration."""
        super().begin(study, scoring, most)
        resources = study.enter(study.resources(quiet=True))
        scored = any(header.task.score == "critic" for header in self.headers)
        self._most = 2 if scored else 1
        self._texts: list[tuple[Header, Writer, InstanceEvaluator]] = []
        self._evaluated: set[int] = set()
        self._dearest: Mapping[str, float] | None = None
        for k, each in enumerate(self.configurations):
            path, header = study.folder / f"{k:03}-{each.run}.jsonl", each.header
            writer, log = open_log(path, header, session_line(resources, header.task, Goal(0)))
            study.at_end(functools.partial(self._close, writer))
            asked = [*log.instance_calls, *log.critic_calls] if log else []
            # What failed may do better now, as in a run.
            known = known_of(call for call in asked if call.reply is not None)
            evaluator = InstanceEvaluator(header, resources, writer.append, known)
            self._texts.append((header, writer, evaluator))
            if log is not None and log.initial is not None:
                self._evaluated.add(k)

    def _close(self, writer: Writer) -> None:
        control = self.study.control
        stopped = control.stopping.is_set()
        writer.append(control.interruption if stopped else RunEnd(reason="completed"))
        writer.close()

    def logs(self, counts: Ints) -> tuple[tuple[Log, ...], ...]:
        """Returns the one log of each configuration that was sampled."""
        return tuple(
            (read_log(writer.path),) if count else ()
            for (_, writer, _), count in zip(self._texts, counts.tolist(), strict=True)
        )

    def make(self, wanted: Sequence[SampleKey]) -> list[Sample]:
        """Asks the problems, of several configurations at once.

        Under a budget of tokens or dollars as many are asked together as can be paid if each costs
        what the dearest has cost so far; then what came is settled. So what is asked follows from
        logged costs alone.
        """
        if "calls" in self.study.ledger.limits:  # each sample is one, or two with its critic's
            left = self.study.ledger.limits["calls"] - self.study.ledger.total.get("calls", 0.0)
            wanted = wanted[: max(0, math.ceil(left / self._most))]
        found: dict[SampleKey, Sample] = {}
        ledger, rest = self.study.ledger, list(wanted)
        limits = {unit: most for unit, most in ledger.limits.items() if unit != "calls"}
        while count := payable([self._dearest] * len(rest), ledger.total, limits):
            wave, rest = rest[:count], rest[count:]
            found |= self._ask_together(wave)
            if wave[-1] not in found:
                break
        return [found[place] for place in itertools.takewhile(found.__contains__, wanted)]

    def _ask_together(self, wave: Sequence[SampleKey]) -> dict[SampleKey, Sample]:
        """Asks problems of several configurations at once, and settles what they cost."""
        groups: dict[int, list[SampleKey]] = {}
        for place in wave:
            groups.setdefault(place[0], []).append(place)
        jobs = min(len(groups), self.study.settings.max_concurrent) or 1
        found: dict[SampleKey, Sample] = {}
        # All are asked, and what came is logged, before the first error is raised.
        for part in parallel.map(self._ask, groups.values(), max_workers=jobs):
            found |= part
        for sample in found.values():
            self.study.ledger.settle(sample.costs)
            known = self._dearest or sample.costs
            self._dearest = {u: max(known[u], amount) for u, amount in sample.costs.items()}
        return found

    def _ask(self, places: Sequence[SampleKey]) -> dict[SampleKey, Sample]:
        """Asks the problems of one configuration; none once a stop was asked for."""
        k, last = places[-1]
        header, writer, evaluator = self._texts[k]
        writer.check_in_place()
        text = header.task.files[header.task.program_file]
        try:
            tried = evaluator.attempt(text, [self.sampled[i] for _, i in places], header.limits)
        except CallCancelled:
            return {}
        if all(each.calls[0].reply is None for each in tried):
            reason = last_error([each.calls[0] for each in tried])
            raise EndpointRefused(
                f"{reason}; the same arguments and folder go on once that is mended"
            )
        if last == len(self.sampled) - 1 and k not in self._evaluated:
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


Agent = Callable[..., object]
"""agent(row, **choice) -> a score, or a score and its cost; a score of None is a failure."""


class Scored(Record, frozen=True, kw_only=True):
    """A line of `AGENT`: what an agent made of a row."""

    choice: int
    row: int
    score: float | None
    cost: float = 0.0
    seconds: float


_decoder = msgspec.json.Decoder(Scored)


class RowSamples(Choices):
    """A sample is a row of data tried by an agent: its score less what its cost weighs.

    Each is a line of `AGENT` as soon as it is there, and is not made again. What the agent
    raises ends the selection, which goes on by the same call.
    """

    kind, unit = "rows", "row"
    units = ("cost", "seconds")

    def __init__(
        self,
        choices: Given,
        agent: Agent | None,
        rows: Sequence[object] | None,
        cost_weight: float,
        seed: int,
    ) -> None:
        rows = list(rows) if isinstance(rows, Iterator) else rows
        foreign = isinstance(rows, str | bytes | Mapping) or hasattr(rows, "iloc")
        if not isinstance(rows, Sized) or foreign or not len(rows) or not callable(agent):
            raise ValueError(
                "evaluate and data: expected agent(row, **choice) and a list of rows (of a frame: "
                f'frame.to_dict("records")), got {agent!r} and {rows!r}'
            )
        if not 0.0 <= as_float(cost_weight) < float("inf"):
            raise ValueError(f"cost_weight: expected a number of at least 0, got {cost_weight!r}")
        if isinstance(choices, Mapping):
            listed = [v if isinstance(v, list | tuple) else [v] for v in choices.values()]
            choices = [dict(zip(choices, v, strict=True)) for v in itertools.product(*listed)]
        if not choices:
            raise ValueError("choices: expected at least one")
        self._agent, self._rows, self._weight = agent, list(rows), cost_weight
        name = str(getattr(agent, "__name__", type(agent).__name__))
        try:
            source = inspect.getsource(agent)
        except (OSError, TypeError):
            source = name
        more = {"evaluate": name, "source": digest(source), "data": digest(self._rows)}
        super().__init__(
            name,
            [dict(each) for each in choices],
            [digest(dict(each)) for each in choices],
            shuffled(len(self._rows), seed),
            more | {"cost_weight": cost_weight},
        )

    def begin(self, study: Study, scoring: ChoiceScoring, most: float | None = None) -> None:
        """Reads what was tried already."""
        super().begin(study, scoring, most)
        study.enter(listening(study.settings, study.control))  # no model is opened
        self._writer, lines = study.open_lines(AGENT, _decoder, what="journal of a selection")
        self._known = {(line.choice, line.row): line for line in lines}

    def make(self, wanted: Sequence[SampleKey]) -> list[Sample]:
        """Calls the agent, under a budget as many times at once as can be paid.

        Calls begin row by row of one configuration, then of the next: as many rows of as many
        configurations are in flight as `plan_concurrency` states, and a slot that falls free goes
        to the next row in this order.
        """
        payers = [Payer(sample, kind=sample[0], generations=0) for sample in wanted]
        waves = Waves(self.study.ledger, payers, whole=True)
        stopped = self.study.control.stopping.is_set
        found: dict[int, Sample] = {}

        def one(place: int) -> None:
            self.study.control.wait_until_free()
            if waves.in_time and not stopped():
                found[place] = self._sample(*wanted[place])
                payers[place].costs.append(found[place].costs)
            else:
                payers[place].over = True

        with contextlib.closing(waves):
            while not stopped() and (wave := waves.next()):
                jobs = min(len(wave), self.study.settings.max_concurrent)
                parallel.map(one, sorted(wave, key=wanted.__getitem__), max_workers=jobs)
        return [found[k] for k in itertools.takewhile(found.__contains__, range(len(wanted)))]

    def _sample(self, k: int, i: int) -> Sample:
        row = self.sampled[i]
        if (line := self._known.get((k, row))) is None:
            self._writer.check_in_place()
            began = time.monotonic()
            result = self._agent(self._rows[row], **self.values[k])
            if inspect.iscoroutine(result):
                result = asyncio.run(result)
            score, cost = _score_and_cost(result)
            known, seconds = score if math.isfinite(score) else None, time.monotonic() - began
            line = Scored(choice=k, row=row, score=known, cost=cost, seconds=seconds)
            self._writer.append(line)
        score = math.nan if line.score is None else line.score - self._weight * line.cost
        return Sample(score, {"cost": line.cost, "seconds": line.seconds}, line.cost)


def _score_and_cost(result: object) -> tuple[float, float]:
    """Returns an agent's result as numbers; NaN for no score."""
    try:
        score, cost = result if isinstance(result, tuple) else (result, 0.0)
        score, cost = math.nan if score is None else float(score), float(cost)
    except (TypeError, ValueError):
        score, cost = math.nan, math.nan
    if not 0.0 <= cost < math.inf:
        raise ValueError(
            "evaluate: expected the agent to return a score, None for none, or (score, cost) with "
            f"a cost of at least 0, got {result!r}"
        )
    return score, cost


def _with_text(header: Header, text: str | None) -> Configuration:
    """Returns a configuration whose samples are problems: its text, and no generations."""
    task = header.task
    if not (task.asks_model and task.instances_file):
        raise ValueError(
            f"task {task.name}: a sample is a problem only where a model is asked a data set; "
            "programs are scored on all problems at once, see replay.instances"
        )
    if text is not None and (not isinstance(text, str) or not text.strip()):
        raise ValueError(f"text: expected a system prompt, got {text!r}")
    if text is not None and text.strip() != task.files[task.program_file].strip():
        task = msgspec.structs.replace(task, files={**task.files, task.program_file: text})
        task = msgspec.structs.replace(task, hash=hash_of_task(task))
    return configuration_of(msgspec.structs.replace(header, task=task, children=1), Goal(0))


def _text_of(text: object) -> object:
    if not isinstance(text, Log):
        return text
    if (best := text.best.program) is None:
        raise ValueError(f"{text.path}: a compact log holds no texts, so its best cannot be tried")
    return best
