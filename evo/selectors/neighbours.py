"""Which configurations are next to each other."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from evo.policies.base import Bools


def neighbours(
    configurations: Sequence[Mapping[str, Any]],
    orders: Mapping[str, Sequence[Any]] | None = None,
) -> Bools:
    """Which configurations differ in one field alone, and there by one step of its order.

    Args:
        configurations: Fields of each.
        orders: The values of a field in order. Otherwise numbers go by size, and a value of any
            other kind is next to every other value of its field.

    Returns:
        (configurations, configurations), symmetric, False on the diagonal.

    Raises:
        ValueError: An order of a field that no configuration has, or that lacks one of its values.
    """
    names = list(dict.fromkeys(name for each in configurations for name in each))
    for name in orders or {}:
        if name not in names:
            raise ValueError(f"orders: no field {name!r} varies (known: {', '.join(names)})")
    shape = (len(configurations), len(configurations))
    differing = np.zeros(shape, dtype=np.intp)
    near = np.ones(shape, dtype=bool)
    for name in names:
        place = _places([each.get(name) for each in configurations], name, (orders or {}).get(name))
        if place is None:
            texts = np.array([repr(each.get(name)) for each in configurations])
            differing += texts[:, None] != texts
        else:
            steps = np.abs(place[:, None] - place)
            differing += steps > 0
            near &= steps <= 1
    return np.asarray(near & (differing == 1))


def _places(values: Sequence[Any], name: str, order: Sequence[Any] | None) -> Any:
    """Each value's place in the order of its field; None if it has none."""
    if order is None:
        numbers = [value for value in values if isinstance(value, int | float | np.number)]
        if len(numbers) < len(values):
            return None
        order = sorted(set(numbers))
    listed = list(order)
    if missing := [value for value in values if value not in listed]:
        raise ValueError(f"orders: that of {name} lacks {missing[0]!r}, got {listed!r}")
    return np.array([listed.index(value) for value in values])
