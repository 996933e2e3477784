"""What batches save, and what they cost in power and error: the same evaluations with and without.

    python tests/benchmarks/batches.py [--draws 400]

A generation of texts is tried on 60 problems of differing difficulty; the accuracy of each is the
parent's, moved by a normal amount. Every score is drawn once, and the rule that drops is applied to
those very scores: so both columns see the same evaluations.
"""

from __future__ import annotations

import argparse

import numpy as np

from evo.runs import batches

PROBLEMS, CHILDREN = 60, 8


def generation(rng: np.random.Generator, spread: float) -> tuple[np.ndarray, np.ndarray]:
    """Returns true accuracies and scores of a parent, row 0, and its children."""
    skill = np.concatenate([[0.0], rng.normal(0.0, spread, CHILDREN)])
    logits = skill[:, None] + rng.normal(0.0, 1.5, PROBLEMS)
    chance = 1 / (1 + np.exp(-logits))
    return chance.mean(axis=1), (rng.random(chance.shape) < chance).astype(float)


def race(scores: np.ndarray, first: int) -> tuple[int, list[int]]:
    """Returns the calls of the children, and who is left."""
    left, calls, before = list(range(1, len(scores))), 0, 0
    for size in batches.batch_sizes(first, PROBLEMS):
        calls += len(left) * (size - before)
        before = size
        if size < PROBLEMS:
            tried = scores[:, :size].tolist()
            leader = max(left, key=lambda k: sum(tried[k]), default=0)
            left = [
                k
                for k in left
                if not any(batches.behind(tried[k], tried[r], PROBLEMS - size) for r in (0, leader))
            ]
    return calls, left


def main() -> None:
    """Prints a row per spread of the children and size of the first batch."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--draws", type=int, default=400)
    draws = parser.parse_args().draws
    print("spread first  saved  improved: with without  same choice  gain: with without")
    for spread in (0.0, 0.3, 0.6, 1.0):
        for first in (8, 15):
            rng = np.random.default_rng(0)
            rows = []
            for _ in range(draws):
                truth, scores = generation(rng, spread)
                calls, left = race(scores, first)
                totals = scores.sum(axis=1)
                found = []
                for able in (left, list(range(1, len(scores)))):
                    best = max(able, key=lambda k: totals[k], default=0)
                    found.append(best if totals[best] > totals[0] else 0)
                gains = [truth[k] - truth[0] for k in found]
                rows.append([calls, found[0] > 0, found[1] > 0, found[0] == found[1], *gains])
            calls, new, old, same, gain, plain = np.mean(np.array(rows, dtype=float), axis=0)
            saved = 1 - calls / (CHILDREN * PROBLEMS)
            print(f"{spread:6.1f} {first:5d} {saved:6.1%} {new:15.3f} {old:7.3f} {same:12.3f} "
                  f"{gain:11.4f} {plain:7.4f}")  # fmt: skip


if __name__ == "__main__":
    main()
