"""The offline model answers many threads at once as it answers one."""

import threading
from concurrent.futures import ThreadPoolExecutor

from evo.llm.offline.program import parse


def test_many_threads_may_parse_at_once() -> None:
    deep = "value = " + "(" * 60 + "1" + " + 1)" * 60
    sources = [f"{deep}\nname_{k} = {k}\n" * 20 for k in range(200)]
    ready = threading.Barrier(8)

    def work(first: int) -> int:
        ready.wait()
        return sum(parse(source) is not None for source in sources[first::8])

    with ThreadPoolExecutor(8) as pool:
        assert sum(pool.map(work, range(8))) == len(sources)
