"""As many evaluations without an LLM: random weights of the initial rule of `tsp_construct`.

Usage: python tests/benchmarks/control_without_llm.py TABLE.csv [--runs 24] [--calls 24]

Two controls, `random` (each weight uniform in [-2, 2]) and `climb` (one weight of the best rule so
far drawn anew), each evaluated in the sandbox as a child of a search is. One row per evaluation, in
the table's format that `replay import table` reads.
"""

from __future__ import annotations

import argparse
import csv
from pathlib import Path

from joblib import Parallel, delayed
from tqdm.auto import tqdm

from evo import evaluate, load_task
from evo.keyed import KeyedStream

TERMS = ("near", "home", "onward")
Weights = tuple[float, ...]


def rule(program: str, weights: Weights) -> str:
    """Returns the initial program with other weights in its cost."""
    for term, weight in zip(TERMS, weights, strict=True):
        if f"1.0 * {term}" not in program:
            raise ValueError(f"expected '1.0 * {term}' in the initial program of tsp_construct")
        program = program.replace(f"1.0 * {term}", f"{weight!r} * {term}")
    return program


def one_run(method: str, seed: int, calls: int) -> list[dict[str, object]]:
    """Returns a run's rows, generation 0 (all weights 1) included."""
    task = load_task("tsp_construct")
    stream = KeyedStream("control", method, seed)
    best, weights = float("-inf"), (1.0, 1.0, 1.0)
    rows: list[dict[str, object]] = []
    for generation in range(calls + 1):
        tried = weights
        if generation and method == "random":
            tried = tuple(stream.uniform(-2, 2) for _ in TERMS)
        elif generation:
            place, value = stream.integer(0, len(TERMS) - 1), stream.uniform(-2, 2)
            tried = (*weights[:place], value, *weights[place + 1 :])
        evaluation = evaluate(task, rule(task.initial_program, tried))
        fitness = evaluation.fitness
        if fitness is not None and fitness > best:
            best, weights = fitness, tried
        rows.append(
            {
                "run": f"{method}-{seed}",
                "task": "tsp_construct",
                "model": f"no LLM: {method}",
                "seed": seed,
                "generation": generation,
                "index": 0,
                "status": evaluation.status,
                "fitness": fitness,
                "check_fitness": evaluation.metrics.get("check_fitness"),
                "weights": " ".join(f"{weight:.6f}" for weight in tried),
            }
        )
    return rows


def main() -> None:
    """Write the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("table", type=Path)
    parser.add_argument("--runs", type=int, default=24)
    parser.add_argument("--calls", type=int, default=24)
    options = parser.parse_args()
    jobs = [(method, seed) for method in ("random", "climb") for seed in range(options.runs)]
    work = (delayed(one_run)(*job, options.calls) for job in jobs)
    done = Parallel(n_jobs=2, return_as="generator")(work)
    rows = [row for run in tqdm(done, total=len(jobs), unit="run") for row in run]
    with options.table.open("x", newline="") as file:
        writer = csv.DictWriter(file, fieldnames=list(rows[0]), lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)


if __name__ == "__main__":
    main()
