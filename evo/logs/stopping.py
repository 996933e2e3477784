"""A file beside a log asks the session that writes it to pause or to stop."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Literal

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


@contextmanager
def heed_stop(
    paths: Iterable[Path], act: Callable[[], object], wish: Wish = "stop"
) -> Iterator[None]:
    """Calls `act`, in another thread, once `stop` asks for the wish at one of the logs.

    While the `with` block lasts, and at most once; wishes of before are forgotten.
    """
    files = [stop_file(path, wish) for path in paths]

    def forget() -> None:
        for file in files:
            file.unlink(missing_ok=True)

    def watch() -> None:
        while not over.wait(POLL):
            if any(file.exists() for file in files):
                act()
                return

    forget()
    over = threading.Event()
    watcher = threading.Thread(target=watch, daemon=True)
    watcher.start()
    try:
        yield
    finally:
        over.set()
        watcher.join()
        forget()
