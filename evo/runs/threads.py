"""Threads that are kept from one generation to the next."""

from __future__ import annotations

import functools
import itertools
import threading
import weakref
from collections.abc import Callable, Sequence
from queue import SimpleQueue
from typing import TypeVar

T = TypeVar("T")


class Pool:
    """Threads that make calls from a queue; they do not keep the process from ending."""

    def __init__(self, count: int) -> None:
        self.count = count
        self._calls = SimpleQueue[Callable[[], object] | None]()
        for _ in range(count):
            threading.Thread(target=self._work, daemon=True).start()

    def submit(self, call: Callable[[], object]) -> None:
        """Has a thread make a call, which raises nothing."""
        self._calls.put(call)

    def end(self) -> None:
        """Ends the threads once they have made all calls."""
        for _ in range(self.count):
            self._calls.put(None)

    def _work(self) -> None:
        while (call := self._calls.get()) is not None:
            call()
            del call  # else it would live until the next one


class Threads:
    """Pools of threads that the generations of a session borrow one after another.

    Starting threads costs more than all else that a child needs beside its call. There are never
    more pools than there were generations under way at once.
    """

    def __init__(self) -> None:
        self._idle: list[Pool] = []
        self._closed = False
        self._lock = threading.Lock()
        weakref.finalize(self, _end_all, self._idle)

    def each(self, function: Callable[[T], object], items: Sequence[T], *, count: int) -> None:
        """Calls a function with each item, on `count` threads or more.

        Raises:
            Exception: What the function raised first. Items that were under way go on alone.
        """
        if not items:
            return
        over, numbers, failures = threading.Event(), itertools.count(1), list[BaseException]()

        def one(item: T) -> None:
            if over.is_set():  # another one failed
                return
            try:
                function(item)
            except BaseException as error:
                failures.append(error)
                over.set()
            if next(numbers) == len(items):
                over.set()

        pool = self._borrow(count)
        try:
            for item in items:
                pool.submit(functools.partial(one, item))
            over.wait()
            if failures:
                raise failures[0]
        except BaseException:
            over.set()  # after an interrupt nothing further begins
            pool.end()
            raise
        self._give_back(pool)

    def close(self) -> None:
        """Ends all threads that are idle now, and others once they are."""
        with self._lock:
            self._closed = True
            idle = self._idle.copy()
            self._idle.clear()
        _end_all(idle)

    def _borrow(self, count: int) -> Pool:
        """Returns a pool of at least so many threads; a smaller one that is idle makes way."""
        with self._lock:
            fitting = [pool for pool in self._idle if pool.count >= count]
            found = fitting[0] if fitting else self._idle[0] if self._idle else None
            if found is not None:
                self._idle.remove(found)
        if fitting:
            return fitting[0]
        if found is not None:
            found.end()
        return Pool(count)

    def _give_back(self, pool: Pool) -> None:
        with self._lock:
            if not self._closed:
                self._idle.append(pool)
                return
        pool.end()


def _end_all(idle: list[Pool]) -> None:
    while idle:
        idle.pop().end()
