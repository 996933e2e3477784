"""Sessions: the only thing that brings logs to their goals, several at a time."""

from __future__ import annotations

import contextlib
import datetime
import math
import platform
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import msgspec

from evo import parallel
from evo.logs.calls import as_written
from evo.logs.cost import cost_of_tokens, longest_reply
from evo.logs.journal import LogError, Writer, check_free
from evo.logs.log import Log, read_log
from evo.logs.records import (
    AskedModel,
    CriticRecord,
    EndReason,
    Header,
    InheritableLine,
    RunEnd,
    Session,
)
from evo.logs.stopping import StopRequests
from evo.models.client import EndpointDown, EndpointRefused
from evo.models.critics import rubrics_of
from evo.runs.arm import REACHED, Arm
from evo.runs.budget import Ledger, Turns, Worst
from evo.runs.configuration import software_versions
from evo.runs.handle import read_begun
from evo.runs.identity import as_begun, differences
from evo.runs.progress import Progress
from evo.runs.resources import Resources
from evo.runs.settings import Goal
from evo.runs.state import State, state_of
from evo.runs.workers import Stopped
from evo.sandbox import EvaluatorClosed, SandboxError
from evo.tasks.instances import calls_of_evaluation, checks_of
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
    label: str = "runs",
    at_once: int | None = None,
    on_generation: Callable[[RunJob, Arm], None] = lambda job, arm: None,
) -> list[JobResult]:
    """Brings logs to their goals, sharing slots and workers, and returns what became of each.

    With a ledger, that of a budget, they come out as if served one after another, in the order
    given. Generations that are logged already cost what they cost then, once per ledger: bring the
    same logs farther with the same ledger, and only what is new counts. Where the resources are
    `isolated`, the refusal, dead endpoint or damaged log of one run is reported in its place. Else
    the first error is raised: of the endpoint, which leaves the logs so that they can go on, of a
    budget in a unit that is unknown, or of a log. `on_generation` is called for each generation, 0
    included, once it is logged, from the thread that made it.
    """
    if len({job.path for job in jobs}) < len(jobs):
        raise ValueError("jobs: expected each log once")
    for job in jobs:
        if not job.path.exists():
            check_free(job.path)
    control, settings = resources.control, resources.settings
    turns = None if ledger is None else turns_of(jobs, ledger, settings.retries)
    working = set[int]()
    first_error: list[BaseException] = []
    done: dict[int, JobResult] = {}

    def work(place: int) -> None:
        working.add(place)
        run = _Run(jobs[place], place, resources, turns, progress, requests, alone, on_generation)
        try:
            done[place] = run.run_to_goal()
        except BaseException as error:
            if isinstance(error, Exception):
                done[place] = JobResult(run.job, None, run.end, error)
                with contextlib.suppress(LogError, OSError):  # as it stands, if it can be read
                    done[place] = JobResult(run.job, read_begun(run.job.path), run.end, error)
            if resources.is_fatal(error):
                first_error.append(error)
                control.stop()
            raise
        finally:
            if turns is not None:
                turns.finish(place)
            working.discard(place)

    alone = len(jobs) == 1 and not resources.isolated
    children = sum(job.goal.generations * job.header.children for job in jobs)
    smallest = min((job.header.children for job in jobs), default=1)
    # Enough runs that slots and cores stay busy while a generation waits for its last child.
    slots = settings.max_concurrent
    usual = 1 if slots == 1 else 4 + 4 * slots // smallest
    progress = Progress(
        label, children, resources.tally, lambda: resources.slots.load, shown=settings.progress
    )
    with contextlib.ExitStack() as stack:
        if turns is not None:
            stack.callback(turns.close)
        stack.callback(progress.close)
        requests = stack.enter_context(StopRequests(control.stop))
        workers = max(1, min(len(jobs), at_once or usual))
        try:
            parallel.map(work, range(len(jobs)), max_workers=workers, raising=False)
        except BaseException:  # such as Ctrl-C: what is under way is left a moment
            control.stop()
            while working and not control.ended.wait(0.02):
                pass
            raise
    if first_error:
        raise first_error[0]
    return [done[place] for place in range(len(jobs))]


