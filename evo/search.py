"""Searches: run one seed or several, go on with a log, or do so in the background."""

from __future__ import annotations

import asyncio
import contextlib
import datetime
import functools
import os
import platform
import threading
import time
from collections.abc import Callable, Generator, Iterable, Sequence
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import msgspec

from evo.arm import GRACE, Arm, Resources, Stopped
from evo.llm.client import Caller, EndpointDown, EndpointRefused
from evo.log import Log, LogError, LogWriter, read_log
from evo.prompt import PROMPT_VERSION
from evo.records import Child, End, EndReason, Evaluation, Header, Limits, Model, Session
from evo.task import Task, load_task

if TYPE_CHECKING:
    from tqdm import tqdm as Tqdm

LOCAL = Path("logs/local")
"""Where logs go unless a path is given."""

T = TypeVar("T")


@functools.cache
def software_versions() -> dict[str, str]:
    """Returns the versions that a log states."""
    packages = ("evo-replay", "numpy", "scipy", "openai")
    return {"python": platform.python_version(), **{name: version(name) for name in packages}}


def make_header(
    task: str | os.PathLike[str] | Task,
    *,
    model: str | Model = "offline",
    children: int = 16,
    seed: int = 0,
    temperature: float | None = None,
    top_p: float | None = None,
    max_tokens: int | None = None,
    limits: Limits | None = None,
    evaluation_timeout: float | None = None,
    min_improvement: float = 1e-9,
) -> Header:
    """Returns the configuration of a run: everything that its children depend on.

    Args:
        task: Name, alias, folder or Task.
        model: Name in the registry, or a Model.
        children: N, at least 1.
        seed: Seed of the run, at least 0.
        temperature: Sampling temperature; None: the model's default, as for the next two.
        top_p: Nucleus sampling mass in (0, 1].
        max_tokens: Completion tokens at most.
        limits: Limits of an evaluation; None: the task's.
        evaluation_timeout: Seconds; replaces that limit alone.
        min_improvement: A child replaces its parent only if better by more than this, at least 0.

    Raises:
        ValueError: A value is out of range, or the task or model is unknown.
    """
    from evo.llm.registry import find_model, resolve_sampling

    _at_least("children (N)", children, 1)
    _at_least("seed", seed, 0)
    if not 0 <= min_improvement < float("inf"):
        raise ValueError(f"min_improvement: expected a number >= 0, got {min_improvement!r}")
    loaded, known = load_task(task), find_model(model)
    limits = limits or loaded.limits
    if evaluation_timeout is not None:
        limits = msgspec.structs.replace(limits, seconds=float(evaluation_timeout))
    sampling = resolve_sampling(known, temperature=temperature, top_p=top_p, max_tokens=max_tokens)
    return Header(
        task=loaded.record,
        model=known,
        sampling=sampling,
        children=children,
        seed=seed,
        min_improvement=float(min_improvement),
        limits=limits,
        prompt_version=PROMPT_VERSION,
        versions=software_versions(),
    )


def _at_least(name: str, value: int, low: int) -> None:
    if isinstance(value, bool) or not isinstance(value, int):
        raise TypeError(f"{name}: expected a whole number, got {value!r}")
    if value < low:
        raise ValueError(f"{name}: expected at least {low}, got {value!r}")


@dataclass(frozen=True, kw_only=True)
class Settings:
    """How a session works; unlike the header, nothing that a child depends on.

    Attributes:
        max_concurrent: Calls in flight at most; 1 works in order.
        timeout: Seconds that one attempt may take.
        retries: Attempts beyond the first.
        workers: Evaluations at a time; None: one per core.
        evaluations: Folder of evaluations shared by runs; None: not shared.
        progress: Show a progress bar.
    """

    max_concurrent: int = 20
    timeout: float = 600.0
    retries: int = 5
    workers: int | None = None
    evaluations: Path | None = None
    progress: bool = True

    def __post_init__(self) -> None:
        _at_least("max_concurrent", self.max_concurrent, 1)
        _at_least("retries", self.retries, 0)
        if self.workers is not None:
            _at_least("workers", self.workers, 1)
        if not 0 < self.timeout < float("inf"):
            raise ValueError(f"timeout: expected seconds above 0, got {self.timeout!r}")


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
    from evo.sandbox import Evaluator

    if caller is None:
        from evo.llm.client import ModelClient
        from evo.llm.limits import Slots

        caller = ModelClient(
            header.model,
            header.sampling,
            slots=Slots(settings.max_concurrent),
            timeout=settings.timeout,
            retries=settings.retries,
        )
    workers = 1 if settings.max_concurrent == 1 else settings.workers
    resources = Resources(
        caller=caller,
        evaluator=Evaluator(workers=workers),
        max_concurrent=settings.max_concurrent,
        evaluations=settings.evaluations,
    )
    try:
        yield resources
    finally:
        resources.close()


