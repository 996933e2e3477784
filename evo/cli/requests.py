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

    All runs of a session are paused together.

    Args:
        paths: Folders of sweeps, allocations or selections, logs, or folders of logs, for those
            that are being written on this machine; with --control any folder, or none for all
            sessions.
        control: The Redis server that the sessions listen to, such as redis://host: they wait
            until `evo go-on` (default: a file asks, and the session ends).
    """
    return _ask(paths, "pause", control)


def stop(paths: Paths = None, *, control: str | None = None) -> int:
    """Stops studies, or the sessions that write logs, with all runs of these sessions.

    Args:
        paths: Folders of sweeps, allocations or selections, logs, or folders of logs, for those
            that are being written on this machine; with --control any folder, or none for all
            sessions.
        control: The Redis server that the sessions listen to (default: a file asks).
    """
    return _ask(paths, "stop", control)


def go_on(paths: Paths = None, *, control: str | None = None) -> int:
    """Lets sessions go on that were paused through a Redis server.

    Args:
        paths: Logs or folders (default: all sessions).
        control: The Redis server that the sessions listen to, such as redis://host; needed.
    """
    if control is None:
        logs = " ".join(quote(str(path)) for path in paths or ()) or "PATH"
        raise ValueError(
            "expected --control redis://host, the server that paused sessions listen to, got none; "
            f"a session that was paused without one has ended, and `evo resume {logs}` goes on"
        )
    return _ask(paths, "go on", control)


def _ask(paths: Sequence[Path] | None, wish: Wish, control: str | None) -> int:
    from evo.logs.stopping import stop as stop_log
    from evo.studies.folders import kind_of, request

    if control is not None:
        _ask_there(paths, wish, control)
        return 0
    if not paths:
        raise ValueError(f"expected what is to {wish}: PATH, or --control redis://host for all")
    for path in paths:
        again, also = f"`evo resume {quote(str(path))}`", ""
        if kind_of(path):
            kind = request(path, wish)
            if kind in AGAIN:
                again = f"the same `evo {AGAIN[kind]}` with --log-dir {quote(str(path))}"
        elif path.is_dir():
            logs = _written_in(path)
            for log in logs:
                stop_log(log, wish)
            also = f" what is written there, {', '.join(log.name for log in logs)}"
        else:
            stop_log(path, wish)
            also = ", with all runs of the command that writes it"
        print(f"{path}: asked to {wish}{also}; {again} goes on")
    return 0


def _written_in(folder: Path) -> list[Path]:
    """The logs in a folder that are being written, without those of gates, which cannot be asked.

    Raises:
        LogError: There are none.
    """
    from evo.gate.log import is_gate_log, without_engines
    from evo.logs.journal import LogError
    from evo.logs.locks import is_written

    files = without_engines(sorted(folder.rglob("*.jsonl")))
    if written := [file for file in files if is_written(file) and not is_gate_log(file)]:
        return written
    raise LogError(
        f"{folder}: not the folder of a study, and no log in it is being written on this machine; "
        "give the log of a session on another machine, or --control"
    )


def _ask_there(paths: Sequence[Path] | None, wish: Wish, control: str) -> None:
    """Asks through a Redis server, and prints who hears it."""
    from evo.logs.shared_requests import ask

    everything: list[Path | None] = [None]
    for path in paths or everything:
        hearing = ask(control, wish, path)
        count = "1 session" if len(hearing) == 1 else f"{len(hearing)} sessions"
        who = f" ({', '.join(hearing)})" if hearing else ""
        print(f"{path or 'everything'}: {count} asked to {wish}{who}")
