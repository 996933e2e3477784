"""Local maxima: how much is read of what others wrote, and what it may ask of this machine.

Each cap is an environment variable with a default; limits of evaluations have one for all.
"""

from __future__ import annotations

import functools
import os
from pathlib import Path
from typing import Literal

import msgspec

from evo.logs.inputs import AUTO, as_float
from evo.logs.records import Limits
from evo.warning import warn

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

LIMITS_VARIABLE = "EVO_MAX_LIMITS"
"""Environment variable that changes the maxima of limits: `seconds=7200,processes=2000`."""
_MAXIMA = {"seconds": 3600, "processes": 1024, "files_mb": 4096, "value_mb": 256, "output_kb": 1024}
_CGROUPS = ("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes")


def cap(variable: str) -> int:
    """A cap: of the environment, else the default; `ValueError` if it is no number above 0."""
    default, meaning = CAPS[variable]
    text = os.environ.get(variable, "").strip()
    if not text:
        return default
    if not (text.isascii() and text.isdigit() and int(text[:18])):
        raise ValueError(f"{variable}: expected a whole number above 0 ({meaning}), got {text!r}")
    return int(text)


def above(variable: str) -> str:
    """The words of an error: what was too much, and which variable raises the cap."""
    return f"more than {cap(variable):,} {CAPS[variable][1]}; if you trust it, raise {variable}"


def maxima() -> dict[str, float]:
    """The largest value of each limit on this machine; `ValueError` if the variable is amiss."""
    return _maxima(os.environ.get(LIMITS_VARIABLE, ""))


@functools.cache
def _maxima(text: str) -> dict[str, float]:
    memory = [os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")]
    for path in _CGROUPS:
        try:
            memory.append(int(Path(path).read_text()))
        except (OSError, ValueError):  # absent, or "max"
            continue
    found: dict[str, float] = {**_MAXIMA, "memory_mb": max(min(memory) >> 20, 1)}
    for part in filter(None, text.split(",")):
        name, _, number = part.strip().partition("=")
        try:
            if name not in found or not 0 < float(number) < float("inf"):
                raise ValueError
        except ValueError:
            raise ValueError(
                f"{LIMITS_VARIABLE}: expected NAME=NUMBER,... with names out of "
                f"{', '.join(found)}, got {part!r}"
            ) from None
        found[name] = float(number) if name == "seconds" else int(float(number))
    return found


def held(limits: Limits, what: str) -> Limits:
    """Limits out of a task or a log, cut to the local maxima with a warning that names `what`."""
    most = maxima()
    beyond = {name: most[name] for name in most if getattr(limits, name) > most[name]}
    if not beyond:
        return limits
    changes = ", ".join(
        f"{name} {min(getattr(limits, name), 1e300):g} to {beyond[name]:g}" for name in beyond
    )
    warn(
        f"{what}: limits beyond what this machine allows are held to it: {changes} "
        f"({LIMITS_VARIABLE} sets the maxima)",
    )
    return msgspec.structs.replace(limits, **beyond)


def with_seconds(limits: Limits, seconds: float | Literal["auto"] | None) -> Limits:
    """The limits with another time limit, if one is given; `ValueError` if it is beyond reason.

    With "auto" a run fixes it, at most at that of the limits.
    """
    if seconds is None:
        return limits
    if seconds == AUTO:
        return msgspec.structs.replace(limits, auto=True)
    most = maxima()["seconds"]
    if not 0 < as_float(seconds) <= most:
        raise ValueError(
            f"the time limit of an evaluation: expected 'auto', or over 0 to {most:g} seconds "
            f"({LIMITS_VARIABLE} sets the maximum), got {seconds!r}"
        )
    return msgspec.structs.replace(limits, seconds=float(seconds), auto=False)
