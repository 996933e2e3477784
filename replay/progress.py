"""Progress bars of what may take longer than a moment."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TypeVar

PATIENCE = 0.3
"""Seconds after which a progress bar appears by itself."""

T = TypeVar("T")


def shown(
    items: Iterable[T], label: str, unit: str, *, progress: bool | None, total: int | None = None
) -> Iterable[T]:
    """Items with a progress bar on standard error.

    Args:
        items: The items.
        label: What stands before the bar.
        unit: What an item is.
        progress: Show it; None: on a screen, where the items take more than a moment.
        total: How many there are; None: as many as the items have.
    """
    if progress is False:
        return items
    from tqdm.auto import tqdm

    delay, off = (0.0, False) if progress else (PATIENCE, None)
    return tqdm(items, label, total=total, unit=unit, leave=False, delay=delay, disable=off)
