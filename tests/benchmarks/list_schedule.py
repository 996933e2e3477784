"""One generation of 64 children at 16 calls in flight, against an ideal list schedule.

    python tests/benchmarks/list_schedule.py

The offline model answers with lognormal latency. The ideal assigns each call to the first free
slot and each evaluation to the first free core as its reply arrives, with the latencies and
evaluation times of the very same run. The barrier way makes all calls first, then evaluates.
"""

from __future__ import annotations

import argparse
import heapq
import os
import tempfile
import time
from pathlib import Path

import evo
from evo.configuration import Settings, make_header
from evo.handle import Control
from evo.llm.client import ModelClient
from evo.llm.limits import Slots
from evo.llm.offline.latency import Latency
from evo.llm.transport import OfflineTransport
from evo.prompt import build_messages, parse_reply
from evo.runs.making import child_seed
from evo.runs.resources import Resources
from evo.runs.session import Goal, Job, bring
from evo.sandbox import Evaluator


def ideal(calls: list[float], evaluations: list[float], slots: int, cores: int) -> float:
    """Length of a list schedule, seconds."""
    free = [0.0] * slots
    replies = []
    for call, evaluation in zip(calls, evaluations, strict=True):
        end = heapq.heappop(free) + call
        heapq.heappush(free, end)
        replies.append((end, evaluation))
    idle = [0.0] * cores
    last = 0.0
    for arrived, evaluation in sorted(replies):
        end = max(heapq.heappop(idle), arrived) + evaluation
        heapq.heappush(idle, end)
        last = max(last, end)
    return last


def barrier(client: ModelClient, log: evo.Log, evaluator: Evaluator, slots: int) -> float:
    """Seconds that the same generation takes with all calls before all evaluations."""
    from joblib import Parallel, delayed

    header = log.header
    first = header.task.files[header.task.program_file]
    messages = build_messages(header.task, first, log.initial.evaluation.fitness)
    started = time.perf_counter()

    def call(index: int) -> str | None:
        seed = child_seed(header.seed, header.children, 1, index)
        reply = client.call(messages, seed=seed, generation=1, index=index)
        return parse_reply(reply.reply, finish_reason=reply.finish_reason)

    programs = Parallel(n_jobs=slots, backend="threading")(
        delayed(call)(index) for index in range(header.children)
    )
    unique = list(dict.fromkeys(program for program in programs if program))
    Parallel(n_jobs=8, backend="threading")(
        delayed(evaluator.evaluate)(header.task, program, header.limits) for program in unique
    )
    return time.perf_counter() - started


def main() -> None:
    """Prints wall times and their ratios to the ideal."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--median", type=float, default=1.0, help="seconds of latency")
    parser.add_argument("--sigma", type=float, default=1.0)
    parser.add_argument("--children", type=int, default=64)
    parser.add_argument("--slots", type=int, default=16)
    parser.add_argument("--repeats", type=int, default=3)
    options = parser.parse_args()
    latency = Latency(options.median, options.sigma)
    print("seed  ideal s  ours s  ratio  barrier s  ratio")
    for seed in range(options.repeats):
        with tempfile.TemporaryDirectory() as folder, Evaluator() as evaluator:
            header = make_header("mmd", children=options.children, seed=seed)
            client = ModelClient(
                header.model,
                header.sampling,
                slots=Slots(options.slots),
                transport=OfflineTransport(latency=latency),
            )
            job = Job(Path(folder) / "a.jsonl", header, Goal(1))
            settings = Settings(max_concurrent=options.slots, progress=False)
            slots = Slots(options.slots)
            evaluator.evaluate(header.task, "", header.limits)  # warm, as after generation 0
            resources = Resources(settings, slots, evaluator, Control(), only=client)
            log = bring([job], resources)[0].log
            assert log is not None
            calls = [outcome.attempts[0].latency for outcome in log.outcomes]
            repeats = {index for index, *_ in log.generations[0].repeats}
            evaluations = [
                0.0 if outcome.index in repeats else outcome.evaluation.seconds
                for outcome in log.outcomes
            ]
            best = ideal(calls, evaluations, options.slots, os.cpu_count() or 1)
            ours = log.generations[0].seconds
            other = barrier(client, log, evaluator, options.slots)
            print(f"{seed:4}  {best:7.2f}  {ours:6.2f}  {ours / best:5.3f}", end="")
            print(f"  {other:9.2f}  {other / best:5.3f}")


if __name__ == "__main__":
    main()
