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

import itertools
import math
import random
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import msgspec

from evo.logs.inputs import as_float
from evo.plugins import meant
from evo.studies.sweep.fields import canonical, known_fields

DIGITS = 4  # significant ones of a drawn number
REACH = 0.2  # how far a continuous value moves at most, as a share of its range
LARGEST_GRID = 100_000


class SpaceError(ValueError):
    """A space has a mistake; the message states what was expected."""


class _Spec(msgspec.Struct, forbid_unknown_fields=True, kw_only=True):
    when: dict[str, object] = {}


class _Listed(_Spec, kw_only=True):
    values: object


class _Range(_Spec, kw_only=True):
    min: float
    max: float
    step: float | None = None
    log: bool = False


@dataclass(frozen=True)
class Dimension:
    """One field of a space."""

    name: str
    values: tuple[object, ...] | None = None  # all, in order; None: any number from `low` to `high`
    low: float = 0.0
    high: float = 0.0
    log: bool = False  # whether equal ratios are equally likely, rather than equal differences
    whole: bool = False  # whether the range is one of whole numbers
    ordered: bool = False  # whether neighbours among `values` are alike
    when: Mapping[str, tuple[object, ...]] = field(default_factory=dict)  # values of other fields

    def draw(self, draws: random.Random) -> object:
        """Returns a value at random."""
        return self._at(draws.random()) if self.values is None else draws.choice(self.values)

    def move(self, value: object, draws: random.Random) -> object:
        """Returns another value: a neighbour, or any other where there is no order."""
        if self.values is None:
            assert isinstance(value, int | float)
            share = self._share(value) + draws.uniform(-REACH, REACH)
            return self._at(min(1.0, max(0.0, share)))
        at = self.values.index(value) if value in self.values else 0
        others = [k for k in range(len(self.values)) if k != at]
        if self.ordered:
            others = [k for k in others if abs(k - at) == 1]
        return self.values[draws.choice(others)] if others else value

    def ends(self) -> tuple[object, ...]:
        """All listed values, or both ends of a range."""
        return self.values if self.values is not None else (self._at(0.0), self._at(1.0))

    def is_asked(self, values: Mapping[str, object]) -> bool:
        """Whether it is asked for, given the values of the fields before it."""
        return all(name in values and values[name] in fine for name, fine in self.when.items())

    def rounded(self, value: float) -> float:
        """Returns a number of the range with few digits."""
        value = round(value) if self.whole else float(f"{value:.{DIGITS}g}")
        value = min(self.high, max(self.low, value))
        return int(value) if self.whole else value

    def _at(self, share: float) -> float:
        if self.log:
            return self.rounded(self.low * (self.high / self.low) ** share)
        return self.rounded(self.low + (self.high - self.low) * share)

    def _share(self, value: float) -> float:
        if self.low == self.high:
            return 0.0
        if self.log:
            return math.log(value / self.low) / math.log(self.high / self.low)
        return (value - self.low) / (self.high - self.low)


@dataclass(frozen=True)
class Space:
    """Fields and their values, each field after those that its condition names."""

    dimensions: tuple[Dimension, ...]

    def grid(self) -> list[dict[str, object]]:
        """Returns every combination, keys sorted, the last field changing fastest.

        An empty space has one, of nothing. SpaceError: a range has no step, or there are too many.
        """
        listed: dict[str, tuple[object, ...]] = {}
        for each in sorted(self.dimensions, key=lambda each: each.name):
            if each.values is None:
                raise SpaceError(
                    f"{each.name}: a grid needs a list or a range with a step; "
                    "random, guided and bayesian take a range without"
                )
            listed[each.name] = each.values
        if (size := math.prod(map(len, listed.values()))) > LARGEST_GRID:
            raise SpaceError(
                f"a grid of {size:,} combinations; at most {LARGEST_GRID:,} are listed"
            )
        found: dict[bytes, dict[str, object]] = {}
        for combination in itertools.product(*listed.values()):
            values = self._fill(dict(zip(listed, combination, strict=True)), "")
            found.setdefault(msgspec.json.encode(values), values)
        return list(found.values())

    def draw(self, key: str) -> dict[str, object]:
        """Returns a combination at random, the same for the same key."""
        return self._fill({}, key)

    def perturb(self, values: Mapping[str, object], key: str) -> dict[str, object]:
        """Returns a combination that differs in one field, and in those that depend on it."""
        asked = (each for each in self.dimensions if each.name in values)
        movable = [each for each in asked if len(set(map(repr, each.ends()))) > 1]
        if not movable:
            return dict(values)
        draws = random.Random(f"{key}/perturb")
        chosen = draws.choice(movable)
        moved = chosen.move(values[chosen.name], draws)
        return self._fill({**values, chosen.name: moved}, key)

    def complete(self, value_of: Callable[[Dimension], object]) -> dict[str, object]:
        """Returns the value of each field that is asked for, given those of the fields before."""
        values: dict[str, object] = {}
        for dimension in self.dimensions:
            if dimension.is_asked(values):
                values[dimension.name] = value_of(dimension)
        return dict(sorted(values.items()))

    def _fill(self, given: Mapping[str, object], key: str) -> dict[str, object]:
        def value_of(each: Dimension) -> object:
            known = each.name in given
            return given[each.name] if known else each.draw(random.Random(f"{key}/{each.name}"))

        return self.complete(value_of)


