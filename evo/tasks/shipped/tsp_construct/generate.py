"""Makes instances.jsonl: cities drawn in the unit square, and the shortest tour through them.

    python generate.py > instances.jsonl       # some minutes; the same bytes every time

The optimum is proven: an integer program over the edges, to which the subtours that its solution
still has are added as cuts until none is left (Dantzig, Fulkerson and Johnson 1954).
"""

import json
import sys
from itertools import combinations

import numpy as np
import numpy.typing as npt
from scipy.optimize import Bounds, LinearConstraint, milp
from scipy.sparse import csr_array, vstack

CITIES, SEARCH, CHECK = 50, 20, 20

Array = npt.NDArray[np.float64]


def shortest(cities: Array) -> float:
    """Return the length of the shortest closed tour through cities of shape (n, 2)."""
    n = len(cities)
    edges = np.array(list(combinations(range(n), 2)))
    length = np.hypot(*(cities[edges[:, 0]] - cities[edges[:, 1]]).T)
    rows = csr_array(np.array([(edges == city).any(axis=1) for city in range(n)], float))
    low, high = np.full(n, 2.0), np.full(n, 2.0)
    while True:
        found = milp(
            length,
            constraints=LinearConstraint(rows, low, high),
            bounds=Bounds(0, 1),
            integrality=np.ones(len(edges), int),
        )
        used = np.asarray(found.x) > 0.5
        parts = components(n, edges[used].tolist())
        if len(parts) == 1:
            return float(length[used].sum())
        cuts = [np.isin(edges, part).all(axis=1).astype(float) for part in parts]
        rows = vstack([rows, csr_array(np.array(cuts))])
        low = np.append(low, np.zeros(len(parts)))
        high = np.append(high, [len(part) - 1.0 for part in parts])


def components(n: int, edges: list[list[int]]) -> list[list[int]]:
    """Return the connected parts of a graph on n cities, as sorted lists."""
    part = list(range(n))
    for one, other in edges:
        old, new = part[one], part[other]
        part = [new if each == old else each for each in part]
    return [[c for c in range(n) if part[c] == p] for p in sorted(set(part))]


def main() -> None:
    for number in range(SEARCH + CHECK):
        cities = np.random.default_rng([1954, number]).random((CITIES, 2)).round(3)
        instance = {"id": f"cities-{number:02d}", "input": cities.tolist()}
        instance["optimum"] = round(shortest(cities), 9)
        if number >= SEARCH:
            instance["check"] = True
        sys.stdout.write(json.dumps(instance, separators=(",", ":")) + "\n")


if __name__ == "__main__":
    main()
