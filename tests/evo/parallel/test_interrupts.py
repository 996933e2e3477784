"""No Ctrl-C is lost, wherever it comes."""

from __future__ import annotations

import functools
import signal
import sys
import threading
import time
import weakref
from collections.abc import Iterator

import pytest

from evo import parallel
from evo.parallel.interrupts import interrupt_heard, no_interrupt_lost
from evo.runs.threads import Threads


@pytest.fixture
def threads() -> Iterator[Threads]:
    made = Threads()
    yield made
    made.close()


class Thing:
    """Something that is forgotten at some moment."""


@pytest.mark.parametrize("way", ["threads", "map"])
def test_an_interrupt_that_python_ignores_is_raised_all_the_same(
    threads: Threads, way: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    ignored: list[object] = []
    monkeypatch.setattr(sys, "unraisablehook", lambda found: ignored.append(found.exc_type))
    over, began = threading.Event(), time.monotonic()
    thing = Thing()
    kept = weakref.ref(thing, lambda _: signal.raise_signal(signal.SIGINT))
    with no_interrupt_lost():
        del thing
        assert ignored == [KeyboardInterrupt]
        assert kept() is None
        work = functools.partial(threads.each, count=2) if way == "threads" else parallel.map
        with pytest.raises(KeyboardInterrupt):
            work(over.wait, [60, 60])
        over.set()
        threads.each(len, ["it", "is", "heard"], count=2)
    assert time.monotonic() - began < 30
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_an_interrupt_while_something_is_forgotten_waits_for_the_wait(threads: Threads) -> None:
    thing, over = Thing(), threading.Event()
    weakref.finalize(thing, signal.raise_signal, signal.SIGINT)
    with no_interrupt_lost():
        del thing  # nothing is raised, and so nothing ignored, which would fail this test
        with pytest.raises(KeyboardInterrupt):
            threads.each(over.wait, [60, 60], count=2)
        over.set()


def test_an_interrupt_that_ends_the_work_is_not_raised_twice(threads: Threads) -> None:
    over = threading.Event()
    with no_interrupt_lost():
        with pytest.raises(KeyboardInterrupt):
            signal.raise_signal(signal.SIGINT)
        interrupt_heard()
        threading.Timer(1.5, over.set).start()
        threads.each(over.wait, [60, 60], count=2)


@pytest.mark.parametrize("count", [2, 3])
def test_an_error_of_a_thread_keeps_its_cause(threads: Threads, count: int) -> None:
    cause = KeyError("why")

    def fail(item: int) -> None:
        raise ValueError("what") from cause

    with pytest.raises(ValueError, match="what") as raised:
        threads.each(fail, range(count), count=count)
    assert raised.value.__cause__ is cause
    assert threads.each(abs, range(count), count=count) is None
