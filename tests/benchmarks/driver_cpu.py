"""Processor time of a driver per call, beside a plain loop over the official client.

    python tests/benchmarks/driver_cpu.py

An endpoint in another process answers every request after .05 s with 2 KB. In turn, each in a
process of its own, 64 calls are kept in flight by threads that each wait for a call of a
`ModelClient`, and by an asyncio loop over `AsyncOpenAI`. The goal: at most .7 of the plain loop.
"""

from __future__ import annotations

import asyncio
import json
import os
import statistics
import subprocess
import sys
import time

CALLS, IN_FLIGHT, TURNS, SECONDS = 3000, 64, 5, 0.05
MESSAGES = [{"role": "user", "content": "x" * 4000}]

ENDPOINT = """
import asyncio, sys
content, seconds = sys.argv[1].encode(), float(sys.argv[2])
head = "HTTP/1.1 200 OK\\r\\nContent-Type: application/json\\r\\nContent-Length: "
answer = f"{head}{len(content)}\\r\\n\\r\\n".encode() + content

async def serve(reader, writer):
    try:
        while True:
            asked = (await reader.readuntil(b"\\r\\n\\r\\n")).lower()
            size = int(asked.partition(b"content-length:")[2].partition(b"\\r\\n")[0])
            await reader.readexactly(size)
            await asyncio.sleep(seconds)
            writer.write(answer)
    except (asyncio.IncompleteReadError, ConnectionError):
        writer.close()

async def main():
    server = await asyncio.start_server(serve, "127.0.0.1", 0, backlog=1024)
    print(server.sockets[0].getsockname()[1], flush=True)
    await server.serve_forever()

asyncio.run(main())
"""


def ours(url: str) -> float:
    """CPU seconds of so many calls by threads that share a client."""
    from evo import parallel
    from evo.logs.records import Model, Sampling
    from evo.models.client import ModelClient
    from evo.models.limits import Slots

    sampling = Sampling(temperature=0.6, top_p=0.95, max_tokens=100)
    client = ModelClient(Model(name="m", base_url=url), sampling, slots=Slots(IN_FLIGHT))

    def ask(seed: int) -> None:
        assert client.call(MESSAGES, seed=seed).reply

    parallel.map(ask, range(2 * IN_FLIGHT), max_workers=IN_FLIGHT)
    began = time.process_time()
    parallel.map(ask, range(CALLS), max_workers=IN_FLIGHT)
    return time.process_time() - began


def plain(url: str) -> float:
    """CPU seconds of so many calls by a loop over the official client."""
    import openai

    async def main() -> float:
        async with openai.AsyncOpenAI(api_key="none", base_url=url) as client:
            turns = asyncio.Semaphore(IN_FLIGHT)

            async def ask(seed: int) -> None:
                async with turns:
                    how = {"temperature": 0.6, "top_p": 0.95, "max_tokens": 100, "seed": seed}
                    made = await client.chat.completions.create(model="m", messages=MESSAGES, **how)
                    assert made.choices[0].message.content

            await asyncio.gather(*(ask(seed) for seed in range(2 * IN_FLIGHT)))
            began = time.process_time()
            await asyncio.gather(*(ask(seed) for seed in range(CALLS)))
            return time.process_time() - began

    return asyncio.run(main())


def main() -> None:
    if len(sys.argv) == 3:
        print({"ours": ours, "plain": plain}[sys.argv[1]](sys.argv[2]))
        return
    choice = {"index": 0, "message": {"role": "assistant", "content": "y" * 2000}}
    usage = {"prompt_tokens": 900, "completion_tokens": 500, "total_tokens": 1400}
    body = {"id": "1", "object": "chat.completion", "created": 1, "model": "m", "usage": usage}
    body["choices"] = [choice | {"finish_reason": "stop"}]
    command = [sys.executable, "-c", ENDPOINT, json.dumps(body), str(SECONDS)]
    times: dict[str, list[float]] = {"plain": [], "ours": []}
    with subprocess.Popen(command, stdout=subprocess.PIPE) as endpoint:
        assert endpoint.stdout is not None
        url = f"http://127.0.0.1:{int(endpoint.stdout.readline())}/v1"
        for _ in range(TURNS):
            for name, found in times.items():
                again = [sys.executable, __file__, name, url]
                done = subprocess.run(again, check=True, stdout=subprocess.PIPE)
                found.append(1000 * float(done.stdout) / CALLS)
        endpoint.terminate()
    print(f"load {os.getloadavg()[0]:.1f}; ms of processor time per call")
    for name, found in times.items():
        print(f"{name:6} median {statistics.median(found):.2f}", *(f"{t:.2f}" for t in found))
    ratios = [a / b for a, b in zip(times["ours"], times["plain"], strict=True)]
    print(f"ours / plain: median {statistics.median(ratios):.2f}", *(f"{r:.2f}" for r in ratios))


if __name__ == "__main__":
    main()
