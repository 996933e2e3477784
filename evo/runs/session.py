"""Sessions: bring logs to their goals, several at a time, sharing slots and workers."""

from __future__ import annotations

import contextlib
import dataclasses
import datetime
import glob
import os
import platform
import threading
import time
from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from evo.configuration import (
    LOCAL,
    Settings,
    at_least,
    default_path,
    differences,
    software_versions,
)
from evo.journal import LogError, check_free
from evo.llm.client import Caller, EndpointDown, EndpointRefused, ModelClient
from evo.llm.limits import Slots
from evo.log import Log, LogWriter, read_log
from evo.records import Child, End, EndReason, Header, Session
from evo.runs.arm import GRACE, Arm, Resources, Stopped
from evo.runs.progress import watch
from evo.sandbox import EvaluatorClosed, SandboxError
from evo.task import EvaluatorFailed
from evo.upkeep import require_whole, stop_file

if TYPE_CHECKING:
    from tqdm import tqdm


def open_caller(header: Header, settings: Settings, slots: Slots) -> Caller:
    """Returns the client of a header's model, behind the cache if there is one.

    It touches no network yet.
    """
    client = ModelClient(
        header.model,
        header.sampling,
        slots=slots,
        timeout=settings.timeout,
        retries=settings.retries,
    )
    if settings.cache is None:
        return client
    from evo.llm.cache import CachedClient, ResponseCache

    return CachedClient(client, ResponseCache.open(Path(settings.cache)))


@contextlib.contextmanager
def open_resources(
    header: Header, settings: Settings, *, caller: Caller | None = None
) -> Generator[Resources]:
    """Yields the model's client and the sandbox, and closes both.

    Args:
        header: Names the model and its sampling.
        settings: Limits of concurrency and time.
        caller: Instead of the header's model.
    """
    from evo.sandbox.cluster import open_evaluator

    slots = Slots(
        settings.max_concurrent,
        requests_per_minute=settings.requests_per_minute,
        tokens_per_minute=settings.tokens_per_minute,
    )
    caller = caller or open_caller(header, settings, slots)
    workers = 1 if settings.max_concurrent == 1 else settings.workers
    resources = Resources(
        caller=caller,
        slots=slots,
        evaluator=open_evaluator(workers, settings.scheduler),
        max_concurrent=settings.max_concurrent,
    )
    try:
        yield resources
    finally:
        resources.close()


def with_model(
    first: Resources, header: Header, settings: Settings, stack: contextlib.ExitStack
) -> Resources:
    """Returns the resources with the model of this header, sharing slots and sandbox.

    Args:
        first: The session's resources.
        header: Names the model and its sampling.
        settings: Limits of time of a call.
        stack: Closes the model's client.
    """
    if (header.model, header.sampling) == (first.caller.model, first.caller.sampling):
        return first
    caller = open_caller(header, settings, first.slots)
    stack.callback(caller.close)
    return dataclasses.replace(first, caller=caller)


class _Progress:
    """The progress bar of one or several runs: generations, best fitness, and `watch`."""

    def __init__(self, label: str, total: int, resources: Resources, *, shown: bool) -> None:
        from tqdm.auto import tqdm

        self._tally, self._slots = resources.tally, resources.slots

        self._bar: tqdm[Any] = tqdm(total=total, desc=label, unit="child", disable=not shown)
        self._lock = threading.Lock()
        self._ok = self._failed = 0
        self._left = total
        self._best: float | None = None
        self._at = "T 0"

    def child(self, child: Child) -> None:
        with self._lock:
            if child.evaluation.status == "ok":
                self._ok += 1
            else:
                self._failed += 1
            self._left -= 1
            self._show()
            self._bar.update(1)

    def generation(self, arm: Arm, goal: int) -> None:
        with self._lock:
            if arm.best_fitness is not None:
                known = (arm.best_fitness, self._best)
                self._best = max(fitness for fitness in known if fitness is not None)
            self._at = f"T {arm.generation}/{goal}"
            self._show()

    def _show(self) -> None:
        done = self._ok + self._failed
        figures = watch(self._tally, self._slots.load, done=done, left=self._left)
        self._bar.set_postfix_str(
            f"{self._at}, best {_format(self._best)}, {self._failed} failed, {figures}",
            refresh=False,
        )

    def skip(self, children: int) -> None:
        with self._lock:
            self._left -= children
            self._bar.update(children)

    def close(self) -> None:
        self._bar.close()


def _format(fitness: float | None) -> str:
    return "none" if fitness is None else f"{fitness:.4f}"


def _advance_to(arm: Arm, goal: int, progress: _Progress) -> None:
    """Advances an arm to its goal and logs how the session ended."""
    reason: EndReason = "interrupted"
    message: str | None = None
    done = 0

    def noted(child: Child) -> None:
        progress.child(child)
        if stop_file(arm.path).exists():
            raise Stopped

    try:
        while arm.generation < goal:
            arm.advance(noted)
            done += 1
            progress.generation(arm, goal)
        reason = "completed"
    except EndpointDown as error:
        reason, message = "endpoint", str(error)
        raise
    except EndpointRefused as error:
        reason, message = "refused", str(error)
        raise
    except SandboxError as error:
        message = str(error)
        raise
    finally:
        arm.end(End(reason=reason, message=message, stats={"generations": done}))
        arm.close()
        stop_file(arm.path).unlink(missing_ok=True)


def begin_session(goal: int | None, settings: Settings, resources: Resources) -> Session:
    """Returns the line that says which process goes on with a log, and how."""
    return Session(
        generations=goal,
        started=datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
        max_concurrent=settings.max_concurrent,
        protections=resources.evaluator.protections,
        versions=software_versions(),
        platform=f"{platform.system()} {platform.machine()}",
    )


