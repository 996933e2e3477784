"""The space of a sweep: which values each field may take.

    {
        "model": ["qwen", "llama"],                              # a list
        "sampling.temperature": {"min": 0.2, "max": 1.0, "step": 0.2},   # both ends included
        "max_tokens": {"min": 512, "max": 8192, "log": True},
        "top_p": {"values": [0.9, 1.0], "when": {"model": "llama"}},     # asked of llama alone
    }

A range without a step is continuous, except over whole numbers. A field whose condition does not
hold keeps the value of the base configuration. Every draw is keyed by (key, field), so that one
field's does not depend on the others.
"""

from __future__ import annotations

import difflib
import itertools
import math
import random
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import msgspec

from evo.sweeping.fields import canonical, known_fields

DIGITS = 4  # significant ones of a drawn number
REACH = 0.2  # how far a continuous value moves at most, as a share of its range
LARGEST_GRID = 100_000


class SpaceError(ValueError):
    """A space has a mistake; the message says what was expected."""


@dataclass(frozen=True)
class Dimension:
    """One field of a space.

    Attributes:
        name: Of the field.
        values: All that it may take, in order; None: any number of a range.
        low: Lower end of the range.
        high: Upper end.
        log: Whether equal ratios are equally likely, rather than equal differences.
        whole: Whether the range is one of whole numbers.
        ordered: Whether neighbours among `values` are alike.
        when: The values of other fields for which it is asked for.
    """

    name: str
    values: tuple[Any, ...] | None = None
    low: float = 0.0
    high: float = 0.0
    log: bool = False
    whole: bool = False
    ordered: bool = False
    when: Mapping[str, tuple[Any, ...]] = field(default_factory=dict)

    def draw(self, draws: random.Random) -> Any:
        """Returns a value at random."""
        if self.values is not None:
            return draws.choice(self.values)
        return self._at(draws.random())

    def move(self, value: Any, draws: random.Random) -> Any:
        """Returns another value: a neighbour, or any other where there is no order."""
        if self.values is None:
            share = self._share(value) + draws.uniform(-REACH, REACH)
            return self._at(min(1.0, max(0.0, share)))
        at = self.values.index(value) if value in self.values else 0
        others = [k for k in range(len(self.values)) if k != at]
        if self.ordered:
            others = [k for k in others if abs(k - at) == 1]
        return self.values[draws.choice(others)] if others else value

    def ends(self) -> tuple[Any, ...]:
        """All listed values, or both ends of a range."""
        return self.values if self.values is not None else (self._at(0.0), self._at(1.0))

    def is_asked(self, values: Mapping[str, Any]) -> bool:
        """Whether it is asked for, given the values of the fields before it."""
        return all(name in values and values[name] in fine for name, fine in self.when.items())

    def _at(self, share: float) -> Any:
        """Returns the value at a share of the range, 0 to 1."""
        if self.log:
            value = self.low * (self.high / self.low) ** share
        else:
            value = self.low + (self.high - self.low) * share
        return self.rounded(value)

    def rounded(self, value: float) -> Any:
        """Returns a number of the range with few digits."""
        if self.whole:
            return int(min(self.high, max(self.low, round(value))))
        return min(self.high, max(self.low, float(f"{value:.{DIGITS}g}")))

    def _share(self, value: float) -> float:
        if self.low == self.high:
            return 0.0
        if self.log:
            return math.log(value / self.low) / math.log(self.high / self.low)
        return (value - self.low) / (self.high - self.low)