@dataclass
class _Run:
    """One job of a session, by its place among them."""

    job: RunJob
    place: int
    resources: Resources
    turns: Turns | None  # None: there is no budget
    progress: Progress
    requests: StopRequests
    alone: bool  # whether its log is expected, and so begun even after a request to stop
    on_generation: Callable[[RunJob, Arm], None]
    end: EndReason | Literal["busy"] = "interrupted"
    reported: int = 0  # generations that were made known

    def run_to_goal(self) -> JobResult:
        """Brings the log to its goal, as far as wishes and the budget let it."""
        job = self.job
        known = read_begun(job.path)
        if known is not None and known.initial is not None and not known.reader.torn:
            state = state_of(known, children=known.outcomes)
            if (end := job.goal.reached(state)) is not None and not _untested(state):
                self._settle(state)
                self.progress.skip(job.goal.generations * job.header.children)
                return JobResult(job, known, end)
        wanted = self.alone and known is None  # whatever was requested meanwhile
        if not self._may_begin() and not (wanted and self.end == "interrupted"):
            return JobResult(job, known, self.end)
        # The sandbox starts before the log, so that a kill meanwhile leaves none without a goal,
        # and an endpoint that nobody named is missed before it.
        if self.resources.hand is None or job.header.task.asks_model:
            self.resources.caller(job.header)
        if job.header.critic is not None:
            self.resources.caller(job.header.critic)
        session = session_line(self.resources, job.goal)
        if job.named:
            session = msgspec.structs.replace(session, model=job.header.model)
        self.end = "busy"  # where another process writes the log
        writer, log = open_log(job.path, job.header, session, job.inherited)
        self.requests.watch(job.path)
        self.end = "interrupted"
        with contextlib.closing(writer):
            arm = Arm(writer, as_begun(job.header, log), self.resources)
            self.progress.skip(len(log.outcomes) if log else 0)
            try:
                arm.begin(log)
            except EvaluatorClosed:  # stopped before generation 0
                return JobResult(job, read_log(job.path), "interrupted")
            except EvaluatorFailed:
                if log is None:
                    job.path.unlink()  # it embeds a task that nobody can go on with
                raise
            if self.turns is not None and arm.kept:
                self.turns.keep(self.place, arm.kept)
            self._advance(arm)
            writer.check_in_place()
        return JobResult(job, read_log(job.path), self.end)

    def _advance(self, arm: Arm) -> None:
        """Advances an arm to its goal and logs how that ended."""
        goal, state, before = self.job.goal, arm.state, arm.generation
        failure: Exception | None = None
        arm.further = lambda: self._may_go_further(arm)
        try:
            self._report_generation(arm)
            while (reached := goal.reached(state)) is None:
                if not self._may_begin():
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
                if self.turns is not None:
                    self.turns.add(self.place, paid)
            message = str(failure) if failure else None
            arm.end(RunEnd(reason=self.end, message=message, stats=stats))

    def _report_generation(self, arm: Arm) -> None:
        best, goal = arm.state.best_fitness, self.job.goal.generations
        self.reported = arm.generation
        self._settle(arm.state)
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
        return self.turns is None or self.turns.may_begin_now(self.place, arm.state.under_way_cost)

    def _settle(self, state: State) -> None:
        if self.turns is not None:
            self.turns.settle(self.place, state.costs)

    def _may_begin(self) -> bool:
        stopped = self.resources.control.stopping.is_set
        if self.turns is not None and self.turns.may_begin(self.place, stopped):
            return True
        if self.turns is None and not stopped():
            return True
        self.end = "interrupted" if stopped() else "budget"
        return False


def turns_of(jobs: Sequence[RunJob], ledger: Ledger, retries: int) -> Turns:
    """Returns the order of jobs under a ledger, each with the most that it may cost."""
    worst = (worst_of(job.header, job.goal.generations, retries=retries) for job in jobs)
    return Turns(ledger, list(zip((job.path for job in jobs), worst, strict=True)))


