"""Commands that ask sessions, on whatever machine, to pause, to stop or to go on."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter

if TYPE_CHECKING:
    from evo.logs.stopping import Wish

Paths = Annotated[list[Path] | None, Parameter(name="PATH", negative=())]
AGAIN = {"allocation": "allocate", "selection": "select"}
"""The command that continues a study, where that is not `evo resume`."""


def pause(paths: Paths = None, *, control: str | None = None) -> int:
    """Pauses studies, or the sessions that write logs, on whatever machine: calls in flight finish.

    Args:
        paths: Folders of sweeps, allocations or selections, or logs; with --control also other
            folders, or none for all sessions.
        control: The Redis server that the sessions listen to, such as redis://host: they wait
            until `evo go-on` (default: a file asks, and the session ends).
    """
    return _ask(paths, "pause", control)


def stop(paths: Paths = None, *, control: str | None = None) -> int:
    """Stops studies, or the sessions that write logs.

    Args:
        paths: Folders of sweeps, allocations or selections, or logs; with --control also other
            folders, or none for all sessions.
        control: The Redis server that the sessions listen to (default: a file asks).
    """
    return _ask(paths, "stop", control)


def go_on(paths: Paths = None, *, control: str) -> int:
    """Lets sessions go on that were paused through a Redis server.

    Args:
        paths: Logs or folders (default: all sessions).
        control: The Redis server that the sessions listen to, such as redis://host.
    """
    return _ask(paths, "go on", control)


def _ask(paths: Sequence[Path] | None, wish: Wish, control: str | None) -> int:
    from evo.logs.stopping import stop as stop_log
    from evo.studies.folders import request

    if control is not None:
        _ask_there(paths, wish, control)
        return 0
    if not paths:
        raise ValueError(f"expected what is to {wish}: PATH, or --control redis://host for all")
    for path in paths:
        again = f"`evo resume {quote(str(path))}`"
        if path.is_dir():
            kind = request(path, wish)
            if kind in AGAIN:
                again = f"the same `evo {AGAIN[kind]}` with --log-dir {quote(str(path))}"
        else:
            stop_log(path, wish)
        print(f"{path}: asked to {wish}; {again} goes on")
    return 0


def _ask_there(paths: Sequence[Path] | None, wish: Wish, control: str) -> None:
    """Asks through a Redis server, and prints who hears it."""
    from evo.logs.shared_requests import ask

    everything: list[Path | None] = [None]
    for path in paths or everything:
        hearing = ask(control, wish, path)
        count = "1 session" if len(hearing) == 1 else f"{len(hearing)} sessions"
        who = f" ({', '.join(hearing)})" if hearing else ""
        print(f"{path or 'everything'}: {count} asked to {wish}{who}")
