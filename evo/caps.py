"""How much is read of what others wrote: each cap is an environment variable, with a default."""

from __future__ import annotations

import os

CAPS = {
    "EVO_MAX_LINE_MB": (64, "MiB of one line of a log"),
    "EVO_MAX_LOG_MB": (4096, "MiB of a log, decompressed"),
    "EVO_MAX_RATIO": (200, "times its own size that a .gz may grow to"),
    "EVO_MAX_ELEMENTS": (1_000_000, "elements of one line of a log"),
    "EVO_MAX_VALUE": (20_000, "numbers of a construction that a log keeps"),
    "EVO_MAX_CHILDREN": (100_000, "children of one generation"),
    "EVO_MAX_DRAWS": (10_000, "evaluations of one program"),
    "EVO_MAX_REPLY_MB": (16, "MiB of an endpoint's answer"),
}
"""Default and meaning of each cap, by its variable."""


def cap(variable: str) -> int:
    """Returns a cap: of the environment, else the default.

    Raises:
        ValueError: The variable holds no whole number above 0.
    """
    default, meaning = CAPS[variable]
    text = os.environ.get(variable, "").strip()
    if not text:
        return default
    if not (text.isascii() and text.isdigit() and int(text[:18])):
        raise ValueError(f"{variable}: expected a whole number above 0 ({meaning}), got {text!r}")
    return int(text)


def above(variable: str) -> str:
    """Returns the words of an error: what was too much, and which variable raises the cap."""
    return f"more than {cap(variable):,} {CAPS[variable][1]}; if you trust it, raise {variable}"
