"""Columns of marks: one value for each place, and numbers where places are."""

from __future__ import annotations

from typing import ClassVar

import numpy as np

_NUMBERS = frozenset(
    {"x", "y", "low", "high", "x0", "x1", "y0", "y1", "x_low", "x_high", "y_low", "y_high", "r"}
)
"""Names of columns that hold numbers."""


class OfOneLength:
    """A mark whose columns have one value for each of its places."""

    columns: ClassVar[tuple[str, ...]] = ()

    def __post_init__(self) -> None:
        given = {name: getattr(self, name) for name in self.columns}
        counts = {
            name: len(each)
            for name, each in given.items()
            if each is not None and not isinstance(each, str) and hasattr(each, "__len__")
        }
        if len(set(counts.values())) > 1:
            listed = ", ".join(f"{name} has {count}" for name, count in counts.items())
            raise ValueError(
                f"{type(self).__name__}: expected as many values in each of "
                f"{', '.join(counts)}, but {listed}"
            )
        for name in _NUMBERS.intersection(counts):
            self._check_numbers(name, given[name])

    def _check_numbers(self, name: str, values: object) -> None:
        try:
            dimensions = np.asarray(values, dtype=np.float64).ndim
        except (TypeError, ValueError):
            dimensions = 0
        if dimensions != 1:
            raise ValueError(
                f"{type(self).__name__}: expected a list of numbers for {name}, got "
                f"{values!r:.80}; Axis(ticks=[(0, 'a'), (1, 'b')]) writes texts at numbers"
            )
