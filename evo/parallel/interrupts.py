"""Waiting for work on other threads, from which no Ctrl-C is lost."""

from __future__ import annotations

import contextlib
import itertools
import signal
import threading
from collections.abc import Callable, Generator, Iterator, Sequence
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from types import FrameType

    from joblib import Parallel

A = TypeVar("A")
B = TypeVar("B")

_pressed = threading.Event()
"""Whether Ctrl-C was pressed, and the work does not end because of it yet."""


@contextlib.contextmanager
def no_interrupt_lost() -> Iterator[None]:
    """While it lasts, `wait_for` raises a KeyboardInterrupt that Python has ignored.

    Python ignores it where it comes in the callback of a weak reference, such as those by which
    threads are forgotten, or in `__del__`. Handlers of somebody else's are left alone.
    """
    in_main = threading.current_thread() is threading.main_thread()
    if not in_main or signal.getsignal(signal.SIGINT) is not signal.default_int_handler:
        yield
        return

    def press(number: int, frame: FrameType | None) -> None:
        _pressed.set()
        if not _would_be_ignored(frame):
            signal.default_int_handler(number, frame)

    _pressed.clear()
    signal.signal(signal.SIGINT, press)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, signal.default_int_handler)


def _would_be_ignored(frame: FrameType | None) -> bool:
    """Whether what is raised in a frame reaches nobody."""
    while frame is not None:
        module = frame.f_globals.get("__name__")
        if module in ("weakref", "_weakrefset") or frame.f_code.co_name == "__del__":
            return True
        frame = frame.f_back
    return False


def interrupt_heard() -> None:
    """Says that the work ends because of Ctrl-C, or ends anyway: it need not be raised again."""
    _pressed.clear()


def wait_for(over: threading.Event, seconds: float = 1.0) -> None:
    """Waits for an event; looks for a lost interrupt before, and when so many seconds are over.

    Raises:
        KeyboardInterrupt: Ctrl-C; a second one that comes within these seconds is the same.
    """
    in_main = threading.current_thread() is threading.main_thread()
    while not (in_main and _pressed.is_set()):
        try:
            if over.wait(seconds):
                return
        except KeyboardInterrupt:
            interrupt_heard()
            raise
    interrupt_heard()
    raise KeyboardInterrupt


def all_done(pool: Parallel, function: Callable[[A], B], items: Sequence[A]) -> Generator[B]:
    """Calls a function with each item on a pool of joblib, and returns the results once all are in.

    joblib itself would look for results a hundred times a second, lose an interrupt, and replace
    the cause of an error by the text of its traceback.

    Args:
        pool: Threads that return a generator.
        function: What is called.
        items: What it is called with.

    Raises:
        KeyboardInterrupt: Ctrl-C. What is under way goes on alone, as in the next case.
        BaseException: What the function raised first.
    """
    from joblib import delayed

    over, numbers = threading.Event(), itertools.count(1)
    failed: list[BaseException] = []

    def one(item: A) -> B | None:
        try:
            made = function(item)
        except BaseException as error:  # it is raised below
            failed.append(error)
            over.set()
            return None
        if next(numbers) == len(items):
            over.set()
        return made

    results: Generator[B] = pool(delayed(one)(item) for item in items)
    try:
        if items:
            wait_for(over)
        if failed:
            raise failed[0]
    except BaseException as interrupt:
        results.throw(interrupt)
    return results
