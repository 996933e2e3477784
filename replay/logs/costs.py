"""The calls of a run as arrays, and what they cost."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from evo.logs.cost import (
    MOST_TOKENS,
    TimeoutRule,
    assumed_completion,
    cost_of_attempts,
    flops_of_tokens,
    is_turned_away,
    longest_reply,
    median_limited_completion,
    price_of_tokens,
    stated_dollars,
)
from evo.logs.records import NO_REPLY, CriticCall, EmbeddingCall, Model, Sampling
from evo.logs.types import JsonObject
from replay.logs.columns import REPORTED

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from replay.logs.decode import LeanRun

    Floats = NDArray[np.float64]

_COUNTS = {int, float, type(None)}
"""Types of token counts."""


def floats(values: Iterable[float | None]) -> Floats:
    """Returns values as an array, NaN for None."""
    return np.array([*values], dtype=np.float64)


class Calls:
    """The calls of a run, those of its children first, with all their attempts.

    Attributes:
        counted: Whether each counts as a call of this run: for an embedding none does.
    """

    def __init__(self, run: LeanRun, *, of: LeanRun | None = None) -> None:
        """Takes a run; `of` is the one whose programs it evaluates again, if any.

        The calls of such a run were paid for by the other one.
        """
        self.run, self.rescores = run, of
        self.made = [*run.children, *run.calls]
        self.generation = np.array([call.generation for call in self.made], dtype=np.int64)
        paid_before = [call.inherited or of is not None for call in self.made]
        self.inherited = np.array(paid_before, dtype=np.bool_)
        embedded = [isinstance(call, EmbeddingCall) for call in self.made]
        self.embedded = np.array(embedded, dtype=np.bool_)
        self.counted = ~self.inherited & ~self.embedded
        self.per_call = np.array([len(call.attempts) for call in self.made], dtype=np.int64)
        self.attempts = [attempt for call in self.made for attempt in call.attempts]
        usages = [attempt.usage or {} for attempt in self.attempts]
        prompt = _counts(usages, "prompt_tokens", "input_tokens")
        completion = _counts(usages, "completion_tokens", "output_tokens")
        details = _stated(usages, "prompt_tokens_details", "input_tokens_details")
        known = [each if isinstance(each, dict) else {} for each in details]
        cached = _counts(known, "cached_tokens", "")
        # An endpoint that states its prompt tokens and nothing of a cache has none. Other tools may
        # leave it out; of their calls the latency is unknown.
        of_endpoint = np.array([each.latency is not None for each in self.attempts], dtype=np.bool_)
        cached[np.isnan(cached) & ~np.isnan(prompt) & of_endpoint] = 0.0
        self.reported = dict(
            zip(REPORTED, (prompt, np.minimum(cached, prompt), completion), strict=True)
        )

    def spent(self, timeouts: TimeoutRule) -> dict[str, Floats]:
        """Returns the cost of each call, by column; NaN where a part is unknown."""
        children = [child.evaluation.seconds for child in self.run.children]
        found = {
            **{name: self._known(values) for name, values in self.reported.items()},
            "n_attempts": np.where(self.per_call > 0, self.per_call.astype(float), np.nan),
            **self._costs(timeouts, self.run.header.model, self.run.header.sampling),
            "call_seconds": self._whole(floats(each.latency for each in self.attempts)),
            "evaluation_seconds": floats([*children, *[0.0] * len(self.run.calls)]),
        }
        for its, model, sampling in self._of_others():
            theirs = self._costs(timeouts, model, sampling)
            found |= {unit: np.where(its, theirs[unit], found[unit]) for unit in theirs}
        self._add_rates(found, timeouts)
        return {name: np.where(self.inherited, 0.0, values) for name, values in found.items()}

    def _of_others(self) -> Iterator[tuple[NDArray[np.bool_], Model, Sampling]]:
        """Yields which calls went elsewhere than to the run's first model, and where to."""
        header = self.run.header
        for each in header.models[1:]:
            its = np.array([getattr(call, "model", "") == each.model.name for call in self.made])
            yield its, each.model, each.sampling
        if (critic := header.critic) is not None:
            its = np.array([isinstance(call, CriticCall) for call in self.made], dtype=np.bool_)
            yield its, critic.model, critic.sampling
        if self.embedded.any():
            yield self.embedded, header.model, NO_REPLY

    def _add_rates(self, found: dict[str, Floats], timeouts: TimeoutRule) -> None:
        """Counts the calls that were made at other prices than the header's."""
        owners = np.repeat(np.arange(len(self.made)), self.per_call).tolist()
        rated = {owner for owner, a in zip(owners, self.attempts, strict=True) if a.rates}
        middle = median_limited_completion(self.attempts) if timeouts == "bounded" else None
        for place in rated:
            call = self.made[place]
            of = self.run.header.asked_of(call)
            cost = cost_of_attempts(
                call.attempts, of.model, of.sampling, rule=timeouts, bounded_completion=middle
            )
            for unit, amount in (("flops", cost.flops), ("dollars", cost.dollars)):
                found[unit][place] = np.nan if amount is None else amount

    def _costs(self, timeouts: TimeoutRule, model: Model, sampling: Sampling) -> dict[str, Floats]:
        """Tokens, FLOPs and dollars of each call as if all went to one model."""
        prompt, cached, completion = self.reported.values()
        uncounted = np.isnan(prompt) | np.isnan(completion)
        lacking = np.zeros(len(uncounted), dtype=np.bool_)
        for place in np.flatnonzero(uncounted).tolist():
            attempt = self.attempts[place]
            lacking[place] = not attempt.cached and attempt.sent and not is_turned_away(attempt)
        free = uncounted | np.array([a.cached for a in self.attempts], dtype=np.bool_)
        middle = None
        if timeouts == "bounded":
            cut = np.array([a.finish_reason == "length" for a in self.attempts], dtype=np.bool_)
            limited = completion[cut & ~uncounted]
            middle = float(np.median(limited)) if len(limited) else None
        assumed = 0.0
        if sampling != NO_REPLY:
            assumed = assumed_completion(
                timeouts,
                max_tokens=longest_reply(model, sampling.max_tokens),
                bounded_completion=middle,
            )
        prompt, cached, completion = (
            np.where(free, 0.0, tokens) for tokens in (prompt, np.nan_to_num(cached), completion)
        )
        completion[lacking] = assumed
        if timeouts == "exclude":  # an answer without usage did compute something
            answered = np.array([a.status == "ok" for a in self.attempts], dtype=np.bool_)
            completion[lacking & answered] = np.nan
        by_attempt = {
            "n_without_usage": lacking.astype(np.float64),
            "tokens": prompt + completion,
            "flops": flops_of_tokens(prompt, cached, completion, model=model),
            "dollars": self._or_stated(price_of_tokens(prompt, cached, completion, model=model)),
        }
        return {name: self._whole(values) for name, values in by_attempt.items()}

    def _or_stated(self, dollars: Floats) -> Floats:
        """What each attempt cost: as another tool states it, else as given."""
        stated = floats(map(stated_dollars, self.attempts))
        return np.where(np.isnan(stated), dollars, stated)

    def _known(self, values: Floats) -> Floats:
        """Sums known values over each call's attempts; NaN where none is known."""
        known = ~np.isnan(values)
        sums = self._sums(np.where(known, values, 0.0))
        return np.where(self._sums(known.astype(np.float64)) > 0, sums, np.nan)

    def _whole(self, values: Floats) -> Floats:
        """Sums over each call's attempts; NaN where any of them, or their number, is unknown."""
        return np.where(self.per_call > 0, self._sums(values), np.nan)

    def _sums(self, values: Floats) -> Floats:
        owner = np.repeat(np.arange(len(self.made)), self.per_call)
        return np.bincount(owner, values, minlength=len(self.made)).astype(np.float64)


def _stated(usages: Sequence[JsonObject], name: str, other: str) -> list[Any]:
    """The counts in usage under either name; None where there is none."""
    return [usage[name] if name in usage else usage.get(other) for usage in usages]


def _counts(usages: Sequence[JsonObject], name: str, other: str) -> Floats:
    """Token counts under either name; NaN where unknown or no count."""
    counts_in_usage = _stated(usages, name, other)
    if not {*map(type, counts_in_usage)} <= _COUNTS:
        counts_in_usage = [n if type(n) in _COUNTS else None for n in counts_in_usage]
    try:
        counts = np.array(counts_in_usage, dtype=np.float64)  # NaN for None
    except OverflowError:
        counts = floats(None if n is None or abs(n) >= MOST_TOKENS else n for n in counts_in_usage)
    counts[(counts < 0) | (counts >= MOST_TOKENS)] = np.nan
    return np.floor(counts)  # as `evo.logs.cost.usage_tokens` reads them
