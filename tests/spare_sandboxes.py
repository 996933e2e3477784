"""Sandboxes that outlive the run they were started for, so that the tests start few of them.

A sandbox that starts loads Python, NumPy and often SciPy, which takes longer than most runs of the
tests. Here an evaluator that is closed leaves its idle workers to the next one with equal settings.
Busy workers, such as those of an interrupted run, end as they always do.
"""

from __future__ import annotations

import os
import sys
from typing import ClassVar

from evo.sandbox import evaluator as driver
from evo.sandbox.messages import Ready, Setup

MOST = 2
"""How many idle workers are kept."""

Key = tuple[int, Setup, str, frozenset[tuple[str, str]]]
"""The process that started a worker, its settings, the Python that runs it, its environment."""


class SparePool(driver._Pool):
    """A pool that begins with spare workers and leaves its own as spares."""

    spares: ClassVar[list[tuple[Key, Ready | None, driver._Worker]]] = []
    """Idle workers, with what they were started for."""

    def __init__(self, size: int, setup: Setup) -> None:
        super().__init__(size, setup)
        self._key = self._owner, setup, sys.executable, frozenset(driver._environment().items())
        equal = [spare for spare in self.spares if spare[0] == self._key]
        for spare in equal[-size:]:
            self.spares.remove(spare)
            _, ready, worker = spare
            if worker.process.poll() is None:
                self._alive.add(worker)
                self.ready = ready
            else:
                worker.stop()
        for _ in self._alive:
            self._free.get()
        for worker in self._alive:
            self._free.put({False: worker})

    def close(self) -> None:
        """Keep the idle workers and kill the others."""
        if os.getpid() == self._owner:
            with self._lock:
                self._closed = True
            for _ in range(self._free.qsize()):
                worker = self._free.get().get(False)
                self._free.put({})
                if worker is not None and worker in self._alive:
                    self._alive.discard(worker)
                    self.spares.append((self._key, self.ready, worker))
            stop_spares(MOST)
        super().close()


def stop_spares(most: int = 0) -> None:
    """End idle workers of this process, the oldest first, until so many are left."""
    own = [spare for spare in SparePool.spares if spare[0][0] == os.getpid()]
    for spare in own[: max(len(own) - most, 0)]:
        SparePool.spares.remove(spare)
        spare[2].stop()
