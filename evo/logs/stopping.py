"""A file beside a log asks the session that writes it to pause or to stop."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Literal, Self

from evo.logs.journal import PREFIX, LogError

POLL = 0.2  # seconds between two looks for such a file
Wish = Literal["pause", "stop"]


def stop_file(path: Path, wish: Wish = "stop") -> Path:
    """The file whose presence asks the session that writes a log to stop, or to pause."""
    return path.with_name(f"{path.name}.{wish}")


def stop(path: str | os.PathLike[str], wish: Wish = "stop") -> None:
    """Asks the process that writes a log to stop, resumably, within a second.

    It does so by a file beside the log, `NAME.stop`, which the session removes when it ends. All
    runs of that session, or arms of that allocation, stop; without a session the request lapses
    when the next one begins.

    Args:
        path: Log of a run or of an arm, an allocation.jsonl, or the events.jsonl of a sweep.
        wish: `pause`: calls under way may finish, however long they take; sweeps heed it.

    Raises:
        LogError: There is no such log.
    """
    path = Path(path)
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
