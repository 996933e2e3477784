"""Where the log of a run is: a path that was given, one that goes on, or a new one.

A cell that is run twice goes on where its log was. `resume=True`, the default, begins, goes on,
extends or returns what is there if the configuration is the same; another one is an error.
"""

from __future__ import annotations

import os
import shlex
from collections.abc import Iterable
from pathlib import Path
from typing import Literal

import msgspec

from evo.logs.journal import LogError, check_free
from evo.logs.records import Header
from evo.logs.types import as_given
from evo.runs.configuration import default_path, find_run, logs_of_name, run_stem
from evo.runs.handle import read_begun
from evo.runs.holders import holders
from evo.runs.identity import differences, differing
from evo.runs.progress import say
from evo.runs.session import RunJob
from evo.runs.settings import Goal, Settings
from evo.warning import warn

Resume = bool | Literal["auto"]
"""Whether a log of the same configuration goes on; "auto" is True."""


def check_resume(resume: object) -> bool:
    """Returns whether logs go on; raises ValueError for anything but True, False and "auto"."""
    if resume not in (True, False, "auto"):
        raise ValueError(f"resume: expected True or False, got {resume!r}")
    return bool(resume)


def place_of_log(header: Header, log: str | os.PathLike[str], *, resume: bool) -> Path:
    """Returns the path of a log that was named, once it is clear that the run may be there.

    Raises:
        LogError: It exists and does not go on, or holds another run.
    """
    path = Path(log)
    finished = path.with_name(f"{path.name}.gz")
    if not path.exists() and finished.exists():
        path = finished
    if not path.exists():
        check_free(path)
        return path
    if not resume:
        raise LogError(
            f"{path}: exists already; resume=True (without --no-resume) goes on with it if it is "
            "the same run, another path begins a new one"
        )
    known = read_begun(path)
    if known is not None and (other := differing(known.header, header)):
        if changed := _changed_code(known.header, header):
            call = f"evo.resume({str(path)!r}{', search=...' if changed == 'search' else ''})"
            changes = zip(known.header.filters, header.filters, strict=False)
            kept = "; ".join(f"evo.FILTERS[{b.name!r}] = ..." for a, b in changes if a != b)
            known_by = f", once they are registered ({kept})," if changed == "filters" else ""
            option = f"--{changed.removesuffix('s')} FILE.py:CLASS"
            raise LogError(
                f"{path}: exists already, and the code of its {changed} has changed since; "
                f"`evo resume {shlex.quote(str(path))} {option}` or {call}{known_by} goes on with "
                "the code as it is now, another path begins a new run"
            )
        edited = ""
        if differences(known.header, header) == ["model"] and header.model.function is not None:
            edited = f"evo.resume({str(path)!r}, model=...) goes on with the model that is given, "
        raise LogError(
            f"{path}: exists already and holds another run: {other}; {edited}"
            "give what is new another path"
        )
    return path


def place_in_folder(
    header: Header, folder: str | os.PathLike[str] | None, *, resume: bool
) -> tuple[Path, bool]:
    """Returns the path of a run's log in a folder, and whether that is one which goes on."""
    if resume:
        found = _held(header, folder) or find_run(header, folder)
        if found is not None:
            return found, True
    return default_path(header, folder), False


def place_of_run(header: Header, settings: Settings, *, resume: bool) -> Path:
    """Returns the path of a run whose log was not named, under logs/local, and says why it is."""
    path, found = place_in_folder(header, None, resume=resume)
    if found and settings.progress:
        say(f"going on with {as_given(path)}; resume=False (--no-resume) begins a new log")
    elif resume:
        _say_why_new([(header, path)], settings)
    return path


def found_jobs(
    runs: Iterable[tuple[Header, Goal]],
    folder: str | os.PathLike[str] | None,
    settings: Settings,
    *,
    resume: Resume,
    apart: bool = False,
) -> list[RunJob]:
    """Returns the jobs of runs; with `resume`, logs of theirs in the folder go on.

    Where another configuration has logs of these names there, a line or a warning says so.

    Args:
        runs: What to run, and how far.
        folder: Where the logs are; None: logs/local.
        settings: Whether lines on progress are shown.
        resume: Whether logs go on.
        apart: Whether other configurations are to be expected, as among forks of one log, so that
            nothing warns of them.
    """
    goes_on = check_resume(resume)
    jobs = [
        RunJob(place_in_folder(header, folder, resume=goes_on)[0], header, goal)
        for header, goal in runs
    ]
    if goes_on and (settings.progress or not apart):
        _say_why_new([(job.header, job.path) for job in jobs], settings)
    return jobs


def _say_why_new(runs: Iterable[tuple[Header, Path]], settings: Settings) -> None:
    """Says in one line why runs begin new logs beside others of their names, of the first of them.

    Args:
        runs: Each run with the path of its log.
        settings: Whether lines on progress are shown; without them a warning says it.
    """
    new = [(run, path) for run, path in runs if path.name != f"{run_stem(run)}.jsonl"]
    tell = say if settings.progress else warn
    for header, path in new:
        if not path.exists() and (why := _why_new(header, path)):
            tell(f"{why}{f'; {len(new) - 1} more likewise' if len(new) > 1 else ''}")
            return


def _why_new(header: Header, path: Path) -> str:
    """Returns in what the newest readable log of a run's name in a folder is of another run."""
    for other in logs_of_name(header, path.parent):
        try:
            known = read_begun(other)
        except LogError:
            continue
        if known is not None and (what := differing(known.header, header)):
            return (
                f"{as_given(path)} is a new log, since {as_given(other)} is of another run: {what}"
            )
    return ""


def _held(header: Header, folder: str | os.PathLike[str] | None) -> Path | None:
    """Returns the log of this very run that is written in this process, perhaps not begun yet."""
    for path, holder in holders():
        inside = folder is None or path.parent == Path(folder).absolute()
        if inside and not differences(holder.header, header):
            return path
    return None


def _changed_code(there: Header, here: Header) -> Literal["search", "filters", ""]:
    """Returns whose source is all by which two runs differ, if it is."""
    found = differences(there, here)
    if found == ["search"] and there.search is not None and here.search is not None:
        one, other = there.search, here.search
        return "search" if msgspec.structs.replace(one, source=other.source) == other else ""
    if found == ["filters"] and len(there.filters) == len(here.filters):
        pairs = zip(there.filters, here.filters, strict=True)
        if all(msgspec.structs.replace(a, source=b.source) == b for a, b in pairs):
            return "filters"
    return ""
