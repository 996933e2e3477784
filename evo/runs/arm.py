"""One run, advanced by one generation at a time, and its log: what sessions and allocations drive.

Each generation asks for N children as the run's search plans; under greedy all rewrite the best
program so far (arXiv 2605.29268). The best of a run is replaced only by what is strictly better.
"""

from __future__ import annotations

import contextlib
import math
import threading
import time
import warnings
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import TypeVar

import msgspec

from evo.logs.cost import Attempted, cost_of_calls
from evo.logs.journal import LogError, Writer
from evo.logs.log import Best, Log
from evo.logs.records import (
    Child,
    Confirmation,
    End,
    Evaluation,
    Generation,
    Header,
    Initial,
    InstanceCall,
    Outcome,
    Plan,
    Tick,
)
from evo.models.client import CallCancelled, EndpointError, EndpointRefused
from evo.runs.child import Maker
from evo.runs.configuration import Event, EventKind
from evo.runs.evaluations import confirmed, plain, program_digest, tell_of_initial
from evo.runs.planning import Asked, Planner, with_fitness
from evo.runs.resources import Resources
from evo.sandbox import EvaluatorClosed, SandboxError
from evo.searches.base import choose
from evo.tasks.task import calls_of_evaluation, checks_of

MAX_THREADS = 512
REACHED = ("completed", "target", "patience", "budget")  # ends after which results are reported

_telling = threading.Lock()  # events are told one at a time

T = TypeVar("T")
OutcomeT = TypeVar("OutcomeT", bound=Outcome)


class Stopped(Exception):  # noqa: N818 - a wish of the user, not an error
    """The run was asked to stop."""


