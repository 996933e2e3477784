"""One run, advanced by one generation at a time, and its log: what sessions and allocations drive.

Each generation asks for N rewrites of the frozen best program; the best child replaces it if
strictly better (arXiv 2605.29268, greedy protocol).
"""

from __future__ import annotations

import contextlib
import dataclasses
import hashlib
import math
import threading
import time
from collections.abc import Callable, Iterable, Sequence
from typing import TypeVar

import msgspec

from evo.cost import cost_of_children
from evo.journal import LogError
from evo.llm.client import Call, CallCancelled, EndpointRefused
from evo.log import Best, Log, LogWriter
from evo.prompt import Message, parse_reply
from evo.records import (
    Child,
    Confirmation,
    End,
    Evaluation,
    Generation,
    Header,
    Initial,
    InstanceCall,
    Outcome,
    Reply,
    Tick,
)
from evo.runs.evaluations import (
    Evaluates,
    EvaluationMemory,
    program_digest,
    tell_of_initial,
)
from evo.runs.instances import InstanceEvaluator
from evo.runs.noise import DrawnEvaluator, confirmed
from evo.runs.planning import Planned, Planner
from evo.runs.resources import Resources
from evo.sandbox import EvaluatorClosed, SandboxError
from evo.searches.base import Member, choose

MAX_THREADS = 512
REACHED = ("completed", "target", "patience", "budget")  # ends after which results are reported

OutcomeT = TypeVar("OutcomeT", bound=Outcome)


class Stopped(Exception):  # noqa: N818 - a wish of the user, not an error
    """The run was asked to stop."""


def child_seed(seed: int, children: int, generation: int, index: int) -> int:
    """Returns a child's own seed in [0, 2**31): the prefix property rests on its arguments alone.

    Args:
        seed: Seed of the run.
        children: N.
        generation: From 1.
        index: From 0.
    """
    key = f"{seed}/{children}/{generation}/{index}".encode()
    return int.from_bytes(hashlib.sha256(key).digest()[:4], "big") >> 1


