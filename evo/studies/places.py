"""Where the folder of a study is: one that was named, one that goes on, or a new one.

As for the logs of runs, see `evo.runs.places`: a cell that is run twice goes on where it was.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from pathlib import Path

from evo.logs.journal import LogError, unused
from evo.logs.types import as_given, as_path
from evo.runs.configuration import LOCAL
from evo.runs.places import Resume, check_resume
from evo.runs.progress import say


def place_of_study(
    stem: str,
    log_dir: str | os.PathLike[str] | None,
    marker: str,
    holds: Callable[[Path], bool],
    *,
    resume: Resume,
    progress: bool,
) -> Path:
    """Returns the folder of a study.

    Args:
        stem: Name of a new folder under logs/local, which further ones have with a number.
        log_dir: The folder that was named; None: the newest one of this name under logs/local that
            holds the very same study, else a new one.
        marker: The file that a folder of such a study holds.
        holds: Whether a folder under logs/local holds the very same study. A ValueError, or a
            LogError, says that it does not.
        resume: Whether a study that is there goes on.
        progress: Whether to say in a line that an earlier one goes on, or why none does.

    Raises:
        LogError: The folder that was named holds a study, and none shall go on.
    """
    resume = check_resume(resume)
    if log_dir is not None:
        folder = as_path("log_dir", log_dir)
        if not resume and (folder / marker).exists():
            raise LogError(
                f"{as_given(folder)}: exists already; resume=True (without --no-resume) goes on "
                "with it if it is the same study, another folder begins a new one"
            )
        return folder
    named = _named(stem) if resume else []
    for folder in named:
        if _same(folder, holds):
            if progress:
                say(f"going on with {as_given(folder)}; resume=False (--no-resume) begins anew")
            return folder
    new = unused(LOCAL, stem)
    if named and progress:
        say(f"{as_given(new)} is a new folder, since {as_given(named[0])} is of another study")
    return new


def _named(stem: str) -> list[Path]:
    """Returns the folders under logs/local that have a study's name, the newest first."""
    named = re.compile(re.escape(stem) + r"(-\d+)?")
    names = [n for n in (os.listdir(LOCAL) if LOCAL.is_dir() else ()) if named.fullmatch(n)]
    return [LOCAL / name for name in sorted(names, key=lambda n: (len(n), n), reverse=True)]


def _same(folder: Path, holds: Callable[[Path], bool]) -> bool:
    try:
        return holds(folder)
    except (ValueError, LogError):
        return False
