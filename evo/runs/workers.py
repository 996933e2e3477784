"""Does a generation's work for several children at a time, and stops all of it in good order."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from evo.models.client import CallCancelled
from evo.runs.resources import Resources
from evo.sandbox import EvaluatorClosed

MAX_THREADS = 512

T = TypeVar("T")


class Stopped(Exception):  # noqa: N818 - a wish of the user, not an error
    """The run was asked to stop."""


def perform(
    item: T, work: Callable[[T], object], tell: Callable[[T, CallCancelled], object]
) -> object:
    """Does a piece of work; tells of a call that Ctrl-C ends in the main thread, which makes it."""
    try:
        return work(item)
    except KeyboardInterrupt as interrupt:
        if isinstance(interrupt.__cause__, CallCancelled):
            cancelled, interrupt.__cause__ = interrupt.__cause__, None
            tell(item, cancelled)
        raise


@dataclass(frozen=True)
class Workers:
    """The threads on which the children of one run are made.

    Attributes:
        resources: What the session's runs share; with one call at a time, items go in order.
        path: Log of the run.
    """

    resources: Resources
    path: Path

    def each(self, function: Callable[[T], object], items: Iterable[T]) -> None:
        """Calls a function with each item, and ends all work at the first failure.

        Raises:
            Stopped: A stop was asked for. What had begun is logged, or was ended.
            Exception: What the function raised.
        """
        work, failed = list(items), threading.Event()
        alone = self.resources.settings.max_concurrent == 1 or len(work) <= 1

        def one(number: int) -> None:
            if failed.is_set() or self.resources.control.stopping.is_set():
                raise Stopped
            self.resources.active.add((self.path, number))
            try:
                function(work[number])
            finally:
                self.resources.active.discard((self.path, number))

        try:
            if alone:
                deque(map(one, range(len(work))), maxlen=0)
            else:
                count = min(len(work), MAX_THREADS)
                self.resources.threads.each(one, range(len(work)), count=count)
        except BaseException as error:
            failed.set()
            self.resources.wind_down(self.path, error)
            if isinstance(error, CallCancelled | EvaluatorClosed):
                raise Stopped from None
            raise