def _work(
    path: Path,
    header: Header | None,
    goal: int,
    settings: Settings,
    resources: Resources,
    progress: _Progress,
) -> Log:
    """Runs one log to its goal: a new one if a header is given, else an old one.

    Returns:
        The log, unfinished if a stop was asked for.
    """
    if header is None:
        known = read_log(path)
        if known.finished and len(known.generations) >= goal and not known.torn:
            progress.skip(goal * known.header.children)
            return known
        writer, log = LogWriter.reopen(path)
        header = log.header
        progress.skip(len(log.outcomes))
    else:
        # The sandbox starts first, so that a kill meanwhile leaves no log without a goal.
        session = begin_session(goal, settings, resources)
        writer, log = LogWriter.create(path, header, session), None
    stop_file(path).unlink(missing_ok=True)  # meant for an earlier session
    try:
        arm = Arm(writer, header, resources)
        if log is not None:
            writer.append(begin_session(goal, settings, resources))
        arm.begin(log)
    except BaseException as error:
        writer.close()
        if log is None and isinstance(error, EvaluatorFailed):
            path.unlink()  # it embeds a task that nobody can go on with
        raise
    with contextlib.suppress(Stopped):
        _advance_to(arm, goal, progress)
    return read_log(path)


@dataclass(frozen=True)
class Job:
    """A log to bring to a goal; a new one if it has a header."""

    path: Path
    header: Header | None
    goal: int
    children: int


def plan_job(
    header: Header, goal: int, folder: str | os.PathLike[str] | None, *, resume: bool
) -> Job:
    """Returns the job of a run; with `resume`, its log in the folder goes on if there is one."""
    if resume:
        stem = glob.escape(default_path(header, Path(os.devnull)).stem)
        place = LOCAL if folder is None else Path(folder)
        for path in sorted([*place.glob(f"{stem}*.jsonl"), *place.glob(f"{stem}*.jsonl.gz")]):
            if not differences(read_log(path).header, header):
                return Job(path, None, goal, header.children)
    return Job(default_path(header, folder), header, goal, header.children)


def resume_job(path: str | os.PathLike[str], generations: int | None) -> Job:
    """Returns what is left to do for a log, after checking that it can go on."""
    log = read_log(path)
    if log.header.compact:
        raise LogError(f"{path}: a compact log holds no programs and cannot go on")
    if log.header.source != "evo":
        raise LogError(f"{path}: written by {log.header.source}; only runs of evo can go on")
    require_whole(log)
    goal = log.goal if generations is None else generations
    if generations is None and goal == 0:
        raise ValueError(f"{path}: states no goal; give one, generations (-T)")
    goal = at_least("generations (T)", goal, 1)
    if goal < len(log.generations):
        raise ValueError(
            f"{path}: holds {len(log.generations)} generations already, cannot go on to T={goal}"
        )
    return Job(Path(path), None, goal, log.header.children)


def run_jobs(
    jobs: Sequence[Job],
    settings: Settings,
    *,
    label: str | None = None,
    hook: Callable[[Resources], None] = lambda _: None,
    resources: Resources | None = None,
) -> list[Log]:
    """Brings logs of one model to their goals, several at a time, sharing slots and workers.

    Args:
        jobs: Logs to make or go on with, all of one model and sampling.
        settings: Limits of concurrency and time.
        label: Of the progress bar.
        hook: Given the resources before the work begins.
        resources: Use these, and leave them open; None: open and close some.
    """
    from joblib import Parallel, delayed

    for job in jobs:
        if job.header is not None:
            check_free(job.path)
    first = jobs[0].header or read_log(jobs[0].path).header
    at_once = 1 if settings.max_concurrent == 1 else _runs_at_once(jobs, settings)
    total = sum(job.goal * job.children for job in jobs)
    label = label or f"{first.task.name}, {len(jobs)} runs"
    opened = contextlib.nullcontext(resources) if resources else open_resources(first, settings)
    with (
        opened as shared,
        contextlib.closing(_Progress(label, total, shared, shown=settings.progress)) as progress,
    ):
        hook(shared)
        active: set[Path] = set()

        def work(job: Job) -> Log | None:
            if shared.stopping.is_set() and len(jobs) > 1:
                return None
            active.add(job.path)
            try:
                return _work(job.path, job.header, job.goal, settings, shared, progress)
            except EvaluatorClosed:  # stopped before the first generation
                return read_log(job.path) if job.path.exists() else None
            finally:
                active.discard(job.path)

        try:
            if len(jobs) == 1:
                logs = [work(jobs[0])]
            else:
                parallel = Parallel(
                    n_jobs=at_once, backend="threading", batch_size=1, pre_dispatch="all"
                )
                logs = parallel(delayed(work)(job) for job in jobs)
        except BaseException:
            shared.stopping.set()
            wait_until(lambda: not active, GRACE)
            shared.close()
            wait_until(lambda: not active, GRACE)
            raise
    return [log for log in logs if log is not None]


def wait_until(condition: Callable[[], bool], seconds: float) -> None:
    """Waits until the condition holds, for so many seconds at most."""
    deadline = time.monotonic() + seconds
    while not condition() and time.monotonic() < deadline:
        time.sleep(0.02)


def _runs_at_once(jobs: Sequence[Job], settings: Settings) -> int:
    """Enough runs that slots and cores stay busy while a generation waits for its last child."""
    smallest = min(job.children for job in jobs)
    return min(len(jobs), 4 + 4 * settings.max_concurrent // smallest)
