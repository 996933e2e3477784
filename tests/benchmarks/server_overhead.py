"""Overhead of the offline model's HTTP server, as the `openai` library sees it.

    python tests/benchmarks/server_overhead.py

The same requests go through one kept-alive connection and through the in-process transport, turn by
turn, so the difference is the network's and the server's; a bare echo over TCP shows what of it is
the machine's. Processor time counts both ends, which are one process here. A delayed
acknowledgement would show as 40 ms.
"""

from __future__ import annotations

import itertools
import socket
import statistics
import threading
import time

import httpx2
import openai

from evo.llm.server import OfflineServer
from evo.llm.transport import OfflineTransport
from evo.prompt import build_messages
from evo.task import load_task

CALLS, THREADS = 400, 20
TASK = load_task("cp")
MESSAGES = build_messages(TASK.record, TASK.initial_program, 0.3642)
SEEDS = itertools.count()


def measure(client: openai.OpenAI, seed: int) -> tuple[float, float]:
    """Returns wall time and processor time of a call, milliseconds."""
    wall, processor = time.perf_counter(), time.process_time()
    client.chat.completions.create(model="offline", messages=MESSAGES, seed=seed)  # type: ignore[arg-type]
    return 1000 * (time.perf_counter() - wall), 1000 * (time.process_time() - processor)


def echo(connection: socket.socket, data: bytes) -> tuple[float, float]:
    """Returns the times of sending data and getting as much back."""
    wall, processor = time.perf_counter(), time.process_time()
    connection.sendall(data)
    left = len(data)
    while left:
        left -= len(connection.recv(left))
    return 1000 * (time.perf_counter() - wall), 1000 * (time.process_time() - processor)


def start_echo() -> socket.socket:
    """Returns a connection to a thread that sends back what it gets."""
    here, there = socket.create_server(("127.0.0.1", 0)), socket.socket()
    there.connect(here.getsockname())
    accepted, _ = here.accept()
    here.close()

    def work() -> None:
        with accepted:
            while data := accepted.recv(65536):
                accepted.sendall(data)

    threading.Thread(target=work, daemon=True).start()
    there.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return there


def show(name: str, times: list[tuple[float, float]]) -> None:
    wall, processor = ([pair[k] for pair in times] for k in (0, 1))
    print(
        f"{name:12} median {statistics.median(wall):5.2f} ms, 95 % "
        f"{statistics.quantiles(wall, n=20)[-1]:5.2f} ms; "
        f"processor {statistics.fmean(processor):5.2f} ms"
    )


def main() -> None:
    with (
        OfflineServer() as server,
        start_echo() as bare,
        openai.OpenAI(base_url=server.url, api_key="none", max_retries=0) as network,
        openai.OpenAI(
            base_url="http://localhost/v1",
            api_key="none",
            max_retries=0,
            http_client=httpx2.Client(transport=OfflineTransport()),
        ) as process,
    ):
        rounds = [
            (measure(process, seed), measure(network, seed), echo(bare, bytes(3000)))
            for seed in range(20 + CALLS)
        ]
        near, far, echoes = (list(times) for times in zip(*rounds[20:], strict=True))
        difference = [(b[0] - a[0], b[1] - a[1]) for a, b in zip(near, far, strict=True)]
        show("in process", near)
        show("over HTTP", far)
        show("difference", difference)
        show("bare echo", echoes)
        print(f"slower by 35 ms or more: {sum(d[0] > 35 for d in difference)} of {CALLS} calls")

        def work() -> None:
            for _ in range(CALLS // THREADS):
                measure(network, next(SEEDS))

        threads = [threading.Thread(target=work) for _ in range(THREADS)]
        started = time.perf_counter()
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        seconds = time.perf_counter() - started
        print(f"{THREADS} threads, server in the same process: {CALLS / seconds:.0f} calls/s")


if __name__ == "__main__":
    main()
