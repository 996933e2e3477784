"""A run that can be advanced by one generation at a time: its log, its state and its steps.

Sessions and allocations drive runs through `Arm`. What a generation does stands in `evo.runs.loop`.
"""

from __future__ import annotations

import contextlib
import functools
import math
import threading
import time
from collections.abc import Callable, Sequence

import msgspec

from evo.filters.registry import filters_of
from evo.logs.calls import parted, without_call
from evo.logs.journal import LogError, Writer
from evo.logs.log import Log
from evo.logs.records import (
    Advice,
    Child,
    CriticCall,
    Evaluation,
    Generation,
    Header,
    Initial,
    InstanceCall,
    Line,
    ReplyLine,
    RunEnd,
    Tick,
)
from evo.models.client import CallCancelled, EndpointError, EndpointRefused
from evo.models.critics import Scorer, known_of
from evo.runs import items
from evo.runs.accept import Confirm
from evo.runs.advice import Advise
from evo.runs.ask import Asks, Drafts, OneCall, replies_by_draft, score_of
from evo.runs.bounds import kept_for_checks
from evo.runs.dataset import InstanceEvaluator
from evo.runs.early import EarlyWarnings
from evo.runs.evaluate import (
    DrawEvaluator,
    DrawFunction,
    Evaluate,
    check_initial,
    check_noise,
    final_report,
    fixed_limit,
    plain,
    remarks,
)
from evo.runs.items import Item, complete
from evo.runs.judge import draw_of
from evo.runs.loop import Steps
from evo.runs.planning import Planner
from evo.runs.race import Race
from evo.runs.rates import with_rates
from evo.runs.resources import Resources
from evo.runs.screening import Screening
from evo.runs.settings import Event, EventKind
from evo.runs.stages import evaluate_step
from evo.runs.state import State, lines_of, program_digest
from evo.runs.steady import machine_of
from evo.runs.workers import MAX_THREADS, Stopped, Workers, perform
from evo.sandbox import EvaluatorClosed, SandboxError

REACHED = ("completed", "target", "patience", "rule", "budget")  # then results are reported


