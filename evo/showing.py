"""Logs in a line of words and in a small picture."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

from evo.cost import usage_tokens

if TYPE_CHECKING:
    from evo.log import Log


def summarise(log: Log) -> str:
    """Returns one line of words: task, model, progress, fitness, calls, tokens, time."""
    header = log.header
    model = header.model.name + ("" if header.model.is_llm else " (not an LLM)")
    best = log.trajectory[-1]
    tokens = [
        usage_tokens(attempt.usage) for outcome in log.outcomes for attempt in outcome.attempts
    ]
    prompt = sum(t.prompt or 0 for t in tokens if t)
    completion = sum(t.completion or 0 for t in tokens if t)
    seconds = "unknown time" if log.seconds is None else f"{log.seconds:.1f} s"
    state = "" if log.finished else ", unfinished"
    return (
        f"{header.task.name}, {model}, seed {header.seed}, T={len(log.generations)} of "
        f"N={header.children}{state}: best fitness {best:.6g}, "
        f"{log.status_counts.get('ok', 0)} of {len(log.outcomes)} children ok, "
        f"{prompt:,} + {completion:,} tokens, {seconds}"
    )


def sparkline(values: Sequence[float], width: int = 320, height: int = 60) -> str:
    """Returns a small SVG of a trajectory that needs no plotting library."""
    known = [(x, y) for x, y in enumerate(values) if not math.isnan(y)]
    if len(known) < 2:
        return ""
    low, high = min(y for _, y in known), max(y for _, y in known)
    spread, last = (high - low) or 1.0, max(len(values) - 1, 1)
    points = " ".join(
        f"{4 + x / last * (width - 8):.1f},{height - 4 - (y - low) / spread * (height - 8):.1f}"
        for x, y in known
    )
    return (
        f'<svg width="{width}" height="{height}" role="img" aria-label="best fitness by '
        f'generation, from {low:.4g} to {high:.4g}"><polyline points="{points}" fill="none" '
        f'stroke="#0072B2" stroke-width="2"/></svg>'
    )
