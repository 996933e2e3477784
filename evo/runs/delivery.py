"""Delivers events to listeners on threads of their own, so that they neither slow nor end a run."""

from __future__ import annotations

import asyncio
import atexit
import contextvars
import inspect
import queue
import threading
import time
import weakref
from collections.abc import Callable, Iterable
from typing import Any, Generic, TypeVar

from evo.warning import warn

E = TypeVar("E")

PATIENCE = 2.0
"""Seconds that a session waits at its end for its listeners; they go on in the background."""

AT_EXIT = 10.0
"""Seconds that the process waits at its exit for what is still to be delivered."""


class Delivery(Generic[E]):
    """Calls listeners with events, each on a thread of its own, in order; it is thread-safe.

    What a listener raises is a warning, the first time. One that is `async` runs to its end, in a
    loop of its own, before it is called with the next event.

        with contextlib.closing(Delivery([listener])) as delivery:
            delivery.put(event)

    Args:
        listeners: Called with every event.
    """

    def __init__(self, listeners: Iterable[Callable[[E], object]]) -> None:
        self._lines = [_Line(listener) for listener in listeners]

    def put(self, event: E) -> None:
        """Takes an event, which is delivered once those before it are, and returns at once."""
        for line in self._lines:
            line.put(event)

    def close(self, patience: float = PATIENCE) -> None:
        """Waits for so many seconds; what is not delivered by then is delivered in the background.

        Args:
            patience: Seconds, for all listeners together.
        """
        deadline = time.monotonic() + patience
        for line in self._lines:
            line.end()
        for line in self._lines:
            line.join(deadline)


class _Line(Generic[E]):
    """The events of one listener."""

    def __init__(self, listener: Callable[[E], object]) -> None:
        self._listener = listener
        self._events: queue.SimpleQueue[tuple[E] | None] = queue.SimpleQueue()
        self._thread: threading.Thread | None = None
        self._lock = threading.Lock()
        self._failed = False
        self.left = 0  # events that are not delivered yet

    @property
    def name(self) -> str:
        return getattr(self._listener, "__name__", type(self._listener).__name__)

    def put(self, event: E) -> None:
        with self._lock:
            if self._thread is None:
                context = contextvars.copy_context()  # of the cell under which it prints
                self._thread = threading.Thread(
                    target=context.run, args=(self._work,), daemon=True, name="evo-listener"
                )
                self._thread.start()
                _open.add(self)
            self.left += 1
            self._events.put((event,))

    def end(self) -> None:
        self._events.put(None)

    def join(self, deadline: float) -> None:
        thread = self._thread
        if thread is not None and thread is not threading.current_thread():
            thread.join(max(0.0, deadline - time.monotonic()))

    def _work(self) -> None:
        while (event := self._events.get()) is not None:
            failure: BaseException | None = None
            try:
                answer = self._listener(*event)
                if inspect.iscoroutine(answer):  # of `async def`, which would not begin else
                    asyncio.run(answer)
            except BaseException as error:
                failure = error
            with self._lock:
                self.left -= 1
            if failure is not None and not self._failed:
                self._failed = True
                warn(
                    f"{self.name}: raised {_shown(failure)}; the run goes on, and later events are "
                    "still delivered. Further errors of this listener are not shown.",
                )


def _shown(error: BaseException) -> str:
    """Returns an error in words; its class alone where the error cannot show itself."""
    try:
        return repr(error)
    except BaseException:
        return type(error).__name__


_open: weakref.WeakSet[_Line[Any]] = weakref.WeakSet()


def deliver_rest(seconds: float = AT_EXIT) -> None:
    """Waits for what is still to be delivered, and counts in one warning what could not be."""
    deadline = time.monotonic() + seconds
    waiting = [line for line in list(_open) if line.left]
    for line in waiting:
        line.join(deadline)
    if late := {line.name: line.left for line in waiting if line.left}:
        what = ", ".join(f"{count} to {name}" for name, count in late.items())
        warn(f"events that no listener took in time: {what}")


atexit.register(deliver_rest)
