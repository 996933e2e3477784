"""Verbs: run one seed or several, go on with logs, evaluate a program; here or behind a handle."""

from __future__ import annotations

import os
import shlex
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TypeVar, Unpack

from evo.logs.inputs import at_least
from evo.logs.journal import check_folder
from evo.logs.log import Log, Logs, read_log
from evo.logs.records import Header, Model
from evo.logs.servers import connect
from evo.logs.types import PathLike, absolute_paths, as_path
from evo.plugins import MistakenType
from evo.runs.bounds import powers_of_two
from evo.runs.budget import BudgetError, Ledger, check_budget
from evo.runs.configuration import (
    LOCAL,
    goal_of,
    make_header,
    release_paths,
    seeds_of,
    settings_of,
)
from evo.runs.handle import Control, Handle, Prepared, begin, in_foreground
from evo.runs.identity import other_model
from evo.runs.options import (
    ConfigurationOptions,
    GridConfiguration,
    GridOptions,
    ManyOptions,
    ResumeOptions,
    RunOptions,
    SeriesOptions,
)
from evo.runs.places import Resume, check_resume, found_jobs, place_of_log, place_of_run
from evo.runs.progress import counted
from evo.runs.resources import ByHand, open_resources
from evo.runs.resuming import resume_job
from evo.runs.session import JobResult, RunJob, all_logs, only_log, run_jobs
from evo.runs.settings import Goal, Settings
from evo.runs.signatures import check_options, lists_options, options_in
from evo.searches import Search
from evo.tasks.task import Task, load_task
from evo.warning import warn

Result = TypeVar("Result")


@lists_options(RunOptions)
def run(
    task: PathLike | Task,
    *,
    log: PathLike | None = None,
    resume: Resume = True,
    budget: Mapping[str, float] | None = None,
    **options: Unpack[RunOptions],
) -> Log:
    """Runs one search and returns its log.

    Args:
        task: Name, alias, folder or Task.
        log: Path of the log (default: the newest of this very run under logs/local, else a new
            one there).
        resume: Whether a log of the same configuration goes on: it is completed, extended where
            `generations` is larger, and returned as it is where nothing is left to do. A log of
            another configuration is a LogError that lists what differs. False: a log that exists
            is an error, and without `log` a new one begins.
        budget: Limits by unit, such as {"calls": 512}: calls, tokens, flops, dollars, seconds. The
            run stops before the first generation that would start with a limit already reached;
            generation 0 counts. Seconds are those of this call, without what a log took before.
        **options: Listed below.

    Raises:
        ValueError: A mistake in the arguments.
        EndpointDown: The endpoint does not answer; the log can be resumed.
        EndpointRefused: It refuses the key or the model, or all of a generation; likewise.
        KeyboardInterrupt: Ctrl-C; likewise.

    Example:
        >>> made = evo.run("mmd", generations=1, children=2, log=new(), progress=False)
        >>> len(made.children)
        2
    """
    return in_foreground(
        lambda: prepare_run(task, log=log, resume=resume, budget=budget, **options)
    )


def prepare_run(
    task: PathLike | Task,
    *,
    log: PathLike | None = None,
    resume: Resume = True,
    budget: Mapping[str, float] | None = None,
    hand: ByHand | None = None,
    **options: Unpack[RunOptions],
) -> Prepared[Log]:
    """Checks the arguments of `run` and returns the work, prepared.

    With a hand, that is told the replies of children in place of a model that is called.
    """
    check_options(RunOptions, options, verb=run)
    header = make_header(task, **options_in(ConfigurationOptions, options))
    _check_critic(options, header)
    goes_on = check_resume(resume)
    if log is None:
        path = place_of_run(header, settings_of(options), resume=goes_on)
    else:
        path = place_of_log(header, as_path("log", log), resume=goes_on)
    job = RunJob(path, header, goal_of(options))
    label = f"{header.task.name} seed {header.seed}"
    return _prepare([job], settings_of(options), budget, label, only_log, many=False, hand=hand)


def _check_critic(options: Mapping[str, object], *headers: Header) -> None:
    """Warns of a critic that is given and never asked."""
    if options.get("critic") is not None and any(each.critic is None for each in headers):
        warn(
            "critic: it chooses among drafts of a child, and there is one of each, so that it is "
            "never asked; give drafts=2 or more (--drafts), or no critic",
        )


