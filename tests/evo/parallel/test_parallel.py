"""Ordered parallel helpers: order, failures, limits, cancellation."""

import signal
import subprocess
import sys
import threading
import time
from concurrent.futures import CancelledError

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from evo import parallel
from evo.models.limits import Slots


def inverse(x: float) -> float:
    time.sleep(0.001 * (x % 3))
    return 1 / x


class Gauge:
    """Counts how many calls are under way at once."""

    def __init__(self) -> None:
        self.lock, self.now, self.most = threading.Lock(), 0, 0

    def __call__(self, item: object) -> object:
        with self.lock:
            self.now += 1
            self.most = max(self.most, self.now)
        time.sleep(0.01)
        with self.lock:
            self.now -= 1
        return item


@settings(max_examples=25)
@given(items=st.lists(st.integers(-2, 6), max_size=12), workers=st.integers(2, 5))
def test_as_many_workers_as_one(items: list[int], workers: int) -> None:
    one = parallel.map(inverse, items, max_workers=1, raising=False)
    many = parallel.map(inverse, items, max_workers=workers, raising=False)
    assert list(map(repr, one)) == list(map(repr, many))
    assert [isinstance(value, ZeroDivisionError) for value in many] == [x == 0 for x in items]


@pytest.mark.parametrize("workers", [1, None, 3])
def test_the_first_failure_is_raised_once_all_are_done(workers: int | None) -> None:
    done = []

    def work(x: int) -> int:
        done.append(x)
        if x % 2:
            raise ValueError(f"odd {x}")
        return x

    with pytest.raises(ValueError, match="odd 1") as caught:
        parallel.map(work, range(6), max_workers=workers)
    assert sorted(done) == list(range(6))
    assert caught.value.__notes__ == ["3 of 6 items failed; this is the first"]


@pytest.mark.parametrize(
    ("count", "workers", "most"), [(12, None, 4), (3, None, 3), (12, 6, 6), (12, 1, 1)]
)
def test_no_more_workers_than_wanted(count: int, workers: int | None, most: int) -> None:
    gauge = Gauge()
    assert parallel.map(gauge, range(count), max_workers=workers) == list(range(count))
    assert gauge.most <= most
    assert (gauge.most == 1) == (most == 1)


def test_slots_are_shared_with_others() -> None:
    gauge = Gauge()
    parallel.map(gauge, range(8), max_workers=8, slots=Slots(2))
    assert gauge.most == 2
    with pytest.raises(ValueError, match="max_workers: expected at least 1"):
        parallel.map(gauge, range(8), max_workers=0)


def test_starmap_and_scores() -> None:
    assert parallel.starmap(pow, [(2, 3), (3, 2)]) == [8, 9]
    assert parallel.score_batch(len, ["", "abc"], 2) == [0.0, 3.0]
    scores = parallel.score_batch(float, ["1", "nan", "x"], raising=False, progress=False)
    assert scores[0] == 1.0
    assert "expected a finite number" in str(scores[1])
    assert isinstance(scores[2], ValueError)


def test_an_event_ends_what_has_not_begun() -> None:
    cancel = threading.Event()

    def work(x: int) -> int:
        if x == 2:
            cancel.set()
        return x

    results = parallel.map(work, range(50), max_workers=1, raising=False, cancel=cancel)
    assert results[:3] == [0, 1, 2]
    assert all(isinstance(each, CancelledError) for each in results[3:])
    with pytest.raises(CancelledError, match="item 0 was cancelled"):
        parallel.map(work, range(3), cancel=cancel)


def test_ctrl_c_ends_what_has_not_begun() -> None:
    code = (
        "import sys, time\nfrom evo import parallel\n"
        "def work(x):\n    sys.stdout.write(f'{x}\\n')\n    sys.stdout.flush()\n    "
        "time.sleep(0.3)\n"
        "try:\n    parallel.map(work, range(100), max_workers=2)\n"
        "except KeyboardInterrupt:\n    time.sleep(1)\n    print('interrupted', flush=True)\n"
    )
    with subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        seen = [process.stdout.readline() for _ in range(4)]
        process.send_signal(signal.SIGINT)
        rest = process.stdout.read().split()
        assert process.wait(60) == 0
    assert sorted(seen) == [b"0\n", b"1\n", b"2\n", b"3\n"]
    assert rest[-1] == b"interrupted"
    assert len(rest) < 50


def test_candidates_come_in_order_and_again() -> None:
    prompts = [f"Problem: {k}00 and 1 apples" for k in range(1, 7)]
    many = parallel.generate_candidates("offline", prompts, seed=3)
    assert many == parallel.generate_candidates("offline", prompts, seed=3, max_workers=1)
    assert many != parallel.generate_candidates("offline", prompts, seed=4)
    assert sum(f"{k}0" in reply for k, reply in enumerate(many, start=1)) >= 4  # some are wrong
    messages = [[{"role": "user", "content": prompt}] for prompt in prompts]
    assert parallel.generate_candidates("offline", messages, seed=3, slots=Slots(1)) == many
    asked = parallel.generate_candidates(3, ["a", "b"], query=lambda model, prompt: prompt * model)
    assert asked == ["aaa", "bbb"]