class _Progress:
    """The progress bar of one or several runs: generations, best fitness, children, tokens."""

    def __init__(self, label: str, total: int, *, shown: bool) -> None:
        from tqdm.auto import tqdm

        self._bar: Tqdm[Any] = tqdm(total=total, desc=label, unit="child", disable=not shown)
        self._lock = threading.Lock()
        self._ok = self._failed = self._tokens = 0
        self._best: float | None = None
        self._generation = ""

    def child(self, child: Child) -> None:
        from evo.cost import usage_tokens

        used = [usage_tokens(attempt.usage) for attempt in child.attempts]
        with self._lock:
            self._tokens += sum((t.prompt or 0) + (t.completion or 0) for t in used if t)
            if child.evaluation.status == "ok":
                self._ok += 1
            else:
                self._failed += 1
            self._bar.update(1)

    def generation(self, arm: Arm, goal: int) -> None:
        with self._lock:
            if arm.best_fitness is not None:
                self._best = max(arm.best_fitness, self._best or arm.best_fitness)
            self._bar.set_postfix_str(
                f"T {arm.generation}/{goal}, best {_format(self._best)}, "
                f"{self._ok} ok, {self._failed} failed, {self._tokens:,} tokens"
            )

    def skip(self, children: int) -> None:
        self._bar.update(children)

    def close(self) -> None:
        self._bar.close()


def _format(fitness: float | None) -> str:
    return "none" if fitness is None else f"{fitness:.4f}"


def _advance_to(arm: Arm, goal: int, writer: LogWriter, progress: _Progress) -> None:
    """Advances an arm to its goal and logs how the session ended."""
    reason: EndReason = "interrupted"
    message: str | None = None
    done = 0
    try:
        while arm.generation < goal:
            arm.advance(progress.child)
            done += 1
            progress.generation(arm, goal)
        reason = "completed"
    except EndpointDown as error:
        reason, message = "endpoint", str(error)
        raise
    except EndpointRefused as error:
        reason, message = "refused", str(error)
        raise
    finally:
        writer.append(End(reason=reason, message=message, stats={"generations": done}))
        arm.close()


def _session(goal: int, settings: Settings, resources: Resources) -> Session:
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
        writer, log = LogWriter.reopen(path)
        header = log.header
        progress.skip(len(log.outcomes))
    else:
        writer, log = LogWriter.create(path, header), None
    try:
        arm = Arm(writer, header, resources)
        writer.append(_session(goal, settings, resources))
        arm.begin(log)
    except BaseException:
        writer.close()
        raise
    with contextlib.suppress(Stopped):
        _advance_to(arm, goal, writer, progress)
    return read_log(path)


def default_path(header: Header, folder: str | os.PathLike[str] | None = None) -> Path:
    """Returns an unused path for a run's log, named after what identifies it."""
    folder = LOCAL if folder is None else Path(folder)
    safe = "".join(c if c.isalnum() or c in "-_." else "-" for c in header.model.name)
    stem = f"{header.task.name}-{safe}-N{header.children}-s{header.seed}"
    names = (f"{stem}.jsonl", *(f"{stem}-{count}.jsonl" for count in range(2, 100_000)))
    taken = set(os.listdir(folder)) if folder.is_dir() else set()
    return next(folder / n for n in names if n not in taken and f"{n}.gz" not in taken)


