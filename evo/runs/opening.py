"""How a session opens a log: a new one, or one that goes on, each with a line about the session."""

from __future__ import annotations

import contextlib
import datetime
import platform
from collections.abc import Sequence
from pathlib import Path

from evo.logs.calls import as_written
from evo.logs.journal import LogError, Writer
from evo.logs.log import Log, read_log
from evo.logs.records import Header, InheritableLine, Session, TaskRecord
from evo.runs.configuration import software_versions
from evo.runs.handle import read_begun
from evo.runs.identity import differing
from evo.runs.resources import Resources
from evo.runs.screening import embedding_models
from evo.runs.settings import Goal


def find_endpoints(resources: Resources, header: Header) -> None:
    """Raises EndpointMissing unless there is an endpoint for each model that a run calls."""
    if resources.hand is None:
        resources.caller(header)
    if header.task.asks_model:
        resources.caller(header.asks or header)
    if header.critic is not None:
        resources.caller(header.critic)
    for model in embedding_models(header):
        resources.embedding_caller(model)


def session_line(resources: Resources, task: TaskRecord, goal: Goal | None) -> Session:
    """Returns the line that records which process continues a log, and to which goal, if any.

    The protections are those of the sandbox, which is started; none where nothing runs in it.
    """
    settings = resources.settings
    return Session(
        generations=goal.generations if goal else None,
        started=datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
        max_concurrent=settings.max_concurrent,
        preset=settings.preset,
        requests_per_minute=settings.requests_per_minute,
        tokens_per_minute=settings.tokens_per_minute,
        protections=resources.evaluator.protections if task.uses_sandbox else (),
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
        free = frozenset({"model"}) if session.model else frozenset()
        if other := differing(log.header, header, free):
            raise LogError(f"{path}: holds another run than this one: {other}")
        writer.cut(log.reader.length)
        writer.append(session)
        stack.pop_all()
    return writer, log
