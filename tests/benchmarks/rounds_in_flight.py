"""What rounds in flight cost in fitness and save in time.

    python tests/benchmarks/rounds_in_flight.py

Fitness: policies replayed over the corpus's runs with more and more rounds in flight; paired
differences to one at a time with intervals over runs, and replays per second. Time: live
allocations of the offline model with lognormal latency, beside the bound of rounds one after
another, and the schedule of their own generations on so many lanes.
"""

from __future__ import annotations

import argparse
import heapq
import os
import tempfile
import time
import warnings
from pathlib import Path

import evo
import replay
from evo.llm.offline.latency import Latency
from evo.llm.server import OfflineServer
from replay.effects import effect

CORPUS = Path(__file__).parents[2] / "logs" / "corpus" / "offline"
POLICIES = ("random", "ucb1", "exp3p", "thompson", "successive_halving")
ARMS, CHILDREN, ROUNDS, REPLICATES = 5, 4, 128, 1000

TASK = {
    "initial_program.py": "def solve():\n    return [1.0, 2.0]\n",
    "evaluator.py": "def score(value):\n    return {'fitness': float(value[0]) / 100}\n",
    "task.toml": "entry = ['solve']\n",
}
"""Evaluated in no time, so that latency is what counts."""


def fitness_costs() -> None:
    """Prints the difference in final best fitness to one round at a time."""
    print(f"replayed: K={ARMS}, N={CHILDREN}, {ROUNDS} rounds, {REPLICATES} replicates; final")
    print("best fitness less that of one in flight, 95 % over runs")
    print(f"{'task':18s}  {'policy':18s}" + "".join(f"  {d} in flight{'':16s}" for d in (2, 3, 5)))
    for folder in sorted(path for path in CORPUS.iterdir() if path.is_dir()):
        logs = sorted(folder.glob(f"*-N{CHILDREN}-s*.jsonl.gz"))
        matrix = replay.fitness_matrix(replay.load(*logs, progress=False))
        for policy in POLICIES:
            common = {"rounds": ROUNDS, "arms": ARMS, "replicates": REPLICATES}
            played = {
                d: replay.simulate(matrix, policy, in_flight=d, **common) for d in (1, 2, 3, 5)
            }
            found = [effect(played[1], played[d], name="cost") for d in (2, 3, 5)]
            cells = [f"{e.value:+.4f} [{e.low:+.4f}, {e.high:+.4f}]" for e in found]
            print(f"{folder.name:18s}  {policy:18s}  " + "  ".join(cells))


def simulation_speed() -> None:
    """Prints pulls per second with and without delay, and where arms end early."""
    logs = sorted((CORPUS / "min_max_distance").glob(f"*-N{CHILDREN}-s*.jsonl.gz"))
    matrix = replay.fitness_matrix(replay.load(*logs, progress=False))
    for label, replicates, setting in (
        ("in step", 1000, {}),
        ("arms end after 26 generations", 100, {"cap": 26}),
    ):
        speeds = []
        for d in (1, 2, 4):
            setting |= {"rounds": ROUNDS, "arms": ARMS, "replicates": replicates, "in_flight": d}
            started = time.perf_counter()
            replay.simulate(matrix, "ucb1", **setting)
            pulls = ROUNDS * replicates / (time.perf_counter() - started)
            speeds.append(f"{d} in flight {pulls / 1e6:.2f}")
        print(f"ucb1, million pulls per second, {label}: {', '.join(speeds)}")


def scheduled(lengths: list[float], lanes: int) -> float:
    """Seconds that rounds of these lengths take on so many lanes."""
    free = [0.0] * lanes
    for length in lengths:
        heapq.heappush(free, heapq.heappop(free) + length)
    return max(free)


def times_saved(median: float, sigma: float, rounds: int, children: int) -> None:
    """Prints wall times of live allocations."""
    print(f"\nlive: K=8, N={children}, {rounds} rounds, latency median {median} s, sigma {sigma}")
    print("in flight  wall s  lanes s  ratio  speed-up")
    with (
        tempfile.TemporaryDirectory() as folder,
        OfflineServer(latency=Latency(median, sigma)) as s,
    ):
        task = Path(folder) / "task"
        task.mkdir()
        for name, text in TASK.items():
            (task / name).write_text(text)
        models = Path(folder) / "models.toml"
        models.write_text(f'["slow"]\nid = "offline"\nbase_url = "{s.url}"\n')
        os.environ["EVO_MODELS"] = str(models)
        first = 0.0
        for in_flight in (1, 2, 4, 8):
            started = time.perf_counter()
            live = evo.allocate_live(
                task,
                "round_robin",
                model="slow",
                arms=8,
                rounds=rounds,
                children=children,
                in_flight=in_flight,
                max_concurrent=8 * children,
                log_dir=Path(folder) / str(in_flight),
                progress=False,
            )
            wall = time.perf_counter() - started
            depth = [0] * 8
            lengths = []
            for arm in live.pulls.tolist():
                lengths.append(live.arms[arm].generations[depth[arm]].seconds)
                depth[arm] += 1
            first = first or wall
            lanes = scheduled(lengths, in_flight)
            ratios = f"{wall / lanes:5.2f}  {first / wall:8.2f}"
            print(f"{in_flight:9}  {wall:6.1f}  {lanes:7.1f}  {ratios}")


def main() -> None:
    """Prints all three tables."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--median", type=float, default=0.5, help="seconds of latency")
    parser.add_argument("--sigma", type=float, default=1.0)
    parser.add_argument("--rounds", type=int, default=24)
    parser.add_argument("--children", type=int, default=4)
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    fitness_costs()
    simulation_speed()
    times_saved(options.median, options.sigma, options.rounds, options.children)


if __name__ == "__main__":
    main()
