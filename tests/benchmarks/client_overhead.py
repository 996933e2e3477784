"""Overhead of a call by ModelClient over the bare `openai` library, in process.

    python tests/benchmarks/client_overhead.py

Both answer from a transport that returns the same bytes at once, in the same run.
"""

import json
import statistics
import threading
import time
from collections.abc import Callable

import httpx2
import openai

from evo.llm.client import ModelClient
from evo.llm.limits import Slots
from evo.records import Model, Sampling

ROUNDS, CALLS = 7, 200
MESSAGES = [{"role": "system", "content": "x" * 500}, {"role": "user", "content": "y" * 3000}]
ANSWER = json.dumps(
    {
        "id": "1",
        "object": "chat.completion",
        "created": 1,
        "model": "m",
        "choices": [
            {
                "index": 0,
                "message": {"role": "assistant", "content": "hi " * 1000},
                "finish_reason": "stop",
            }
        ],
        "usage": {"prompt_tokens": 5, "completion_tokens": 6, "total_tokens": 11},
    }
).encode()


def answer(request: httpx2.Request) -> httpx2.Response:
    request.read()
    return httpx2.Response(200, headers={"content-type": "application/json"}, content=ANSWER)


def milliseconds(*calls: Callable[[int], object]) -> list[float]:
    """Median over rounds of the time of one call, the rounds of all taking turns."""
    rounds: list[list[float]] = [[] for _ in calls]
    for turn in range(ROUNDS + 1):
        for call, times in zip(calls, rounds, strict=True):
            started = time.perf_counter()
            for seed in range(CALLS):
                call(seed)
            if turn:  # the first warms up
                times.append((time.perf_counter() - started) / CALLS * 1000)
    return [statistics.median(times) for times in rounds]


def main() -> None:
    sampling = Sampling(temperature=0.6, top_p=0.95, max_tokens=100)
    model = Model(name="m", base_url="http://localhost/v1")
    transport = httpx2.MockTransport(answer)
    slots = Slots(20)
    client = ModelClient(model, sampling, slots=slots, transport=transport)
    library = openai.OpenAI(
        api_key="none",
        base_url="http://localhost/v1",
        max_retries=0,
        http_client=httpx2.Client(transport=transport, trust_env=False),
    )
    bare, ours = milliseconds(
        lambda seed: library.chat.completions.create(
            model="m", messages=MESSAGES, seed=seed, temperature=0.6, top_p=0.95, max_tokens=100
        ),
        lambda seed: client.call(MESSAGES, seed=seed),
    )
    print(f"openai library {bare:.2f} ms, ModelClient {ours:.2f} ms a call ({ours / bare:.2f} x)")

    def work() -> None:
        for seed in range(CALLS):
            client.call(MESSAGES, seed=seed)

    threads = [threading.Thread(target=work) for _ in range(20)]
    started = time.perf_counter()
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    seconds = time.perf_counter() - started
    print(f"20 threads: {20 * CALLS / seconds:.0f} calls/s")


if __name__ == "__main__":
    main()