class Arm:
    """A run that can be advanced; it owns the log's writer.

    `best` is the best program so far, `generation` counts complete ones, `trajectory` and `costs`
    (by unit, NaN where unknown) go by generation from 0 on, `kept` is what the test at the end is
    expected to cost; `barren` counts since the last improvement.
    """

    best: Best

    def __init__(self, writer: Writer, header: Header, resources: Resources) -> None:
        self.header, self.path = header, writer.path
        self.generation = self.barren = 0
        self.trajectory: list[float] = []
        self.costs: list[dict[str, float]] = []
        self.kept: dict[str, float] = {}
        self._writer, self._resources = writer, resources
        self._under = header.under(0)
        self.maker = Maker(self._under, resources, writer)
        headers = [self._under, header, *(each.header for each in header.segments)]
        played = resources.only is not None
        self.planner = Planner(headers, self.maker.replies_under, played=played)
        self._plan_logged = False  # of the generation under way
        self._confirmed: Confirmation | None = None  # likewise
        self._logged: dict[int, Child] = {}  # children of the generation under way
        self._first: dict[bytes, tuple[int, int]] = {}  # where each program was first seen
        self._checks = 0  # tests that earlier sessions made at their end
        self._earlier = 0.0  # seconds that earlier sessions spent on the generation under way
        self._began = self._ticked = 0.0  # when it began, had all sessions been one

    @property
    def best_fitness(self) -> float | None:
        """Best fitness so far; None while nothing is ok."""
        return self.best.evaluation.fitness

    def begin(self, log: Log | None = None) -> None:
        """Evaluates the initial program, or takes over what the writer's log holds.

        TaskError: a package is missing; EvaluatorClosed: a stop came before the initial program was
        evaluated; EndpointError: the endpoint did not answer the calls of that evaluation.
        """
        maker, task = self.maker, self.header.task
        asked = [] if log is None else [*log.instance_calls, *log.critic_calls]
        if log is not None and log.generations:
            self._enter(len(log.generations) + 1)
        maker.learn(
            (call for call in asked if call.reply is not None), ()
        )  # what failed may do better
        maker.calls = [call for call in asked if call.generation == 0]
        program = task.files[task.program_file]
        initial = log.initial.evaluation if log and log.initial else None
        if initial is None:
            initial = maker.evaluate_initial(program)
            tell_of_initial(task.name, initial)
            if self._resources.only is None:  # not while a log is played again
                maker.evaluations.tell_of_noise(program, initial)
            self._writer.append(Initial(evaluation=plain(initial), value=initial.value))
        maker.evaluations.learn(program, initial)
        self.best = Best(program, initial, 0, 0)
        self.trajectory = [_number(initial.fitness)]
        self.costs = [cost_of_calls(maker.calls, self._under).by_unit(initial.seconds)]
        if held := checks_of(task):
            share = 2 * held / calls_of_evaluation(task)
            self.kept = {unit: share * amount for unit, amount in self.costs[0].items()}
            del self.kept["seconds"]
        self.planner.remember((0, 0), program, initial)
        self._first[program_digest(program)] = (0, 0)
        if log is not None:
            self._take_over(log, asked)
        self._tell("start", initial)

    def _take_over(self, log: Log, asked: Sequence[InstanceCall]) -> None:
        """Goes on where a log ends, a generation under way included."""
        self.generation, self._earlier = len(log.generations), log.seconds_under_way
        self._checks = sum("check_use" in end.stats for end in log.ends)
        self.trajectory += log.trajectory[1:].tolist()
        self.costs = [self.costs[0], *costs_of_log(log)[1:]]
        if log.inherits(0):
            self.costs[0] = dict.fromkeys(self.costs[0], 0.0)
        improved = [g.generation for g in log.generations if g.improved]
        self.barren = self.generation - max(improved, default=0)
        self.maker.calls = [call for call in asked if call.generation > self.generation]
        for child in log.children:
            if child.program is not None:
                self.maker.evaluations.learn(child.program, child.evaluation)
            if child.generation > self.generation:
                self._logged[child.index] = child
            else:
                self._remember(child)
        new = (reply for reply in log.replies.values() if reply.generation > self.generation)
        self.maker.learn((), new)
        self.planner.logged = {**self.planner.logged, **log.plans}
        self._plan_logged = self.generation + 1 in log.plans
        self._confirmed = log.confirmations.get(self.generation + 1)
        if log.generations:
            self.best = log.parent
            if self.header.confirm:
                self.best = with_fitness(self.best, log.generations[-1].best_fitness)
            if self.best.program is None:
                raise LogError(f"{self.path}: a compact log holds no programs and cannot go on")

    def play(self, log: Log) -> None:
        """Keeps to what a log says of plans and of calls that evaluations made."""
        self.planner.logged = log.plans
        self.maker.learn([*log.instance_calls, *log.critic_calls], log.replies.values())

    def advance(self, on_child: Callable[[Child], None] = lambda child: None) -> Generation:
        """Runs the next generation and logs it; `on_child` is told of each child once it is logged.

        What is done is in the log where it is `Stopped`, or EndpointDown: the endpoint does not
        answer; EndpointRefused: it refuses the key, the model, or every child.
        """
        number = self.generation + 1
        self._began, self._earlier = time.monotonic() - self._earlier, 0.0
        self._enter(number)
        self.maker.begin(number)
        asked, rejected = self._plan(number), list[Child]()
        missing = [index for index in range(len(asked)) if index not in self._logged]

        def log(child: Child) -> None:
            self._writer.append(child, *self._tick(number))
            self._logged[child.index] = child
            self._tell("child", child)
            on_child(child)

        def make(index: int) -> None:
            child, refused = self.maker.make(number, index, asked[index], self.best_fitness)
            if refused:
                rejected.append(child)
            else:
                log(child)

        if self._under.batches:
            self._race(number, asked, missing)
        self._at_once(missing, make)
        if len(rejected) == self.header.children:
            raise EndpointRefused(
                f"the endpoint refused every child of generation {number}: "
                f"{rejected[0].evaluation.error}; no child of it was logged, so the run can go on "
                "once that is mended"
            )
        for child in rejected:
            log(child)
        generation = self._conclude(number, time.monotonic() - self._began)
        self._writer.append(generation)
        self._writer.sync()
        self.generation = number
        self._tell("generation", generation)
        return generation

    def _tell(self, kind: EventKind, record: Evaluation | Child | Generation | End) -> None:
        """Tells who listens of what was logged."""
        if (on_event := self._resources.settings.on_event) is not None:
            event = Event(kind, self.path, self.header, self.generation, self.best_fitness, record)
            with _telling:
                on_event(event)

    def _enter(self, number: int) -> None:
        """Turns to the configuration that a generation is made under, where it is another one."""
        under = self.header.under(number)
        if under is not self._under and under != self._under:
            self._under = under
            self.maker.enter(under)
            self.planner.enter(under)

    def _plan(self, number: int) -> list[Asked]:
        """Plans a generation, and logs the plan before its first call."""
        asked = self.planner.plan(number, self.best)
        if number in self.planner.differing and not self.planner.played:
            warnings.warn(
                f"{self.path}: generation {number} goes on as it was planned when it began, though "
                "its search plans it otherwise now",
                stacklevel=2,
            )
        if self._under.search is not None and not self._plan_logged:
            requests = tuple(each.planned for each in asked)
            self._writer.append(Plan(generation=number, requests=requests))
            self._plan_logged = True
        return asked

    def _race(self, number: int, asked: Sequence[Asked], missing: Sequence[int]) -> None:
        """Tries a generation's new texts against each other, before its children are made."""
        self._at_once(missing, lambda index: self.maker.ask(number, index, asked[index]))
        rivals, found = dict[str, Evaluation](), dict[str, Evaluation]()
        for index, each in enumerate(asked):
            logged = self._logged.get(index)
            program = logged.program if logged else self.maker.program_of(number, index, each)
            if program is not None and program_digest(program) not in self._first:
                parent = self.planner.evaluation_of(each.planned.parents[0], self.best)
                rivals.setdefault(program, parent)
        assert self.maker.instances is not None
        race, limits = self.maker.instances.race, self.header.limits
        self._at_once([0], lambda _: found.update(race(rivals, limits)))
        for program, evaluation in found.items():
            self.maker.evaluations.learn(program, evaluation)

    def _at_once(self, places: Sequence[int], work: Callable[[int], object]) -> None:
        """Does a generation's work for some children in parallel; ends all at the first failure."""
        failed, alone = threading.Event(), self._resources.max_concurrent == 1 or len(places) <= 1

        def over(kind: object, error: BaseException | None, trace: object) -> None:
            if error is None:
                return
            failed.set()
            self._resources.wind_down(self.path, error)
            if isinstance(error, CallCancelled | EvaluatorClosed):
                raise Stopped from None

        def unit(place: int) -> None:
            if failed.is_set() or self._resources.stopping.is_set():
                raise Stopped
            self._resources.active.add((self.path, place))
            try:
                work(place)
            finally:
                self._resources.active.discard((self.path, place))

        with contextlib.ExitStack() as stack:
            stack.push(over)
            units: Iterable[None] = map(unit, places)
            if not alone:
                from joblib import Parallel, delayed

                how = {"backend": "threading", "batch_size": 1, "pre_dispatch": "all"}
                threads = min(len(places), MAX_THREADS)
                parallel = Parallel(threads, return_as="generator_unordered", **how)
                units = parallel(delayed(unit)(place) for place in places)
            deque(units, maxlen=0)

    def _tick(self, number: int) -> list[Tick]:
        """Notes the generation's time beside a child, if it was not noted just before."""
        now = time.monotonic()
        if now - max(self._ticked, self._began) < 1.0:
            return []
        self._ticked = now
        return [Tick(generation=number, seconds=round(now - self._began, 2))]

    def _remember(self, child: Child) -> tuple[int, int]:
        """Keeps what later generations need of a child; returns where its program first was."""
        place = (child.generation, child.index)
        self.planner.remember(place, child.program, child.evaluation, child.parents)
        if child.program is None:
            return place
        return self._first.setdefault(program_digest(child.program), place)

    def _conclude(self, number: int, seconds: float) -> Generation:
        """Chooses the best so far and notes which programs had been seen before."""
        children = [self._logged[index] for index in range(self.header.children)]
        chosen = choose_child(children, self.best_fitness, self.header.min_improvement)
        first = [self._remember(child) for child in children]
        if chosen is not None and self._rejects(number, chosen):
            chosen = None
        if chosen is not None:
            evaluation = chosen.evaluation
            if self._confirmed is not None:
                evaluation = confirmed(evaluation, self._confirmed.rival)
            self.best = Best(chosen.program, evaluation, number, chosen.index)
        self.barren = 0 if chosen is not None else self.barren + 1
        self.trajectory.append(_number(self.best_fitness))
        besides = self.maker.drafts_besides(number, [child.draft for child in children])
        made: list[Attempted] = [*children, *self.maker.calls, *besides]
        self.costs.append(cost_of_calls(made, self._under).by_unit(seconds))
        self._confirmed, self._plan_logged, self._logged = None, False, {}
        self.maker.evaluations.forget_values()
        return Generation(
            generation=number,
            best_fitness=self.best_fitness,
            best=(self.best.generation, self.best.index),
            improved=chosen is not None,
            seconds=seconds,
            repeats=tuple((i, *at) for i, at in enumerate(first) if at != (number, i)),
        )

    def _rejects(self, number: int, rival: Child) -> bool:
        """Whether a better child turns out no better than its parent on fresh draws."""
        program, parent = rival.program, self.best.program
        if not self.header.confirm or self.best_fitness is None or not (program and parent):
            return False
        if self._confirmed is None:
            try:
                tried = self.maker.evaluations.confirm(number, rival.index, parent, program)
            except EvaluatorClosed:
                raise Stopped from None
            self._writer.append(tried)
            self._confirmed = tried
        if not self._confirmed.accepted:
            fresh = confirmed(self.best.evaluation, self._confirmed.parent)
            self.best = replace(self.best, evaluation=fresh)
        return not self._confirmed.accepted

    def check(self) -> tuple[dict[str, float], dict[str, float]]:
        """Tests the final text against the initial one, once, on instances for checking.

        Returns what was found, see `certify`, empty if nothing was, and what it cost by unit.
        """
        initial, final = self.header.task.files[self.header.task.program_file], self.best.program
        found: dict[str, float] = {}
        self.maker.begin(self.generation)
        before = len(self.maker.calls)
        if final is not None and final != initial:
            with contextlib.suppress(CallCancelled, EvaluatorClosed, EndpointError, SandboxError):
                found = self.maker.check(initial, final, self._checks + 1)
        return found, cost_of_calls(self.maker.calls[before:], self._under).by_unit(0.0)

    def end(self, end: End) -> None:
        """Logs that the session ended in an orderly way, with what its calls came to."""
        session = self._resources.tally.stats(self._resources.slots.load)
        program = self.header.task.files[self.header.task.program_file]
        noisy = self.header.draws > 1 or self.header.confirm > 0
        if noisy and self.best.program and end.reason in REACHED:
            with contextlib.suppress(EvaluatorClosed):
                session |= self.maker.evaluations.report(program, self.best.program)
        end = msgspec.structs.replace(end, stats=end.stats | session)
        self._writer.append(end)
        self._tell("end", end)


def costs_of_log(log: Log) -> list[dict[str, float]]:
    """Returns what each complete generation of a log cost by unit, from generation 0 on."""
    calls: dict[int, list[Attempted]] = {}
    for call in log.calls:
        calls.setdefault(call.generation, []).append(call)
    seconds = [log.initial.evaluation.seconds if log.initial else 0.0]
    seconds += [generation.seconds for generation in log.generations]
    return [
        cost_of_calls(calls.get(g, []), log.header.under(g)).by_unit(0.0 if log.inherits(g) else t)
        for g, t in enumerate(seconds)
    ]


def _number(fitness: float | None) -> float:
    return math.nan if fitness is None else fitness


def choose_child(
    children: Sequence[OutcomeT], best_fitness: float | None, min_improvement: float
) -> OutcomeT | None:
    """Returns the child of a generation that replaces its parent, or None; see `choose`."""
    return choose(children, best_fitness, min_improvement, lambda each: each.evaluation.fitness)
