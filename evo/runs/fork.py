"""Forks: new runs that share a logged run's first generations and go on differently."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Unpack

import msgspec

from evo.logs.hashes import hash_of_lines
from evo.logs.inputs import at_least
from evo.logs.journal import LogError, read_bytes
from evo.logs.log import Log, Logs, read_log
from evo.logs.maintenance import lines_through, require_whole
from evo.logs.records import Fork, Header, InheritableLine, Segment
from evo.logs.types import PathLike, as_path
from evo.models.registry import own_models
from evo.plugins import MistakenType
from evo.runs.configuration import goal_of, make_header, make_header_again, settings_of
from evo.runs.handle import Prepared, in_foreground
from evo.runs.options import ChangeOptions, ConfigurationOptions, ForkOptions
from evo.runs.places import Resume, found_jobs
from evo.runs.playback import evaluated_again
from evo.runs.progress import counted
from evo.runs.settings import Settings
from evo.runs.signatures import check_options, lists_options, options_in
from evo.runs.verbs import prepare_jobs
from evo.tasks.task import Task, load_task, with_function


@lists_options(ForkOptions, optional=["generations", *ChangeOptions.__annotations__])
def fork(
    log: PathLike,
    *,
    at: int,
    copies: int = 1,
    task: PathLike | Task | None = None,
    log_dir: PathLike | None = None,
    resume: Resume = True,
    budget: Mapping[str, float] | None = None,
    **options: Unpack[ForkOptions],
) -> Logs:
    """Continues from one state of a logged run, once or several times, unchanged or changed.

    A fork's log holds the shared generations, marked as inherited: they cost it nothing. Copy 0
    keeps the run's seed, so that with nothing changed it is the run's own continuation. Copy k has
    a seed of its own that depends on the run's, `at` and k alone, so that copies k pair across
    conditions. Options that identify a run and are not given stay as in the log.

    Args:
        log: A run's log with its programs, or a path of one.
        at: The last generation that is shared; 0 shares the initial program alone.
        copies: Number of copies of the state, at least 1.
        task: Of a log that was imported: its programs are evaluated on this task. Of one whose
            evaluator is a function of this process: the task that has it.
        log_dir: Folder for the forks' logs (default: a folder of their own beside the log, named
            after it: run-40-forks for run-40.jsonl).
        resume: Continue equal forks in the folder, and start only those that are missing; False:
            begin new ones.
        budget: Limits by unit of all copies together, as for `run_many`.
        **options: Listed below; `generations` counts the shared ones, too (default: the log's).

    Raises:
        LogError: The log is damaged, compact, or shorter than the fork.

    Example:
        >>> [copy] = evo.fork(path, at=1, generations=2, log_dir=new(""), progress=False)
        >>> copy.header.fork.at
        1
    """
    return in_foreground(
        lambda: prepare_fork(
            log,
            at=at,
            copies=copies,
            task=task,
            log_dir=log_dir,
            resume=resume,
            budget=budget,
            **options,
        )
    )


def prepare_fork(
    log: PathLike,
    *,
    at: int,
    copies: int = 1,
    task: PathLike | Task | None = None,
    log_dir: PathLike | None = None,
    resume: Resume = True,
    budget: Mapping[str, float] | None = None,
    **options: Unpack[ForkOptions],
) -> Prepared[Logs]:
    """Checks the arguments of `fork` and returns the work, prepared."""
    known = ConfigurationOptions.__annotations__.keys() - ChangeOptions.__annotations__
    if kept := options.keys() & known:
        raise MistakenType(f"{min(kept)!r} is that of the log in a fork and cannot change")
    check_options(ForkOptions, options, verb=fork)
    stated, settings = goal_of(options), settings_of(options)
    given = {name: value for name, value in options.items() if value is not None}
    changes = options_in(ChangeOptions, given)
    parent, copies = read_log(as_path("log", log)), at_least("copies", copies, 1)
    at = at_least("at", at, 0)
    _check_parent(parent, at)
    if parent.header.source == "evo":
        if task is not None and parent.header.task.isolation != "here":
            raise ValueError("task: the log has its own; a fork keeps it")
        lines = lines_through(parent, at, parent.children)
        header = changed(parent.header.at_generation(at + 1), parent, **changes)
        if task is not None:
            own_task = with_function(header.task, load_task(task))
            header = msgspec.structs.replace(header, task=own_task)
    else:
        if task is None or "model" not in changes:
            raise ValueError(
                f"{parent.path}: imported from {parent.header.source}: give the task whose "
                "evaluator its programs suit (task=, --task), and a model (model=, --model)"
            )
        seed, children = max(parent.header.seed, 0), parent.header.children
        header = make_header(task, children=children, seed=seed, **changes)
        lines = _evaluated(parent, header, at, settings)
    goal = stated if "generations" in given else replace(stated, generations=parent.goal)
    if goal.generations <= at:
        raise ValueError(
            f"generations (T): expected more than the {at} that are shared, got {goal.generations}"
        )
    stem = parent.path.name.removesuffix(".gz").removesuffix(".jsonl")
    own_folder = parent.path.with_name(f"{stem}-forks")
    folder = own_folder if log_dir is None else as_path("log_dir", log_dir)
    headers, inherited = copies_of(parent, header, lines, at, copies)
    runs = [(own, goal) for own in headers]
    found = found_jobs(runs, folder, settings, resume=resume, apart=True)
    named = "model" in changes
    jobs = [replace(job, named=named, inherited=inherited) for job in found]
    return prepare_jobs(jobs, settings, budget, f"{header.task.name}, {counted(copies, 'fork')}")


def _check_parent(parent: Log, at: int) -> None:
    """Raises unless a log has a state after this generation from which a fork can go on."""
    if parent.header.compact:
        raise LogError(f"{parent.path}: a compact log holds no programs and cannot go on")
    require_whole(parent)
    if parent.header.asynchronous:
        raise ValueError(
            f"{parent.path}: a run without a barrier (asynchronous) has no state between "
            "generations from which a fork could go on"
        )
    if at > len(parent.generations):
        raise LogError(
            f"{parent.path}: holds {len(parent.generations)} complete generations, cannot be "
            f"forked at {at}"
        )


def copies_of(
    parent: Log, header: Header, lines: Sequence[InheritableLine], at: int, copies: int
) -> tuple[list[Header], tuple[InheritableLine, ...]]:
    """Returns the headers of the copies of one state, and the lines that all of them inherit."""
    inherited = tuple(msgspec.structs.replace(line, inherited=True) for line in lines)
    data, left = read_bytes(parent.path), parent.header
    digest = hashlib.sha256(data[: data.find(b"\n")]).hexdigest()
    segments = [each for each in left.segments if each.first <= at]
    if left.fork is None or at > left.fork.at:
        task = msgspec.structs.replace(left.task, files={}, encoded={})
        bare = msgspec.structs.replace(left, task=task, fork=None)
        segments.append(Segment(first=left.fork.at + 1 if left.fork else 0, header=bare))
    fork = Fork(
        at=at,
        copy=0,
        parent=digest,
        through=hash_of_lines(inherited),
        root=left.fork.root if left.fork else digest,
        segments=tuple(segments),
    )
    own = []
    for copy in range(copies):
        seed, each = fork_seed(header.seed, at, copy), msgspec.structs.replace(fork, copy=copy)
        own.append(msgspec.structs.replace(header, seed=seed, fork=each))
    return own, inherited


def fork_seed(seed: int, at: int, copy: int) -> int:
    """Returns the seed of a copy, in [0, 2**31); copy 0 keeps the run's."""
    if copy == 0:
        return seed
    digest = hashlib.sha256(f"fork/{seed}/{at}/{copy}".encode()).digest()
    return int.from_bytes(digest[:4], "big") >> 1


def changed(header: Header, parent: Log, **changes: Unpack[ConfigurationOptions]) -> Header:
    """Returns the configuration of the generations after the fork."""
    model, base_url = changes.pop("model", None), changes.pop("base_url", None)
    if model is not None and header.task.asks_model:
        raise ValueError("model: it scores the texts of this task, too, so a fork keeps it")
    if model is not None:  # it takes the place of several
        header = msgspec.structs.replace(header, models=(), model_policy="", model_weights=())
    return make_header_again(own_models(header, parent.path, model, base_url), **changes)


def _evaluated(parent: Log, header: Header, at: int, settings: Settings) -> list[InheritableLine]:
    """Returns the lines of an imported log through a generation, evaluated on a task of ours."""
    lacking = [
        child.generation for child in parent.children
        if child.program is None and child.evaluation.status == "ok" and child.generation <= at
    ]  # fmt: skip
    if lacking:
        raise LogError(
            f"{parent.path}: holds no program of generation {min(lacking)}, so nothing can go on "
            f"from generation {at}; fork it before, or import it with its programs, "
            "`replay import FORMAT PATH --full`"
        )
    if header.task.asks_model:
        raise ValueError(f"task: to evaluate texts of {header.task.name} anew takes calls")
    again = evaluated_again(parent, header, workers=settings.workers)
    made = [line for line in again if isinstance(line, InheritableLine)]
    return [line for line in made if getattr(line, "generation", 0) <= at]
