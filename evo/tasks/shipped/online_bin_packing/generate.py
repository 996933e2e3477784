"""Makes instances.jsonl: items that arrive one by one, to be put into bins of 100.

    python generate.py > instances.jsonl       # the same bytes every time

Sizes are whole numbers drawn from a Weibull distribution of scale 45 and shape 3, at most 100, as
in Romera-Paredes et al. 2024 (FunSearch) after Castineiras et al. 2012.
"""

import json
import sys

import numpy as np

ITEMS, SEARCH, CHECK = 1200, 5, 2


def main() -> None:
    for number in range(SEARCH + CHECK):
        drawn = 45 * np.random.default_rng([2024, number]).weibull(3, ITEMS)
        sizes = np.clip(np.rint(drawn), 1, 100).astype(int).tolist()
        instance = {"id": f"items-{number}", "input": sizes, "check": number >= SEARCH}
        sys.stdout.write(json.dumps(instance, separators=(",", ":")) + "\n")


if __name__ == "__main__":
    main()