def run(
    task: str | os.PathLike[str] | Task,
    *,
    generations: int = 8,
    log: str | os.PathLike[str] | None = None,
    settings: Settings | None = None,
    **configuration: Any,
) -> Log:
    """Runs one search and returns its log.

    Args:
        task: Name, alias, folder or Task.
        generations: T, at least 1.
        log: A path that does not exist yet; None: a new one under logs/local.
        settings: A whole Settings value instead of its fields as keywords.
        **configuration: model, children, seed and so on, see `make_header`; and max_concurrent,
            timeout, retries and so on, see `Settings`.

    Raises:
        ValueError: A mistake in the arguments.
        EndpointDown: The endpoint does not answer; the log can be resumed.
        EndpointRefused: It refuses the key or the model, or all of a generation; likewise.
        KeyboardInterrupt: Ctrl-C; likewise.
    """
    return _plan_one(task, generations, log, settings, configuration).work(_ignore)


@dataclass(frozen=True)
class _Plan:
    """Work whose arguments were checked: its logs' paths, and the work itself."""

    paths: list[Path]
    work: Callable[[Callable[[Resources], None]], Any]


def _ignore(_: Resources) -> None:
    pass


def _plan_one(
    task: str | os.PathLike[str] | Task,
    generations: int,
    log: str | os.PathLike[str] | None,
    settings: Settings | None,
    configuration: dict[str, Any],
) -> _Plan:
    settings, configuration = _split(settings, configuration)
    header = make_header(task, **configuration)
    _at_least("generations (T)", generations, 1)
    path = Path(log) if log is not None else default_path(header)
    label = f"{header.task.name} seed {header.seed}"
    jobs = [Job(path, header, generations, header.children)]
    return _Plan([path], lambda hook: run_jobs(jobs, settings, label=label, hook=hook)[0])


def _split(
    settings: Settings | None, configuration: dict[str, Any]
) -> tuple[Settings, dict[str, Any]]:
    """Separates the fields of Settings from those of the header."""
    fields = Settings.__dataclass_fields__
    given = {name: value for name, value in configuration.items() if name in fields}
    rest = {name: value for name, value in configuration.items() if name not in fields}
    known = {*make_header.__kwdefaults__, *fields}
    if unknown := [name for name in rest if name not in known]:
        raise TypeError(f"unknown argument {unknown[0]!r} (known: {', '.join(sorted(known))})")
    if settings is None:
        return Settings(**given), rest
    if given:
        raise TypeError(f"{', '.join(given)}: give it within settings, not beside it")
    return settings, rest


def run_many(
    task: str | os.PathLike[str] | Task,
    *,
    seeds: Iterable[int],
    generations: int = 8,
    log_dir: str | os.PathLike[str] | None = None,
    resume: bool = False,
    settings: Settings | None = None,
    **configuration: Any,
) -> list[Log]:
    """Runs one search per seed, several at a time, and returns their logs by seed as given.

    Args:
        task: Name, alias, folder or Task.
        seeds: Seeds of the runs, all different.
        generations: T, at least 1.
        log_dir: Folder of the logs; None: logs/local.
        resume: Go on with the logs of equal configuration in the folder, make only what is
            missing.
        settings: A whole Settings value instead of its fields as keywords.
        **configuration: As for `run`, without `seed`.
    """
    plan = _plan_many(task, seeds, generations, log_dir, resume, settings, configuration)
    return list(plan.work(_ignore))


def _plan_many(
    task: str | os.PathLike[str] | Task,
    seeds: Iterable[int],
    generations: int,
    log_dir: str | os.PathLike[str] | None,
    resume: bool,
    settings: Settings | None,
    configuration: dict[str, Any],
) -> _Plan:
    settings, configuration = _split(settings, configuration)
    seeds = list(seeds)
    _at_least("generations (T)", generations, 1)
    if not seeds or len(set(seeds)) < len(seeds):
        raise ValueError(f"seeds: expected at least one and all different, got {seeds!r}")
    if "seed" in configuration:
        raise TypeError("seed: give seeds=[...] to run_many")
    loaded = load_task(task)
    headers = [make_header(loaded, seed=seed, **configuration) for seed in seeds]
    jobs = [plan_job(header, generations, log_dir, resume=resume) for header in headers]
    return _Plan([job.path for job in jobs], lambda hook: run_jobs(jobs, settings, hook=hook))


