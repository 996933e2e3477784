"""Delivers events to a listener on a thread of its own, so that it neither slows nor ends a run."""

from __future__ import annotations

import contextvars
import queue
import threading
import time
import warnings
from collections.abc import Callable
from typing import Generic, TypeVar

E = TypeVar("E")

PATIENCE = 60.0  # seconds that one event may take once the work is over


class Delivery(Generic[E]):
    """Calls a listener with events, one at a time and in order; it is thread-safe.

    What the listener raises is a warning, the first time.

        with contextlib.closing(Delivery(listener)) as delivery:
            delivery.put(event)

    Args:
        listener: Called with every event; None: nobody listens.
    """

    def __init__(self, listener: Callable[[E], object] | None) -> None:
        self._listener = listener
        self._events: queue.SimpleQueue[tuple[E] | None] = queue.SimpleQueue()
        self._thread: threading.Thread | None = None
        self._lock = threading.Lock()
        self._moved = time.monotonic()  # when the listener last took an event
        self._failed = False

    def put(self, event: E) -> None:
        """Takes an event, which is delivered once those before it are, and returns at once."""
        if self._listener is None:
            return
        with self._lock:
            if self._thread is None:
                context = contextvars.copy_context()  # of the cell under which it prints
                self._thread = threading.Thread(
                    target=context.run, args=(self._work, self._listener), daemon=True
                )
                self._thread.start()
            self._events.put((event,))

    def close(self) -> None:
        """Waits until everything is delivered, unless one event takes longer than a minute."""
        with self._lock:
            thread, self._thread = self._thread, None
            self._events.put(None)
        if thread is None or thread is threading.current_thread():
            return
        self._moved = time.monotonic()
        while thread.is_alive() and time.monotonic() - self._moved < PATIENCE:
            thread.join(0.1)
        if thread.is_alive():
            warnings.warn(
                f"on_event: has not returned for {PATIENCE:.0f} s, so the last events may not "
                "reach it; the logs are complete",
                stacklevel=2,
            )

    def _work(self, listener: Callable[[E], object]) -> None:
        while (event := self._events.get()) is not None:
            try:
                listener(*event)
            except BaseException as error:
                if not self._failed:
                    self._failed = True
                    warnings.warn(
                        f"on_event: raised {error!r}; the run goes on, and later events are still "
                        "delivered. Further errors of it are not shown.",
                        stacklevel=2,
                    )
            self._moved = time.monotonic()
