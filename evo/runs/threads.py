"""Threads that are kept from one generation to the next."""

from __future__ import annotations

import threading
import weakref
from collections import deque
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, TypeVar

from evo.parallel.interrupts import all_done

if TYPE_CHECKING:
    from joblib import Parallel

T = TypeVar("T")


class Threads:
    """Pools of threads that the generations of a session borrow one after another.

    Starting threads costs more than all else that a child needs beside its call. There are never
    more pools than there were generations under way at once.
    """

    def __init__(self) -> None:
        self._idle: list[Parallel] = []
        self._closed = False
        self._lock = threading.Lock()
        weakref.finalize(self, _end_all, self._idle)

    def each(self, function: Callable[[T], object], items: Sequence[T], *, count: int) -> None:
        """Calls a function with each item, on `count` threads or more.

        Raises:
            Exception: What the function raised first. Items that were under way go on alone.
        """
        pool = self._borrow(count)
        try:
            deque(all_done(pool, function, items), maxlen=0)
        except BaseException:
            _end(pool)
            raise
        self._give_back(pool)

    def close(self) -> None:
        """Ends all threads that are idle now, and others once they are."""
        with self._lock:
            self._closed = True
            idle = self._idle.copy()
            self._idle.clear()
        _end_all(idle)

    def _borrow(self, count: int) -> Parallel:
        """Returns a pool of at least so many threads; a smaller one that is idle makes way."""
        with self._lock:
            fitting = [pool for pool in self._idle if pool.n_jobs >= count]
            found = fitting[0] if fitting else self._idle[0] if self._idle else None
            if found is not None:
                self._idle.remove(found)
        if fitting:
            return found
        if found is not None:
            _end(found)
        from joblib import Parallel

        how = {"backend": "threading", "batch_size": 1, "pre_dispatch": "all"}
        return Parallel(count, return_as="generator_unordered", **how).__enter__()

    def _give_back(self, pool: Parallel) -> None:
        with self._lock:
            if not self._closed:
                self._idle.append(pool)
                return
        _end(pool)


def _end_all(idle: list[Parallel]) -> None:
    while idle:
        _end(idle.pop())


def _end(pool: Parallel) -> None:
    pool.__exit__(None, None, None)
