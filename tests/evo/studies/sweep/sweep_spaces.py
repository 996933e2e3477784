"""Spaces of sweeps, ways in which their runs end, and all trials of a strategy over one."""

from typing import Any

from evo.studies.sweep.space import Space
from evo.studies.sweep.strategies import Trial, build_strategy

WIDE = {
    "model": ["a", "b"],
    "sampling.temperature": {"min": 0.2, "max": 1.0, "step": 0.2},
    "max_tokens": {"min": 512, "max": 8192, "log": True},
    "top_p": {"values": [0.9, 0.95, 1.0], "when": {"model": "b"}},
    "children": {"min": 2, "max": 9},
}

ENDS: list[dict[str, Any]] = [
    {"patience": 1}, {"patience": 3}, {"target": 0.3}, {"target": 0.2, "patience": 2}, {},
]  # fmt: skip

SHORT: dict[str, Any] = {
    "task": "mmd", "seeds": [1, 2], "children": 1, "generations": 6, "progress": False,
}  # fmt: skip


def value_of(values):
    return values["sampling.temperature"] + 0.1 * (values["model"] == "b")


def play(name, space, *, trials=40, seed=0, value=value_of, **options):
    """All trials of a strategy, told what `value` says."""
    strategy = build_strategy(name, options, space, seed=seed, trials=trials)
    history = []
    while batch := strategy.propose(history):
        history += [Trial(values, value(values)) for values in batch]
    return history


def inside(space: Space, values) -> bool:
    for dimension in space.dimensions:
        asked = dimension.is_asked(values)
        if asked != (dimension.name in values):
            return False
        if not asked:
            continue
        value = values[dimension.name]
        if dimension.values is not None and value not in dimension.values:
            return False
        if dimension.values is None and not dimension.low <= value <= dimension.high:
            return False
    return True
