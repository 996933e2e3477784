"""Programs as the offline model reads them."""

from __future__ import annotations

import gc
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest

from evo.models.offline.program import parse


@pytest.fixture
def restless() -> Iterator[None]:
    """Threads take turns while a tree is being made."""

    def give_way(*_: object) -> None:
        time.sleep(0)

    before = gc.get_threshold()
    gc.callbacks.append(give_way)
    gc.set_threshold(20)
    yield
    gc.set_threshold(*before)
    gc.callbacks.remove(give_way)


@pytest.mark.usefixtures("restless")
def test_many_threads_may_parse_at_once() -> None:
    deep = "value = " + "(" * 60 + "1" + " + 1)" * 60
    sources = [f"{deep}\nname_{k} = {k}\n" for k in range(24)]
    ready = threading.Barrier(4)

    def work(first: int) -> int:
        ready.wait()
        return sum(parse(source) is not None for source in sources[first::4])

    with ThreadPoolExecutor(4) as pool:
        assert sum(pool.map(work, range(4))) == len(sources)
