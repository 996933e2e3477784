"""A trajectory as a small picture that needs no plotting library."""

from __future__ import annotations

import math
from collections.abc import Sequence


def sparkline(values: Sequence[float], width: int = 320, height: int = 60) -> str:
    """Returns a small SVG of a trajectory that needs no plotting library."""
    known = [(x, y) for x, y in enumerate(values) if not math.isnan(y)]
    if len(known) < 2:
        return ""
    low, high = min(y for _, y in known), max(y for _, y in known)
    spread, last = (high - low) or 1.0, max(len(values) - 1, 1)
    points = " ".join(
        f"{4 + x / last * (width - 8):.1f},{height - 4 - (y - low) / spread * (height - 8):.1f}"
        for x, y in known
    )
    return (
        f'<svg width="{width}" height="{height}" role="img" aria-label="best fitness by '
        f'generation, from {low:.4g} to {high:.4g}"><polyline points="{points}" fill="none" '
        f'stroke="#0072B2" stroke-width="2"/></svg>'
    )
