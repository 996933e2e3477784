"""Threads are kept from generation to generation, and no longer than a session."""

from __future__ import annotations

import signal
import sys
import threading
import time
from collections.abc import Iterator

import pytest

from evo.runs.threads import Threads


@pytest.fixture
def threads() -> Iterator[Threads]:
    made = Threads()
    yield made
    made.close()


def used(threads: Threads, count: int) -> set[threading.Thread]:
    """Works on so many items at once, and returns the threads that did."""
    found, together = set(), threading.Barrier(count, timeout=60)

    def work(_: int) -> None:
        found.add(threading.current_thread())
        together.wait()

    threads.each(work, range(count), count=count)
    assert len(found) == count
    return found


def end(found: set[threading.Thread]) -> bool:
    for thread in found:
        thread.join(60)
    return not any(thread.is_alive() for thread in found)


def test_generations_of_the_same_size_or_smaller_share_threads(threads: Threads) -> None:
    first = used(threads, 4)
    assert used(threads, 4) == first
    assert used(threads, 3) < first


def test_a_larger_generation_replaces_the_threads_that_are_too_few(threads: Threads) -> None:
    few = used(threads, 2)
    assert used(threads, 5).isdisjoint(few)
    assert end(few)


def test_generations_at_once_have_threads_of_their_own(threads: Threads) -> None:
    inner = []
    threads.each(lambda _: inner.append(used(threads, 2)), range(1), count=2)
    assert inner[0].isdisjoint(used(threads, 3))


def test_after_a_failure_there_are_others(threads: Threads) -> None:
    found = used(threads, 3)
    with pytest.raises(ZeroDivisionError):
        threads.each(lambda number: 1 / number, range(3), count=3)
    assert used(threads, 3).isdisjoint(found)
    assert end(found)


def test_an_interrupt_ends_the_wait_for_what_is_under_way(threads: Threads) -> None:
    found, over, main = used(threads, 2), threading.Event(), threading.get_ident()

    def waits() -> bool:
        frame, names = sys._current_frames()[main], list[str]()
        while frame is not None and len(names) < 3:
            names.append(frame.f_code.co_name)
            frame = frame.f_back
        return names == ["wait", "wait", "wait_for"]

    def work(number: int) -> None:
        if number == 0:
            while not waits():
                time.sleep(0.01)
            signal.pthread_kill(main, signal.SIGINT)
        over.wait(60)

    began = time.monotonic()
    with pytest.raises(KeyboardInterrupt):
        threads.each(work, range(2), count=2)
    assert time.monotonic() - began < 30
    assert not over.is_set()
    over.set()
    assert used(threads, 2).isdisjoint(found)
    assert end(found)


def test_nothing_to_do_is_no_wait(threads: Threads) -> None:
    threads.each(pytest.fail, [], count=2)


def test_they_end_with_the_session(threads: Threads) -> None:
    found = used(threads, 3)
    threads.close()
    assert end(found)
    assert end(used(threads, 2))