def worst_of(header: Header, generations: int, *, retries: int) -> Worst:
    """Returns what T generations, and the test of their best text at the end, may cost at worst."""
    asked, held = calls_of_evaluation(header.task), 2 * checks_of(header.task)
    scored = asked if header.task.score == "critic" else 0
    chosen = header.drafts if header.drafts > 1 else 0
    rubrics = len(rubrics_of(header.critic)) if header.critic else 0
    own, critic = _most_of_call(header, retries), _most_of_call(header.critic, retries)
    for each in header.models:  # any of them may be asked
        other = _most_of_call(header.with_model(each.model.name), retries)
        own = {unit: max(most, other[unit]) for unit, most in own.items()}
    children, drafts = header.children, header.drafts
    instance = _most_of_call(header.asks, retries) if header.asks else own

    def total(calls: int, scores: int, children: int = 0) -> dict[str, float]:
        counts = ((children, own), (calls, instance), (scores * rubrics, critic))
        return {u: math.fsum(k * most[u] for k, most in counts if k) for u in own}

    return Worst(
        initial=total(asked, scored),
        generation=total(children * asked, children * (chosen + scored), children * drafts),
        generations=generations,
        final=total(held, held if scored else 0),
        shared=header.fork.at + 1 if header.fork else 0,
    )


def _most_of_call(of: Header | CriticRecord | AskedModel | None, retries: int) -> dict[str, float]:
    if of is None:
        return {}
    model, attempts = of.model, 1 + retries
    most = longest_reply(model, of.sampling.max_tokens)
    # Tokens of prompt and reply: together they are within the context window.
    prompt = math.inf if model.context is None else float(model.context)
    completion = prompt if most is None else min(prompt, float(most))
    amounts = cost_of_tokens((prompt, 0.0, completion), model)
    known = {u: math.inf if math.isnan(most) else attempts * most for u, most in amounts.items()}
    return {**known, "calls": 1.0, "seconds": 0.0}


def _untested(state: State) -> bool:
    """Whether the best text is still to be tested on instances held out for that."""
    return state.best.place != (0, 0) and not state.checks and bool(checks_of(state.header.task))


def session_line(resources: Resources, goal: Goal | None) -> Session:
    """Returns the line that records which process continues a log, and to which goal, if any."""
    settings = resources.settings
    return Session(
        generations=goal.generations if goal else None,
        started=datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
        max_concurrent=settings.max_concurrent,
        preset=settings.preset,
        requests_per_minute=settings.requests_per_minute,
        tokens_per_minute=settings.tokens_per_minute,
        protections=resources.evaluator.protections,
        versions=software_versions(),
        platform=f"{platform.system()} {platform.machine()}",
        target=goal.target if goal else None,
        patience=goal.patience if goal else None,
    )


def open_log(
    path: Path, header: Header, session: Session, inherited: Sequence[InheritableLine] = ()
) -> tuple[Writer, Log | None]:
    """Opens a run's log for writing: a new one, or what there is of an old or an inherited one.

    Raises LogBusyError where another process writes it, LogError where it is of another run.
    """
    if not path.exists():
        try:
            writer = Writer.create(path, header, *as_written(inherited, header), session)
            return writer, read_log(path) if inherited else None
        except LogError:
            if not path.exists():  # else another process was quicker
                raise
    with contextlib.ExitStack() as stack:
        writer = Writer.claim(path)
        stack.callback(writer.close)
        log = read_begun(path)
        if log is None:  # killed before its first line was whole
            writer.cut(0)
            writer.append(header, session)
            stack.pop_all()
            return writer, None
        free = {"model"} if session.model else set()
        if other := [each for each in differences(log.header, header) if each not in free]:
            raise LogError(f"{path}: holds another run than this one: {', '.join(other)} differ")
        writer.cut(log.reader.length)
        writer.append(session)
        stack.pop_all()
    return writer, log
