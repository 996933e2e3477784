"""Runs of other tools among logs: read as logs for one process, or named as what was left out."""

from __future__ import annotations

import contextlib
import os
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING, NamedTuple

from evo.logs.decompression import HoldsFiles
from evo.logs.journal import LogError, raw_pieces
from evo.warning import and_more
from replay.logs.given import ROW

if TYPE_CHECKING:
    import pandas as pd

Source = str | os.PathLike[str]


class NothingYetError(LogError):
    """A run of another tool has made no call yet and holds no program."""


class Foreign(NamedTuple):
    """Runs of another tool that were read as logs, which end with this process.

    Attributes:
        place: Where the tool wrote them.
        tool: Names of the tool's formats.
        folder: A temporary folder.
        logs: The logs in it.
        lost: What the tool did not keep, in words.
        texts: Those of the logs whose best program the tool kept.
        damaged: Files and folders of the tool that cannot be read, with the error of each.
    """

    place: Path
    tool: str
    folder: Path
    logs: list[Path]
    lost: str
    texts: frozenset[Path]
    damaged: Mapping[Path, LogError] = {}


FOR_NOW = "replay-import-"
"""How the name of a folder begins in which runs of another tool are logs for one process."""


def why_gone(source: Source) -> str:
    """Why a log is not there any more, if it was one of `Foreign`, and what to do; else empty."""
    if not any(part.startswith(FOR_NOW) for part in Path(source).parts):
        return ""
    return (
        "; it was made of another tool's runs by the process that read them, and ended with it: "
        "load them again, or keep them by `replay import auto PATH -o FOLDER` and load FOLDER"
    )


_ORIGINS: dict[str, Foreign] = {}


def remember(read: Foreign) -> None:
    """Notes whose runs the logs are, so that messages can name what lasts."""
    _ORIGINS.update(dict.fromkeys(map(str, read.logs), read))


def origin_of(log: Source) -> Foreign | None:
    """The runs of another tool that a log was made of while reading them; None of any other log.

    Such a log ends with the process, so a message names the place where the tool wrote it.
    """
    return _ORIGINS.get(os.fspath(log))


def with_origin(error: LogError, log: Path) -> str:
    """What is wrong with a log; of one made of another tool's run, by the name of that."""
    if origin_of(log) is None:
        return str(error)
    return re.sub(rf"{re.escape(os.fspath(log))}(:\d+)?", lambda _: lasting_name(log), str(error))


LEAVES_OUT = (
    "`--skip-damaged` of `replay report`, `site`, `plan` and `judge`, or `strict=False` of "
    "`replay.load`, leaves it out"
)


def how_to_go_on(log: Path, *, others: bool) -> str:
    """What to do about a log that cannot be read, as the end of a message.

    Args:
        log: Its path; of one made of another tool's run, of one that is gone, and of an archive
            nothing is said.
        others: Whether there are others, which can be read without it.
    """
    if origin_of(log) is not None or not log.exists() or is_archive(log):
        return ""
    left = f"; {LEAVES_OUT}" if others else ""
    name = quote(from_here(log))
    return (
        f"; `evo verify {name}` checks it, and with `--salvage -o NEW` copies what is sound{left}"
    )


def is_archive(path: Path) -> bool:
    """Whether a file holds others, as zip, tar and workbooks do."""
    try:
        next(raw_pieces(path, 0), b"")
    except LogError as error:
        return isinstance(error.__context__, HoldsFiles)  # what reading it ended with
    return False


def from_here(path: Source) -> str:
    """A path as one writes it in the working directory, from a folder that both lie in.

    Pages that are saved and sent then name no folder above that one. A path that shares only the
    root with the working directory stays absolute.
    """
    with contextlib.suppress(ValueError, OSError):  # another drive, or there is no such directory
        whole, here = os.path.abspath(path), os.getcwd()
        if Path(os.path.commonpath([whole, here])) != Path(Path(whole).anchor):
            return os.path.relpath(whole, here)
    return os.fspath(path)