@dataclass(frozen=True)
class Space:
    """Fields and their values.

    Attributes:
        dimensions: Each after those that its condition names.
    """

    dimensions: tuple[Dimension, ...]

    def grid(self) -> list[dict[str, Any]]:
        """Returns every combination, keys sorted, the last field changing fastest.

        An empty space has one combination, of nothing.

        Raises:
            SpaceError: A range has no step, or there are too many.
        """
        ordered = sorted(self.dimensions, key=lambda dimension: dimension.name)
        listed: list[tuple[Any, ...]] = []
        for dimension in ordered:
            if dimension.values is None:
                raise SpaceError(
                    f"{dimension.name}: a grid needs a list or a range with a step; "
                    "random, guided and bayesian take a range without"
                )
            listed.append(dimension.values)
        if (size := math.prod(map(len, listed))) > LARGEST_GRID:
            raise SpaceError(
                f"a grid of {size:,} combinations; at most {LARGEST_GRID:,} are listed"
            )
        names = [dimension.name for dimension in ordered]
        found: dict[bytes, dict[str, Any]] = {}
        for combination in itertools.product(*listed):
            values = self._fill(dict(zip(names, combination, strict=True)), "")
            found.setdefault(msgspec.json.encode(values), values)
        return list(found.values())

    def draw(self, key: str) -> dict[str, Any]:
        """Returns a combination at random, the same for the same key."""
        return self._fill({}, key)

    def perturb(self, values: Mapping[str, Any], key: str) -> dict[str, Any]:
        """Returns a combination that differs in one field, and in those that depend on it."""
        movable = [
            dimension
            for dimension in self.dimensions
            if dimension.name in values and len(set(map(repr, dimension.ends()))) > 1
        ]
        if not movable:
            return dict(values)
        draws = random.Random(f"{key}/perturb")
        chosen = draws.choice(movable)
        moved = chosen.move(values[chosen.name], draws)
        return self._fill({**values, chosen.name: moved}, key)

    def complete(self, value_of: Callable[[Dimension], Any]) -> dict[str, Any]:
        """Returns the value of each field that is asked for, given those of the fields before."""
        values: dict[str, Any] = {}
        for dimension in self.dimensions:
            if dimension.is_asked(values):
                values[dimension.name] = value_of(dimension)
        return dict(sorted(values.items()))

    def _fill(self, given: Mapping[str, Any], key: str) -> dict[str, Any]:
        def value_of(each: Dimension) -> Any:
            known = each.name in given
            return given[each.name] if known else each.draw(random.Random(f"{key}/{each.name}"))

        return self.complete(value_of)


def parse_space(space: Mapping[str, Any]) -> Space:
    """Reads a space; see the head of this module for its form.

    Raises:
        SpaceError: No table, an unknown field, an impossible range, or a condition that cannot
            hold.
    """
    if not isinstance(space, Mapping):
        raise SpaceError(f"space: expected a table of fields and their values, got {space!r}")
    for name in space:
        check_field(name)
    short: dict[str, str] = {}
    for name in space:
        if (other := short.setdefault(canonical(name), name)) != name:
            raise SpaceError(f"{name} and {other} are the same field")
    dimensions = {name: _dimension(name, value) for name, value in space.items()}
    for dimension in dimensions.values():
        for other, allowed in dimension.when.items():
            _check_condition(dimension.name, other, allowed, dimensions)
    return Space(tuple(_parents_first(dimensions)))


def check_field(name: str) -> None:
    """Raises a SpaceError that lists what exists unless a field can be swept."""
    fields = known_fields()
    if name in fields:
        return
    if name in ("seed", "seeds"):
        raise SpaceError("seed: is no field of a space; give seeds=[...], which all share")
    close = difflib.get_close_matches(name, fields, n=1)
    meant = f"; did you mean {close[0]!r}?" if close else ""
    raise SpaceError(f"unknown field {name!r}{meant} (known: {', '.join(fields)})")