def start(
    task: str | os.PathLike[str] | Task,
    *,
    seeds: Iterable[int] | None = None,
    generations: int = 8,
    log: str | os.PathLike[str] | None = None,
    log_dir: str | os.PathLike[str] | None = None,
    resume: bool = False,
    settings: Settings | None = None,
    **configuration: Any,
) -> Handle:
    """Starts `run`, or `run_many` if seeds are given, in the background and returns a handle.

    A mistake in the arguments is raised here, before anything starts.
    """
    if seeds is None:
        plan = _plan_one(task, generations, log, settings, configuration)
    else:
        plan = _plan_many(task, seeds, generations, log_dir, resume, settings, configuration)
    return Handle(plan, many=seeds is not None)


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
        stem = default_path(header, Path(os.devnull)).stem
        place = LOCAL if folder is None else Path(folder)
        for path in sorted(place.glob(f"{stem}*.jsonl")):
            if same_identity(read_log(path).header, header):
                return Job(path, None, goal, header.children)
    return Job(default_path(header, folder), header, goal, header.children)


def same_identity(one: Header, other: Header) -> bool:
    """Returns whether two headers describe the same run, whatever software wrote them."""
    blank: dict[str, str] = {}
    return msgspec.structs.replace(one, versions=blank) == msgspec.structs.replace(
        other, versions=blank
    )


def run_jobs(
    jobs: Sequence[Job],
    settings: Settings,
    *,
    label: str | None = None,
    hook: Callable[[Resources], None] = lambda _: None,
) -> list[Log]:
    """Brings logs of one model to their goals, several at a time, sharing slots and workers.

    Args:
        jobs: Logs to make or go on with, all of one model and sampling.
        settings: Limits of concurrency and time.
        label: Of the progress bar.
        hook: Given the resources before the work begins.
    """
    from joblib import Parallel, delayed

    first = jobs[0].header or read_log(jobs[0].path).header
    at_once = 1 if settings.max_concurrent == 1 else _runs_at_once(jobs, settings)
    total = sum(job.goal * job.children for job in jobs)
    label = label or f"{first.task.name}, {len(jobs)} runs"
    with (
        open_resources(first, settings) as resources,
        contextlib.closing(_Progress(label, total, shown=settings.progress)) as progress,
    ):
        hook(resources)
        active: set[Path] = set()

        def work(job: Job) -> Log | None:
            if resources.stopping.is_set():
                return None
            active.add(job.path)
            try:
                return _work(job.path, job.header, job.goal, settings, resources, progress)
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
            resources.stopping.set()
            _wait_until(lambda: not active, GRACE)
            resources.close()
            _wait_until(lambda: not active, GRACE)
            raise
    return [log for log in logs if log is not None]


def _wait_until(condition: Callable[[], bool], seconds: float) -> None:
    deadline = time.monotonic() + seconds
    while not condition() and time.monotonic() < deadline:
        time.sleep(0.02)