class Arm:
    """A run that can be advanced; it owns the log's writer.

    Attributes:
        header: Configuration of the run.
        path: Its log.
        state: What its log holds, folded; see `State`.
        planner: Plans its generations.
        draws: Evaluates programs as the generation under way does.
        instances: Evaluates on the task's data set, if it has one.
        kept: What the test at the end is expected to cost, by unit.
        further: Says without a barrier whether one more generation may begin beside others.
        over: Why no further generation can be made; empty while one can.
        abandoned: Whether what made its children ended with an earlier session.
    """

    over, abandoned = "", False
    draws: DrawEvaluator
    _steps: Steps
    _evaluate: Evaluate

    def __init__(self, writer: Writer, header: Header, resources: Resources) -> None:
        self.header, self.path = header, writer.path
        self.state = State(header)
        self.planner = Planner(str(self.path), played=resources.only is not None)
        self.kept: dict[str, float] = {}
        self.instances: InstanceEvaluator | None = None
        self._played: dict[bytes, Evaluation] = {}
        self._under: Header | None = None
        self._writer, self._resources = writer, resources
        self._workers = Workers(resources, self.path)
        # The state takes lines in the order of the file, so one lock is around both.
        hand = resources.hand
        self._changed = threading.Condition(threading.RLock()) if hand is None else hand.changed
        window = header.children if hand is not None else resources.settings.max_concurrent
        stamp = functools.partial(with_rates, header, self.state)
        self._machine = machine_of(self.state, stamp, window=window)
        self.further: Callable[[], bool] = lambda: False
        self._scorer: Scorer | None = None
        self._screening = Screening(header, resources, self.log, self.state.known)
        played_again = resources.only is not None
        self._early = EarlyWarnings(self.header, self.path, resources.warn_once, over=played_again)
        self._on_child: Callable[[Child], None] = lambda child: None
        self._began = self._ticked = 0.0

    @property
    def generation(self) -> int:
        """The number of complete generations."""
        return self.state.generation

    def begin(self, log: Log | None = None) -> None:
        """Evaluates the initial program, unless the writer's log holds that, and goes on from it.

        Args:
            log: What the writer's log holds; None: nothing.

        Raises:
            TaskError: A package is missing.
            EvaluatorClosed: A stop came before the initial program was evaluated.
            EndpointError: The endpoint did not answer the calls of that evaluation.
            LogError: The log is compact and cannot go on.
        """
        state = self.state
        if log is not None:  # what a call costs is fixed when it is made: see `with_rates`
            models = {name: getattr(log.header, name) for name in ("model", "models", "critic")}
            state.header = msgspec.structs.replace(state.header, **models)
            for logged in lines_of(log):
                state.take(logged)
            if any(each.evaluation.fitness is not None for each in log.outcomes):
                self._early.end()
        begun = bool(state.archive)
        self._enter(state.generation + 1 if begun else 0)
        if not begun:
            self._evaluate_initial()
        if state.best.program is None:
            raise LogError(f"{self.path}: a compact log holds no programs and cannot go on")
        self.kept = kept_for_checks(state)
        self._tell("start", state.archive[0][0].evaluation)

    def _evaluate_initial(self) -> None:
        task, program = self.header.task, self.header.task.files[self.header.task.program_file]
        try:
            initial = self.evaluate(program)
        except CallCancelled:
            raise EvaluatorClosed("stopped before the initial text was evaluated") from None
        if initial.status == "no_reply":
            raise EndpointRefused(
                f"the initial text cannot be evaluated: {initial.error}; the run can go on once "
                "that is mended"
            )
        check_initial(task.name, initial)
        played = self._resources.only is not None
        for words in () if played else remarks(self.header, initial):
            self._resources.tell_once(words)
        second = None if played else check_noise(self.draws, program, initial)
        limit, found = self.state.limit, plain(initial)
        limit = limit or fixed_limit(self.header.limits, initial, second)
        self.log(Initial(evaluation=found, value=initial.value, second=second, limit=limit))
        self._early.begin(found.fitness)
        self._enter(0)

    def play(self, log: Log) -> None:
        """Takes plans and calls from a log, failed ones included."""
        self.planner.logged, self.planner.requests = log.plans, log.requests
        done = [child for child in log.outcomes if child.generation <= len(log.generations)]
        self.planner.order = [each.request for each in done if each.request is not None]
        self.state.known.update(known_of([*log.instance_calls, *log.critic_calls]))
        self._screening.play(log)
        self.state.replies.update(replies_by_draft(log, done))
        self.state.limit = log.initial.limit if log.initial else None
        if self.header.task.isolation == "here" and log.initial is not None:
            task = self.header.task
            first = task.files[task.program_file]
            made = [(first, log.initial.evaluation)]
            made += [(child.program or "", child.evaluation) for child in log.children]
            self._played = {program_digest(text): found for text, found in made if text}

    def _play_evaluation(self, _: object, program: str, *_a: object, **_b: object) -> Evaluation:
        """Returns the logged evaluation of a program that was evaluated in the user's process."""
        missing = Evaluation(status="error", error="the log holds no evaluation of this program")
        return self._played.get(program_digest(program), missing)

    def advance(self, on_child: Callable[[Child], None] = lambda child: None) -> None:
        """Makes the next generation and logs it; without a barrier it may be more, or a part.

        Args:
            on_child: Called with each child once it is logged.

        Raises:
            Stopped: A stop was asked for; what is done is in the log, as in the next two cases.
            EndpointDown: The endpoint does not answer.
            EndpointRefused: It refuses the key, the model, or every child.
        """
        number = self.generation + 1
        self._enter(number, on_child)
        machine = self._machine
        if self._resources.control.stopping.is_set():
            raise Stopped
        with self._changed:
            self._write(machine.begin(self._steps))
            self._hand_over()
        with contextlib.suppress(Stopped, EvaluatorClosed):
            self._workers.each(self._work, range(self._at_once()))
        if isinstance(machine.failure, CallCancelled | EvaluatorClosed):
            raise Stopped
        if machine.failure is not None:  # a thread that began after it only saw the stop
            raise machine.failure
        if self.generation < number and machine.has_room():
            raise Stopped

    def _at_once(self) -> int:
        """Returns how many items of the generation can be under way at once."""
        header = self.header.at_generation(self.generation + 1)
        if self._resources.settings.max_concurrent == 1:
            return 1
        return min(header.children * header.drafts, MAX_THREADS)

    def plan_while(self, has_room: Callable[[], bool]) -> None:
        """Takes what says without a barrier, before each child, whether it may be planned."""
        self._machine.has_room = has_room

    @property
    def begun(self) -> int:
        """How many generations have begun."""
        return self._machine.begun

    def _work(self, _: int) -> None:
        """Asks the machine for work, does it and tells, until nothing of the generation is left."""
        machine, stopping = self._machine, self._resources.control.stopping
        while True:
            with self._changed:
                if stopping.is_set():
                    machine.drain()
                while not (asked := machine.ask(1)):
                    if machine.idle:
                        self._changed.notify_all()
                        if machine.failure is not None:
                            raise machine.failure
                        return
                    self._changed.wait()
            try:
                result: object = perform(asked[0], self._perform, self._take)
            except Exception as error:
                result = error
            self._take(asked[0], result)

    def _take(self, item: Item, result: object, evaluation: Evaluation | None = None) -> None:
        """Tells the machine what came of an item, and logs what follows from it."""
        machine, hand = self._machine, self._resources.hand
        with self._changed:
            try:
                elapsed = time.monotonic() - self._began
                lines = machine.tell(item, result, evaluation=evaluation, seconds=elapsed)
                self._write(lines)
                if machine.wants_more and self.further():
                    self._write(machine.begin(self._steps))
            except BaseException:
                machine.drain()
                self._changed.notify_all()
                raise
            self._hand_over()
            if hand is None:
                self._changed.notify(machine.ready)
            else:
                hand.learn(machine.denied)
        failure = machine.failure
        ended = isinstance(failure, CallCancelled | EvaluatorClosed)
        if failure is not None and not ended and self._resources.is_fatal(failure):
            self._resources.control.stop()

    def _hand_over(self) -> None:
        """Hands the calls that are ready to those who make them by hand, if the session has any."""
        if (hand := self._resources.hand) is not None:
            for call in self._machine.ask(self._machine.ready, items.CallItem):
                assert isinstance(call, items.CallItem)
                hand.open(call, self.state, functools.partial(self._take, call))

    def _perform(self, item: Item) -> object:
        """Does a piece of work."""
        match item:
            case items.CallItem():
                generation, index = item.prompt.place
                return self._resources.caller(item.header).call(
                    item.prompt.messages, seed=item.seed, generation=generation, index=index
                )
            case items.ScoreItem():
                assert self._scorer is not None
                return score_of(self._scorer, item)
            case items.ScreenItem():
                return self._screening.screen(item)
            case items.CompareItem():
                return self._screening.compare(item, self.generation + 1)
            case items.DrawItem():
                return self.draws.perform(item)
            case items.BatchesItem():
                assert self.instances is not None
                return self.instances.race(item.rivals, self.draws.header.limits)

    def evaluate(self, program: str) -> Evaluation:
        """Evaluates a program that no child of the machine brought."""
        return complete(self._evaluate(program, self.state), self._perform)

    def log(self, line: Line, *more: Line) -> None:
        """Appends lines to the log at once, folds them into the state, and calls who listens."""
        with self._changed:
            for each in (line, *more):
                width = self.header.children
                if isinstance(each, Child) and each.reply_key(width) not in self.state.replies:
                    self._machine.log(parted(each, width)[0])
                self._machine.log(each)
            self._write(self._machine.take_lines())

    def _write(self, lines: Sequence[Line]) -> None:
        """Appends lines that the state has taken, and calls who listens."""
        kinds = {type(line) for line in lines}
        ticks = self._tick() if Child in kinds and Generation not in kinds else []
        for tick in ticks:
            self.state.take(tick)
        if lines:
            whole = self.header.schema < 3
            written = (
                without_call(line) if isinstance(line, Child) and not whole else line
                for line in lines
            )
            self._writer.append(*written, *ticks)
        for line in lines:
            self._announce(line)
            if isinstance(line, Child):
                self._early.take(line)

    def _announce(self, line: Line) -> None:
        match line:
            case Child():
                if self._resources.hand is not None:
                    self._resources.hand.learn([line])
                self._tell("child", line)
                self._on_child(line)
            case Generation():
                self._evaluate.known.clear()
                self._writer.sync()
                if self.header.asynchronous:  # the next one is under way already
                    self._began = time.monotonic()
                    if self.instances is not None:
                        self.instances.generation = line.generation + 1
                self._tell("generation", line)
            case RunEnd() if self.state.trajectory:  # else nobody heard that it began
                self._tell("end", line)
            case CriticCall() | InstanceCall() | ReplyLine() | Advice():
                self._resources.tally.add(line.attempts, self.header.asked_of(line))

    def _tick(self) -> list[Tick]:
        """Returns the time of the generation under way, at most once a second."""
        now = time.monotonic()
        if now - max(self._ticked, self._began) < 1.0:
            return []
        self._ticked = now
        return [Tick(generation=self.generation + 1, seconds=round(now - self._began, 2))]

    def _tell(self, kind: EventKind, record: Evaluation | Child | Generation | RunEnd) -> None:
        """Calls the session's listener, if there is one, with what was logged."""
        if not self._resources.settings.all_listeners:
            return
        state = self.state
        units = state.costs[-1] if state.costs else ()
        cost = {unit: math.fsum(each[unit] for each in state.costs) for unit in units}
        self._resources.tell(
            Event(kind, self.path, self.header, self.generation, state.best_fitness, record, cost)
        )

    def _enter(
        self, generation: int, on_child: Callable[[Child], None] = lambda child: None
    ) -> None:
        """Prepares the steps of a generation, whose configuration may differ in a fork.

        LogError: The log's path names another file by now.
        """
        self._writer.check_in_place()
        self._began, self._on_child = time.monotonic() - self.state.seconds, on_child
        header = self.header.at_generation(generation)
        header = msgspec.structs.replace(header, limits=header.limits.fixed(self.state.limit))
        if self.instances is not None:
            self.instances.generation = generation
        if header == self._under:
            return
        self._under, resources, state = header, self._resources, self.state
        draw: DrawFunction = self._play_evaluation
        if not self._played:
            draw, self.instances = draw_of(header, resources, self.log, state.known)
        if self.instances is not None:
            self.instances.generation = generation
        self.draws = DrawEvaluator(header, draw)
        self._evaluate = evaluate_step(self.draws)
        one = OneCall(header, self._machine.log)
        ask: Asks = one
        if header.drafts > 1:
            self._scorer = resources.scorer(header, self.log, state.known)
            ask = Drafts(one, scored=self._scorer is not None)
        race = None
        if header.batches and self.instances is not None:
            race = Race(header, ask, self._evaluate)
        self._steps = Steps(
            plan=self.planner,
            ask=race.ask if race else ask,
            evaluate=self._evaluate,
            filters=filters_of(header) if header.filters else (),
            race=race.race if race else None,
            advise=Advise(self._machine.log) if header.advice else None,
            accept=Confirm(header, self._machine.log) if header.confirm else None,
        )

    def check(self) -> tuple[dict[str, float], dict[str, float]]:
        """Tests the final text against the initial one, once, on instances for checking.

        Returns what was found, see `certify`, empty if nothing was, and what it cost by unit.
        """
        state, task = self.state, self.header.task
        initial, final = task.files[task.program_file], state.best.program
        found: dict[str, float] = {}
        before = state.costs[-1]
        if self.instances is not None and final not in (None, initial):
            self.instances.generation = self.generation
            with contextlib.suppress(CallCancelled, EvaluatorClosed, EndpointError, SandboxError):
                found = self.instances.certify(initial, final, state.checks + 1)
        return found, {unit: cost - before[unit] for unit, cost in state.costs[-1].items()}

    def close(self) -> None:
        """Releases what it started; whoever opened the log's writer closes that."""

    def end(self, end: RunEnd) -> None:
        """Logs that the session ended in an orderly way, with figures of its calls."""
        begun = bool(self.state.trajectory)  # an arm of an allocation may never have been pulled
        best, task = self.state.best.program if begun else None, self.header.task
        figures = self._resources.tally.stats(self._resources.slots.load)
        noisy = self.header.draws > 1 or self.header.confirm > 0
        if noisy and best is not None and end.reason in REACHED:
            with contextlib.suppress(EvaluatorClosed):
                figures |= final_report(self.draws, task.files[task.program_file], best)
        self.log(msgspec.structs.replace(end, stats=end.stats | figures))
