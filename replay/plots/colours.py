"""Colours as numbers: between those of a ramp, and which ink can be read on one."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike


def readable(ground: Sequence[float]) -> str:
    """Black or white, whichever is easier to read on a colour (red, green, blue in [0, 1])."""
    channels = np.asarray(ground[:3])
    linear = np.where(channels <= 0.04045, channels / 12.92, ((channels + 0.055) / 1.055) ** 2.4)
    return "black" if linear @ [0.2126, 0.7152, 0.0722] > 0.179 else "white"


def parsed(color: str) -> tuple[float, ...]:
    """Red, green and blue of a hex colour, in [0, 1]."""
    return tuple(int(color[k : k + 2], 16) / 255 for k in (1, 3, 5))


def shades(values: ArrayLike, colors: Sequence[str], least: float, most: float) -> list[str]:
    """A hex colour for each value, between those of a ramp from `least` to `most`."""
    known = np.asarray(values, dtype=np.float64)
    span = most - least
    share = np.clip((known - least) / span, 0, 1) if span > 0 else np.full(known.shape, 0.5)
    ramp = np.array([parsed(color) for color in colors]).T
    mixed = [np.interp(share * (len(colors) - 1), range(len(colors)), part) for part in ramp]
    rgb = np.rint(255 * np.array(mixed)).astype(int).T.tolist()
    return [f"#{r:02x}{g:02x}{b:02x}" for r, g, b in rgb]
