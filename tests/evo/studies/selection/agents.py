"""An agent of two models, whose score and cost on a row are known."""

from pathlib import Path
from typing import Any

import evo
from evo.studies.selection.race import Selection

ROWS = [{"n": n} for n in range(40)]
MODELS = {"plan": ["small", "large"], "act": ["small", "large"]}
SKILL, COSTS = {"small": 0.25, "large": 0.5}, {"small": 1.0, "large": 3.0}
tried: list[tuple[int, str, str]] = []


def agent(row: dict[str, int], *, plan: str, act: str) -> tuple[float, float]:
    tried.append((row["n"], plan, act))
    luck = ((row["n"] * 37) % 20 - 10) / 100
    return SKILL[plan] + 0.6 * SKILL[act] + luck, COSTS[plan] + COSTS[act]


def best(folder: Path, **more: Any) -> Selection:
    given: dict[str, Any] = {"evaluate": agent, "data": ROWS, "batch": 4, "progress": False}
    return evo.select_best(MODELS, log_dir=folder, **{**given, **more})
