"""Local maxima of limits: what a log or a task may ask of this machine at most."""

from __future__ import annotations

import functools
import os
import warnings
from pathlib import Path

import msgspec

from evo.records import Limits

VARIABLE = "EVO_MAX_LIMITS"
"""Environment variable that changes maxima: `seconds=7200,processes=2000`."""
_MAXIMA = {"seconds": 3600, "processes": 1024, "files_mb": 4096, "value_mb": 256, "output_kb": 1024}
_CGROUPS = ("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes")


@functools.cache
def machine_memory() -> int:
    """Returns the memory that this machine, or the container, has, MiB."""
    found = [os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")]
    for path in _CGROUPS:
        try:
            found.append(int(Path(path).read_text()))
        except (OSError, ValueError):  # absent, or "max"
            continue
    return max(min(found) >> 20, 1)


def maxima() -> dict[str, float]:
    """Returns the largest value of each limit on this machine.

    Raises:
        ValueError: The environment variable is not of the form `name=number,...`.
    """
    return _maxima(os.environ.get(VARIABLE, ""))


@functools.cache
def _maxima(text: str) -> dict[str, float]:
    found: dict[str, float] = {**_MAXIMA, "memory_mb": machine_memory()}
    for part in filter(None, text.split(",")):
        name, _, number = part.strip().partition("=")
        try:
            if name not in found or not 0 < float(number) < float("inf"):
                raise ValueError
        except ValueError:
            raise ValueError(
                f"{VARIABLE}: expected NAME=NUMBER,... with names out of {', '.join(found)}, got "
                f"{part!r}"
            ) from None
        found[name] = float(number) if name == "seconds" else int(float(number))
    return found


def held(limits: Limits, what: str) -> Limits:
    """Returns the limits held to the local maxima; says so where one is beyond.

    Args:
        limits: Out of a task or a log.
        what: Whose they are, for the warning.
    """
    most = maxima()
    beyond = {name: most[name] for name in most if getattr(limits, name) > most[name]}
    if not beyond:
        return limits
    changes = ", ".join(
        f"{name} {min(getattr(limits, name), 1e300):g} to {beyond[name]:g}" for name in beyond
    )
    warnings.warn(
        f"{what}: limits beyond what this machine allows are held to it: {changes} ({VARIABLE} "
        "sets the maxima)",
        stacklevel=3,
    )
    return msgspec.structs.replace(limits, **beyond)


def with_seconds(limits: Limits, seconds: float | None) -> Limits:
    """Returns the limits with another time limit, if one is given.

    Raises:
        ValueError: It is not positive, or beyond the local maximum.
    """
    if seconds is None:
        return limits
    most = maxima()["seconds"]
    if not 0 < seconds <= most:
        raise ValueError(
            f"the time limit of an evaluation: expected over 0 to {most:g} seconds ({VARIABLE} "
            f"sets the maximum), got {seconds!r}"
        )
    return msgspec.structs.replace(limits, seconds=float(seconds))