@lists_options(ManyOptions)
def run_many(
    task: PathLike | Task,
    *,
    seeds: Iterable[int],
    log_dir: PathLike | None = None,
    resume: Resume = True,
    budget: Mapping[str, float] | None = None,
    **options: Unpack[ManyOptions],
) -> Logs:
    """Runs one search per seed, several at a time, and returns their logs by seed as given.

    Args:
        task: Name, alias, folder or Task.
        seeds: Seeds of the runs, all different.
        log_dir: Folder for the logs (default: logs/local).
        resume: Continue the logs of equal configuration in the folder, and start only the runs
            that are missing; False: begin a new log for each.
        budget: Limits by unit, as for `run`, of all runs together, which get equally far: each
            begins generation g before any begins g + 1, see `evo.runs.waves`.
        **options: Listed below.

    Example:
        >>> settings = {"generations": 1, "children": 1, "progress": False}
        >>> len(evo.run_many("mmd", seeds=range(2), log_dir=new(""), **settings))
        2
    """
    return in_foreground(
        lambda: prepare_many(
            task, seeds=seeds, log_dir=log_dir, resume=resume, budget=budget, **options
        )
    )


def prepare_many(
    task: PathLike | Task,
    *,
    seeds: Iterable[int],
    log_dir: PathLike | None = None,
    resume: Resume = True,
    budget: Mapping[str, float] | None = None,
    **options: Unpack[ManyOptions],
) -> Prepared[Logs]:
    """Checks the arguments of `run_many` and returns the work, prepared."""
    if "seed" in options:
        raise MistakenType("seed: give seeds=[...] to run_many")
    check_options(ManyOptions, options, verb=run_many)
    seeds, goal, loaded = seeds_of(seeds), goal_of(options), load_task(task)
    configuration = options_in(SeriesOptions, options)
    headers = [make_header(loaded, seed=seed, **configuration) for seed in seeds]
    _check_critic(options, *headers[:1])
    settings = settings_of(options)
    jobs = found_jobs([(each, goal) for each in headers], log_dir, settings, resume=resume)
    return prepare_jobs(jobs, settings, budget, f"{loaded.name}, {counted(len(jobs), 'run')}")


@lists_options(GridOptions)
def run_grid(
    task: PathLike | Task,
    *,
    calls: int = 512,
    seeds: Iterable[int] = range(40, 50),
    log_dir: PathLike | None = None,
    resume: Resume = True,
    budget: Mapping[str, float] | None = None,
    **options: Unpack[GridOptions],
) -> Logs:
    """Makes the runs behind a full T x N sweep: N = 1, 2, 4, ... to depth C / N.

    By the prefix property these runs hold every split of every smaller C. Runs that the folder
    holds already are continued, so a grid that was killed repeats no call.

    Args:
        task: Name, alias, folder or Task.
        calls: C, calls of children of each run; best a power of 2.
        seeds: Seeds of the runs, all different.
        log_dir: Folder for the logs (default: logs/local/grid-TASK).
        resume: As for `run_many`.
        budget: Limits by unit of all runs together, as for `run_many`.
        **options: Listed below.

    Example:
        >>> made = evo.run_grid("mmd", calls=2, seeds=[1], log_dir=new(""), progress=False)
        >>> [(len(each.generations), each.header.children) for each in made]
        [(2, 1), (1, 2)]
    """
    return in_foreground(
        lambda: prepare_grid(
            task, calls=calls, seeds=seeds, log_dir=log_dir, resume=resume, budget=budget, **options
        )
    )


