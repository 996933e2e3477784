"""How greedy runs of the offline model behave: spread over seeds, statuses, times, depth-breadth.

    python tests/benchmarks/offline_statistics.py TASK runs [seeds]     T=16, N=16
    python tests/benchmarks/offline_statistics.py TASK splits [calls] [seeds]

In-process and without a sandbox, so quick: the model is ours, its programs are known. The scorers
are those of the tasks without the exact checks.
"""

from __future__ import annotations

import collections
import functools
import signal
import sys
import time
import warnings
from itertools import combinations

import numpy as np

from evo.llm.offline.model import complete
from evo.prompt import build_messages, parse_reply
from evo.runs.making import child_seed
from evo.task import load_task

TOLERANCE = 1e-6
TRIPLES = np.array(list(combinations(range(11), 3))).T


def packing_fitness(value):
    centers, radii = np.array(value[0], dtype=float), np.array(value[1], dtype=float)
    check(centers.shape == (26, 2) and radii.shape == (26,))
    check(np.isfinite(centers).all() and np.isfinite(radii).all() and (radii >= 0).all())
    check((np.minimum(centers, 1 - centers).min(axis=1) >= radii - TOLERANCE).all())
    i, j = np.triu_indices(26, 1)
    distance = np.sqrt(((centers[i] - centers[j]) ** 2).sum(axis=1))
    check((radii[i] + radii[j] <= distance + TOLERANCE).all())
    return radii.sum() / 2.635


def distance_fitness(value):
    points = np.array(value, dtype=float)
    check(points.shape == (16, 2) and np.isfinite(points).all())
    i, j = np.triu_indices(16, 1)
    squares = ((points[i] - points[j]) ** 2).sum(axis=1)
    check(squares.max() > 0)
    return squares.min() / squares.max() * 12.889266112


def triangle_fitness(value):
    points = np.array(value, dtype=float)
    check(points.shape == (11, 2) and np.isfinite(points).all())
    x, y = points.T
    root = np.sqrt(3)
    check((y >= -TOLERANCE).all() and (y <= root * x + TOLERANCE).all())
    check((y <= root * (1 - x) + TOLERANCE).all())
    a, b, c = points[TRIPLES]
    u, v = b - a, c - a
    area = np.abs(u[:, 0] * v[:, 1] - u[:, 1] * v[:, 0]).min() / 2
    return area / (root / 4) / 0.036529889880030156


FITNESS = {
    "circle_packing": packing_fitness,
    "min_max_distance": distance_fitness,
    "heilbronn_triangle": triangle_fitness,
}


def check(legal):
    if not legal:
        raise ValueError("no legal construction")


def give_up(*_):
    raise TimeoutError


@functools.lru_cache(maxsize=100_000)
def evaluate(task_name, entry, program):
    """Return (status, fitness, seconds)."""
    start = time.process_time()
    signal.setitimer(signal.ITIMER_REAL, 5.0)
    try:
        names = {"__name__": "program"}
        exec(compile(program, "program", "exec"), names)
        value = names[entry]()
    except TimeoutError:
        return "timeout", None, 5.0
    except Exception:
        return "error", None, time.process_time() - start
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
    seconds = time.process_time() - start
    try:
        return "ok", float(FITNESS[task_name](value)), seconds
    except (ValueError, TypeError, IndexError):
        return "invalid", None, seconds


def run(task, *, generations, children, seed, notes):
    """Return the best fitness after each generation, by the greedy protocol."""
    name, entry = task.name, task.record.entry[0]
    program = task.initial_program
    fitness = evaluate(name, entry, program)[1]
    trajectory = [fitness]
    for generation in range(1, generations + 1):
        messages = build_messages(task.record, program, fitness)
        best = None
        for index in range(children):
            key = child_seed(seed, children, generation, index)
            start = time.process_time()
            choice = complete({"model": "offline", "messages": messages, "seed": key})["choices"][0]
            notes["model ms"].append(1e3 * (time.process_time() - start))
            notes["finish"].append(choice["finish_reason"])
            reply = choice["message"]["content"]
            child = parse_reply(reply, finish_reason=choice["finish_reason"])
            if child is None:
                notes["status"].append("no_program")
                continue
            status, value, seconds = evaluate(name, entry, child)
            notes["status"].append(status)
            notes["evaluation ms"].append(1e3 * seconds)
            notes["characters"].append(len(child))
            if status == "ok" and value > fitness + 1e-9 and (best is None or value > best[0]):
                best = value, child
        if best:
            fitness, program = best
        trajectory.append(fitness)
    notes["final"].append(program)
    return trajectory


def show_notes(notes):
    statuses = collections.Counter(notes["status"])
    total = sum(statuses.values())
    print("statuses:", {k: f"{n / total:.4f}" for k, n in statuses.most_common()}, "of", total)
    for what in ("model ms", "evaluation ms", "characters"):
        values = np.array(notes[what])
        print(
            f"{what}: median {np.median(values):.2f}, 99 % {np.quantile(values, 0.99):.2f},"
            f" greatest {values.max():.2f}, mean {values.mean():.2f}"
        )


def runs(task, seeds):
    notes = collections.defaultdict(list)
    last = []
    for seed in range(40, 40 + seeds):
        trajectory = run(task, generations=16, children=16, seed=seed, notes=notes)
        last.append(trajectory[-1])
        print(seed, " ".join(f"{v:.3f}" for v in trajectory))
    print(f"final: least {min(last):.4f}, median {np.median(last):.4f}, greatest {max(last):.4f}")
    show_notes(notes)


def show(values, generations):
    error = np.std(values) / len(values) ** 0.5
    return f"T={generations}: {np.mean(values):.3f}±{error:.3f}"


def splits(task, calls, seeds):
    notes = collections.defaultdict(list)
    table = {}
    children = 1
    while children <= calls:
        rows = [
            run(task, generations=calls // children, children=children, seed=seed, notes=notes)
            for seed in range(40, 40 + seeds)
        ]
        for depth in (2**k for k in range(20)):
            if depth <= calls // children:
                table[depth, children] = [row[depth] for row in rows]
        children *= 2
    budget = 16
    while budget <= calls:
        cells = [(t, budget // t) for t in (2**k for k in range(20)) if t <= budget]
        print(f"C = {budget}: " + "  ".join(show(table[cell], cell[0]) for cell in cells))
        budget *= 2
    show_notes(notes)


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    signal.signal(signal.SIGALRM, give_up)
    chosen = load_task(sys.argv[1])
    numbers = [int(text) for text in sys.argv[3:]]
    begin = time.perf_counter()
    if sys.argv[2] == "runs":
        runs(chosen, *(numbers or [10]))
    else:
        splits(chosen, *(numbers or [64, 5]))
    print(f"{time.perf_counter() - begin:.1f} s")
