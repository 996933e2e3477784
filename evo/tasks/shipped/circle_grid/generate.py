"""Makes instances.jsonl: numbers of circles, each with the best sum of radii found for it.

    python generate.py > instances.jsonl       # some minutes

SLSQP from random starts on centers and radii at once; for 26 circles the best published sum,
2.635983 (Friedman's Packing Center and its recent improvements), stands instead.
"""

import json
import sys

import numpy as np
import numpy.typing as npt
from scipy.optimize import Bounds, minimize

SEARCH, CHECK, STARTS = (17, 20, 23, 26), (18, 21, 24), 24
PUBLISHED = {26: 2.635983}

Array = npt.NDArray[np.float64]


def best_sum(n: int, starts: int = STARTS) -> float:
    """Return the largest sum of radii of n circles in the unit square that was found."""
    first, second = np.triu_indices(n, 1)
    pairs = np.arange(len(first))

    def gaps(z: Array) -> Array:
        x, y, r = z.reshape(3, n)
        apart = (x[first] - x[second]) ** 2 + (y[first] - y[second]) ** 2
        return np.concatenate(
            [apart - (r[first] + r[second]) ** 2, x - r, 1 - x - r, y - r, 1 - y - r]
        )

    def slope(z: Array) -> Array:
        x, y, r = z.reshape(3, n)
        rows = np.zeros((len(first) + 4 * n, 3 * n))
        for block, part in enumerate((x, y)):
            difference = 2 * (part[first] - part[second])
            rows[pairs, block * n + first] = difference
            rows[pairs, block * n + second] = -difference
        total = -2 * (r[first] + r[second])
        rows[pairs, 2 * n + first] = rows[pairs, 2 * n + second] = total
        circles = np.arange(n)
        for wall, (block, sign) in enumerate([(0, 1), (0, -1), (1, 1), (1, -1)]):
            row = len(first) + wall * n + circles
            rows[row, block * n + circles], rows[row, 2 * n + circles] = sign, -1
        return rows

    goal = np.repeat([0.0, 0.0, -1.0], n)
    best = PUBLISHED.get(n, 0.0)
    for start in range(starts):
        rng = np.random.default_rng([n, start])
        z = np.concatenate([rng.random(2 * n), np.full(n, 0.02)])
        found = minimize(  # type: ignore[call-overload]  # constraints as a dict
            lambda z: float(goal @ z),
            z,
            jac=lambda z: goal,
            bounds=Bounds(0, np.repeat([1.0, 1.0, 0.5], n)),
            constraints={"type": "ineq", "fun": gaps, "jac": slope},
            method="SLSQP",
            options={"maxiter": 300},
        )
        if gaps(found.x).min() > -1e-9:
            best = max(best, float(-found.fun))
    return best


def main() -> None:
    for n in SEARCH + CHECK:
        instance = {"id": str(n), "input": n, "best": round(best_sum(n), 6), "check": n in CHECK}
        sys.stdout.write(json.dumps(instance, separators=(",", ":")) + "\n")


if __name__ == "__main__":
    main()
