"""Sandboxes that outlive the run they were started for, so that the tests start few of them.

A sandbox that starts loads Python, NumPy and often SciPy, which takes longer than most runs of the
tests. Here an evaluator that is closed leaves its idle workers to the next one with equal settings.
Busy workers, such as those of an interrupted run, end as they always do.
"""

from __future__ import annotations

import os
import sys
from typing import ClassVar, NamedTuple

from evo.sandbox import evaluator as driver
from evo.sandbox.messages import Ready, Setup

MOST = 3
"""How many idle workers are kept."""

Key = tuple[int, Setup, str, frozenset[tuple[str, str]]]
"""The process that started a worker, its settings, the Python that runs it, its environment."""


class Spare(NamedTuple):
    """An idle worker, and what it was started for."""

    key: Key
    ready: Ready | None
    shared: bool
    worker: driver._Worker


class SparePool(driver._Pool):
    """A pool that begins with spare workers and leaves its own as spares."""

    spares: ClassVar[list[Spare]] = []

    def __init__(self, size: int, setup: Setup) -> None:
        super().__init__(size, setup)
        self._key = self._owner, setup, sys.executable, frozenset(driver._environment().items())
        places = [self._free.get() for _ in range(size)]
        for shared in (False, True):
            equal = [each for each in self.spares if (each.key, each.shared) == (self._key, shared)]
            for place, spare in zip(places, equal[-size:], strict=False):
                self.spares.remove(spare)
                if spare.worker.process.poll() is None:
                    self._alive.add(spare.worker)
                    self.ready = spare.ready
                    place[shared] = spare.worker
                else:
                    spare.worker.stop()
        for place in reversed(places):
            self._free.put(place)

    def close(self) -> None:
        """Keep the idle workers and kill the others."""
        if os.getpid() == self._owner:
            with self._lock:
                self._closed = True
            for _ in range(self._free.qsize()):
                place = self._free.get()
                self._free.put({})
                for shared, worker in place.items():
                    if worker in self._alive:
                        self._alive.discard(worker)
                        self.spares.append(Spare(self._key, self.ready, shared, worker))
            stop_spares(MOST)
        super().close()


def stop_spares(most: int = 0) -> None:
    """End idle workers of this process, the oldest first, until so many are left."""
    own = [spare for spare in SparePool.spares if spare.key[0] == os.getpid()]
    for spare in own[: max(len(own) - most, 0)]:
        SparePool.spares.remove(spare)
        spare.worker.stop()
