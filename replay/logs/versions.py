"""Versions of a task, and what a run was made with beside its model, N and search, in words.

A user who edits an evaluator, a data set or a statement keeps the task's name. Fitness by two
evaluators has no common scale, so runs of several versions are never taken together.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from evo.logs.hashes import changed_parts
from evo.logs.journal import LogError
from evo.logs.log import log_reader
from evo.logs.records import Header, SearchRecord, TaskRecord, ValueRecord

if TYPE_CHECKING:
    import pandas as pd


def version_of(task: TaskRecord) -> str:
    """Two hashes: of what scores programs, and, after a point, of what the model is given first.

    Empty where a log does not hold its task, as of other tools.

    Example:
        >>> from replay.logs.versions import version_of
        >>> len(version_of(evo.load_task("mmd").record))
        17
    """
    if not task.files:
        return ""
    judged, given = task.judged, {task.program_file, "task.toml"}
    files = {name: text for name, text in judged.files.items() if name not in given}
    scores = msgspec.structs.replace(judged, hash="", files=files, statement="", picture="")
    begins = (task.statement, task.files.get(task.program_file))
    return f"{_digest(scores, 10)}.{_digest(begins, 6)}"


def scoring_of(version: str) -> str:
    """The part of a version by which programs are scored."""
    return version.partition(".")[0]


def _digest(value: object, digits: int) -> str:
    return hashlib.sha256(msgspec.json.encode(value, order="sorted")).hexdigest()[:digits]


_PLAIN = (
    *("feedback", "inspirations", "drafts", "batches", "asynchronous", "draws", "confirm"),
    *("spending", "edits", "diff_share", "advice"),
)
_DEFAULTS = {field.name: field.default for field in msgspec.structs.fields(Header)}


def settings_text(header: Header) -> str:
    """What a run was made with beside task, model, N and search, as far as it is not the default.

    Such as `feedback; filters near_duplicates(ratio=0.9); temperature 1.0`. Limits of evaluations
    are not among it: they differ between machines.
    """
    return "; ".join(_settings(header))


def _settings(header: Header) -> Iterator[str]:
    if header.search is not None and (fields := _unusual(header.search)):
        yield f"{header.search.name}({fields})"
    own = ("min_improvement",) if header.source == "evo" else ()  # an import states its own
    for name in (*_PLAIN, *own):
        value = getattr(header, name)
        if value != _DEFAULTS[name]:
            yield name if value is True else f"{name} {value}"
    if header.filters:
        yield f"filters {' + '.join(map(_value, header.filters))}"
    if header.critic is not None:
        yield f"critic {header.critic.model.name}({_digest(header.critic.rubric, 6)})"
    if header.statement is not None:
        yield f"statement {_digest(header.statement, 6)}"
    if header.model_weights:
        yield f"model_weights {':'.join(f'{each:g}' for each in header.model_weights)}"
    elif header.model_policy not in ("", "ucb1"):
        yield f"model_policy {header.model_policy}"
    if header.asks is not None:
        yield f"asks {header.asks.model.name}"
    if not header.models:
        yield from _sampling(header)


def _sampling(header: Header) -> Iterator[str]:
    """How the model samples, where it is not as usual for it, and what else it was asked with."""
    for name in header.sampling.__struct_fields__:
        value = getattr(header.sampling, name)
        if value is not None and value != getattr(header.model, name) and header.source == "evo":
            yield f"{name} {value}"
    if header.model.extra_body:
        yield f"extra_body {_digest(header.model.extra_body, 6)}"
    if header.model.version is not None:
        yield f"model version {header.model.version}"


def _value(record: ValueRecord) -> str:
    fields = ", ".join(f"{name}={value}" for name, value in record.fields.items())
    source = [f"source {record.source[:6]}"] if record.source else []
    inside = ", ".join([*filter(None, [fields]), *source])
    return f"{record.name}({inside})" if inside else record.name


def _unusual(record: SearchRecord) -> str:
    """Fields of a search that are not its defaults, and the hash of a user's own source."""
    from evo.searches.registry import KIND, SEARCHES, record_of

    usual: dict[str, Any] = {}
    if record.name in SEARCHES.data:  # reading a log loads no package
        try:
            default = record_of(SEARCHES[record.name]())
        except TypeError:  # a user's own that cannot do without arguments
            default = None
        usual = default.fields if default else {}
    fields = {name: value for name, value in record.fields.items() if usual.get(name, ...) != value}
    source = KIND.identity(record).source
    return _value(msgspec.structs.replace(record, name="", fields=fields, source=source))[1:-1]


def told_apart(column: str, values: pd.Series[Any]) -> pd.Series[str]:
    """Values of a column of FAMILY in the words of a name, without what all of them share.

    Args:
        column: Its name.
        values: Its values.

    Example:
        >>> from replay.logs.versions import told_apart
        >>> told_apart("settings", pd.Series(["feedback; draws 3", "draws 3"])).tolist()
        ['feedback', 'all else as by default']
    """
    if column == "task_version":
        return "task version " + values.fillna("").replace("", "unknown").astype(str)
    if column != "settings":
        return f"{column} " + values.astype(str)
    parts = {value: str(value).split("; ") if value else [] for value in values.dropna().unique()}
    shared = set.intersection(*map(set, parts.values())) if parts else set()
    words = {
        value: ", ".join(each for each in of if each not in shared) or "all else as by default"
        for value, of in parts.items()
    }
    return values.map(words).astype(object).fillna("settings unknown").astype(str)


def what_differs(frame: pd.DataFrame) -> str:
    """Says of runs of several versions of a task what differs, and what to do."""
    known = frame[frame["task_version"].fillna("").astype(bool)]
    first = known.drop_duplicates("task_version")
    runs = known.groupby("task_version")["run"].nunique()
    found = ", ".join(
        f"{version!r} ({runs[version]} run{'s' if runs[version] > 1 else ''}, such as {name})"
        for version, name in zip(first["task_version"], first["run"], strict=True)
    )
    tasks = [_task_of(path) for path in first["source"]] if "source" in first else []
    records = [task for task in tasks if task is not None]
    parts = (part for other in records[1:] for part in changed_parts(records[0], other))
    changed = dict.fromkeys(parts)
    what = " and ".join(changed) or "its evaluator, its instances, its statement or its program"
    scores = len({scoring_of(each) for each in first["task_version"]}) > 1
    last = first["task_version"].iloc[-1]
    why = "so that their fitness has no common scale" if scores else "so that they are not alike"
    return (
        f"one version of a task, got {found} of {first['task'].iloc[0]}: {what} changed between "
        f"them, {why}; select one with frame[frame.task_version == {last!r}] or `--where "
        f"task_version={last}`, and repeat the others with the task as it is now"
    )


def _task_of(path: object) -> TaskRecord | None:
    """The task of a log; None where it cannot be read any more."""
    try:
        header = next(iter(log_reader(Path(str(path))).follow()), None)
    except (LogError, OSError):
        return None
    return header.task if isinstance(header, Header) else None
