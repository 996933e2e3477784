"""Sessions: the only thing that brings logs to their goals, several at a time."""

from __future__ import annotations

import contextlib
import datetime
import platform
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import msgspec

from evo.budget import Ledger, Turns, Worst, worst_of
from evo.configuration import Settings, at_least, differences, software_versions
from evo.handle import Control, read_begun
from evo.journal import LogBusyError, LogError, Writer, check_free
from evo.llm.client import EndpointDown, EndpointRefused
from evo.log import Log, read_log
from evo.records import End, EndReason, Header, Made, Session
from evo.runs.arm import REACHED, Arm, Stopped, costs_of_log
from evo.runs.progress import Progress
from evo.runs.resources import Resources, open_resources
from evo.sandbox import EvaluatorClosed, SandboxError
from evo.task import EvaluatorFailed, calls_of_evaluation, read_instances
from evo.upkeep import heed_stop


@dataclass(frozen=True)
class Goal:
    """Where a run ends, none of which identifies it: T, or a target fitness, or patience."""

    generations: int
    target: float | None = None
    patience: int | None = None

    def __post_init__(self) -> None:
        at_least("generations (T)", self.generations, 0)
        if self.patience is not None:
            at_least("patience", self.patience, 1)
        if self.target is not None and not -float("inf") < self.target < float("inf"):
            raise ValueError(f"target: expected a finite fitness, got {self.target!r}")

    def reached(self, done: int, best: float | None, barren: int) -> EndReason | None:
        """Returns why a run ends after so many generations, so many barren; None: it goes on."""
        if self.target is not None and best is not None and best >= self.target:
            return "target"
        if done >= self.generations:
            return "completed"
        return "patience" if self.patience is not None and barren >= self.patience else None


@dataclass(frozen=True)
class Job:
    """A log to bring to a goal; it is made unless it exists.

    Attributes:
        named: Whether the user named the header's model to go on with, whatever the log's is.
        inherited: Of a fork, what its log begins with.
    """

    path: Path
    header: Header
    goal: Goal
    named: bool = False
    inherited: tuple[Made, ...] = ()


@dataclass(frozen=True)
class Brought:
    """What became of a job: its log, None if it was never begun, and why that went no further."""

    job: Job
    log: Log | None
    end: EndReason | Literal["busy"]
    error: Exception | None = None


def bring(
    jobs: Sequence[Job],
    resources: Resources,
    *,
    ledger: Ledger | None = None,
    label: str = "runs",
    at_once: int | None = None,
    on_generation: Callable[[Job, Arm], None] = lambda job, arm: None,
) -> list[Brought]:
    """Brings logs to their goals, sharing slots and workers, and returns what became of each.

    Under a budget they come out as if served one after another, in the order given. Generations
    that are logged already cost what they cost then, once per ledger: bring the same logs farther
    with the same ledger, and only what is new counts.

    Args:
        jobs: Logs to make or go on with, of any models, each log once.
        resources: Of the session. Where they are `isolated`, one run's refusal or damage is told
            in its place and leaves the others alone; else the first error is raised.
        ledger: Counts what they cost, and says how far they go; None: as far as their goals.
        label: Of the progress bar.
        at_once: Runs under way at most; None: as many as keep slots and cores busy.
        on_generation: Told of each generation of a run under way, generation 0 included, once it
            is logged; from the thread that made it.

    Raises:
        EndpointDown: The endpoint does not answer; the logs can go on later.
        EndpointRefused: It refuses the key or the model, or all of a generation; likewise.
        BudgetError: What a generation cost in a unit of the budget is unknown.
        LogError: A log is damaged, busy or of another run.
    """
    from joblib import Parallel, delayed

    if len({job.path for job in jobs}) < len(jobs):
        raise ValueError("jobs: expected each log once")
    for job in jobs:
        if not job.path.exists():
            check_free(job.path)
    ledger = ledger or Ledger()
    turns = Turns(ledger, [(job.path, _worst(job, resources.settings)) for job in jobs])
    control, working = resources.control, set[int]()
    first_error: list[BaseException] = []

    with (
        contextlib.closing(turns),
        contextlib.closing(_progress(label, jobs, resources)) as progress,
        heed_stop([job.path for job in jobs], control.stop),
    ):

        def work(place: int, job: Job) -> Brought:
            working.add(place)
            run = _Run(job, place, resources, turns, progress, on_generation)
            try:
                return run.bring()
            except Exception as error:
                if resources.is_fatal(error):
                    first_error.append(error)
                    control.stop()
                return Brought(job, _read_sound(job.path), run.end, error)
            finally:
                turns.finish(place)
                working.discard(place)

        at_once = min(len(jobs), at_once or _runs_at_once(jobs, resources.settings))
        try:
            if at_once <= 1:
                done = [work(place, job) for place, job in enumerate(jobs)]
            else:
                parallel = Parallel(
                    n_jobs=at_once, backend="threading", batch_size=1, pre_dispatch="all"
                )
                done = list(parallel(delayed(work)(*each) for each in enumerate(jobs)))
        except BaseException:
            control.stop()
            while working and not control.ended.wait(0.02):
                pass
            raise
    if first_error:
        raise first_error[0]
    return done


