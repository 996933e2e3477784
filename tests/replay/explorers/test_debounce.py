"""Work begins once nothing has moved for a while, and knows when it is out of date."""

import threading
import time

import pytest

from replay.explorers import debounce
from replay.explorers.debounce import Debounce


@pytest.fixture(autouse=True)
def _quick(monkeypatch):
    monkeypatch.setattr(debounce, "REST", 0.03)


def resting(made):
    made.thread and made.thread.join(20)
    assert made.thread is None


def test_many_moves_are_one_piece_of_work():
    lock, worked = threading.RLock(), []
    made = Debounce(lock, lambda still: worked.append(still()))
    for _ in range(5):
        with lock:
            made.soon()
        time.sleep(0.005)
    resting(made)
    assert worked == [True]
    with lock:
        made.soon()
    resting(made)
    assert worked == [True, True]


def test_what_is_cancelled_is_not_done():
    lock, worked = threading.RLock(), []
    made = Debounce(lock, lambda still: worked.append(1))
    with lock:
        made.soon()
        made.cancel()
    resting(made)
    assert worked == []


def test_work_that_has_begun_learns_of_a_move_and_is_done_again():
    lock, seen = threading.RLock(), []
    begun, go_on = threading.Event(), threading.Event()

    def work(still):
        before = still()
        begun.set()
        assert go_on.wait(20)
        seen.append((before, still()))

    made = Debounce(lock, work)
    with lock:
        made.soon()
    assert begun.wait(20)
    with lock:
        made.soon()
    go_on.set()
    resting(made)
    assert seen == [(True, False), (True, True)]
