"""A file beside a log, or a Redis server, asks a session to pause, to stop or to go on."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Self

from evo.logs.journal import LogError
from evo.logs.lines import PREFIX
from evo.logs.shared_requests import POLL, Wish, ask
from evo.logs.types import as_path

__all__ = ["POLL", "StopRequests", "Wish", "stop", "stop_file"]


def stop_file(path: Path, wish: Wish = "stop") -> Path:
    """The file whose presence asks the session that writes a log to stop, or to pause."""
    return path.with_name(f"{path.name}.{wish}")


def stop(
    path: str | os.PathLike[str] | None = None, wish: Wish = "stop", *, control: str | None = None
) -> None:
    """Asks the process that writes a log to stop, resumably, within a second.

    It does so by a file beside the log, `NAME.stop`, which the session removes when it ends. All
    runs of that session, or arms of that allocation, stop; without a session the request lapses
    when the next one begins.

    With `control` the request lives in a Redis server, and the sessions heed it that were begun
    with the same `control`, on whatever machine. A pause then stands until "go on" is asked: no
    further call begins, and the sessions wait.

    Args:
        path: Log of a run or of an arm, an allocation.jsonl, or the events.jsonl of a sweep. With
            `control` also any folder, for all in it (default: all sessions that listen there).
        wish: `pause`: calls under way finish, however long they take; then the session ends. With
            `control` it waits in place of ending, until `go on` is asked for.
        control: Address of a Redis server, such as redis://host:6379/0 (default: a file).

    Raises:
        LogError: There is no such log; no session that listens to the server works on it.
        OSError: The server does not answer.

    Example:
        >>> try:
        ...     evo.stop(new())
        ... except evo.LogError as error:
        ...     print(str(error).rpartition(": ")[2])
        no such log
    """
    if control is not None:
        ask(control, wish, None if path is None else as_path("path", path))
        return
    if path is None or wish == "go on":
        missing = "path: expected a log" if path is None else "wish: 'go on' needs a server"
        raise ValueError(f"{missing}, or give control='redis://host:6379/0'")
    path = as_path("path", path)
    if path.is_dir():
        raise LogError(f"{path}: no such log, but a folder; give a log in it, or control= for all")
    if not path.is_file():
        raise LogError(f"{path}: no such log")
    with path.open("rb") as file:
        if file.read(len(PREFIX)) != PREFIX:
            raise LogError(f"{path}: not a log that anything is writing; nothing was asked to stop")
    stop_file(path, wish).touch()


class StopRequests(AbstractContextManager["StopRequests", None]):
    """Calls a function, in another thread, once `stop` is called for one of some logs.

        with StopRequests(control.stop) as requests:
            writer = Writer.claim(path)
            requests.watch(path)

    Only logs that this session has claimed may be watched: a request beside a log that is busy is
    for the session that writes it. Requests made before that are removed.

    Args:
        act: Called once at most.
        wish: Which requests to look for.
    """

    def __init__(self, act: Callable[[], object], wish: Wish = "stop") -> None:
        self._act, self._wish = act, wish
        self._files: dict[Path, None] = {}
        self._over = threading.Event()
        self._watcher = threading.Thread(target=self._work, daemon=True)

    def watch(self, path: Path) -> None:
        """Looks for requests beside a log as well, from now on."""
        file = stop_file(path.absolute(), self._wish)
        file.unlink(missing_ok=True)
        self._files[file] = None

    def __enter__(self) -> Self:
        self._watcher.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._watcher.join()
        for file in self._files:
            file.unlink(missing_ok=True)

    def _work(self) -> None:
        while not self._over.wait(POLL):
            if any(file.exists() for file in list(self._files)):
                self._act()
                return


def wishes_of(
    stop: Callable[[], object], pause: Callable[[], object]
) -> tuple[StopRequests, StopRequests]:
    """Returns watchers of logs: one calls `stop` once a stop is asked for, one `pause`."""
    return StopRequests(stop), StopRequests(pause, "pause")
