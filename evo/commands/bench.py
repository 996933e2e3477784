"""`evo bench`: how many calls at once an endpoint answers best."""

from __future__ import annotations

import argparse

from evo.commands import FAILURE


def bench(arguments: argparse.Namespace) -> int:
    """`evo bench`."""
    from evo.benchmarking import knee, levels_for, named_model, probe, prompt_tokens

    if arguments.model is None:
        raise ValueError("--endpoint URL goes with --model NAME, the endpoint's own or a known one")
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
