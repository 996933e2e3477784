"""Searches: run one seed or several, go on with a log, or do so in the background."""

from __future__ import annotations

import asyncio
import contextlib
import os
import threading
from collections.abc import Callable, Generator, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import msgspec

from evo.configuration import (
    LOCAL,
    Settings,
    at_least,
    default_path,
    make_header,
    split_settings,
)
from evo.journal import check_free
from evo.llm.limits import Slots
from evo.log import Log, Logs, read_log
from evo.records import Evaluation, Model
from evo.runs.arm import GRACE
from evo.runs.instances import InstanceEvaluator
from evo.runs.session import Job, open_caller, plan_job, resume_job, run_jobs, wait_until
from evo.sandbox.cluster import carry_backend
from evo.task import Task, load_task


def run(
    task: str | os.PathLike[str] | Task,
    *,
    model: str | Model = "offline",
    generations: int = 8,
    children: int = 16,
    seed: int = 0,
    log: str | os.PathLike[str] | None = None,
    settings: Settings | None = None,
    **others: Any,
) -> Log:
    """Runs one search and returns its log.

    Args:
        task: Name, alias, folder or Task.
        model: Name in the registry, or a Model.
        generations: T, at least 1.
        children: N, at least 1.
        seed: Seed of the run.
        log: A path that does not exist yet; None: a new one under logs/local.
        settings: A whole Settings value instead of its fields as keywords.
        **others: temperature, top_p, max_tokens, evaluation_timeout and so on, see
            `make_header`; and max_concurrent, timeout, retries and so on, see `Settings`.

    Raises:
        ValueError: A mistake in the arguments.
        EndpointDown: The endpoint does not answer; the log can be resumed.
        EndpointRefused: It refuses the key or the model, or all of a generation; likewise.
        KeyboardInterrupt: Ctrl-C; likewise.
    """
    configuration = {"model": model, "children": children, "seed": seed, **others}
    made: Log = _plan_one(task, generations, log, settings, configuration).work(_ignore)
    return made


class Stoppable(Protocol):
    """What a handle needs of the work in the background."""

    @property
    def stopping(self) -> threading.Event:
        """Set once no further call may begin."""
        ...

    def close(self) -> None:
        """Ends calls and evaluations at once."""
        ...


@dataclass(frozen=True)
class Plan:
    """Work whose arguments were checked: its logs' paths, and the work itself."""

    paths: list[Path]
    work: Callable[[Callable[[Stoppable], None]], Any]


def _ignore(_: Stoppable) -> None:
    pass


def _plan_one(
    task: str | os.PathLike[str] | Task,
    generations: int,
    log: str | os.PathLike[str] | None,
    settings: Settings | None,
    configuration: dict[str, Any],
) -> Plan:
    settings, configuration = split_settings(settings, configuration)
    header = make_header(task, **configuration)
    generations = at_least("generations (T)", generations, 1)
    path = Path(log) if log is not None else default_path(header)
    check_free(path)
    label = f"{header.task.name} seed {header.seed}"
    jobs = [Job(path, header, generations, header.children)]

    def work(hook: Callable[[Stoppable], None]) -> Log:
        for made in run_jobs(jobs, settings, label=label, hook=hook):
            return made
        raise RuntimeError(f"stopped before the log {path} was begun")

    return Plan([path], work)


def run_many(
    task: str | os.PathLike[str] | Task,
    *,
    seeds: Iterable[int],
    model: str | Model = "offline",
    generations: int = 8,
    children: int = 16,
    log_dir: str | os.PathLike[str] | None = None,
    resume: bool = False,
    settings: Settings | None = None,
    **others: Any,
) -> Logs:
    """Runs one search per seed, several at a time, and returns their logs by seed as given.

    Args:
        task: Name, alias, folder or Task.
        seeds: Seeds of the runs, all different.
        model: Name in the registry, or a Model.
        generations: T, at least 1.
        children: N, at least 1.
        log_dir: Folder of the logs; None: logs/local.
        resume: Go on with the logs of equal configuration in the folder, make only what is
            missing.
        settings: A whole Settings value instead of its fields as keywords.
        **others: As for `run`.
    """
    configuration = {"model": model, "children": children, **others}
    plan = _plan_many(task, seeds, generations, log_dir, resume, settings, configuration)
    made: Logs = plan.work(_ignore)
    return made


def _plan_many(
    task: str | os.PathLike[str] | Task,
    seeds: Iterable[int],
    generations: int,
    log_dir: str | os.PathLike[str] | None,
    resume: bool,
    settings: Settings | None,
    configuration: dict[str, Any],
) -> Plan:
    settings, configuration = split_settings(settings, configuration)
    seeds = list(seeds)
    generations = at_least("generations (T)", generations, 1)
    if not seeds or len(set(seeds)) < len(seeds):
        raise ValueError(f"seeds: expected at least one and all different, got {seeds!r}")
    if "seed" in configuration:
        raise TypeError("seed: give seeds=[...] to run_many")
    loaded = load_task(task)
    headers = [make_header(loaded, seed=seed, **configuration) for seed in seeds]
    jobs = [plan_job(header, generations, log_dir, resume=resume) for header in headers]
    return Plan([job.path for job in jobs], lambda hook: Logs(run_jobs(jobs, settings, hook=hook)))


