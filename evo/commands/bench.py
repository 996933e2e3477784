"""`evo bench`: how well calls run in parallel."""

from __future__ import annotations

import argparse

from evo.commands import FAILURE, table


def bench(arguments: argparse.Namespace) -> int:
    """`evo bench`."""
    if arguments.endpoint is None and arguments.model in (None, "offline"):
        return _loads(arguments)
    if arguments.model is None:
        raise ValueError("--endpoint URL goes with --model NAME, the endpoint's own or a known one")
    return _probe(arguments)


def _loads(arguments: argparse.Namespace) -> int:
    from evo.benchmarking import SHRINK, measure_loads, measure_overhead
    from evo.llm.offline.latency import Latency

    slots = arguments.max_concurrent
    rows = []
    for load in measure_loads(Latency(arguments.latency, arguments.sigma), slots):
        rows.append(
            (
                f"{load.genomes} x {load.problems}",
                load.calls,
                f"{load.sequential:.1f}",
                f"{load.parallel:.2f}",
                f"{load.ideal:.2f}",
                f"{load.sequential / load.parallel:.2f}",
                f"{load.sequential / load.ideal:.2f}",
                f"{load.utilisation:.1%}",
                f"{load.ideal_utilisation:.1%}",
            )
        )
    heads = ("load", "calls", "sequential s", "parallel s", "ideal s", "speed-up", "ideal",
             "slots used", "ideal")  # fmt: skip
    print(table(rows, heads))
    cpu, rate = measure_overhead(slots)
    print(
        f"\n{slots} slots; one call in {SHRINK} of each load (genomes x problems) is made.\n"
        f"Latency {arguments.latency:g} s, sigma {arguments.sigma:g}, simulated: the offline model "
        f"is not an LLM.\nThe client alone: {1000 * cpu:.2f} ms of CPU a call, "
        f"{rate:.0f} calls/s at most."
    )
    return 0


def _probe(arguments: argparse.Namespace) -> int:
    from evo.benchmarking import knee, levels_for, named_model, probe, prompt_tokens

    model = named_model(arguments.model, arguments.endpoint)
    calls, steps = arguments.calls, levels_for(arguments.calls)
    print(
        f"At most {calls * len(steps)} calls to {model.name}: {calls} each with "
        f"{', '.join(map(str, steps))} in flight, of about {prompt_tokens():,} prompt and at most "
        f"{arguments.max_tokens:,} completion tokens.",
        flush=True,
    )
    levels = []
    for level in probe(
        model, calls=calls, max_tokens=arguments.max_tokens, timeout=arguments.timeout
    ):
        levels.append(level)
        print(
            f"{level.concurrency:3} in flight: {level.rate:.2f} calls/s, "
            f"{level.completion_tokens / level.seconds:.0f} tokens/s, "
            f"median latency {level.latency:.2f} s, {level.limited} x 429, "
            f"{level.calls - level.replies - level.limited} failed",
            flush=True,
        )
    if not any(level.replies for level in levels):
        print("no call was answered, so nothing is known of its best concurrency")
        return FAILURE
    print(f"--max-concurrent {knee(levels)}")
    return 0
