"""How well the slots of a session are used.

    python tests/benchmarks/throughput.py

Arms of N children over some generations, lognormal latency, all through one `Slots`. Beside it,
list schedules of the very same latencies: the ideal (each arm's generations in order, no overhead),
the barrier way (one run after the other, each with a semaphore of its own), and the static
two-level split of `evo.plan_concurrency`.

Evaluations take no time here, so that calls are measured alone.
"""

from __future__ import annotations

import asyncio
import heapq
import json
import tempfile
import threading
import time
from pathlib import Path

import msgspec

import evo
from evo.gate.server import Latency
from evo.logs.records import Evaluation
from evo.models.answer import Exchange
from evo.models.client import ModelClient
from evo.models.limits import Slots
from evo.runs.configuration import make_header
from evo.runs.handle import Control
from evo.runs.resources import Resources
from evo.runs.session import RunJob, run_jobs
from evo.runs.settings import Goal, Settings

Latencies = dict[tuple[int, int], list[float]]
"""Seconds by (arm, generation)."""


class Instant:
    """An evaluator that takes no time and finds nothing better."""

    protections = ()

    def evaluate(self, *_: object, **__: object) -> Evaluation:
        return Evaluation(status="ok", fitness=0.0)

    def close(self) -> None:
        pass


class Answers:
    """Answers every request alike after its latency; notes how many are being answered."""

    def __init__(self, latency: Latency) -> None:
        self.busy, self.latency = 0, latency
        message = {"role": "assistant", "content": "```python\npass\n```"}
        usage = {"prompt_tokens": 900, "completion_tokens": 500}
        body = {"choices": [{"message": message, "finish_reason": "stop"}], "usage": usage}
        self._content = json.dumps(body).encode()

    async def post(self, body: dict[str, object]) -> Exchange:
        seconds = self.latency.seconds(msgspec.json.encode(body))
        self.busy += 1
        await asyncio.sleep(seconds)
        self.busy -= 1
        return Exchange(200, {}, self._content)

    def close(self) -> None:
        pass


class Watch(threading.Thread):
    """Samples the share of slots that the endpoint works on while calls wait for one."""

    def __init__(self, slots: Slots, answers: Answers) -> None:
        super().__init__(daemon=True)
        self.slots, self.answers, self.shares = slots, answers, list[float]()
        self.over = threading.Event()

    def run(self) -> None:
        while not self.over.wait(0.005):
            if self.slots.waiting:
                self.shares.append(self.answers.busy / self.slots.max_concurrent)


def schedule(latencies: Latencies, slots: int, at_once: int) -> float:
    """Length of a list schedule, seconds: older generations first, an arm's in order."""
    arms = sorted({arm for arm, _ in latencies})
    waiting: list[tuple[int, int, int]] = []
    flying: list[tuple[float, int, int]] = []
    left: dict[tuple[int, int], int] = {}
    now = 0.0

    def submit(arm: int, generation: int) -> None:
        left[arm, generation] = len(latencies[arm, generation])
        for index in range(left[arm, generation]):
            heapq.heappush(waiting, (generation, index, arm))

    for _ in range(min(at_once, len(arms))):
        submit(arms.pop(0), 1)
    while waiting or flying:
        while waiting and len(flying) < slots:
            generation, index, arm = heapq.heappop(waiting)
            end = now + latencies[arm, generation][index]
            heapq.heappush(flying, (end, arm, generation))
        now, arm, generation = heapq.heappop(flying)
        left[arm, generation] -= 1
        if not left[arm, generation]:
            if (arm, generation + 1) in latencies:
                submit(arm, generation + 1)
            elif arms:
                submit(arms.pop(0), 1)
    return now


def measure(
    arms: int, children: int, generations: int, slots: Slots, latency: Latency
) -> tuple[float, float, Latencies]:
    """Returns wall time, utilisation while calls wait, and the latencies of a real session."""
    count = slots.max_concurrent
    with tempfile.TemporaryDirectory() as folder:
        headers = [make_header("mmd", children=children, seed=seed) for seed in range(arms)]
        answers = Answers(latency)
        first = headers[0]
        client = ModelClient(first.model, first.sampling, slots=slots, wire=answers)
        client.call([{"role": "user", "content": "warm"}], seed=0)
        jobs = [
            RunJob(Path(folder) / f"{k}.jsonl", header, Goal(generations))
            for k, header in enumerate(headers)
        ]
        watch = Watch(slots, answers)
        watch.start()
        started = time.perf_counter()
        settings = Settings(max_concurrent=count, progress=False)
        done = run_jobs(jobs, Resources(settings, slots, Instant(), Control(), only=client))
        logs = [each.log for each in done if each.log is not None]
        wall = time.perf_counter() - started
        watch.over.set()
        watch.join()
        latencies: Latencies = {}
        for arm, log in enumerate(logs):
            for outcome in log.outcomes:
                times = latencies.setdefault((arm, outcome.generation), [])
                times.append(outcome.attempts[0].latency or 0.0)
    return wall, sum(watch.shares) / len(watch.shares), latencies


def main() -> None:
    latency = Latency(0.5, 1.0)
    print("arms x N x T, slots     wall s  used while calls wait  ideal s  ratio", end="")
    print("  barrier s  ratio  static split s  ratio")
    for arms, children, count in ((4, 64, 16), (4, 11, 20)):
        wall, used, latencies = measure(arms, children, 5, Slots(count), latency)
        plan = evo.plan_concurrency(count, children)
        ideal = schedule(latencies, count, arms)
        barrier = schedule(latencies, count, 1)
        static = schedule(latencies, plan.arms * plan.children, plan.arms)
        print(f"{arms} x {children:2} x 5, {count} slots    {wall:7.2f}  {used:21.1%}", end="")
        print(
            f"  {ideal:7.2f}  {wall / ideal:5.3f}  {barrier:9.2f}  {barrier / ideal:5.3f}", end=""
        )
        print(f"  {static:8.2f} ({plan.arms} x {plan.children})  {static / ideal:5.3f}")


if __name__ == "__main__":
    main()
