"""What a call costs beside the bare way: by our client, and by the gate with budget, log and rates.

    python tests/benchmarks/gate_overhead.py

The same requests go, turn by turn, through the `openai` library and through ModelClient (from a
transport that answers at once); and over HTTP to the offline model straight, through a forwarder
that does nothing but pass bytes on over connections that it keeps, and through the gate.

Then 200 clients in a process of their own send requests at the same time, each as soon as it has an
answer, through the forwarder and the gate in turn: first to the offline model in this process, then
to an endpoint in another process whose answer is always the same, which measures the way alone.
"""

from __future__ import annotations

import contextlib
import http.client
import json
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
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
CLIENTS, SECONDS, TURNS = 200, 4.0, 5
TASK = load_task("cp")
MESSAGES = build_messages(TASK.record, TASK.initial_program, 0.3642)
CHOICE = {"index": 0, "message": {"role": "assistant", "content": "hi"}, "finish_reason": "stop"}
ANSWER = {"id": "1", "object": "chat.completion", "created": 1, "model": "m", "choices": [CHOICE]}


READ = """
import asyncio, sys, time

async def body_of(reader):
    head = (await reader.readuntil(b"\\r\\n\\r\\n")).lower()
    size = int(head.partition(b"content-length:")[2].partition(b"\\r\\n")[0])
    return head, await reader.readexactly(size)
"""
LOAD = f"""{READ}
async def client(port, request, end):
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    count = 0
    while time.monotonic() < end:
        writer.write(request)
        head, _ = await body_of(reader)
        assert b" 200 " in head, head
        count += 1
    writer.close()
    return count

async def main(port, clients, seconds):
    request, began = sys.stdin.buffer.read(), time.monotonic()
    work = (client(port, request, began + seconds) for _ in range(clients))
    counts = await asyncio.gather(*work)
    print(sum(counts) / (time.monotonic() - began))

asyncio.run(main(int(sys.argv[1]), int(sys.argv[2]), float(sys.argv[3])))
"""
ANSWERING = f"""{READ}
content = sys.argv[1].encode()
head = "HTTP/1.1 200 OK\\r\\nContent-Type: application/json\\r\\nContent-Length: "
answer = f"{{head}}{{len(content)}}\\r\\n\\r\\n".encode() + content

async def serve(reader, writer):
    try:
        while await body_of(reader):
            writer.write(answer)
    except asyncio.IncompleteReadError:
        writer.close()

async def main():
    server = await asyncio.start_server(serve, "127.0.0.1", 0, backlog=1024)
    print(server.sockets[0].getsockname()[1], flush=True)
    await server.serve_forever()

asyncio.run(main())
"""


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


@contextlib.contextmanager
def answering() -> Iterator[str]:
    """Yields the URL of an endpoint in another process, whose answer is always the same."""
    body = ANSWER | {"usage": {"prompt_tokens": 900, "completion_tokens": 500}}
    command = [sys.executable, "-c", ANSWERING, json.dumps(body)]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        try:
            yield f"http://127.0.0.1:{int(process.stdout.readline())}/v1"
        finally:
            process.terminate()


@contextlib.contextmanager
def both(url: str) -> Iterator[dict[str, str]]:
    """Yields the URLs of a forwarder and of a gate with budget, log and rates to an endpoint."""
    model = msgspec.structs.replace(find_model("offline"), base_url=url)
    with tempfile.TemporaryDirectory() as folder:
        gate = Gate(
            model,
            budget={"calls": 1e6, "tokens": 1e12, "dollars": 1e6},
            requests_per_minute=10**6,
            tokens_per_minute=10**12,
            log=Path(folder) / "gate.jsonl",
        )
        with Forwarder(url) as bare, gate:
            yield {"forwarder": bare.url, "gate": gate.url}


def load(url: str) -> None:
    """Prints requests per second through the forwarder and the gate, and their ratio."""
    body = json.dumps({"model": "offline", "messages": MESSAGES, "seed": 1, "max_tokens": 4000})
    head = f"POST /v1/chat/completions HTTP/1.1\r\nHost: x\r\nContent-Length: {len(body)}\r\n\r\n"
    rates: dict[str, list[float]] = {"forwarder": [], "gate": []}
    for turn in range(1 + TURNS):
        with both(url) as urls:
            for name, each in urls.items():
                port = each.removesuffix("/v1").rpartition(":")[2]
                command = [sys.executable, "-c", LOAD, port, str(CLIENTS), str(SECONDS)]
                found = subprocess.run(
                    command, input=(head + body).encode(), stdout=subprocess.PIPE, check=True
                )
                if turn:  # the first turn warms up
                    rates[name].append(float(found.stdout))
    for name, found_rates in rates.items():
        print(f"{name:10} {', '.join(f'{rate:.0f}' for rate in found_rates)} requests/s")
    pairs = zip(rates["gate"], rates["forwarder"], strict=True)
    print(f"gate / forwarder: median {statistics.median(a / b for a, b in pairs):.2f}\n")


def main() -> None:
    url = "http://localhost/v1"
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
    with OfflineServer() as server:
        with both(server.url) as urls:
            ways = {"straight": server.url} | urls
            compare({name: poster(url) for name, url in ways.items()})
        print(f"{CLIENTS} clients, the offline model in this process:")
        load(server.url)
    print(f"{CLIENTS} clients, an endpoint in another process:")
    with answering() as url:
        load(url)


if __name__ == "__main__":
    main()
