"""How much the driver grows with every child of a session: the offline model, several runs.

    python tests/benchmarks/memory.py                  # 4,000 children, some minutes
    python tests/benchmarks/memory.py --children 20000

The resident memory of this process alone is read, every five seconds; programs are evaluated in
processes of their own. The slope is that of a straight line through what was
read after the first fifth, by when libraries, threads and buffers are there.
"""

from __future__ import annotations

import argparse
import os
import tempfile
import threading
from pathlib import Path

import numpy as np

import evo
from evo.logs.journal import raw_pieces
from evo.runs.configuration import make_header
from evo.runs.session import RunJob
from evo.runs.settings import Goal, Settings
from evo.runs.verbs import prepare_jobs

PROGRAM = "# EVOLVE-BLOCK-START\nx = 0.5\ny = 0.25\n# EVOLVE-BLOCK-END\n"
EVALUATOR = """
def evaluate(program_path):
    with open(program_path) as file:
        return {"combined_score": (hash(file.read()) % 1000) / 1e9}
"""
PAGE = os.sysconf("SC_PAGE_SIZE")


def resident() -> float:
    """Resident memory of this process, MiB."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * PAGE / 2**20


def main() -> None:
    """Prints memory by children, and the growth per 1,000."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--children", type=int, default=4000, help="in all")
    parser.add_argument("--per-generation", type=int, default=50, help="N")
    parser.add_argument("--runs", type=int, default=4)
    parser.add_argument("--task", help="instead of a trivial one")
    options = parser.parse_args()
    generations = options.children // options.per_generation // options.runs
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "initial_program.py").write_text(PROGRAM)
        (folder / "evaluator.py").write_text(EVALUATOR)
        task = evo.load_task(options.task or folder)
        paths = [folder / f"{seed}.jsonl" for seed in range(options.runs)]
        jobs = [
            RunJob(path, make_header(task, children=options.per_generation, seed=seed),
                Goal(generations))
            for seed, path in enumerate(paths)
        ]  # fmt: skip
        done = threading.Event()
        seen: list[tuple[int, float]] = []

        def watch() -> None:
            while not done.wait(5):
                pieces = (piece for path in paths if path.exists() for piece in raw_pieces(path, 0))
                logged = sum(piece.count(b'"kind":"child"') for piece in pieces)
                seen.append((logged, resident()))
                print(f"{logged:8,} children  {seen[-1][1]:7.1f} MiB", flush=True)

        watcher = threading.Thread(target=watch)
        watcher.start()
        logs = prepare_jobs(jobs, Settings(progress=False), None, "").do()
        done.set()
        watcher.join()
        counts, sizes = np.array(seen).T
        late = counts > counts[-1] / 5
        slope = 1000 * np.polyfit(counts[late], sizes[late], 1)[0]
        total = sum(len(log.outcomes) for log in logs)
        print(f"{total:,} children; {slope:.2f} MiB per 1,000; {resident():.1f} MiB at the end")


if __name__ == "__main__":
    main()
