"""What the level of an interval may be."""

from __future__ import annotations


def check_level(level: float) -> None:
    """Raises a ValueError if the level of an interval is no share between 0 and 1."""
    if not 0 < level < 1:
        raise ValueError(f"level: expected a number between 0 and 1, such as 0.95, got {level!r}")