class _Run:
    """One job of a session."""

    def __init__(
        self,
        job: Job,
        place: int,
        resources: Resources,
        turns: Turns,
        progress: Progress,
        on_generation: Callable[[Job, Arm], None],
    ) -> None:
        self.end: EndReason | Literal["busy"] = "interrupted"
        self._job, self._place, self._resources = job, place, resources
        self._turns, self._progress = turns, progress
        self._told = on_generation

    def bring(self) -> Brought:
        """Brings the log to its goal, as far as wishes and the budget let it."""
        job, resources = self._job, self._resources
        known = read_begun(job.path)
        if known is not None and (end := _complete(known, job.goal)):
            self._turns.settle(self._place, costs_of_log(known))
            self._progress.skip(job.goal.generations * job.header.children)
            return Brought(job, known, end)
        if not self._may_begin():
            return Brought(job, known, self.end)
        # The sandbox starts before the log, so that a kill meanwhile leaves none without a goal.
        session = session_line(resources, job.goal)
        if job.named:
            session = msgspec.structs.replace(session, model=job.header.model)
        try:
            writer, log = open_log(job.path, job.header, session, job.inherited)
        except LogBusyError as error:
            self.end = "busy"
            if not resources.isolated:
                raise
            return Brought(job, known, "busy", error)
        with contextlib.closing(writer):
            arm = Arm(writer, job.header, resources)
            self._progress.skip(len(log.outcomes) if log else 0)
            try:
                arm.begin(log)
            except EvaluatorClosed:  # stopped before generation 0
                return Brought(job, read_log(job.path), "interrupted")
            except EvaluatorFailed:
                if log is None:
                    job.path.unlink()  # it embeds a task that nobody can go on with
                raise
            self._advance(arm)
        return Brought(job, read_log(job.path), self.end)

    def _advance(self, arm: Arm) -> None:
        """Advances an arm to its goal and logs how that ended."""
        goal, before = self._job.goal, arm.generation
        message: str | None = None
        try:
            self._told_of(arm)
            while (reached := goal.reached(arm.generation, arm.best_fitness, arm.barren)) is None:
                if not self._may_begin():
                    return
                arm.advance(self._progress.child)
                self._told_of(arm)
            self.end = reached
        except Stopped:
            pass
        except EndpointDown as error:
            self.end, message = "endpoint", str(error)
            raise
        except EndpointRefused as error:
            self.end, message = "refused", str(error)
            raise
        except SandboxError as error:
            message = str(error)
            raise
        finally:
            assert self.end != "busy"
            stats = {"generations": float(arm.generation - before)}
            if self.end in REACHED:
                found, paid = arm.check()
                stats |= found
                self._turns.add(self._place, paid)
            arm.end(End(reason=self.end, message=message, stats=stats))

    def _told_of(self, arm: Arm) -> None:
        self._turns.settle(self._place, arm.costs)
        self._progress.generation(arm.generation, self._job.goal.generations, arm.best_fitness)
        self._resources.control.note = f"{arm.path.name}: {self._progress}"
        self._told(self._job, arm)

    def _may_begin(self) -> bool:
        if self._turns.may_begin(self._place, self._resources.stopping.is_set):
            return True
        self.end = "interrupted" if self._resources.stopping.is_set() else "budget"
        return False