def prepare_grid(
    task: PathLike | Task,
    *,
    calls: int = 512,
    seeds: Iterable[int] = range(40, 50),
    log_dir: PathLike | None = None,
    resume: Resume = True,
    budget: Mapping[str, float] | None = None,
    **options: Unpack[GridOptions],
) -> Prepared[Logs]:
    """Checks the arguments of `run_grid` and returns the work, prepared."""
    if "children" in options:
        raise MistakenType("children: a grid has N = 1, 2, 4, ...; give calls instead")
    check_options(GridOptions, options, verb=run_grid)
    if isinstance(budget, int):
        raise BudgetError(
            f"budget: expected limits by unit of all runs together, such as {{'calls': 20_000}}, "
            f"got {budget!r}; the size of each run is calls={budget!r}"
        )
    calls = at_least("calls (C)", calls, 1)
    loaded, seeds = load_task(task), seeds_of(seeds)
    folder = as_path("log_dir", LOCAL / f"grid-{loaded.name}" if log_dir is None else log_dir)
    configuration = options_in(GridConfiguration, options)
    cells = [(children, seed) for children in powers_of_two(calls) for seed in seeds]
    headers = [make_header(loaded, children=n, seed=seed, **configuration) for n, seed in cells]
    settings, goals = settings_of(options), [Goal(calls // each.children) for each in headers]
    jobs = found_jobs(zip(headers, goals, strict=True), folder, settings, resume=resume)
    return prepare_jobs(jobs, settings, budget, f"{loaded.name} grid, {counted(len(jobs), 'run')}")


@lists_options(RunOptions)
def start(
    task: PathLike | Task,
    *,
    seeds: Iterable[int] | None = None,
    log: PathLike | None = None,
    log_dir: PathLike | None = None,
    resume: Resume = True,
    budget: Mapping[str, float] | None = None,
    **options: Unpack[RunOptions],
) -> Handle[Log] | Handle[Logs]:
    """Starts `run`, or `run_many` if seeds are given, in the background.

    A mistake in the arguments is raised here, before anything starts.

    Args:
        task: Name, alias, folder or Task.
        seeds: Seeds of several runs (default: one run).
        log: Path of the log of one run, as for `run`.
        log_dir: Folder for the logs of several runs, as for `run_many`.
        resume: Continue the logs in the folder, likewise.
        budget: Limits by unit, as for `run` and `run_many`.
        **options: Listed below.

    Example:
        >>> handle = evo.start("mmd", generations=1, children=1, log=new(), progress=False)
        >>> len(handle.wait().generations)
        1
    """
    check_options(RunOptions, options, verb=start)
    with absolute_paths():
        if seeds is None:
            return begin(prepare_run(task, log=log, resume=resume, budget=budget, **options))
        if "seed" in options:
            raise MistakenType("seed: several runs have seeds=[...] instead")
        shared = options_in(ManyOptions, options)
        prepared = prepare_many(
            task, seeds=seeds, log_dir=log_dir, resume=resume, budget=budget, **shared
        )
        return begin(prepared)


@lists_options(ResumeOptions, optional=["generations"])
def resume_many(
    paths: Iterable[PathLike],
    *,
    model: str | Model | None = None,
    base_url: str | None = None,
    search: Search | None = None,
    task: Task | None = None,
    budget: Mapping[str, float] | None = None,
    **options: Unpack[ResumeOptions],
) -> Logs:
    """Continues several logs, as `resume` does one.

    What is not given stays as it was, as for `resume`; all logs share the smallest of the numbers
    of calls in flight, and of the rates, with which they were made.

    Args:
        paths: Logs that are not compact.
        model: The model to call: a name in the registry, or a Model (default: the logged name).
        base_url: Where it is asked, https://host/v1, as of `run`.
        search: The log's search, if it is one of your own that `evo.SEARCHES` does not name.
        task: The log's task, if its evaluator is a function of this process.
        budget: Limits by unit of all that the logs hold and what is added, as for `run_many`.
        **options: Listed below.

    Example:
        >>> settings = {"children": 1, "log_dir": new(""), "progress": False}
        >>> made = evo.run_many("mmd", seeds=[1, 2], generations=1, **settings)
        >>> longer = evo.resume_many(made, generations=2, progress=False)
        >>> [len(each.generations) for each in longer]
        [2, 2]
    """
    return in_foreground(
        lambda: prepare_resume(
            paths,
            model=model,
            base_url=base_url,
            search=search,
            task=task,
            budget=budget,
            **options,
        )
    )


def prepare_resume(
    paths: Iterable[PathLike],
    *,
    model: str | Model | None = None,
    base_url: str | None = None,
    search: Search | None = None,
    task: Task | None = None,
    budget: Mapping[str, float] | None = None,
    **options: Unpack[ResumeOptions],
) -> Prepared[Logs]:
    """Checks the arguments of `resume_many` and returns the work, prepared."""
    for name in options:
        if name in ConfigurationOptions.__annotations__:
            raise MistakenType(f"{name!r} is part of the run's identity and cannot change")
    check_options(ResumeOptions, options, verb=resume_many)
    logs = [read_log(as_path("path", path)) for path in _listed(paths)]
    jobs = [resume_job(log, options, (model, base_url), search, task) for log in logs]
    pairs = zip(logs, jobs, strict=True)
    going = [(log, job.header) for log, job in pairs if job.header is not log.header]  # else: whole
    if words := [found for log, header in going if (found := other_model(log, header))]:
        warn(f"{words[0]}{f'; {len(words) - 1} more likewise' if len(words) > 1 else ''}")
    settings = settings_of(options, before=[log.sessions[-1] for log in logs if log.sessions])
    label = f"{jobs[0].header.task.name}, " if len(jobs) == 1 else ""
    return prepare_jobs(jobs, settings, budget, f"{label}{counted(len(jobs), 'run')}")


def _listed(paths: Iterable[PathLike] | PathLike) -> Iterable[PathLike]:
    """Returns the logs that are given, be it one; raises MistakenType for a folder."""
    if not isinstance(paths, str | os.PathLike):
        return paths
    if os.path.isdir(paths):
        folder = os.fspath(paths)
        raise MistakenType(
            f"paths: expected logs, got the folder {folder!r}; write "
            f"sorted(Path({folder!r}).glob('*.jsonl')) for the logs in it; on the command line "
            f"`evo resume {shlex.quote(folder)}` goes on with those that are not finished"
        )
    return [paths]


@lists_options(ResumeOptions, optional=["generations"])
def resume(
    path: PathLike,
    *,
    model: str | Model | None = None,
    base_url: str | None = None,
    search: Search | None = None,
    task: Task | None = None,
    budget: Mapping[str, float] | None = None,
    **options: Unpack[ResumeOptions],
) -> Log:
    """Continues a log: completes a killed run, or extends a finished one.

    Its calls go where the registry points for the model of that name; another model than before is
    warned of. If the log names any other endpoint, key, id or extra fields, nothing is called
    unless `model` or `base_url` is given. Of `generations`, `target`, `patience`,
    `max_concurrent`, the rates and the preset, those that are not given stay as they were in the
    last session; a preset that is given replaces the logged numbers.

    Args:
        path: A log that is not compact.
        model: The model to call: a name in the registry, or a Model (default: the logged name).
        base_url: Where it is asked, https://host/v1, as of `run`.
        search: The log's search, if it is one of your own that `evo.SEARCHES` does not name.
        task: The log's task, if its evaluator is a function of this process.
        budget: Limits by unit of all that the log holds and what is added, as for `run`.
        **options: Listed below.

    Raises:
        LogError: The log is damaged, busy, compact, or not a run of this package.
        ValueError: The goal is below what the log holds.

    Example:
        >>> made = evo.run("mmd", generations=1, children=1, log=new(), progress=False)
        >>> len(evo.resume(made, generations=2, progress=False).generations)
        2
    """
    (log,) = resume_many(
        [path], model=model, base_url=base_url, search=search, task=task, budget=budget, **options
    )
    return log


def prepare_jobs(
    jobs: Sequence[RunJob], settings: Settings, budget: Mapping[str, float] | None, label: str
) -> Prepared[Logs]:
    """Prepares to bring logs to their goals within one budget; see `_prepare`."""
    return _prepare(jobs, settings, budget, label, all_logs)


def _prepare(
    jobs: Sequence[RunJob],
    settings: Settings,
    budget: Mapping[str, float] | None,
    label: str,
    result: Callable[[Sequence[JobResult]], Result],
    *,
    many: bool = True,
    hand: ByHand | None = None,
) -> Prepared[Result]:
    """Prepares to bring logs to their goals within one budget, and returns a result of them.

    A folder or a cache that cannot be written is an error now, before anything is announced.
    """
    limits = {} if budget is None else check_budget(budget, [job.header for job in jobs])
    for folder in {job.path.parent for job in jobs if not job.path.exists()}:
        check_folder(folder)
    if settings.cache is not None:
        from evo.models.cache import open_cache

        open_cache(settings.cache).close()
    if settings.control is not None:
        connect(settings.control, "a place of requests").close()

    def work(control: Control) -> Result:
        try:
            with open_resources(settings, control, hand=hand) as resources:
                ledger = Ledger(limits) if limits else None
                return result(run_jobs(jobs, resources, ledger=ledger, label=label))
        finally:
            release_paths(job.path for job in jobs)

    runs = [(job.header, job.goal.generations) for job in jobs]
    return Prepared([job.path for job in jobs], work, many=many, runs=runs)