def _runs_at_once(jobs: Sequence[Job], settings: Settings) -> int:
    """Enough runs that slots and cores stay busy while a generation waits for its last child."""
    smallest = min(job.children for job in jobs)
    return min(len(jobs), max(3, 2 * settings.max_concurrent // smallest))


def resume(
    path: str | os.PathLike[str],
    *,
    generations: int | None = None,
    settings: Settings | None = None,
    **fields: Any,
) -> Log:
    """Goes on with a log: completes a killed run, or extends a finished one.

    Args:
        path: A log that is not compact.
        generations: T, the new goal; None: the goal of the last session.
        settings: A whole Settings value instead of its fields as keywords.
        **fields: Fields of `Settings`.

    Raises:
        LogError: The log is damaged, busy, compact, or not a greedy run of this package.
        ValueError: The goal is below what the log holds.
    """
    settings, rest = _split(settings, fields)
    if rest:
        raise TypeError(f"{next(iter(rest))!r} is part of the run's identity and cannot change")
    return run_jobs([resume_job(path, generations)], settings)[0]


def resume_many(
    paths: Iterable[str | os.PathLike[str]],
    *,
    generations: int | None = None,
    settings: Settings | None = None,
) -> list[Log]:
    """Goes on with several logs, those of equal model and sampling together.

    Args:
        paths: Logs, see `resume`.
        generations: T, the new goal of each; None: the goal of its last session.
        settings: How to work.
    """
    groups: dict[bytes, list[Job]] = {}
    jobs = [resume_job(path, generations) for path in paths]
    for job in jobs:
        header = read_log(job.path).header
        groups.setdefault(msgspec.json.encode([header.model, header.sampling]), []).append(job)
    logs = [log for group in groups.values() for log in run_jobs(group, settings or Settings())]
    by_path = {log.path: log for log in logs}
    return [by_path[job.path] for job in jobs if job.path in by_path]


def evaluate(
    task: str | os.PathLike[str] | Task, program: str, *, timeout: float | None = None
) -> Evaluation:
    """Evaluates one program in the sandbox.

    Args:
        task: Name, alias, folder or Task.
        program: Source text.
        timeout: Seconds; None: the task's limit.
    """
    from evo import sandbox

    loaded = load_task(task)
    limits = loaded.limits
    if timeout is not None:
        limits = msgspec.structs.replace(limits, seconds=float(timeout))
    return sandbox.evaluate(loaded.record, program, limits)


def resume_job(path: str | os.PathLike[str], generations: int | None) -> Job:
    """Returns what is left to do for a log, after checking that it can go on."""
    log = read_log(path)
    if log.header.compact:
        raise LogError(f"{path}: a compact log holds no programs and cannot go on")
    if log.header.source != "evo":
        raise LogError(f"{path}: written by {log.header.source}; only runs of evo can go on")
    goal = log.goal if generations is None else generations
    _at_least("generations (T)", goal, 1)
    if goal < len(log.generations):
        raise ValueError(
            f"{path}: holds {len(log.generations)} generations already, cannot go on to T={goal}"
        )
    return Job(Path(path), None, goal, log.header.children)


class Handle:
    """A search in the background; `await handle` or `handle.wait()` gives what it returns."""

    def __init__(self, plan: _Plan, *, many: bool) -> None:
        self._plan, self._many = plan, many
        self._resources: Resources | None = None
        self._outcome: Any = None
        self._error: BaseException | None = None
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def _run(self) -> None:
        try:
            self._outcome = self._plan.work(self._hook)
        except BaseException as error:  # noqa: BLE001 - raised again by wait()
            self._error = error

    def _hook(self, resources: Resources) -> None:
        self._resources = resources
        if self._stop.is_set():
            resources.stopping.set()

    @property
    def log(self) -> Log | list[Log]:
        """The log as it stands now; of several runs, the list of those that have begun."""
        if self._many:
            return [read_log(path) for path in self._plan.paths if path.exists()]
        path = self._plan.paths[0]
        _wait_until(lambda: path.exists() or not self.running, 60)
        return read_log(path)

    @property
    def running(self) -> bool:
        """Whether the work is still going on."""
        return self._thread.is_alive()

    def stop(self) -> None:
        """Asks it to stop: children under way get a moment to finish, no call begins."""
        self._stop.set()
        if self._resources:
            self._resources.stopping.set()

    def wait(self, timeout: float | None = None) -> Any:
        """Waits for the end and returns the log or logs, unfinished if it was stopped.

        Raises:
            TimeoutError: Not done within `timeout` seconds.
            BaseException: Whatever the search raised.
        """
        self._thread.join(timeout)
        if self._thread.is_alive():
            raise TimeoutError(f"still running after {timeout} s")
        if self._error is not None:
            raise self._error
        return self._outcome

    def __await__(self) -> Generator[Any, Any, Any]:
        return asyncio.to_thread(self.wait).__await__()

    def __repr__(self) -> str:
        state = "running" if self.running else "stopped by an error" if self._error else "done"
        return f"<Handle {state}: {', '.join(str(path) for path in self._plan.paths)}>"
