"""What the gate costs beside a bare forwarder, with a budget, a log and rates.

    python tests/benchmarks/gate_overhead.py

The same requests go to the offline model straight, through a forwarder that does nothing but pass
bytes on over connections that it keeps, and through the gate, turn by turn.
"""

from __future__ import annotations

import contextlib
import http.client
import json
import statistics
import tempfile
import threading
import time
from collections.abc import Callable
from pathlib import Path

from evo.llm.gate import Gate
from evo.llm.listening import Listener, Request
from evo.llm.offline.endpoint import Response
from evo.llm.registry import find_model
from evo.llm.server import OfflineServer
from evo.prompt import build_messages
from evo.records import Model
from evo.task import load_task

CALLS, THREADS = 400, 30
TASK = load_task("cp")
MESSAGES = build_messages(TASK.record, TASK.initial_program, 0.3642)


class Forwarder(Listener):
    """Passes a request on as it is."""

    def __init__(self, url: str) -> None:
        super().__init__("127.0.0.1", 0)
        self._to = url.removeprefix("http://").removesuffix("/v1")
        self._mine = threading.local()

    def begin(self, opened: contextlib.ExitStack) -> None:
        """Needs nothing."""

    def respond(self, request: Request) -> Response:
        """Asks the other end, over this thread's connection."""
        connection = getattr(self._mine, "connection", None)
        if connection is None:
            connection = self._mine.connection = http.client.HTTPConnection(self._to)
        connection.request("POST", request.path, request.body)
        answer = connection.getresponse()
        return Response(answer.status, answer.read())


def poster(url: str) -> Callable[[int], float]:
    """Returns a function that makes a call over one connection and returns its milliseconds."""
    connection = http.client.HTTPConnection(url.removeprefix("http://").removesuffix("/v1"))

    def post(seed: int) -> float:
        body = {"model": "offline", "messages": MESSAGES, "seed": seed, "max_tokens": 4000}
        started = time.perf_counter()
        connection.request("POST", "/v1/chat/completions", json.dumps(body))
        answer = connection.getresponse()
        answer.read()
        assert answer.status == 200
        return 1000 * (time.perf_counter() - started)

    return post


def rate(url: str) -> float:
    """Returns calls per second of many clients at once."""
    seeds = iter(range(10**6, 10**7))

    def work() -> None:
        post = poster(url)
        for _ in range(CALLS // THREADS):
            post(next(seeds))

    threads = [threading.Thread(target=work) for _ in range(THREADS)]
    started = time.perf_counter()
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return CALLS / (time.perf_counter() - started)


def main() -> None:
    with tempfile.TemporaryDirectory() as folder, OfflineServer() as server:
        priced = find_model("offline")
        model = Model(**{n: getattr(priced, n) for n in ("name", "context", "input_price",
                         "output_price")}, base_url=server.url)  # fmt: skip
        gate = Gate(
            model,
            budget={"calls": 1e6, "tokens": 1e12, "dollars": 1e6},
            requests_per_minute=10**6,
            tokens_per_minute=10**12,
            log=Path(folder) / "gate.jsonl",
        )
        with Forwarder(server.url) as bare, gate:
            ways = {"straight": server.url, "forwarder": bare.url, "gate": gate.url}
            posts = {name: poster(url) for name, url in ways.items()}
            rounds = [{n: post(seed) for n, post in posts.items()} for seed in range(20 + CALLS)]
            for name in ways:
                times = [each[name] for each in rounds[20:]]
                slow = statistics.quantiles(times, n=20)[-1]
                print(f"{name:10} median {statistics.median(times):5.2f} ms, 95 % {slow:5.2f} ms")
            more = [each["gate"] - each["forwarder"] for each in rounds[20:]]
            ratio = statistics.median(each["gate"] / each["forwarder"] for each in rounds[20:])
            print(f"gate - forwarder: median {statistics.median(more):.2f} ms, ratio {ratio:.2f}")
            print("; ".join(f"{n}: {rate(u):.0f} calls/s by {THREADS}" for n, u in ways.items()))


if __name__ == "__main__":
    main()