def _dimension(name: str, spec: Any) -> Dimension:
    when: Mapping[str, tuple[Any, ...]] = {}
    if isinstance(spec, Mapping) and ("values" in spec or "min" in spec or "max" in spec):
        spec = dict(spec)
        given = spec.pop("when", {})
        if not isinstance(given, Mapping):
            raise SpaceError(f"{name}: when: expected {{field: value}}, got {given!r}")
        when = {other: _listed(value) for other, value in given.items()}
        if "values" not in spec:
            return _range(name, spec, when)
        values = spec.pop("values")
        if spec:
            raise SpaceError(f"{name}: values goes with when alone, got {next(iter(spec))!r}")
        spec = values
    elif isinstance(spec, Mapping) and name not in ("model", "model.extra_body"):
        raise SpaceError(f"{name}: expected values, or min and max, in a table; got {spec!r}")
    values = _listed(spec)
    if not values:
        raise SpaceError(f"{name}: expected at least one value, got an empty list")
    if len({msgspec.json.encode(value) for value in values}) < len(values):
        raise SpaceError(f"{name}: a value is listed twice: {list(values)!r}")
    numbers = all(isinstance(v, int | float) and not isinstance(v, bool) for v in values)
    ordered = numbers and list(values) in (sorted(values), sorted(values, reverse=True))
    return Dimension(name, values, ordered=ordered, when=when)


def _listed(value: Any) -> tuple[Any, ...]:
    if isinstance(value, Sequence) and not isinstance(value, str | bytes):
        return tuple(value)
    return (value,)


def _range(name: str, spec: dict[str, Any], when: Mapping[str, tuple[Any, ...]]) -> Dimension:
    unknown = [key for key in spec if key not in ("min", "max", "step", "log")]
    if unknown or not {"min", "max"} <= set(spec):
        raise SpaceError(f"{name}: a range has min, max, and step or log, got {sorted(spec)!r}")
    log = spec.get("log", False)
    numbers = [spec[key] for key in ("min", "max", "step") if key in spec]
    if any(isinstance(n, bool) or not isinstance(n, int | float) for n in numbers):
        raise SpaceError(f"{name}: expected numbers, got {spec!r}")
    low, high, step = spec["min"], spec["max"], spec.get("step")
    whole = known_fields()[name]
    if not math.isfinite(low) or not math.isfinite(high) or low > high:
        raise SpaceError(f"{name}: expected min <= max, both finite, got {low!r} and {high!r}")
    if whole and any(n != int(n) for n in numbers):
        raise SpaceError(f"{name}: takes whole numbers, got {spec!r}")
    if log is not False and (log is not True or step is not None or low <= 0):
        raise SpaceError(f"{name}: log=true wants min > 0 and no step, got {spec!r}")
    if step is not None and not 0 < step < math.inf:
        raise SpaceError(f"{name}: expected a step above 0, got {step!r}")
    if whole and step is None and not log:
        step = 1
    if step is None:
        return Dimension(name, None, low, high, log=log, whole=whole, when=when)
    count = math.floor((high - low) / step + 1e-9) + 1
    if count > LARGEST_GRID:
        raise SpaceError(f"{name}: {count:,} steps; at most {LARGEST_GRID:,} are listed")
    steps = (low + k * step for k in range(count))
    values = tuple(int(v) if whole else float(f"{v:.12g}") for v in steps)
    return Dimension(name, values, ordered=True, when=when)


def _check_condition(
    name: str, other: str, allowed: tuple[Any, ...], dimensions: Mapping[str, Dimension]
) -> None:
    if other not in dimensions or other == name:
        known = ", ".join(each for each in dimensions if each != name) or "none"
        raise SpaceError(f"{name}: when: {other!r} is no other field of this space (has: {known})")
    possible = dimensions[other].values
    if possible is None:
        raise SpaceError(f"{name}: when: {other} is a range without a step and meets no value")
    if never := [value for value in allowed if value not in possible]:
        raise SpaceError(
            f"{name}: when: {other} is never {never[0]!r} (takes: {', '.join(map(repr, possible))})"
        )


def _parents_first(dimensions: Mapping[str, Dimension]) -> Iterator[Dimension]:
    left = dict(sorted(dimensions.items()))
    while left:
        ready = [d for d in left.values() if not set(d.when) & set(left)]
        if not ready:
            raise SpaceError(f"when: the conditions of {', '.join(left)} go round in a circle")
        for dimension in ready:
            yield left.pop(dimension.name)
