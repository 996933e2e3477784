"""Attempts of a run as arrays, and what they cost."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from evo.cost import (
    TimeoutRule,
    assumed_completion,
    flops_of_tokens,
    is_turned_away,
    price_of_tokens,
)
from evo.records import Model, Sampling
from replay.reading import LeanRun

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Floats = NDArray[np.float64]

_COUNTS, _MOST = {int, float, type(None)}, 1e15
"""Types of token counts, and what none of them reaches."""
CRITIC = "critic"
"""Operator of what stands for a call of the critic among the children of a run."""


def floats(values: Iterable[float | None]) -> Floats:
    """Returns values as an array, NaN for None."""
    return np.array([np.nan if value is None else value for value in values], dtype=np.float64)


class AttemptColumns:
    """The attempts of a run as arrays, and sums of them by child."""

    def __init__(self, run: LeanRun) -> None:
        self.run = run
        self.per_child = np.array([len(child.attempts) for child in run.children], dtype=np.int64)
        self.attempts = [attempt for child in run.children for attempt in child.attempts]
        usages = [attempt.usage or {} for attempt in self.attempts]
        self.prompt_tokens = _counts(usages, "prompt_tokens", "input_tokens")
        self.completion_tokens = _counts(usages, "completion_tokens", "output_tokens")
        details = _stated(usages, "prompt_tokens_details", "input_tokens_details")
        known = [each if isinstance(each, dict) else {} for each in details]
        cached = _counts(known, "cached_tokens", "")
        # An endpoint that states its prompt tokens and nothing of a cache has none.
        cached[np.isnan(cached) & ~np.isnan(self.prompt_tokens)] = 0.0
        self.cached_tokens = np.minimum(cached, self.prompt_tokens)
        uncounted = np.isnan(self.prompt_tokens) | np.isnan(self.completion_tokens)
        computed = [not a.cached and a.sent and not is_turned_away(a) for a in self.attempts]
        self.lacking = uncounted & np.array(computed, dtype=np.bool_)
        reused = np.array([a.cached for a in self.attempts], dtype=np.bool_)
        self.free = (uncounted & ~self.lacking) | reused
        self._owner = np.repeat(np.arange(len(self.per_child)), self.per_child)

    def by_child(self, values: Floats) -> Floats:
        """Sums known values over each child's attempts; NaN where none is known."""
        known = ~np.isnan(values)
        sums = np.bincount(self._owner[known], values[known], minlength=len(self.per_child))
        counts = np.bincount(self._owner[known], minlength=len(self.per_child))
        return np.where(counts > 0, sums, np.nan)

    def whole(self, values: Floats) -> Floats:
        """Sums over each child's attempts; NaN where any of them, or their number, is unknown."""
        sums = np.bincount(self._owner, values, minlength=len(self.per_child))
        return np.where(self.per_child > 0, sums, np.nan)

    def costs_by_child(self, timeouts: TimeoutRule) -> dict[str, Floats]:
        """Tokens, FLOPs and dollars of each child; NaN where a part is unknown."""
        header, critic = self.run.header, self.run.header.critic
        found = self._costs(timeouts, header.model, header.sampling)
        if critic is None:
            return found
        theirs = self._costs(timeouts, critic.model, critic.sampling)
        its = np.array([child.operator == CRITIC for child in self.run.children], dtype=np.bool_)
        return {unit: np.where(its, theirs[unit], found[unit]) for unit in found}

    def _costs(self, timeouts: TimeoutRule, model: Model, sampling: Sampling) -> dict[str, Floats]:
        """The same as if all calls went to one model."""
        middle = None
        if timeouts == "bounded":
            cut = np.array([a.finish_reason == "length" for a in self.attempts], dtype=np.bool_)
            limited = self.completion_tokens[cut & ~np.isnan(self.completion_tokens)]
            middle = float(np.median(limited)) if len(limited) else None
        assumed = assumed_completion(
            timeouts, max_tokens=sampling.max_tokens, bounded_completion=middle
        )
        completion = np.full(self.free.size, np.nan if assumed is None else assumed)
        if timeouts == "exclude":  # an answer without usage did compute something
            answered = np.array([a.status == "ok" for a in self.attempts], dtype=np.bool_)
            completion[self.lacking & answered] = np.nan
        counted = np.where(self.free, 0.0, self.completion_tokens)
        completion = np.where(self.lacking, completion, counted)
        stated = (self.prompt_tokens, self.cached_tokens)
        prompt, cached = (np.where(self.lacking | self.free, 0.0, tokens) for tokens in stated)
        by_attempt = {
            "tokens": prompt + completion,
            "flops": flops_of_tokens(prompt, cached, completion, model=model),
            "dollars": price_of_tokens(prompt, cached, completion, model=model),
        }
        return {unit: self.whole(values) for unit, values in by_attempt.items()}


def _stated(usages: Sequence[Any], name: str, other: str) -> list[Any]:
    """What usage says under either name; None where it says nothing."""
    return [usage[name] if name in usage else usage.get(other) for usage in usages]


def _counts(usages: Sequence[Any], name: str, other: str) -> Floats:
    """Token counts under either name; NaN where unknown or no count."""
    said = _stated(usages, name, other)
    sound = {*map(type, said)} <= _COUNTS
    if not sound or max(map(abs, filter(None, said)), default=0) >= _MOST:
        said = [n if type(n) in _COUNTS and abs(n or 0) < _MOST else None for n in said]
    counts = np.array(said, dtype=np.float64)  # NaN for None
    counts[counts < 0] = np.nan
    return counts
