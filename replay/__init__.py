"""Post hoc: read logs, replay policies over them, analyse, show."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

_HOMES = {
    "POLICIES": "evo.policies",
    "attempts": "replay.table",
    "children": "replay.table",
    "cost_matrices": "replay.table",
    "find_logs": "replay.reading",
    "fitness_matrix": "replay.table",
    "load": "replay.table",
    "load_tables": "replay.table",
    "simulate": "replay.simulation",
    "simulate_many": "replay.simulation",
}

__all__ = [
    "POLICIES",
    "attempts",
    "children",
    "cost_matrices",
    "find_logs",
    "fitness_matrix",
    "load",
    "load_tables",
    "simulate",
    "simulate_many",
]

if TYPE_CHECKING:
    from evo.policies import POLICIES
    from replay.reading import find_logs
    from replay.simulation import simulate, simulate_many
    from replay.table import (
        attempts,
        children,
        cost_matrices,
        fitness_matrix,
        load,
        load_tables,
    )


def __getattr__(name: str) -> Any:
    """Loads public names where they are first used, so that `import replay` stays quick."""
    if name not in _HOMES:
        raise AttributeError(f"module 'replay' has no attribute {name!r}")
    value = getattr(importlib.import_module(_HOMES[name]), name)
    globals()[name] = value
    return value
