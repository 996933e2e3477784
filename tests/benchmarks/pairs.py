"""What benchmarks print that measure two things in pairs."""

import statistics
from collections.abc import Sequence


def print_medians(what: str, names: Sequence[str], ratios: Sequence[Sequence[float]]) -> None:
    """Prints for each name the median of its ratios, one of each pair, and all of them."""
    for name, column in zip(names, zip(*ratios, strict=True), strict=True):
        words = " ".join(f"{ratio:.3f}" for ratio in column)
        print(f"{what}, {name}: median {statistics.median(column):.3f} of {words}")
