"""Numbers as texts and figures show them."""

from __future__ import annotations

import math
import re


def number(value: float, _: object = None) -> str:
    """Three digits, thousands as k and millions as M; also a formatter of ticks."""
    size = abs(value)
    if not math.isfinite(value) or size >= 1e9 or 0 < size < 1e-3:
        return re.sub(r"e([+-])0?", lambda e: "e" + e[1].strip("+"), f"{value:.3g}")
    for unit, letter in ((1e6, "M"), (1e3, "k")):
        if size >= 0.9995 * unit:
            return f"{float(f'{value / unit:.3g}'):g}{letter}"
    return f"{float(f'{value:.3g}'):g}"
