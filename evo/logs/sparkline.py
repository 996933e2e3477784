"""A trajectory as a small picture."""

from __future__ import annotations

import math
from collections.abc import Sequence


def sparkline(values: Sequence[float], width: int = 320, height: int = 60) -> str:
    """Returns a small SVG of a trajectory that needs no plotting library."""
    known = [(x, y) for x, y in enumerate(values) if not math.isnan(y)]
    if len(known) < 2:
        return ""
    low, high = min(y for _, y in known), max(y for _, y in known)
    across, up = width / (len(values) - 1), (height - 4) / ((high - low) or 1.0)
    points = " ".join(f"{x * across:.1f},{height - 2 - (y - low) * up:.1f}" for x, y in known)
    return (
        f'<svg viewBox="0 0 {width} {height}" style="width:{width}px;max-width:none" role="img" '
        f'aria-label="best fitness by generation, from {low:.4g} to {high:.4g}">'
        f'<polyline points="{points}" fill="none" stroke="#0072B2" stroke-width="2"/></svg>'
    )
