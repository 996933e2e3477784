"""Loading 100,000 children of compact logs, against json.loads of every line and a DataFrame.

    python tests/benchmarks/loading_speed.py [--repeats 5]

Prints the processor time of each, and the ratio within the same repeat.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import msgspec
import pandas as pd

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from samples import sample_lines

import replay
from evo.logs.journal import encode_line
from evo.logs.records import Child, Header

RUNS, GENERATIONS, CHILDREN = 100, 63, 16


def write_logs(folder: Path) -> None:
    """Writes compact, uncompressed logs."""
    for seed in range(RUNS):
        lines = sample_lines(generations=GENERATIONS, children=CHILDREN, seed=seed)
        data = []
        for line in lines:
            if isinstance(line, Child):
                data.append(msgspec.structs.replace(line, reply=None, program=None))
            elif isinstance(line, Header):
                data.append(msgspec.structs.replace(line, compact=True))
            else:
                data.append(line)
        (folder / f"s{seed}.jsonl").write_bytes(b"".join(encode_line(line) for line in data))


def plain(folder: Path) -> pd.DataFrame:
    """The usual way: every line to a dict, the children's dicts to a table."""
    rows = []
    for path in sorted(folder.glob("*.jsonl")):
        with path.open("rb") as file:
            rows += [row for line in file if (row := json.loads(line))["kind"] == "child"]
    return pd.DataFrame(rows)


def seconds(work: Callable[[], object]) -> float:
    """Processor time of a piece of work."""
    before = time.process_time()
    work()
    return time.process_time() - before


def main() -> None:
    """Measures and prints."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repeats", type=int, default=5)
    repeats = parser.parse_args().repeats
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        write_logs(folder)
        count = len(replay.children(folder, progress=False))
        assert count == len(plain(folder)) == RUNS * GENERATIONS * CHILDREN
        print(f"{count:,} children in {RUNS} logs; seconds of processor time")
        rows = []
        for _ in range(repeats):
            usual = seconds(lambda: plain(folder))
            load = seconds(lambda: replay.load(folder, progress=False))
            children = seconds(lambda: replay.children(folder, progress=False))
            rows.append((usual, load, children, usual / load, usual / children))
        heads = ("json.loads + DataFrame", "replay.load", "replay.children")
        for head, values in zip(heads, zip(*rows, strict=True), strict=False):
            print(f"{head:24} {statistics.median(values):7.3f}")
        for head, values in zip(heads[1:], list(zip(*rows, strict=True))[3:], strict=True):
            low, high = min(values), max(values)
            print(f"{head:16} {statistics.median(values):.2f} x faster ({low:.2f} to {high:.2f})")


if __name__ == "__main__":
    main()