def _progress(label: str, jobs: Sequence[Job], resources: Resources) -> Progress:
    return Progress(
        label,
        sum(job.goal.generations * job.header.children for job in jobs),
        resources.tally,
        lambda: resources.slots.load,
        shown=resources.settings.progress,
    )


def _worst(job: Job, settings: Settings) -> Worst:
    return worst_of(
        job.header,
        job.goal.generations,
        instances=calls_of_evaluation(job.header.task),
        retries=settings.retries,
    )


def _complete(log: Log, goal: Goal) -> EndReason | None:
    """Why nothing is left to do for a log; None: there is, be it its evaluation or its end."""
    if log.initial is None or log.reader.torn or _lacks_check(log):
        return None
    improved = [g.generation for g in log.generations if g.improved]
    done = len(log.generations)
    return goal.reached(done, float(log.trajectory[-1]), done - max(improved, default=0))


def _lacks_check(log: Log) -> bool:
    """Whether the test of the final text was never made to its end."""
    task = log.header.task
    if not task.asks_model or not log.generations or log.generations[-1].best == (0, 0):
        return False
    known = any("check_use" in end.stats for end in log.ends)
    return not known and any(each.get("check") for each in read_instances(task))


def session_line(resources: Resources, goal: Goal | None) -> Session:
    """Returns the line that says which process goes on with a log, and to which goal, if any."""
    return Session(
        generations=goal.generations if goal else None,
        started=datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
        max_concurrent=resources.max_concurrent,
        protections=resources.evaluator.protections,
        versions=software_versions(),
        platform=f"{platform.system()} {platform.machine()}",
        target=goal.target if goal else None,
        patience=goal.patience if goal else None,
    )


def open_log(
    path: Path, header: Header, session: Session, inherited: Sequence[Made] = ()
) -> tuple[Writer, Log | None]:
    """Opens a run's log for writing: a new one, or what there is of an old or an inherited one.

    Raises LogBusyError where another process writes it, LogError where it is of another run.
    """
    if not path.exists():
        try:
            writer = Writer.create(path, header, *inherited, session)
            return writer, read_log(path) if inherited else None
        except LogError:
            if not path.exists():  # else another process was quicker
                raise
    writer = Writer.claim(path)
    try:
        log = read_begun(path)
        if log is None:  # killed before its first line was whole
            writer.cut(0)
            writer.append(header, session)
            return writer, None
        free = {"model"} if session.model else set()
        if other := [each for each in differences(log.header, header) if each not in free]:
            raise LogError(f"{path}: holds another run than this one: {', '.join(other)} differ")
        writer.cut(log.reader.length)
        writer.append(session)
    except BaseException:
        writer.close()
        raise
    return writer, log


def _read_sound(path: Path) -> Log | None:
    """Returns a log as it stands; None where it cannot be read."""
    with contextlib.suppress(LogError):
        return read_begun(path)
    return None


def _runs_at_once(jobs: Sequence[Job], settings: Settings) -> int:
    """Enough runs that slots and cores stay busy while a generation waits for its last child."""
    if settings.max_concurrent == 1:
        return 1
    smallest = min((job.header.children for job in jobs), default=1)
    return 4 + 4 * settings.max_concurrent // smallest


def run_jobs(
    jobs: Sequence[Job],
    settings: Settings,
    control: Control,
    *,
    budget: dict[str, float] | None = None,
    label: str,
) -> list[Log]:
    """Brings logs to their goals in a session of their own; returns those that were begun."""
    with open_resources(settings, control) as resources:
        done = bring(jobs, resources, ledger=Ledger(budget), label=label)
    return [each.log for each in done if each.log is not None]
