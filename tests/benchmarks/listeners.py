"""What a slow and a failing listener cost a run.

    python tests/benchmarks/listeners.py [PAIRS]

A run of about a minute, 30 generations of 8 calls of 2 s each, is made in turn without listeners
and with two: one that takes .5 s for every event, and one that fails each time. Prints the ratio of
their wall times, whose goal is below 1.05, and whether the logs hold the same children.
"""

from __future__ import annotations

import os
import statistics
import sys
import tempfile
import time
import warnings

import evo
from evo.models.client import ModelClient
from evo.models.limits import Slots
from evo.models.registry import find_model, resolve_sampling

OFFLINE = find_model("offline")
CLIENT = ModelClient(OFFLINE, resolve_sampling(OFFLINE), slots=Slots(8))


def llm(messages: list[dict[str, str]], seed: int) -> str | None:
    """A reply of the offline model after 2 s."""
    time.sleep(2.0)
    return CLIENT.call(messages, seed=seed).reply


def slow(event: evo.Event) -> None:
    """Takes half a second."""
    time.sleep(0.5)


def failing(event: evo.Event) -> None:
    """Fails."""
    raise RuntimeError("no such project")


def timed(path: str, listeners: list[object]) -> tuple[float, list[object]]:
    """Returns the wall time of a run, seconds, and its children by place without their times."""
    began = time.perf_counter()
    log = evo.run("mmd", model=llm, generations=30, children=8, max_concurrent=8, log=path,
                  progress=False, listeners=listeners)  # fmt: skip
    wall = time.perf_counter() - began
    made = sorted(log.children, key=lambda child: (child.generation, child.index))
    return wall, [(child.program, child.evaluation.fitness, child.parents) for child in made]


def main() -> None:
    warnings.simplefilter("ignore")  # that one fails
    pairs = int(sys.argv[1]) if len(sys.argv) > 1 else 3
    ratios = list[float]()
    with tempfile.TemporaryDirectory() as folder:
        for pair in range(pairs):
            plain, made = timed(f"{folder}/{pair}-plain.jsonl", [])
            heard, again = timed(f"{folder}/{pair}-heard.jsonl", [slow, failing])
            ratios.append(heard / plain)
            same = "the same children" if made == again else "OTHER CHILDREN"
            print(f"{plain:6.2f} s  {heard:6.2f} s  {heard / plain:.3f}  {same}", flush=True)
    print(f"median {statistics.median(ratios):.3f}; load {os.getloadavg()[0]:.1f}", flush=True)
    os._exit(0)  # the slow one has minutes of events left


if __name__ == "__main__":
    main()
