"""What writes logs in this process and lets itself be taken over: handles and searchers."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path

from evo.logs.records import Header


@dataclass(frozen=True)
class Holder:
    """What writes a log in this process and can be taken over: a handle, or a searcher.

    Attributes:
        header: The configuration of the run.
        owner: What writes it.
        release: Lets it finish what is under way and close its log.
    """

    header: Header
    owner: object
    release: Callable[[], object]


def hold(path: Path, holder: Holder) -> None:
    """Notes what writes a log."""
    with _holding:
        _holders[path.absolute()] = holder


def let_go(paths: Iterable[Path]) -> None:
    """Forgets what wrote logs."""
    with _holding:
        for path in paths:
            _holders.pop(path.absolute(), None)


def holder_of(path: Path) -> Holder | None:
    """Returns what writes a log in this process and can be taken over."""
    with _holding:
        return _holders.get(path.absolute())


def take_over(paths: Iterable[Path]) -> list[Path]:
    """Has whatever writes these logs in this process finish and close them; returns which."""
    taken = []
    for path in paths:
        holder = holder_of(path)
        if holder is not None:
            holder.release()
            let_go([path])
            taken.append(path)
    return taken


_holding = threading.Lock()
_holders: dict[Path, Holder] = {}


def holders() -> list[tuple[Path, Holder]]:
    """Returns what can be taken over, by the absolute path of its log."""
    with _holding:
        return list(_holders.items())
