"""From the usage that endpoints report to tokens, FLOPs and dollars.

FLOPs of an attempt are 2 * active parameters * (prompt - cached + completion) tokens, summed over
the attempts of a call (arXiv 2605.29268). Attempts without usage (timeouts, answers whose
endpoint reports nothing) were computed but not counted; a rule decides what they are taken for:

- `worst_case`: max_tokens of output;
- `bounded`: the median completion of the run's length-limited attempts;
- `exclude`: nothing, so that the sum is a lower bound.

The rules speak of output alone, as the paper does. What is unknown is None (NaN in arrays), and
so is every sum it is part of; it is never zero.
"""

from __future__ import annotations

import functools
import math
import operator
import statistics
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Literal, NamedTuple, Protocol, TypeVar

import msgspec

from evo.logs.records import NO_REPLY, Attempt, Generation, Header, Model, Sampling

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Numbers = TypeVar("Numbers", float, NDArray[np.float64])

TimeoutRule = Literal["worst_case", "exclude", "bounded"]
TIMEOUT_RULES: tuple[TimeoutRule, ...] = ("worst_case", "exclude", "bounded")

MOST_TOKENS = 1e15
"""No attempt has so many tokens: a count from here on is none."""

RATES = ("active_parameters", "input_price", "cached_price", "output_price")
"""Fields of a model by which costs are counted; an attempt keeps those it was made at."""

LIMITS_OF_REPLIES = ("max_tokens", "max_completion_tokens")
"""Fields of a request that bound its reply; an endpoint heeds one of them."""

_GATEWAY_TIMEOUTS = frozenset({408, 504, 524})


def added(values: Iterable[float]) -> float:
    """Returns the sum of numbers, added one after another, which is the same on every Python.

    The built-in `sum` corrects its rounding from Python 3.12 on, and so differs in last digits.

    Example:
        >>> added([0.1] * 10)
        0.9999999999999999
    """
    return functools.reduce(operator.add, values, 0.0)


class Attempted(Protocol):
    """What costs are added up of: a child, a call of an evaluation, a reply."""

    @property
    def attempts(self) -> tuple[Attempt, ...]: ...  # noqa: D102


class Tokens(NamedTuple):
    """Token counts of one attempt; `cached` of the prompt's tokens came from a prompt cache."""

    prompt: int
    cached: int
    completion: int


def usage_tokens(usage: Mapping[str, object] | None) -> Tokens | None:
    """Reads an endpoint's usage, in either dialect; None unless it states prompt and completion.

    An endpoint that reports nothing about a cache has none.
    """
    if usage is None:
        return None
    prompt = _count(usage.get("prompt_tokens", usage.get("input_tokens")))
    completion = _count(usage.get("completion_tokens", usage.get("output_tokens")))
    if prompt is None or completion is None:
        return None
    details = usage.get("prompt_tokens_details", usage.get("input_tokens_details"))
    cached = _count(details.get("cached_tokens")) if isinstance(details, Mapping) else None
    return Tokens(prompt, min(cached or 0, prompt), completion)


def stated_dollars(attempt: Attempt) -> float | None:
    """Returns what an attempt cost in dollars where an import states it (`usage["dollars"]`).

    No endpoint reports under this name: another tool's own sum goes before tokens times prices.
    """
    value = None if attempt.cached or attempt.usage is None else attempt.usage.get("dollars")
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return float(value) if 0 <= value < MOST_TOKENS else None


def _count(value: object) -> int | None:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return int(value) if 0 <= value < MOST_TOKENS else None


def lacks_usage(attempt: Attempt) -> bool:
    """Whether an attempt was computed, or may have been, but nothing is known of its tokens.

    So are timeouts of every kind, those of a gateway included, broken connections, and answers
    without usage; not so what never reached the endpoint or was turned away by it.
    """
    if attempt.cached or not attempt.sent or usage_tokens(attempt.usage) is not None:
        return False
    return not is_turned_away(attempt)


class Answered(Protocol):
    """What `is_turned_away` looks at, as in `Attempt`."""

    @property
    def status(self) -> str: ...  # noqa: D102

    @property
    def http_status(self) -> int | None: ...  # noqa: D102