def run_grid(
    task: str | os.PathLike[str] | Task,
    *,
    budget: int = 512,
    seeds: Iterable[int] = range(40, 50),
    log_dir: str | os.PathLike[str] | None = None,
    settings: Settings | None = None,
    **configuration: Any,
) -> Logs:
    """Makes the runs behind a full T x N sweep: N = 1, 2, 4, ... to depth budget / N.

    By the prefix property these runs hold every split of every smaller budget. Runs that the
    folder holds already are gone on with, so a killed grid repeats no call.

    Args:
        task: Name, alias, folder or Task.
        budget: C, calls of each run; best a power of 2.
        seeds: Seeds of the runs, all different.
        log_dir: Folder of the logs; None: logs/local/grid-TASK.
        settings: A whole Settings value instead of its fields as keywords.
        **configuration: As for `run`, without `seed` and `children`.
    """
    settings, configuration = split_settings(settings, configuration)
    budget = at_least("budget (C)", budget, 1)
    loaded, seeds = load_task(task), list(seeds)
    folder = LOCAL / f"grid-{loaded.name}" if log_dir is None else Path(log_dir)
    jobs = [
        plan_job(
            make_header(loaded, children=children, seed=seed, **configuration),
            budget // children,
            folder,
            resume=True,
        )
        for children in powers_of_two(budget)
        for seed in seeds
    ]
    return Logs(run_jobs(jobs, settings, label=f"{loaded.name} grid, {len(jobs)} runs"))


def powers_of_two(budget: int) -> list[int]:
    """Returns 1, 2, 4, ... up to the budget."""
    return [1 << k for k in range(budget.bit_length())]


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
    settings, rest = split_settings(settings, fields)
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
    task: str | os.PathLike[str] | Task,
    program: str,
    *,
    timeout: float | None = None,
    model: str | Model = "offline",
    settings: Settings | None = None,
) -> Evaluation:
    """Evaluates one program in the sandbox.

    Args:
        task: Name, alias, folder or Task.
        program: Source text, or the text that evolves.
        timeout: Seconds; None: the task's limit.
        model: Name in the registry, or a Model: what is asked if a text is evaluated on a data set.
        settings: How it is asked.

    Raises:
        EndpointError: The model does not answer, or refuses.
    """
    from evo import sandbox

    if not isinstance(program, str):
        raise TypeError(f"program: expected source text, got {program!r}")
    loaded = load_task(task)
    limits = loaded.limits
    if timeout is not None:
        limits = msgspec.structs.replace(limits, seconds=float(timeout))
    if not loaded.record.instances_file:
        return sandbox.evaluate(loaded.record, program, limits)
    header = make_header(loaded, model=model, limits=limits)
    settings = settings or Settings()
    caller = open_caller(header, settings, Slots(settings.max_concurrent))
    with contextlib.closing(caller):
        evaluator = InstanceEvaluator(
            header, sandbox.evaluate, caller, max_concurrent=settings.max_concurrent
        )
        return evaluator.evaluate(loaded.record, program, limits)


class Handle:
    """A search in the background; `await handle` or `handle.wait()` gives what it returns."""

    def __init__(self, plan: Plan, *, many: bool) -> None:
        self._plan, self._many = plan, many
        self._resources: Stoppable | None = None
        self._outcome: Any = None
        self._error: BaseException | None = None
        self._stop = threading.Event()
        self._done = threading.Event()  # Ctrl-C while joining a thread would lose track of it
        self._carried = carry_backend()
        threading.Thread(target=self._run, daemon=True).start()

    def _run(self) -> None:
        try:
            with self._carried():
                self._outcome = self._plan.work(self._hook)
        except BaseException as error:  # raised again by wait()
            self._error = error
        finally:
            self._done.set()

    def _hook(self, resources: Stoppable) -> None:
        self._resources = resources
        if self._stop.is_set():
            resources.stopping.set()

    @property
    def log(self) -> Log | list[Log]:
        """The log as it stands now; of several runs, the list of those that have begun."""
        if self._many:
            return [read_log(path) for path in self._plan.paths if _begun(path)]
        path = self._plan.paths[0]
        wait_until(lambda: _begun(path) or not self.running, 60)
        return read_log(path)

    @property
    def paths(self) -> list[Path]:
        """Where the logs are, or will be."""
        return list(self._plan.paths)

    @property
    def running(self) -> bool:
        """Whether the work is still going on."""
        return not self._done.is_set()

    def stop(self) -> None:
        """Asks it to stop: children under way get a moment to finish, no call begins."""
        self._stop.set()
        if self._resources:
            self._resources.stopping.set()
        threading.Thread(target=self._end_soon, daemon=True).start()

    def _end_soon(self) -> None:
        """Ends calls and evaluations that are still under way after a moment."""
        if not self._done.wait(GRACE) and self._resources:
            self._resources.close()

    def wait(self, timeout: float | None = None) -> Any:
        """Waits for the end and returns the log or logs, unfinished if it was stopped.

        Raises:
            TimeoutError: Not done within `timeout` seconds.
            BaseException: Whatever the search raised.
        """
        if not self._done.wait(timeout):
            raise TimeoutError(f"still running after {timeout} s")
        if self._error is not None:
            raise self._error
        return self._outcome

    def __await__(self) -> Generator[Any, Any, Any]:
        return asyncio.to_thread(self.wait).__await__()

    def __repr__(self) -> str:
        state = "running" if self.running else "stopped by an error" if self._error else "done"
        return f"<Handle {state}: {', '.join(str(path) for path in self._plan.paths)}>"


def _begun(path: Path) -> bool:
    """Whether a log has its header."""
    try:
        with path.open("rb") as file:
            return file.readline().endswith(b"\n")
    except FileNotFoundError:
        return False
