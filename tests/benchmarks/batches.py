"""What batches save, and what they cost in power and error: the same evaluations with and without.

    python tests/benchmarks/batches.py [--draws 400]        # simulated: power and error
    python tests/benchmarks/batches.py --runs 8             # real runs of offline-2

Simulated, a generation of texts is tried on 60 problems of differing difficulty; the accuracy of
each is the parent's, moved by a normal amount. Real runs evolve a defective prompt on the shipped
word problems, without batches: every child has a score on every problem. The rule that drops is
applied to those very scores, so both columns see the same evaluations. The stand-in answers as it
was told to; what a real model's texts are like it cannot show.
"""

from __future__ import annotations

import argparse
import tempfile
from collections.abc import Iterator
from pathlib import Path

import numpy as np

import evo
from evo.runs.batches import batch_order, batch_sizes, dropped

PROBLEMS, CHILDREN = 60, 8


def generation(rng: np.random.Generator, spread: float) -> tuple[np.ndarray, np.ndarray]:
    """Returns true accuracies and scores of a parent, row 0, and its children."""
    skill = np.concatenate([[0.0], rng.normal(0.0, spread, CHILDREN)])
    logits = skill[:, None] + rng.normal(0.0, 1.5, PROBLEMS)
    chance = 1 / (1 + np.exp(-logits))
    return chance.mean(axis=1), (rng.random(chance.shape) < chance).astype(float)


def race(scores: np.ndarray, first: int) -> tuple[int, list[int]]:
    """Returns the calls of the children, and who is left; row 0 is the parent."""
    left, calls, before, count = list(range(1, len(scores))), 0, 0, scores.shape[1]
    for size in batch_sizes(first, count):
        calls += len(left) * (size - before)
        before = size
        if size < count:
            tried = {str(k): scores[k, :size].tolist() for k in left}
            out = dropped(tried, [scores[0, :size].tolist()] * len(left), count - size)
            left = [k for k in left if str(k) not in out]
    return calls, left


def chosen(scores: np.ndarray, able: list[int]) -> int:
    """Returns who is the next parent: the best that is able, if better than the parent, row 0."""
    best = max(able, key=lambda k: scores[k].sum(), default=0)
    return best if scores[best].sum() > scores[0].sum() else 0


def generations_of(log: evo.Log) -> Iterator[np.ndarray]:
    """Yields scores of each generation's parent, row 0, and new texts, in the order of batches."""
    assert log.initial is not None
    known = {(0, 0): log.initial.evaluation}
    known |= {(c.generation, c.index): c.evaluation for c in log.children}
    seen = set()
    for number in range(1, len(log.generations) + 1):
        children = [c for c in log.children if c.generation == number]
        new = [c for c in children if c.evaluation.instances and c.program not in seen]
        seen |= {c.program for c in new}
        tried = [known[children[0].parents[0]], *(c.evaluation for c in new)]
        if new:
            scores = np.array([[i.score or 0.0 for i in each.instances] for each in tried])
            order = batch_order(log.header.seed, number, list(range(scores.shape[1])))
            yield scores[:, order]


def real(runs: int) -> None:
    """Prints what the rule saves on logged generations, and how often it changes the choice."""
    with tempfile.TemporaryDirectory() as folder:
        text = Path(folder) / "initial.txt"
        text.write_text("You solve problems. Give the answer in words.")
        logs = evo.run_many(
            evo.load_task("word_problems", program=text), seeds=range(runs), generations=4,
            children=CHILDREN, model="offline-2", feedback=True, log_dir=folder, progress=False,
        )  # fmt: skip
        made = [scores for log in logs for scores in generations_of(log)]
    print("first  saved  same choice  improved: with without   (generations)")
    for first in (8, 15):
        raced = [(scores, *race(scores, first)) for scores in made]
        whole = sum(len(scores[1:]) * scores.shape[1] for scores in made)
        found = [(chosen(s, left), chosen(s, list(range(1, len(s))))) for s, _, left in raced]
        saved = 1 - sum(calls for _, calls, _ in raced) / whole
        same, new, old = np.mean([(a == b, a > 0, b > 0) for a, b in found], axis=0)
        print(f"{first:5d} {saved:6.1%} {same:12.3f} {new:15.3f} {old:7.3f}   ({len(made)})")


def simulated(draws: int) -> None:
    """Prints a row per spread of the children and size of the first batch."""
    print("spread first  saved  improved: with without  same choice  gain: with without")
    for spread in (0.0, 0.3, 0.6, 1.0):
        for first in (8, 15):
            rng = np.random.default_rng(0)
            rows = []
            for _ in range(draws):
                truth, scores = generation(rng, spread)
                calls, left = race(scores, first)
                found = [chosen(scores, left), chosen(scores, list(range(1, len(scores))))]
                gains = [truth[k] - truth[0] for k in found]
                rows.append([calls, found[0] > 0, found[1] > 0, found[0] == found[1], *gains])
            calls, new, old, same, gain, plain = np.mean(np.array(rows, dtype=float), axis=0)
            saved = 1 - calls / (CHILDREN * PROBLEMS)
            print(f"{spread:6.1f} {first:5d} {saved:6.1%} {new:15.3f} {old:7.3f} {same:12.3f} "
                  f"{gain:11.4f} {plain:7.4f}")  # fmt: skip


def main() -> None:
    """Measures on simulated scores, or on real runs."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--draws", type=int, default=400)
    parser.add_argument("--runs", type=int, default=0)
    given = parser.parse_args()
    if given.runs:
        real(given.runs)
    else:
        simulated(given.draws)


if __name__ == "__main__":
    main()