def is_turned_away(attempt: Answered) -> bool:
    """Whether the endpoint answered an attempt with an error and so computed nothing for it."""
    code = attempt.http_status
    failed = attempt.status == "error" and code is not None and code >= 400
    return failed and code not in _GATEWAY_TIMEOUTS


@dataclass(frozen=True, kw_only=True)
class Cost:
    """Costs of some calls under one rule, which can be added; None stands for unknown.

    Calls are children asked for and instances that evaluations asked, attempts their HTTP requests;
    the rule stands in for those `without_usage`. Prompt tokens include cached ones, completion
    tokens what the rule assumes; seconds are latency summed over attempts; `more` has the amounts
    in units that were added to `UNITS`.
    """

    calls: int = 0
    attempts: int = 0
    without_usage: int = 0
    prompt_tokens: float | None = 0.0
    cached_tokens: float | None = 0.0
    completion_tokens: float | None = 0.0
    flops: float | None = 0.0
    dollars: float | None = 0.0
    seconds: float | None = 0.0
    more: Mapping[str, float | None] = field(default_factory=dict)

    def by_unit(self, seconds: float | None) -> dict[str, float]:
        """Returns the amount in each unit of budgets, NaN where unknown; wall time is given."""
        own = {"calls": float(self.calls), "tokens": self.tokens, "flops": self.flops}
        known = {**own, "dollars": self.dollars, **self.more, "seconds": seconds}
        amounts = {unit: known.get(unit, 0.0) for unit in UNITS}  # no call, no entry in `more`
        return {unit: math.nan if value is None else value for unit, value in amounts.items()}

    def __add__(self, other: Cost) -> Cost:
        units = self.more.keys() | other.more.keys()
        more = {u: _plus(self.more.get(u, 0.0), other.more.get(u, 0.0)) for u in units}
        return Cost(
            calls=self.calls + other.calls,
            attempts=self.attempts + other.attempts,
            without_usage=self.without_usage + other.without_usage,
            prompt_tokens=_plus(self.prompt_tokens, other.prompt_tokens),
            cached_tokens=_plus(self.cached_tokens, other.cached_tokens),
            completion_tokens=_plus(self.completion_tokens, other.completion_tokens),
            flops=_plus(self.flops, other.flops),
            dollars=_plus(self.dollars, other.dollars),
            seconds=_plus(self.seconds, other.seconds),
            more=more,
        )

    @property
    def tokens(self) -> float | None:
        """Prompt and completion tokens together."""
        return _plus(self.prompt_tokens, self.completion_tokens)

    @property
    def cache_hit_rate(self) -> float | None:
        """Cached share of the prompt tokens, in [0, 1]; None: unknown or no prompt."""
        if not self.prompt_tokens or self.cached_tokens is None:
            return None
        return self.cached_tokens / self.prompt_tokens


def _plus(one: float | None, other: float | None) -> float | None:
    return None if one is None or other is None else one + other