class Arm:
    """A run that can be advanced; it owns the log's writer.

    Attributes:
        header: Configuration of the run.
        path: Its log.
        best: The best program so far with its evaluation and place.
        generation: Complete generations.
        trajectory: Best fitness after each generation from 0 on; NaN while nothing is ok.
        costs: By generation from 0 on, what it cost by unit; NaN where unknown.
        barren: Generations since the last improvement.
    """

    def __init__(self, writer: LogWriter, header: Header, resources: Resources) -> None:
        self.header = header
        self.path = writer.path
        self.generation = self.barren = 0
        self.trajectory: list[float] = []
        self.costs: list[dict[str, float]] = []
        self._writer = writer
        self._resources = resources
        self._caller = resources.caller(header)
        self._calls: list[InstanceCall] = []  # of evaluations, in the generation under way
        self._instances: InstanceEvaluator | None = None
        if header.task.instances_file:
            self._instances = InstanceEvaluator(
                header,
                resources.evaluator.evaluate,
                self._caller,
                max_concurrent=resources.max_concurrent,
                stopping=resources.stopping,
                on_call=self._log_call,
            )
        source = self._instances or resources.evaluator
        self._draws = DrawnEvaluator(header, source)
        plain = (header.draws, header.confirm) == (1, 0)
        self.evaluator: Evaluates = source if plain else self._draws
        self._confirmed: Confirmation | None = None  # of the generation under way
        self._memory = EvaluationMemory(header.task, header.limits, self.evaluator)
        self._first: dict[bytes, tuple[int, int]] = {}  # where each program was first seen
        self._logged: dict[int, Outcome] = {}  # children of the generation under way
        self._programs: dict[int, str | None] = {}  # their programs
        self._replies: dict[int, Reply] = {}  # of those that are still to be evaluated
        self._planner = Planner(header, self._replies_under)
        self._earlier = 0.0  # seconds that earlier sessions spent on the generation under way
        self._began = self._ticked = 0.0  # when it began, had all sessions been one
        self.best: Best

    @property
    def best_fitness(self) -> float | None:
        """Best fitness so far; None while nothing is ok."""
        return self.best.evaluation.fitness

    def begin(self, log: Log | None = None) -> None:
        """Evaluates the initial program, or takes over what a log holds.

        Args:
            log: The log that the writer goes on with.

        Raises:
            TaskError: The initial program or the evaluator needs a package that is not installed.
            EvaluatorClosed: A stop was asked for before the initial program was evaluated.
            EndpointError: The endpoint did not answer the calls of that evaluation.
        """
        if log is not None:  # what failed may do better now
            self.learn(call for call in log.instance_calls if call.reply is not None)
        program = self.header.task.files[self.header.task.program_file]
        self._calls = [call for call in log.instance_calls if call.generation == 0] if log else []
        initial = log.initial.evaluation if log and log.initial else None
        if initial is None:
            initial = self._evaluate_initial(program)
            tell_of_initial(self.header.task.name, initial)
            if self._resources.only is None:  # not while a log is played again
                self._draws.tell_of_noise(program, initial)
            self._writer.append(Initial(evaluation=_plain(initial), value=initial.value))
        else:
            self._memory.learn(program, initial)
        self.best = Best(program, initial, 0, 0)
        self._planner.remember((0, 0), program, initial)
        self._first[program_digest(program)] = (0, 0)
        if log is not None:
            self._take_over(log)
        else:
            self.trajectory = [_number(initial.fitness)]
            self.costs = [_costs(self.header, self._calls, initial.seconds)]

    def _take_over(self, log: Log) -> None:
        """Goes on where a log ends, a generation under way included."""
        self.generation, self._earlier = len(log.generations), log.seconds_under_way
        self.trajectory = [_number(self.best_fitness), *log.trajectory[1:].tolist()]
        self.costs = costs_of_log(log)
        self.costs[0] = _costs(self.header, self._calls, self.best.evaluation.seconds)
        improved = [g.generation for g in log.generations if g.improved]
        self.barren = self.generation - max(improved, default=0)
        self._calls = [c for c in log.instance_calls if c.generation > self.generation]
        for child in log.children:
            if child.program is not None:
                self._memory.learn(child.program, child.evaluation)
            if child.generation > self.generation:
                self._logged[child.index] = child
                self._programs[child.index] = child.program
                continue
            place = (child.generation, child.index)
            self._planner.remember(place, child.program, child.evaluation)
            if child.program is not None:
                self._first.setdefault(program_digest(child.program), place)
        self._replies = {
            index: reply for (g, index), reply in log.replies.items() if g > self.generation
        }
        self._confirmed = log.confirmations.get(self.generation + 1)
        if log.generations:
            self.best = log.parent
            if self.header.confirm:
                self.best = _with_fitness(self.best, log.generations[-1].best_fitness)
            if self.best.program is None:
                raise LogError(f"{self.path}: a compact log holds no programs and cannot go on")

    def learn(self, calls: Iterable[InstanceCall]) -> None:
        """Takes over calls that evaluations made: they are not made again."""
        if self._instances is not None:
            self._instances.learn(calls)

    def _log_call(self, call: InstanceCall) -> None:
        self._writer.append(call)
        self._resources.tally.add(call.attempts, self.header)
        self._calls.append(call)

    def _evaluate_initial(self, program: str) -> Evaluation:
        try:
            initial = self._memory.evaluate(program)
        except CallCancelled:
            raise EvaluatorClosed("stopped before the initial text was evaluated") from None
        if initial.status == "no_reply":
            raise EndpointRefused(
                f"the initial text cannot be evaluated: {initial.error}; the run can go on once "
                "that is mended"
            )
        return initial

    def advance(self, on_child: Callable[[Child], None] | None = None) -> Generation:
        """Runs the next generation and logs it.

        Args:
            on_child: Told of each child once it is logged, from the thread that made it.

        Raises:
            Stopped: A stop was asked for; what is done is in the log.
            EndpointDown: The endpoint does not answer.
            EndpointRefused: It refuses the key, the model, or every child of the generation.
        """
        number = self.generation + 1
        self._began = time.monotonic() - self._earlier
        self._earlier = 0.0
        self._calls = [call for call in self._calls if call.generation == number]
        if self._instances is not None:
            self._instances.generation = number
        rejected: dict[int, Child] = {}
        made = self._make_children(number, self._planner.plan(self.best), rejected, on_child)
        if len(rejected) == self.header.children:
            reason = next(iter(rejected.values())).evaluation.error
            raise EndpointRefused(
                f"the endpoint refused every child of generation {number}: {reason}; no child of "
                "it was logged, so the run can go on once that is mended"
            )
        for child in rejected.values():
            self._writer.append(child)
            made.append(child)
            if on_child:
                on_child(child)
        for child in made:
            self._logged[child.index] = child
            self._programs[child.index] = child.program
        generation = self._conclude(number, time.monotonic() - self._began)
        self._writer.append(generation)
        self._writer.sync()
        self.generation = number
        return generation

    def _replies_under(self, text: str) -> dict[str, str]:
        if self._instances is None or not self.header.task.asks_model:
            return {}
        return self._instances.replies_under(text)

    def _make_children(
        self,
        number: int,
        planned: Sequence[Planned],
        rejected: dict[int, Child],
        on_child: Callable[[Child], None] | None,
    ) -> list[Child]:
        """Makes the missing children; those that the endpoint refused are not logged yet."""
        missing = [index for index in range(len(planned)) if index not in self._logged]
        failed = threading.Event()

        def unit(index: int) -> Child:
            if failed.is_set() or self._resources.stopping.is_set():
                raise Stopped
            self._resources.active.add((self.path, index))
            try:
                child, refused = self._make_child(number, index, planned[index])
                if refused:
                    rejected[index] = child
                    return child
                self._writer.append(child, *self._tick(number))
            finally:
                self._resources.active.discard((self.path, index))
            if on_child:
                on_child(child)
            return child

        made: list[Child] = []
        try:
            if self._resources.max_concurrent == 1 or len(missing) == 1:
                made = [unit(index) for index in missing]
            elif missing:
                from joblib import Parallel, delayed

                parallel = Parallel(
                    n_jobs=min(len(missing), MAX_THREADS),
                    backend="threading",
                    return_as="generator_unordered",
                    batch_size=1,
                    pre_dispatch="all",
                )
                for child in parallel(delayed(unit)(index) for index in missing):
                    made.append(child)
        except BaseException as error:
            failed.set()
            self._resources.wind_down(self.path, error)
            if isinstance(error, CallCancelled | EvaluatorClosed):
                raise Stopped from None
            raise
        return [child for child in made if child.index not in rejected]

    def _tick(self, number: int) -> list[Tick]:
        """Notes the generation's time beside a child, if it was not noted just before."""
        now = time.monotonic()
        if now - max(self._ticked, self._began) < 1.0:
            return []
        self._ticked = now
        return [Tick(generation=number, seconds=round(now - self._began, 2))]

    def _make_child(self, number: int, index: int, planned: Planned) -> tuple[Child, bool]:
        """Call -> parse -> evaluate: one child, and whether the endpoint refused its request."""
        seed = child_seed(self.header.seed, self.header.children, number, index)
        call = self._ask(number, index, planned.messages, seed)
        program = parse_reply(
            call.reply, finish_reason=call.finish_reason, evolves=self.header.task.evolves
        )
        if call.reply is None:
            last = call.attempts[-1].error if call.attempts else None
            evaluation = Evaluation(status="no_reply", error=call.rejected or last)
        elif program is None:
            cut = "truncated" if call.finish_reason == "length" else "no complete block"
            evaluation = Evaluation(status="no_program", error=f"the reply has no program: {cut}")
        else:
            logged = index in self._replies
            if self.header.task.asks_model and not logged:
                self._log_reply(number, index, call)
                logged = True
            try:
                evaluation = self._memory.evaluate(program)
            except (EvaluatorClosed, SandboxError):
                if not logged:  # the reply was paid for
                    self._log_reply(number, index, call)
                raise
        child = Child(
            generation=number,
            index=index,
            seed=seed,
            prompt_hash=planned.prompt_hash,
            attempts=call.attempts,
            evaluation=_plain(evaluation),
            parents=planned.request.parents,
            reply=call.reply,
            reasoning=call.reasoning,
            program=program,
            value=evaluation.value if self._is_better(evaluation) else None,
        )
        unanswered = program is not None and evaluation.status == "no_reply"
        return child, call.rejected is not None or unanswered

    def _is_better(self, evaluation: Evaluation) -> bool:
        """Whether a child may replace its parent, so that its construction is worth a picture."""
        best, fitness = self.best_fitness, evaluation.fitness
        return fitness is not None and (best is None or fitness > best)

    def _ask(self, number: int, index: int, messages: list[Message], seed: int) -> Call:
        """Makes a child's call, unless an earlier session did."""
        if (kept := self._replies.get(index)) is not None:
            reason = kept.attempts[-1].finish_reason if kept.attempts else None
            return Call(kept.attempts, kept.reply, kept.reasoning, reason)
        call = self._caller.call(messages, seed=seed, generation=number, index=index)
        self._resources.tally.add(call.attempts, self.header)
        return call

    def _log_reply(self, number: int, index: int, call: Call) -> None:
        """Keeps a child's call safe until the child can be evaluated."""
        reply = Reply(
            generation=number,
            index=index,
            attempts=call.attempts,
            reply=call.reply,
            reasoning=call.reasoning,
        )
        self._writer.append(reply)

    def _conclude(self, number: int, seconds: float) -> Generation:
        """Chooses the next parent and notes which programs had been seen before."""
        children = [self._logged[index] for index in range(self.header.children)]
        chosen = choose_child(children, self.best_fitness, self.header.min_improvement)
        repeats: list[tuple[int, int, int]] = []
        for child in children:
            program = self._programs[child.index]
            self._planner.remember((number, child.index), program, child.evaluation)
            if program is None:
                continue
            first = self._first.setdefault(program_digest(program), (number, child.index))
            if first != (number, child.index):
                repeats.append((child.index, *first))
        if chosen is not None and not self._rejects(number, chosen):
            program, evaluation = self._programs[chosen.index], chosen.evaluation
            if self._confirmed is not None:
                evaluation = confirmed(evaluation, self._confirmed.rival)
            self.best = Best(program, evaluation, number, chosen.index)
        else:
            chosen = None
        self._confirmed = None
        self.barren = 0 if chosen is not None else self.barren + 1
        self.trajectory.append(_number(self.best_fitness))
        self.costs.append(_costs(self.header, [*children, *self._calls], seconds))
        self._logged, self._programs, self._replies = {}, {}, {}
        return Generation(
            generation=number,
            best_fitness=self.best_fitness,
            best=(self.best.generation, self.best.index),
            improved=chosen is not None,
            seconds=seconds,
            repeats=tuple(repeats),
        )

    def _rejects(self, number: int, rival: Outcome) -> bool:
        """Whether a better child turns out no better than its parent on fresh draws."""
        program, parent = self._programs[rival.index], self.best.program
        if not self.header.confirm or self.best_fitness is None or not (program and parent):
            return False
        if self._confirmed is None:
            try:
                tried = self._draws.confirm(number, rival.index, parent, program)
            except EvaluatorClosed:
                raise Stopped from None
            self._writer.append(tried)
            self._confirmed = tried
        if not self._confirmed.accepted:
            fresh = confirmed(self.best.evaluation, self._confirmed.parent)
            self.best = dataclasses.replace(self.best, evaluation=fresh)
        return not self._confirmed.accepted

    def end(self, end: End) -> None:
        """Logs that the session ended in an orderly way, with what its calls came to."""
        session = self._resources.tally.stats(self._resources.slots.load)
        program = self.header.task.files[self.header.task.program_file]
        if self.evaluator is self._draws and self.best.program and end.reason in REACHED:
            with contextlib.suppress(EvaluatorClosed):
                session |= self._draws.report(program, self.best.program)
        self._writer.append(msgspec.structs.replace(end, stats=end.stats | session))