def lasting_name(log: Source) -> str:
    """The path of a log; of one made of another tool's run, where that lies and which it is."""
    origin = origin_of(log)
    if origin is None:
        return os.fspath(log)
    inside = Path(log).relative_to(origin.folder).with_suffix("").as_posix()
    return f"{origin.place}, run {inside}" if origin.logs[1:] else str(origin.place)


FOREIGN: list[Callable[[Path], Foreign | None]] = []
"""What reads a path as runs of another tool; None if it knows no tool."""

OTHERS: list[
    Callable[[Path, Collection[Path]], tuple[list[tuple[str, Path]], list[tuple[Path, str]]]]
] = []
"""What finds, in a folder, other tools' runs with their formats, and tables that lack columns."""


def note_others(folder: Path, left: dict[str, str], *, own: Collection[Path], read: bool) -> None:
    """Notes what other tools wrote in a folder and is left out, once for each place.

    Args:
        folder: The folder.
        left: What was left out so far; what stands within such a place is named with it.
        own: The logs of evo there.
        read: Whether the runs of other tools there have been read.
    """
    for find in OTHERS:
        places, unread = find(folder, own)
        formats: dict[Path, list[str]] = {}
        for name, place in places:
            formats.setdefault(place, []).append(name)
        for place in formats:
            for each in [each for each in left if Path(each).is_relative_to(place)]:
                del left[each]
        for place, names in formats.items():
            if not read:
                name = "auto" if names[1:] else names[0]
                how = f"replay import {name} {quote(str(place))} -o FOLDER"
                of = " and ".join(names)
                left[str(place)] = f"runs of {of} beside logs of evo; `{how}` converts them"
        if read:
            left.update((str(path), why) for path, why in unread)


def of_another_tool(path: Path, foreign: list[Foreign] | None) -> Foreign | None:
    """Another tool's runs at a path, which are noted; None if no tool is known or asked."""
    if foreign is None:
        return None
    read = next((found for convert in FOREIGN if (found := convert(path))), None)
    if read is not None:
        foreign.append(read)
    return read


def read_of(foreign: Sequence[Foreign]) -> Iterator[str]:
    """What was read of each tool, and what it did not keep, in one message for all its places."""
    alike: dict[tuple[str, str], list[Foreign]] = {}
    for each in foreign:
        alike.setdefault((each.tool, each.lost), []).append(each)
    for (tool, lost), places in alike.items():
        runs = sum(len(each.logs) for each in places)
        first = and_more([each.place for each in places])
        lack = f", which lack: {lost}" if lost else ""
        yield f"{first}: read {runs} run{'s' if runs != 1 else ''} of {tool}{lack}"


def united(losses: Iterable[str]) -> str:
    """What several sources do not hold, each thing once, however often its numbers differ."""
    alike: dict[str, list[str]] = {}
    for part in (part for lost in losses if lost for part in lost.split("; ")):
        alike.setdefault(re.sub(r"\d+", "0", part), []).append(part)
    differ = " (other numbers in other runs)"
    return "; ".join(same[0] + differ * (len(set(same)) > 1) for same in alike.values())


def in_words(left: Sequence[tuple[str, str]]) -> str:
    """Names what was left out, and why: what has one reason stands together."""
    reasons: dict[str, list[str]] = {}
    for path, why in left:
        named = re.match(rf"({re.escape(path)}(?::\d+)?): ", why)  # with the line, if it is known
        place, reason = (named[1], why[named.end() :]) if named else (path, why)
        reasons.setdefault(reason, []).append(place)
    parts = []
    for why, paths in list(reasons.items())[:3]:
        parts.append(f"{and_more(paths, 3)}: {why}")
    return "; ".join([*parts, *(["and more"] if len(reasons) > 3 else [])])


def what_to_do_with(frame: pd.DataFrame) -> str:
    """What to do with a DataFrame that is given in the place of logs."""
    if {*ROW} <= {*frame.columns}:
        return (
            "expected logs or their paths, got a DataFrame of replay.load, which is loaded already"
        )
    return (
        "expected logs or their paths, got a DataFrame; a table of calls is read from a file: "
        "frame.to_csv('calls.csv', index=False), then replay.load('calls.csv'), or where it has "
        "columns of other names replay.importers.load('calls.csv', columns={'run': ...})"
    )