def cost_of_attempts(
    attempts: Iterable[Attempt],
    model: Model,
    sampling: Sampling,
    *,
    rule: TimeoutRule = "worst_case",
    bounded_completion: float | None = None,
) -> Cost:
    """Returns the cost of one call; `worst_case` assumes the longest reply that is allowed.

    A call for an embedding is counted as none, and no tokens of a reply are assumed of it.

    Under `exclude` an answer without usage makes the tokens unknown: it is known to have had some.
    """
    attempts, calls = tuple(attempts), int(sampling != NO_REPLY)
    stated = [each for each in map(stated_dollars, attempts) if each is not None]
    if any(attempt.rates for attempt in attempts) or 0 < len(stated) < len(attempts):
        parts = [
            cost_of_attempts(
                [msgspec.structs.replace(attempt, rates={})],
                msgspec.structs.replace(model, **attempt.rates),
                sampling,
                rule=rule,
                bounded_completion=bounded_completion,
            )
            for attempt in attempts
        ]
        return replace(sum(parts, Cost()), calls=calls)
    counted = [usage_tokens(attempt.usage) for attempt in attempts if not attempt.cached]
    known = [tokens for tokens in counted if tokens is not None]
    prompt, cached, completion = (
        math.fsum(each) for each in zip(*(known or [Tokens(0, 0, 0)]), strict=True)
    )
    if lacking := [attempt for attempt in attempts if lacks_usage(attempt)]:
        if calls:
            completion += len(lacking) * assumed_completion(
                rule,
                max_tokens=longest_reply(model, sampling.max_tokens),
                bounded_completion=bounded_completion,
            )
        if rule == "exclude" and any(attempt.status == "ok" for attempt in lacking):
            prompt = cached = completion = math.nan
    by_unit = dict.fromkeys(UNITS, 0.0)
    if lacking or known:
        by_unit |= cost_of_tokens((prompt, cached, completion), model)
    if stated:
        by_unit["dollars"] = math.fsum(stated)
    seconds = math.fsum(math.nan if a.latency is None else a.latency for a in attempts)
    amounts = {
        "prompt_tokens": prompt, "cached_tokens": cached, "completion_tokens": completion,
        "flops": by_unit["flops"], "dollars": by_unit["dollars"], "seconds": seconds,
    }  # fmt: skip
    added = by_unit.keys() - vars(Cost()).keys() - {"tokens"}
    return Cost(
        calls=calls,
        attempts=len(attempts),
        without_usage=len(lacking),
        more={unit: None if math.isnan(by_unit[unit]) else by_unit[unit] for unit in added},
        **{name: None if math.isnan(amount) else amount for name, amount in amounts.items()},
    )


def cost_of_children(
    children: Iterable[Attempted],
    model: Model,
    sampling: Sampling,
    *,
    rule: TimeoutRule = "worst_case",
) -> Cost:
    """Returns the cost of a generation or a run; arguments as for `cost_of_attempts`."""
    calls = [child.attempts for child in children]
    median = None
    if rule == "bounded":
        median = median_limited_completion(attempt for call in calls for attempt in call)
    costs = (
        cost_of_attempts(call, model, sampling, rule=rule, bounded_completion=median)
        for call in calls
    )
    return sum(costs, Cost())


def wall_time(generations: Iterable[Generation]) -> float | None:
    """Returns the seconds of those that the run made itself; None unless all are known."""
    own = [each.seconds for each in generations if not each.inherited]
    known = [seconds for seconds in own if seconds is not None]
    return sum(known) if len(known) == len(own) else None


def tokens_in(calls: Iterable[Attempted]) -> str:
    """Says how many tokens some calls are known to have had."""
    attempts = [attempt for call in calls for attempt in call.attempts]
    tokens = [stated for each in attempts if (stated := usage_tokens(each.usage)) is not None]
    if not tokens and any(each.status == "ok" and lacks_usage(each) for each in attempts):
        return "an unknown number of tokens"
    prompt = sum(each.prompt for each in tokens)
    completion = sum(each.completion for each in tokens)
    return f"{prompt:,} prompt and {completion:,} completion tokens"


def cost_of_calls(
    calls: Iterable[Attempted], header: Header, *, rule: TimeoutRule = "worst_case"
) -> Cost:
    """Returns what some calls of a run cost, each at the prices of the model that it went to.

    Of several models that is named in the call; calls of the critic went to its own, and those for
    embeddings keep their prices.
    """
    calls, median = list(calls), None
    if rule == "bounded":
        median = median_limited_completion(attempt for call in calls for attempt in call.attempts)
    total = Cost()
    for call in calls:
        of = header.asked_of(call)
        total += cost_of_attempts(
            call.attempts, of.model, of.sampling, rule=rule, bounded_completion=median
        )
    return total


def median_limited_completion(attempts: Iterable[Attempt]) -> float | None:
    """Returns the median completion tokens of length-limited attempts; None without any."""
    limited = [
        tokens.completion
        for attempt in attempts
        if attempt.finish_reason == "length" and (tokens := usage_tokens(attempt.usage))
    ]
    return float(statistics.median(limited)) if limited else None