def costs_of_log(log: Log) -> list[dict[str, float]]:
    """Returns what each complete generation of a log cost by unit, from generation 0 on."""
    calls: dict[int, list[Outcome | InstanceCall | Reply]] = {}
    for call in log.calls:
        calls.setdefault(call.generation, []).append(call)
    seconds = [log.initial.evaluation.seconds if log.initial else 0.0]
    seconds += [generation.seconds for generation in log.generations]
    return [_costs(log.header, calls.get(g, []), wall) for g, wall in enumerate(seconds)]


def _costs(
    header: Header, calls: Sequence[Outcome | InstanceCall | Reply], seconds: float | None
) -> dict[str, float]:
    return cost_of_children(calls, header.model, header.sampling).by_unit(seconds)


def _with_fitness(best: Best, fitness: float | None) -> Best:
    """Returns a program with the fitness that its latest confirmation gave it."""
    if fitness is None or best.evaluation.fitness is None:
        return best
    evaluation = msgspec.structs.replace(best.evaluation, fitness=fitness)
    return dataclasses.replace(best, evaluation=evaluation)


def _number(fitness: float | None) -> float:
    return math.nan if fitness is None else fitness


def _plain(evaluation: Evaluation) -> Evaluation:
    """Returns an evaluation without the construction, which has a place of its own in a line."""
    if evaluation.value is None:
        return evaluation
    return msgspec.structs.replace(evaluation, value=None)


def choose_child(
    children: Sequence[OutcomeT], best_fitness: float | None, min_improvement: float
) -> OutcomeT | None:
    """Returns the child of a generation that replaces its parent, or None; see `choose`."""
    members = [
        Member((child.generation, child.index), child.evaluation.fitness) for child in children
    ]
    chosen = choose(members, best_fitness, min_improvement)
    return None if chosen is None else children[members.index(chosen)]
