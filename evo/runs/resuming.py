"""What is left to do for a log that goes on."""

from __future__ import annotations

import msgspec

from evo.logs.journal import LogError
from evo.logs.log import Log
from evo.logs.maintenance import require_whole
from evo.logs.records import Model
from evo.models.registry import own_models
from evo.runs.configuration import goal_of
from evo.runs.options import GoalOptions
from evo.runs.session import RunJob, end_of
from evo.runs.settings import Goal
from evo.runs.state import state_of
from evo.searches import Search
from evo.searches.registry import known_search
from evo.tasks.task import Task, with_function


def resume_job(
    log: Log,
    options: GoalOptions,
    asked: tuple[str | Model | None, str | None],
    search: Search | None,
    task: Task | None,
) -> RunJob:
    """Returns what is left to do for a log, after checking that it can go on, and where.

    Args:
        log: The log.
        options: What its goal is from now on; what is not given stays as it was.
        asked: The model that is called from now on, and its address; None: as logged.
        search: The log's search, if it is one of the caller's own.
        task: Its task, if its evaluator is a function of this process.
    """
    path = log.path
    if log.header.compact:
        raise LogError(f"{path}: a compact log holds no programs and cannot go on")
    if log.header.source != "evo":
        raise LogError(f"{path}: written by {log.header.source}; only runs of evo can go on")
    require_whole(log)
    last = log.sessions[-1] if log.sessions else None
    before = Goal(log.goal, last.target, last.patience) if last else Goal(log.goal)
    goal = goal_of(options, before)
    if goal.generations == 0:
        raise ValueError(f"{path}: states no goal; give one, generations (-T)")
    if goal.generations < (done := len(log.generations)):
        raise ValueError(
            f"{path}: holds {done} generations already, cannot go on to T={goal.generations}"
        )
    if asked == (None, None) and _is_complete(log, goal):
        return RunJob(path, log.header, goal)  # neither its model nor its search is needed
    header = known_search(own_models(log.header, path, *asked), search)
    header = msgspec.structs.replace(header, task=with_function(header.task, task))
    return RunJob(path, header, goal, named=asked != (None, None))


def _is_complete(log: Log, goal: Goal) -> bool:
    """Whether nothing is left to do for a log."""
    if log.initial is None:
        return False
    state = state_of(log, children=log.outcomes)
    return end_of(log, state, goal) is not None
