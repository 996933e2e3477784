"""Calls that block, on threads that nobody has to wait for.

A function or a sync client cannot be interrupted. A helper thread makes its call while the thread
that wants the answer waits, and may give it up. What was given up goes on by itself: what it
returns or raises then is dropped, and it does not keep the process from ending.
"""

from __future__ import annotations

import contextlib
import contextvars
import functools
import threading
import weakref
from collections.abc import Awaitable, Callable
from concurrent.futures import Future, InvalidStateError
from dataclasses import dataclass, field
from queue import SimpleQueue
from typing import Any, Generic, TypeVar

from evo.models.answer import Exchange

T = TypeVar("T")


@dataclass(frozen=True)
class Blocking:
    """A request that a wire leaves to a helper thread to send.

    Attributes:
        send: Sends it; returns the answer, or what can be awaited for it.
        sender: What goes on by itself once the request is given up, in words.
        grace: Seconds that it has beyond the deadline, if it knows that and ends by itself.
    """

    send: Callable[[], Exchange | Awaitable[Exchange]]
    sender: str
    grace: float = 0.0


@dataclass(eq=False)
class Work(Generic[T]):
    """A call that a helper thread makes.

    Attributes:
        call: What is called.
        answer: What it returns or raises; cancelling this gives the call up.
        over: Done once the call has returned, be that after it was given up.
    """

    call: Callable[[], T]
    answer: Future[T] = field(default_factory=Future)
    over: Future[None] = field(default_factory=Future)
    context: contextvars.Context = field(default_factory=contextvars.copy_context)

    def make(self) -> Callable[[], None]:
        """Makes the call, and returns what hands its result to whoever still waits."""
        try:
            made = self.context.run(self.call)
        except BaseException as error:
            return functools.partial(self.answer.set_exception, error)
        else:
            return functools.partial(self.answer.set_result, made)
        finally:
            self.over.set_result(None)


class Helpers:
    """Helper threads; one whose call returned in time makes later calls, too."""

    def __init__(self) -> None:
        self._idle: list[_Helper] = []  # popping and appending are atomic
        weakref.finalize(self, _end_all, self._idle)

    def start(self, call: Callable[[], T]) -> Work[T]:
        """Begins a call on the thread that became idle last, or on a new one."""
        work = Work(call)
        helper = self._idle_one() or _Helper(self._idle)
        helper.tasks.put(work)
        return work

    def close(self) -> None:
        """Ends the threads that are idle; one whose call was given up ends once that returns."""
        _end_all(self._idle)

    def _idle_one(self) -> _Helper | None:
        while self._idle:
            try:
                helper = self._idle.pop()
            except IndexError:  # another thread has taken the last one
                return None
            if helper.is_alive():  # in a forked process none is
                return helper
        return None


class _Helper(threading.Thread):
    def __init__(self, idle: list[_Helper]) -> None:
        super().__init__(name="evo-call", daemon=True)
        self.tasks: SimpleQueue[Work[Any] | None] = SimpleQueue()
        self._idle = idle
        self.start()

    def run(self) -> None:
        """Makes one call after the other, until one was given up."""
        while (work := self.tasks.get()) is not None:
            hand_over = work.make()
            if work.answer.cancelled():
                return
            # It is idle before anybody hears of the result, so that one thread makes all calls of
            # somebody who waits for one after the other.
            self._idle.append(self)
            with contextlib.suppress(InvalidStateError):  # given up at this very moment
                hand_over()
            del work, hand_over  # while it is idle it keeps nothing alive


def _end_all(idle: list[_Helper]) -> None:
    while idle:
        idle.pop().tasks.put(None)
