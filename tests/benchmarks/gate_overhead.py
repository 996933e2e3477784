"""Calls a second of the gate with budget, log and rates, beside a forwarder made of aiohttp.

    python tests/benchmarks/gate_overhead.py

200 clients in a process of their own send requests at the same time, each as soon as it has an
answer, to an endpoint in another process whose answer is always the same: in turn through a
forwarder that only passes bytes on, and through the gate, each in a process of its own. The goal:
at least .45 of the forwarder. Then through a gate that stands before the offline model. Where the
machine has other work, requests a second say little; the least processor time of one says more.
"""

from __future__ import annotations

import contextlib
import json
import os
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

from evo.prompt import build_messages
from evo.tasks.task import load_task

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

FORWARDER = """
import asyncio, sys
import aiohttp
from aiohttp import web

async def main():
    upstream = sys.argv[1].removesuffix("/v1")
    connector = aiohttp.TCPConnector(limit=0)
    async with aiohttp.ClientSession(connector=connector) as session:
        async def forward(request):
            body = await request.read()
            async with session.post(upstream + request.path, data=body) as answer:
                return web.Response(body=await answer.read(), status=answer.status)

        server = await asyncio.get_running_loop().create_server(
            web.Server(forward, access_log=None), "127.0.0.1", 0, backlog=1024
        )
        print(server.sockets[0].getsockname()[1], flush=True)
        await asyncio.Event().wait()

asyncio.run(main())
"""
GATE = """
import sys, threading
from pathlib import Path
import msgspec
from evo.gate.gate import Gate
from evo.models.registry import find_model

url, log = sys.argv[1:]
model = msgspec.structs.replace(find_model("offline"), base_url=url or None)
gate = Gate(
    model,
    budget={"calls": 1e6, "tokens": 1e12, "dollars": 1e6},
    requests_per_minute=10**6,
    tokens_per_minute=10**12,
    log=Path(log),
)
with gate:
    print(gate.address.rpartition(":")[2], flush=True)
    threading.Event().wait()
"""


@contextlib.contextmanager
def process(code: str, *arguments: str) -> Iterator[tuple[str, int]]:
    """Yields the port that a script prints once it listens, and its process."""
    command = [sys.executable, "-c", code, *arguments]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as made:
        assert made.stdout is not None
        try:
            yield made.stdout.readline().decode().strip(), made.pid
        finally:
            made.kill()


def processor_seconds(pid: int) -> float:
    """Processor time that a process has taken."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def rate(port: str) -> float:
    """Requests per second that the clients get through."""
    body = json.dumps({"model": "offline", "messages": MESSAGES, "seed": 1, "max_tokens": 4000})
    head = f"POST /v1/chat/completions HTTP/1.1\r\nHost: x\r\nContent-Length: {len(body)}\r\n\r\n"
    command = [sys.executable, "-c", LOAD, port, str(CLIENTS), str(SECONDS)]
    asked = (head + body).encode()
    found = subprocess.run(command, input=asked, stdout=subprocess.PIPE, check=True)
    return float(found.stdout)


def main() -> None:
    body = ANSWER | {"usage": {"prompt_tokens": 900, "completion_tokens": 500}}
    rates: dict[str, list[float]] = {"forwarder": [], "gate": [], "offline": []}
    seconds: dict[str, list[float]] = {name: [] for name in rates}
    answering = process(ANSWERING, json.dumps(body))
    with tempfile.TemporaryDirectory() as folder, answering as (port, _):
        url = f"http://127.0.0.1:{port}/v1"
        for turn in range(1 + TURNS):
            log = Path(folder) / f"{turn}.jsonl"
            ways = {
                "forwarder": (FORWARDER, url),
                "gate": (GATE, url, str(log)),
                "offline": (GATE, "", str(log.with_suffix(".offline.jsonl"))),
            }
            for name, (code, *arguments) in ways.items():
                with process(code, *arguments) as (listening, pid):
                    before, found = processor_seconds(pid), rate(listening)
                    took = processor_seconds(pid) - before
                if turn:  # the first turn warms up
                    rates[name].append(found)
                    seconds[name].append(took / (found * SECONDS))
    print(f"{CLIENTS} clients, load {os.getloadavg()[0]:.1f}")
    for name, each in rates.items():
        least = 1e6 * min(seconds[name])
        print(f"{name:10} {', '.join(f'{one:.0f}' for one in each)} requests/s, {least:.0f} us")
    pairs = zip(rates["gate"], rates["forwarder"], strict=True)
    print(
        f"gate / forwarder: median {statistics.median(a / b for a, b in pairs):.2f}, by "
        f"processor time {min(seconds['forwarder']) / min(seconds['gate']):.2f}"
    )


if __name__ == "__main__":
    main()
