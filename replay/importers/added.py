"""Calls importers that users and packages add: whatever they do, the message names them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from pathlib import Path

from evo.logs.journal import LogError
from evo.plugins import MistakenType
from evo.warning import warn
from replay.importers.foreign import Imported
from replay.importers.reading import EmptyRunError, LogFormatError


def tolerant(name: str, recognise: Callable[[Path], bool]) -> Callable[[Path], bool]:
    """Returns what recognises a format and, where it fails, warns and recognises nothing.

    It is asked about every path, so its failure may not keep other formats from being read.
    """

    def asked(path: Path) -> bool:
        try:
            return bool(recognise(path))
        except Exception as error:  # a stranger's function may raise anything
            warn(
                f"the importer {name!r} recognises nothing: it was asked about a path and raised "
                f"{type(error).__name__}: {error}",
                RuntimeWarning,
            )
            return False

    return asked


def runs_of(name: str, place: Path, read: Callable[[Path], object]) -> list[Imported]:
    """Returns the runs that an importer reads at a place.

    Raises:
        TypeError: It is no function, or returned something else than runs.
        ValueError: It failed, found no runs, or gave several runs one name.
    """
    if not callable(read):
        raise MistakenType(
            f"importer {name!r}: expected a function of a path, or an object with functions "
            f"`read` and `recognises`, such as a module, got {read!r:.80}"
        )
    try:
        found = read(place)
        runs = list(found) if isinstance(found, Iterable) else []
    except LogError:
        raise
    except Exception as error:  # a stranger's function may raise anything
        raise LogFormatError(
            f"{place}: the importer {name!r} failed: {type(error).__name__}: {error}"
        ) from error
    if not isinstance(found, Iterable) or not all(isinstance(run, Imported) for run in runs):
        raise MistakenType(
            f"importer {name!r}: expected a list of runs, each of which "
            f"replay.importers.assemble returned, got {found!r:.80}"
        )
    if not runs:
        raise EmptyRunError(f"{place}: the importer {name!r} found no runs there")
    names = Counter(run.name for run in runs)
    if several := [each for each, count in names.items() if count > 1]:
        raise LogFormatError(
            f"{place}: the importer {name!r} calls several runs {several[0]!r}; give each a name "
            "of its own"
        )
    return runs