def longest_reply(model: Model, max_tokens: int | None) -> int | None:
    """Returns the completion tokens of a reply at most; None: nothing known bounds them.

    The fields of the model's `extra_body` replace, or stand beside, the sampling's `max_tokens`.
    """
    own = {name: model.extra_body[name] for name in LIMITS_OF_REPLIES if name in model.extra_body}
    return bound_of({"max_tokens": max_tokens, **own})


def bound_of(request: Mapping[str, object]) -> int | None:
    """Returns the completion tokens that a request allows; None unless it states sound limits."""
    stated = [request[name] for name in LIMITS_OF_REPLIES if request.get(name) is not None]
    sound = [limit for limit in stated if type(limit) is int and 0 < limit < MOST_TOKENS]
    return max(sound) if sound and len(sound) == len(stated) else None


def assumed_completion(
    rule: TimeoutRule, *, max_tokens: int | None, bounded_completion: float | None = None
) -> float:
    """Returns the completion tokens of an attempt without usage under a rule; NaN: unknown."""
    taken = {"worst_case": max_tokens, "exclude": 0.0, "bounded": bounded_completion}
    if rule not in taken:
        raise ValueError(f"timeout rule must be one of {', '.join(TIMEOUT_RULES)}, got {rule!r}")
    tokens = taken[rule]
    return math.nan if tokens is None else float(tokens)


def flops_of_tokens(
    prompt: Numbers, cached: Numbers, completion: Numbers, *, model: Model
) -> Numbers:
    """Returns 2 * active parameters * (prompt - cached + completion); NaN if these are unknown."""
    active = math.nan if model.active_parameters is None else model.active_parameters
    return 2.0 * active * (prompt - cached + completion)


def price_of_tokens(
    prompt: Numbers, cached: Numbers, completion: Numbers, *, model: Model
) -> Numbers:
    """Returns dollars at the model's prices; NaN if it has none. Arguments as above."""
    paid = math.nan if model.input_price is None else model.input_price
    cheap = paid if model.cached_price is None else model.cached_price
    output = math.nan if model.output_price is None else model.output_price
    return ((prompt - cached) * paid + cached * cheap + completion * output) / 1e6


class OfTokens(Protocol):
    """Returns what prompt, cached and completion tokens of a model cost; NaN if unknown."""

    def __call__(  # noqa: D102
        self, prompt: float, cached: float, completion: float, *, model: Model
    ) -> float: ...


@dataclass(frozen=True)
class Unit:
    """A unit in which a budget can be counted.

    Attributes:
        help: What is counted, in a few words.
        of_tokens: The amount that some tokens cost; None: calls and seconds, which are counted
            by themselves.
        needs: Fields of a model without which the amount is unknown.
    """

    help: str
    of_tokens: OfTokens | None = None
    needs: tuple[str, ...] = ()


UNITS: dict[str, Unit] = {
    "calls": Unit("replies asked for, by children and by evaluations"),
    "tokens": Unit(
        "of prompts and replies", lambda prompt, cached, reply, *, model: prompt + reply
    ),
    "flops": Unit(
        "2 x active parameters x tokens that were computed", flops_of_tokens, ("active_parameters",)
    ),
    "dollars": Unit("at the model's prices", price_of_tokens, ("input_price", "output_price")),
    "seconds": Unit("of wall time"),
}
"""What budgets are counted in. A unit is added by one entry, before runs begin:

    UNITS["joules"] = Unit("at 0.3 J a token", lambda prompt, cached, completion, *, model:
        0.3 * (prompt - cached + completion))
"""


def cost_of_tokens(tokens: tuple[float, float, float], model: Model) -> dict[str, float]:
    """Returns what a call of prompt, cached and completion tokens costs by unit; NaN: unknown.

    Wall time is not among the units, because tokens do not tell it.
    """
    cost = {"calls": 1.0}
    for unit, each in UNITS.items():
        if each.of_tokens is not None:
            cost[unit] = each.of_tokens(*tokens, model=model)
    return cost
