"""Workers do all that there is, end at the first failure, and heed a stop."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from evo.models.client import CallCancelled
from evo.runs.resources import Resources, open_resources
from evo.runs.settings import Settings
from evo.runs.workers import MAX_THREADS, Stopped, Workers
from evo.sandbox import EvaluatorClosed

PATH = Path("a.jsonl")


@pytest.fixture(params=[1, 8], ids=["in order", "at once"])
def resources(request: pytest.FixtureRequest) -> Iterator[Resources]:
    settings = Settings(max_concurrent=request.param, workers=1, progress=False)
    with open_resources(settings) as opened:
        yield opened


def test_every_item_is_done_once_and_counts_as_under_way_meanwhile(resources: Resources) -> None:
    done: list[str] = []

    def one(name: str) -> None:
        assert (PATH, "abc".index(name)) in resources.active
        done.append(name)

    Workers(resources, PATH).each(one, iter("abc"))
    assert sorted(done) == ["a", "b", "c"]
    assert resources.active == set()
    if resources.settings.max_concurrent == 1:
        assert done == ["a", "b", "c"]


def test_nothing_is_begun_after_a_failure_which_is_raised(resources: Resources) -> None:
    begun: list[int] = []

    def one(number: int) -> None:
        begun.append(number)
        if number:  # as long as the first has not failed
            assert resources.control.stopping.wait(60)
        raise OSError(f"item {number}")

    with pytest.raises(OSError, match="item 0"):
        Workers(resources, PATH).each(one, range(600))
    alone = resources.settings.max_concurrent == 1
    assert len(begun) <= (1 if alone else MAX_THREADS + 1)  # its thread may take another
    assert (
        resources.control.stopping.is_set()
    )  # an error that is not the run's own ends the session


@pytest.mark.parametrize("error", [CallCancelled("stopped"), EvaluatorClosed("closed")])
def test_what_is_cut_short_by_a_stop_is_no_error(error: Exception, resources: Resources) -> None:
    def one(number: int) -> None:
        raise error

    with pytest.raises(Stopped) as stopped:
        Workers(resources, PATH).each(one, range(3))
    assert stopped.value.__suppress_context__


def test_after_a_stop_nothing_begins(resources: Resources) -> None:
    resources.control.stop()
    begun = threading.Event()
    with pytest.raises(Stopped):
        Workers(resources, PATH).each(lambda number: begun.set(), range(3))
    assert not begun.is_set()
    Workers(resources, PATH).each(lambda number: begun.set(), ())
