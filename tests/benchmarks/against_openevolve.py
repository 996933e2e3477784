"""Runs of 96 and 576 calls beside those of OpenEvolve, in pairs.

    python tests/benchmarks/against_openevolve.py PYTHON [PAIRS]

PYTHON is an interpreter that has OpenEvolve. Both tools rewrite the same program in full, score it
by the same `evaluator.py` and have 16 calls in flight; ours is a run without a barrier. The model
is the offline one in this process, whose k-th call takes the k-th of a pair's lognormal latencies
(median 0.5 s, standard deviation of the logarithm 1), whoever asks. The order within a pair
alternates. Prints wall times of the whole process and from the first call's arrival to the last
answer, and the medians of their ratios.
"""

from __future__ import annotations

import json
import math
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from statistics import NormalDist

from pairs import print_medians

import evo
from evo.gate.server import OfflineServer
from evo.keyed import KeyedStream
from evo.models.responses import Response

SLOTS = 16
MEDIAN, SIGMA = 0.5, 1.0
EVALUATOR = """
import numpy as np


def evaluate(program_path):
    names = {}
    with open(program_path) as file:
        exec(file.read(), names)
    points = np.asarray(names["min_max_dist_dim2_16"](), dtype=float)
    assert points.shape == (16, 2) and np.isfinite(points).all()
    apart = np.hypot(*(points[:, None] - points[None]).T)[np.triu_indices(16, 1)]
    return {"combined_score": float((apart.min() / apart.max()) ** 2 * 12.889266112)}
"""
OURS = """
import sys, evo

folder, url, calls = sys.argv[1], sys.argv[2], int(sys.argv[3])
log = evo.run(
    folder, model="offline", base_url=url, children=16, generations=calls // 16, asynchronous=True,
    max_concurrent=16, log=folder + "/ours.jsonl", progress=False,
)
"""
THEIRS = "import sys; from openevolve.cli import main; sys.exit(main())"


class InOrder(OfflineServer):
    """The offline model, whose k-th call takes the k-th latency."""

    def __init__(self, pair: int) -> None:
        super().__init__()
        self._stream = KeyedStream("against OpenEvolve", pair)
        self.calls, self.first, self.last = 0, math.inf, 0.0

    def answer(self, path: str, body: bytes) -> tuple[Response | None, float]:
        """Returns an answer and its latency, seconds."""
        uniform = self._stream.uniform(1e-9, 1 - 1e-9)
        seconds = MEDIAN * math.exp(SIGMA * NormalDist().inv_cdf(uniform))
        now = time.perf_counter()
        self.calls += 1
        self.first, self.last = min(self.first, now), max(self.last, now + seconds)
        return super().answer(path, body)[0], seconds


def measured(tool: str, python: str, calls: int, pair: int) -> tuple[float, float]:
    """Returns the wall time of a process and of its calls, seconds."""
    task = evo.load_task("mmd")
    with tempfile.TemporaryDirectory() as place, InOrder(pair) as server:
        folder = Path(place)
        program = f"# EVOLVE-BLOCK-START\n{task.initial_program}\n# EVOLVE-BLOCK-END\n"
        (folder / "initial_program.py").write_text(program)
        (folder / "evaluator.py").write_text(EVALUATOR)
        settings = {
            "max_iterations": calls,
            "checkpoint_interval": calls,
            "random_seed": pair,
            "diff_based_evolution": False,
            "prompt": {"system_message": task.record.statement},
            "llm": {"api_base": server.url, "api_key": "none", "primary_model": "offline"},
            "evaluator": {"parallel_evaluations": SLOTS, "cascade_evaluation": False},
        }
        (folder / "config.yaml").write_text(json.dumps(settings))  # JSON is YAML
        if tool == "ours":
            command = [sys.executable, "-c", OURS, place, server.url, str(calls)]
        else:
            names = ["initial_program.py", "evaluator.py", "--config", "config.yaml"]
            command = [python, "-c", THEIRS, *names, "--output", "out"]
        began = time.perf_counter()
        done = subprocess.run(command, cwd=place, capture_output=True, text=True)
        seconds = time.perf_counter() - began
        if done.returncode or server.calls != calls:
            raise SystemExit(f"{tool}: {server.calls} calls of {calls}\n{done.stderr[-2000:]}")
        return seconds, server.last - server.first


def main() -> None:
    python, pairs = sys.argv[1], int(sys.argv[2]) if len(sys.argv) > 2 else 5
    for calls in (96, 576):
        ratios: list[tuple[float, float]] = []
        for pair in range(pairs):
            order = ("ours", "OpenEvolve") if pair % 2 else ("OpenEvolve", "ours")
            found = {tool: measured(tool, python, calls, pair) for tool in order}
            (ours, within), (theirs, their_within) = found["ours"], found["OpenEvolve"]
            ratios.append((ours / theirs, within / their_within))
            print(
                f"{calls} calls: OpenEvolve {theirs:.1f} s, of which calls {their_within:.1f} s; "
                f"ours {ours:.1f} s, {within:.1f} s; load {os.getloadavg()[0]:.1f}", flush=True,
            )  # fmt: skip
        print_medians(f"{calls} calls, ours over theirs", ("process", "calls"), ratios)


if __name__ == "__main__":
    main()
