"""Sessions: the only thing that brings logs to their goals, several at a time."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Generator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import msgspec

from evo import parallel
from evo.logs.journal import LogError, Writer, check_free
from evo.logs.log import Log, Logs, read_log
from evo.logs.records import EndReason, Header, InheritableLine, RunEnd
from evo.logs.stopping import StopRequests, wishes_of
from evo.logs.timeouts import timeouts_of
from evo.models.client import EndpointDown, EndpointRefused
from evo.runs.arm import REACHED, Arm
from evo.runs.bounds import kept_for_checks
from evo.runs.budget import BudgetError, Ledger
from evo.runs.handle import read_begun
from evo.runs.identity import as_begun
from evo.runs.opening import find_endpoints, open_log, session_line
from evo.runs.progress import Progress
from evo.runs.resources import Resources
from evo.runs.settings import Goal
from evo.runs.state import State, state_of
from evo.runs.waves import Payer, Turns, Waves
from evo.runs.workers import Stopped
from evo.sandbox import EvaluatorClosed, SandboxError
from evo.searches.base import SearchError
from evo.tasks.task import EvaluatorFailed


@dataclass(frozen=True)
class RunJob:
    """A log to bring to a goal; it is created unless it exists.

    Attributes:
        path: The log.
        header: Configuration of the run.
        goal: How far it goes.
        named: Whether the user named the header's model to go on with, whatever the log's is.
        inherited: The lines with which a fork's log begins.
    """

    path: Path
    header: Header
    goal: Goal
    named: bool = False
    inherited: tuple[InheritableLine, ...] = ()


def end_of(log: Log, state: State, goal: Goal) -> EndReason | None:
    """Returns why a run needs no further work, by its log and state; None: it does."""
    return None if log.reader.torn or state.untested else goal.reached(state)


@dataclass(frozen=True)
class JobResult:
    """What became of a job.

    Attributes:
        job: The job.
        log: Its log; None if it was never begun.
        end: Why the session ended it; "busy": another process writes the log.
        error: What it failed with, if it did.
    """

    job: RunJob
    log: Log | None
    end: EndReason | Literal["busy"]
    error: Exception | None = None


def run_jobs(
    jobs: Sequence[RunJob],
    resources: Resources,
    *,
    ledger: Ledger | None = None,
    whole: bool = False,
    label: str = "runs",
    at_once: int | None = None,
    on_generation: Callable[[RunJob, Arm], None] = lambda job, arm: None,
) -> list[JobResult]:
    """Brings logs to their goals, sharing slots and workers, and returns what became of each.

    With a ledger, that of a budget, they advance in waves, see `evo.runs.waves`: all get equally
    far, or with `whole` the first ones are completed first. Generations that are logged already
    cost what they cost then, once per ledger: bring the same logs farther with the same ledger,
    and only what is new counts. Where the resources are `isolated`, the refusal, dead endpoint or
    damaged log of one run is reported in its place. Else the first error is raised: of the
    endpoint, which leaves the logs so that they can go on, of a budget in a unit that is unknown,
    or of a log. `on_generation` is called for each generation, 0 included, once it is logged, from
    the thread that made it.
    """
    if len({job.path for job in jobs}) < len(jobs):
        raise ValueError("jobs: expected each log once")
    for job in jobs:
        if not job.path.exists():
            check_free(job.path)
    control, settings = resources.control, resources.settings
    children = sum(job.goal.generations * job.header.children for job in jobs)
    smallest = min((job.header.children for job in jobs), default=1)
    # Enough runs that slots and cores stay busy while a generation waits for its last child.
    slots = settings.max_concurrent
    usual = 1 if slots == 1 else 4 + 4 * slots // smallest
    workers = max(1, min(len(jobs), at_once or usual))
    progress = Progress(
        label, children, resources.tally, lambda: resources.slots.load, shown=settings.progress
    )
    with contextlib.ExitStack() as stack:
        stack.callback(progress.close)
        requests = [*map(stack.enter_context, wishes_of(control.stop, control.pause))]
        alone = len(jobs) == 1 and not resources.isolated
        runs = [
            _Run(job, resources, progress, requests, alone, on_generation, ledger) for job in jobs
        ]
        work = _Work(runs, resources)
        try:
            if ledger is None:
                work.each(work.complete, range(len(jobs)), workers)
            else:
                work.advance_in_waves(
                    Waves(ledger, [run.payer for run in runs], whole=whole), workers
                )
        except BaseException:  # such as Ctrl-C: what is under way is left a moment
            control.stop()
            while work.active and not control.ended.wait(0.02):
                pass
            work.each(work.refuse, work.waiting, 1)
            raise
    if words := timeouts_of(each.log for each in work.done.values() if each.log is not None):
        resources.tell_once(words)
    if isinstance(work.first_error, SearchError | EvaluatorFailed):
        for run in runs:  # those beside it, which it has stopped, would fail in the same way
            run.drop()
    if work.first_error is not None:
        raise work.first_error
    return [work.done[place] for place in range(len(jobs))]


def only_log(done: Sequence[JobResult]) -> Log:
    """Returns the log of the only job."""
    (only,) = done
    if only.log is None:
        raise RuntimeError(f"stopped before the log {only.job.path} was begun")
    return only.log


def all_logs(done: Sequence[JobResult]) -> Logs:
    """Returns the logs of some jobs, with the paths of those that were not begun."""
    return Logs(
        (each.log for each in done if each.log is not None),
        [each.job.path for each in done if each.log is None],
    )


class _Work:
    """The jobs of a session, by place; each waits for leave before it begins a generation.

    Attributes:
        runs: The jobs.
        done: What became of those that are over.
        active: Those that are worked on now.
        first_error: What ended the session.
    """

    def __init__(self, runs: Sequence[_Run], resources: Resources) -> None:
        self.runs, self._resources = runs, resources
        self.done: dict[int, JobResult] = {}
        self.active: set[int] = set()
        self.first_error: BaseException | None = None
        self._steps: dict[int, Generator[None, bool, JobResult]] = {}

    @property
    def waiting(self) -> list[int]:
        """The jobs that wait for leave to go on."""
        return [k for k in range(len(self.runs)) if k not in self.done and k not in self.active]

    def each(self, function: Callable[[int], None], places: Sequence[int], workers: int) -> None:
        """Calls a function with each place, several at a time; what it raises is noted already."""
        count = max(1, min(workers, len(places)))
        parallel.map(function, places, max_workers=count, raising=False)

    def complete(self, place: int) -> None:
        """Brings a job to its goal."""
        self.begin(place)
        while place not in self.done:
            self.advance(place)

    def advance_in_waves(self, waves: Waves, workers: int) -> None:
        """Brings all jobs as far as a budget lets them."""

        def advance(place: int) -> None:
            for _ in range(wave[place]):
                if place not in self.done:
                    self.advance(place, leave=waves.in_time)

        alone, stopping = len(self.runs) == 1, self._resources.control.stopping
        with contextlib.closing(waves):
            for run in self.runs:
                run.may_overlap = waves.leaves_room if alone else None
            self.each(self.begin, range(len(self.runs)), 1)
            while not stopping.is_set() and (wave := waves.next()):
                if waves.timed:
                    self._advance_in_turns(wave, waves, workers)
                else:
                    self.each(advance, [*wave], workers)
            self.each(self.refuse, self.waiting, workers)

    def _advance_in_turns(self, wave: Mapping[int, int], waves: Waves, workers: int) -> None:
        """Makes the generations of a wave, in the order of the generations."""
        turns = Turns({place: len(self.runs[place].payer.costs) for place in wave}, wave)

        def serve(_: int) -> None:
            while (place := turns.take()) is not None:
                try:
                    self.advance(place, leave=waves.in_time)
                finally:
                    turns.give_back(place, over=place in self.done)

        self.each(serve, range(min(workers, len(wave))), workers)

    def begin(self, place: int) -> None:
        """Reads what is logged of a job."""
        with self._noting(place):
            self._steps[place] = self.runs[place].run_to_goal()
            self._go_on(place, None)

    def advance(self, place: int, *, leave: bool = True) -> None:
        """Lets a job begin its next generation, and makes it; without leave the job ends."""
        with self._noting(place):
            self._go_on(place, leave)

    def refuse(self, place: int) -> None:
        """Ends a job as it stands."""
        while place in self._steps and place not in self.done:
            self.advance(place, leave=False)

    def _go_on(self, place: int, leave: bool | None) -> None:
        step = self._steps[place]
        try:
            next(step) if leave is None else step.send(leave)
        except StopIteration as done:
            self.done[place] = done.value
            self.runs[place].payer.finish()

    @contextlib.contextmanager
    def _noting(self, place: int) -> Generator[None]:
        """Notes that a job is worked on, and what it fails with."""
        run = self.runs[place]
        self.active.add(place)
        try:
            yield
        except BaseException as error:
            run.payer.finish()
            if isinstance(error, Exception):
                self.done[place] = JobResult(run.job, None, run.end, error)
                with contextlib.suppress(LogError, OSError):  # as it stands, if it can be read
                    self.done[place] = JobResult(run.job, read_begun(run.job.path), run.end, error)
            if self._resources.is_fatal(error):
                self.first_error = self.first_error or error
                self._resources.control.stop()
            raise
        finally:
            self.active.discard(place)


@dataclass
class _Run:
    """One job of a session."""

    job: RunJob
    resources: Resources
    progress: Progress
    requests: Sequence[StopRequests]
    alone: bool  # whether its log is expected, and so begun even after a request to stop
    on_generation: Callable[[RunJob, Arm], None]
    ledger: Ledger | None  # None: there is no budget
    may_overlap: Callable[[], bool] | None = lambda: True  # None: generations go one by one
    end: EndReason | Literal["busy"] = "interrupted"
    reported: int = 0  # generations that were made known
    new: State | None = None  # of a log that this session began

    def __post_init__(self) -> None:
        header, T = self.job.header, self.job.goal.generations
        shared = header.fork.at + 1 if header.fork else 0
        self.payer = Payer(
            self.job.path, _kind(header), T, header.children, shared, advised=header.advises
        )

    def run_to_goal(self) -> Generator[None, bool, JobResult]:
        """Brings the log to its goal; waits for leave before it begins a generation."""
        job = self.job
        known = read_begun(job.path)
        if known is not None and known.initial is not None:
            state = state_of(known, children=known.outcomes)
            self._pay(state)
            if (reached := end_of(known, state, job.goal)) is not None:
                self.progress.skip(job.goal.generations * job.header.children)
                return JobResult(job, known, reached)
            self.payer.kept = kept_for_checks(state)
        wanted = self.alone and known is None  # whatever was requested, or time is over, meanwhile
        if not (yield from self._leave()) and not wanted:
            return JobResult(job, known, self.end)
        writer, log = self._open_log()
        with contextlib.closing(writer):
            arm = Arm(writer, as_begun(job.header, log), self.resources)
            self.new = arm.state if log is None else None
            self.progress.skip(len(log.outcomes) if log else 0)
            try:
                arm.begin(log)
            except EvaluatorClosed:  # stopped before generation 0
                return JobResult(job, read_log(job.path), "interrupted")
            except EvaluatorFailed:
                if log is None:
                    job.path.unlink()  # it embeds a task that nobody can go on with
                raise
            self.payer.kept = arm.kept
            try:
                yield from self._advance(arm)
            except SearchError as error:
                if not self.drop():
                    raise
                raise error.before_calls() from error.__cause__
            writer.check_in_place()
        return JobResult(job, read_log(job.path), self.end)

    def _open_log(self) -> tuple[Writer, Log | None]:
        """Opens the log for writing, and what it holds already; heeds requests beside it."""
        job = self.job
        # The sandbox starts before the log, so that a kill meanwhile leaves none without a goal,
        # and an endpoint that nobody named is missed before it.
        find_endpoints(self.resources, job.header)
        session = session_line(self.resources, job.header.task, job.goal)
        if job.named:
            session = msgspec.structs.replace(session, model=job.header.model)
        self.end = "busy"  # where another process writes the log
        opened = open_log(job.path, job.header, session, job.inherited)
        for each in self.requests:
            each.watch(job.path)
        self.resources.control.claim(job.path)
        self.end = "interrupted"
        return opened

    def drop(self) -> bool:
        """Removes the log if this session began it and nothing was called; returns whether it did.

        With a search that is corrected it would be another run, and refused.
        """
        if self.new is None or self.new.has_called:
            return False
        self.job.path.unlink(missing_ok=True)
        return True

    def _advance(self, arm: Arm) -> Generator[None, bool, None]:
        """Advances an arm to its goal and logs how that ended."""
        goal, state, before = self.job.goal, arm.state, arm.generation
        failure: Exception | None = None
        arm.further = lambda: self._may_go_further(arm)
        if self.job.header.asynchronous and self.may_overlap is not None:
            arm.plan_while(lambda: self._has_room(arm))
        try:
            self._report_generation(arm)
            while (reached := goal.reached(state)) is None:
                if not (yield from self._leave()):
                    return
                arm.advance(self.progress.child)
                self._report_generation(arm)
            self.end = reached
        except Stopped:
            pass
        except (EndpointDown, EndpointRefused, SandboxError) as error:
            failure = error
            if not isinstance(error, SandboxError):
                self.end = "endpoint" if isinstance(error, EndpointDown) else "refused"
            raise
        finally:
            assert self.end != "busy"
            stats = {"generations": float(arm.generation - before)}
            if self.end in REACHED and arm.kept:
                found, paid = arm.check()
                stats |= found
                self.payer.beside.append(paid)
            words = failure or (self.resources.control.paused if self.end == "interrupted" else "")
            message = goal.rule(state) if self.end == "rule" else str(words) if words else None
            arm.end(RunEnd(reason=self.end, message=message, stats=stats))

    def _report_generation(self, arm: Arm) -> None:
        best, goal = arm.state.best_fitness, self.job.goal.generations
        self.reported = arm.generation
        self._pay(arm.state)
        self.progress.generation(arm.generation, goal, best)
        self.resources.control.note = f"{arm.path.name}: {self.progress}"
        self.on_generation(self.job, arm)

    def _may_go_further(self, arm: Arm) -> bool:
        """Whether an arm without a barrier may begin a generation while others are under way."""
        if arm.generation > self.reported:
            self._report_generation(arm)
        goal, stopped = self.job.goal, self.resources.control.stopping.is_set()
        if stopped or arm.begun >= goal.generations or goal.reached(arm.state) is not None:
            return False
        return self.may_overlap is not None and self._has_room(arm)

    def _has_room(self, arm: Arm) -> bool:
        """Whether the budget lets an arm without a barrier plan another child."""
        try:
            self._pay(arm.state)
        except BudgetError:  # it is raised once what is under way is logged
            return False
        return self.may_overlap is None or self.may_overlap()

    def _pay(self, state: State) -> None:
        """Notes what has been spent since; BudgetError: that is unknown."""
        if self.ledger is None:
            return
        for cost in state.costs[len(self.payer.costs) :]:
            self.ledger.check({**cost, "seconds": 0.0})
            self.payer.costs.append(cost)
        if state.header.asynchronous and self.may_overlap is not None:
            cost = state.under_way_cost
            self.ledger.check({**cost, "seconds": 0.0})
            self.ledger.under_way[self.payer.name] = cost

    def _leave(self) -> Generator[None, bool, bool]:
        """Waits for leave to begin a generation, and returns whether it may."""
        leave = yield
        stopped = self.resources.control.stopping.is_set()
        if stopped or not leave:
            self.end = "interrupted" if stopped else "budget"
        return leave and not stopped


def _kind(header: Header) -> str:
    """Returns a key of runs whose children cost about alike."""
    asked = (header.model, header.models, header.critic, header.asks, header.drafts)
    return repr((header.task.hash, *asked))
