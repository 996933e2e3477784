"""Post hoc: read logs, replay policies over them, analyse, show."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

_HOMES = {
    "HINDSIGHT": "replay.hindsight",
    "POLICIES": "evo.policies",
    "allocation_effect": "replay.effects",
    "attempts": "replay.logs",
    "browse": "replay.explorers",
    "children": "replay.logs",
    "compare": "replay.intervals",
    "cost_matrices": "replay.logs",
    "depth_breadth": "replay.depth",
    "envelope": "replay.depth",
    "explore": "replay.explorers",
    "find_logs": "replay.reading",
    "fit_bilinear": "replay.bilinear",
    "fit_kernel": "replay.kernel",
    "fitness_matrix": "replay.logs",
    "instances": "replay.logs",
    "follow": "replay.explorers",
    "interval": "replay.intervals",
    "judge": "replay.verdict",
    "lineage": "replay.ancestry",
    "load": "replay.logs",
    "load_sweep": "replay.configurations",
    "load_tables": "replay.logs",
    "plan": "replay.forecast",
    "pool_effect": "replay.effects",
    "select": "replay.selection",
    "show": "replay.style",
    "simulate": "replay.simulation",
    "simulate_many": "replay.simulation",
    "time_to_threshold": "replay.effects",
}

__all__ = [
    "HINDSIGHT",
    "POLICIES",
    "allocation_effect",
    "attempts",
    "browse",
    "children",
    "compare",
    "cost_matrices",
    "depth_breadth",
    "envelope",
    "explore",
    "find_logs",
    "fit_bilinear",
    "fit_kernel",
    "fitness_matrix",
    "follow",
    "instances",
    "interval",
    "judge",
    "lineage",
    "load",
    "load_sweep",
    "load_tables",
    "plan",
    "pool_effect",
    "select",
    "show",
    "simulate",
    "simulate_many",
    "time_to_threshold",
]

if TYPE_CHECKING:
    from evo.policies import POLICIES
    from replay.ancestry import lineage
    from replay.bilinear import fit_bilinear
    from replay.configurations import load_sweep
    from replay.depth import depth_breadth, envelope
    from replay.effects import allocation_effect, pool_effect, time_to_threshold
    from replay.explorers import browse, explore, follow
    from replay.forecast import plan
    from replay.hindsight import HINDSIGHT
    from replay.intervals import compare, interval
    from replay.kernel import fit_kernel
    from replay.logs import (
        attempts,
        children,
        cost_matrices,
        fitness_matrix,
        instances,
        load,
        load_tables,
    )
    from replay.reading import find_logs
    from replay.selection import select
    from replay.simulation import simulate, simulate_many
    from replay.style import show
    from replay.verdict import judge


_MODULES = ("claims", "explorers", "importers", "plots")
"""Modules that `import replay` alone gives access to."""


def __getattr__(name: str) -> Any:
    """Loads public names where they are first used, so that `import replay` stays quick."""
    if name in _MODULES:
        return importlib.import_module(f"replay.{name}")
    if name not in _HOMES:
        raise AttributeError(f"module 'replay' has no attribute {name!r}")
    value = getattr(importlib.import_module(_HOMES[name]), name)
    globals()[name] = value
    return value