def parse_space(space: Mapping[str, object]) -> Space:
    """Reads a space; see the head of this module for its form."""
    if not isinstance(space, Mapping):
        raise SpaceError(f"space: expected a table of fields and their values, got {space!r}")
    short: dict[str, str] = {}
    for name in space:
        check_field(name)
        if (other := short.setdefault(canonical(name), name)) != name:
            raise SpaceError(f"{name} and {other} are the same field")
    dimensions = {name: _dimension(name, value) for name, value in space.items()}
    for dimension in dimensions.values():
        _check_conditions(dimension, dimensions)
    return Space(tuple(_parents_first(dimensions)))


def check_field(name: str) -> None:
    """Raises a SpaceError that lists what exists unless a field can be swept."""
    fields = known_fields()
    if name in ("seed", "seeds"):
        raise SpaceError("seed: is no field of a space; give seeds=[...], which all share")
    if name not in fields:
        known = ", ".join(fields)
        raise SpaceError(f"unknown field {name!r}{meant(name, fields)} (known: {known})")


def _dimension(name: str, spec: object) -> Dimension:
    when: Mapping[str, tuple[object, ...]] = {}
    if isinstance(spec, Mapping) and spec.keys() & {"values", "min", "max"}:
        kind: type[_Listed | _Range] = _Listed if "values" in spec else _Range
        try:
            known = msgspec.convert(spec, kind)
        except msgspec.ValidationError as error:
            form = "values, and when" if kind is _Listed else "numbers min, max, and step or log"
            raise SpaceError(f"{name}: expected {form}, got {spec!r}: {error}") from None
        when = {other: _as_tuple(value) for other, value in known.when.items()}
        if isinstance(known, _Range):
            return _range(name, known, when)
        spec = known.values
    elif isinstance(spec, Mapping) and name not in ("model", "model.extra_body"):
        raise SpaceError(f"{name}: expected values, or min and max, in a table; got {spec!r}")
    values = _as_tuple(spec)
    if not values:
        raise SpaceError(f"{name}: expected at least one value, got an empty list")
    if len({msgspec.json.encode(value) for value in values}) < len(values):
        raise SpaceError(f"{name}: a value is listed twice: {list(values)!r}")
    numbers = [v for v in values if isinstance(v, int | float) and not isinstance(v, bool)]
    ordered = len(numbers) == len(values) and numbers in (
        sorted(numbers), sorted(numbers, reverse=True)
    )  # fmt: skip
    return Dimension(name, values, ordered=ordered, when=when)


def _as_tuple(value: object) -> tuple[object, ...]:
    if isinstance(value, Sequence) and not isinstance(value, str | bytes):
        return tuple(value)
    return (value,)


def _range(name: str, spec: _Range, when: Mapping[str, tuple[object, ...]]) -> Dimension:
    low, high, step, whole = spec.min, spec.max, spec.step, known_fields()[name]
    if not -math.inf < as_float(low) <= as_float(high) < math.inf:
        raise SpaceError(f"{name}: expected min <= max, both finite, got {low!r} and {high!r}")
    if whole and any(n is not None and not float(n).is_integer() for n in (low, high, step)):
        raise SpaceError(f"{name}: takes whole numbers, got {low:g}, {high:g} and step {step!r}")
    if spec.log and (step is not None or low <= 0):
        raise SpaceError(f"{name}: log=true wants min > 0 and no step, got {low!r} and {step!r}")
    if step is not None and not 0 < as_float(step) < math.inf:
        raise SpaceError(f"{name}: expected a step above 0, got {step!r}")
    if step is None and (spec.log or not whole):
        return Dimension(name, None, low, high, log=spec.log, whole=whole, when=when)
    step = step or 1.0
    count = math.floor((high - low) / step + 1e-9) + 1
    if count > LARGEST_GRID:
        raise SpaceError(f"{name}: {count:,} steps; at most {LARGEST_GRID:,} are listed")
    steps = (low + k * step for k in range(count))
    values = tuple(int(v) if whole else float(f"{v:.12g}") for v in steps)
    return Dimension(name, values, ordered=True, when=when)


def _check_conditions(dimension: Dimension, dimensions: Mapping[str, Dimension]) -> None:
    for other, allowed in dimension.when.items():
        where = f"{dimension.name}: when: {other}"
        if other not in dimensions or other == dimension.name:
            known = ", ".join(each for each in dimensions if each != dimension.name) or "none"
            raise SpaceError(f"{where} is no other field of this space (has: {known})")
        if (possible := dimensions[other].values) is None:
            raise SpaceError(
                f"{where} is a range without a step, expected listed values: give {other} a step"
            )
        if never := [value for value in allowed if value not in possible]:
            takes = ", ".join(map(repr, possible))
            raise SpaceError(f"{where} is never {never[0]!r} (takes: {takes})")


def _parents_first(dimensions: Mapping[str, Dimension]) -> Iterator[Dimension]:
    left = dict(sorted(dimensions.items()))
    while left:
        ready = [d for d in left.values() if not set(d.when) & set(left)]
        if not ready:
            raise SpaceError(f"when: the conditions of {', '.join(left)} go round in a circle")
        for dimension in ready:
            yield left.pop(dimension.name)
