"""What a call costs beside the bare way: by our client, and by the gate with budget, log and rates.

    python tests/benchmarks/gate_overhead.py

The same requests go, turn by turn, through the `openai` library and through ModelClient (from a
transport that answers at once); and over HTTP to the offline model straight, through a forwarder
that does nothing but pass bytes on over connections that it keeps, and through the gate.
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

import httpx2
import msgspec
import openai

from evo.gate.gate import Gate
from evo.gate.server import OfflineServer
from evo.logs.records import Model
from evo.models.client import ModelClient
from evo.models.limits import Slots
from evo.models.listening import Listener, Request, Response
from evo.models.registry import find_model, resolve_sampling
from evo.prompt import build_messages
from evo.tasks.task import load_task

CALLS, WARM = 400, 20
TASK = load_task("cp")
MESSAGES = build_messages(TASK.record, TASK.initial_program, 0.3642)
CHOICE = {"index": 0, "message": {"role": "assistant", "content": "hi"}, "finish_reason": "stop"}
ANSWER = {"id": "1", "object": "chat.completion", "created": 1, "model": "m", "choices": [CHOICE]}


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


def poster(url: str) -> Callable[[int], object]:
    """Returns a function that makes a call over one connection."""
    connection = http.client.HTTPConnection(url.removeprefix("http://").removesuffix("/v1"))

    def post(seed: int) -> None:
        body = {"model": "offline", "messages": MESSAGES, "seed": seed, "max_tokens": 4000}
        connection.request("POST", "/v1/chat/completions", json.dumps(body))
        answer = connection.getresponse()
        assert answer.read()
        assert answer.status == 200

    return post


def compare(ways: dict[str, Callable[[int], object]]) -> None:
    """Prints the milliseconds of a call by each way, and the ratio of the last two."""
    rounds: list[dict[str, float]] = []
    for seed in range(WARM + CALLS):
        rounds.append({})
        for name, call in ways.items():
            started = time.perf_counter()
            call(seed)
            rounds[-1][name] = 1000 * (time.perf_counter() - started)
    for name in ways:
        times = [each[name] for each in rounds[WARM:]]
        slow = statistics.quantiles(times, n=20)[-1]
        print(f"{name:10} median {statistics.median(times):5.2f} ms, 95 % {slow:5.2f} ms")
    *_, bare, ours = ways
    more = statistics.median(each[ours] - each[bare] for each in rounds[WARM:])
    ratio = statistics.median(each[ours] / each[bare] for each in rounds[WARM:])
    print(f"{ours} - {bare}: median {more:.2f} ms, ratio {ratio:.2f}\n")


def main() -> None:
    offline, url = find_model("offline"), "http://localhost/v1"
    transport = httpx2.MockTransport(lambda request: httpx2.Response(200, json=ANSWER))
    http_client = httpx2.Client(transport=transport, trust_env=False)
    library = openai.OpenAI(api_key="none", base_url=url, max_retries=0, http_client=http_client)
    near = Model(name="m", base_url=url)
    client = ModelClient(near, resolve_sampling(near), slots=Slots(20), transport=transport)
    messages: list[dict[str, str]] = MESSAGES
    compare(
        {
            "library": lambda seed: library.chat.completions.create(
                model="m",
                messages=messages,
                seed=seed,
                temperature=0.6,
                max_tokens=8192,  # type: ignore[arg-type]
            ),
            "client": lambda seed: client.call(messages, seed=seed),
        }
    )
    with tempfile.TemporaryDirectory() as folder, OfflineServer() as server:
        gate = Gate(
            msgspec.structs.replace(offline, base_url=server.url),
            budget={"calls": 1e6, "tokens": 1e12, "dollars": 1e6},
            requests_per_minute=10**6,
            tokens_per_minute=10**12,
            log=Path(folder) / "gate.jsonl",
        )
        with Forwarder(server.url) as bare, gate:
            ways = {"straight": server.url, "forwarder": bare.url, "gate": gate.url}
            compare({name: poster(url) for name, url in ways.items()})


if __name__ == "__main__":
    main()
