"""What the offline model knows: for each shipped task the steps that it composes programs of.

A program is a chain over one array: a layout makes it, moves change it, and for some tasks a last
step turns it into the rest of the answer. Each step is the source of one function. The banks are
data: `banks/*.toml`, where each field is explained.
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Literal, TypeVar

import msgspec

from evo.keyed import KeyedStream

Value = int | float | tuple["Value", ...]
"""A literal argument of a step."""

Operation = Literal[
    "copy", "edit", "tune", "nudge", "add", "swap", "drop", "layout", "last", "restart"
]
"""What one rewrite does: nothing; small edits anywhere in the code; other arguments for a step;
offsets for single points; a move more, another one, one less; another layout or last step; a new
chain altogether."""


class Argument(msgspec.Struct, frozen=True, array_like=True):
    """Range of a numeric argument; a `seed` is drawn anew instead of scaled."""

    low: int | float
    high: int | float
    kind: Literal["real", "whole", "seed"] = "real"

    def draw(self, draws: KeyedStream) -> int | float:
        """Returns a value from the range."""
        if self.kind == "real":
            return shorten(draws.uniform(self.low, self.high))
        return draws.integer(int(self.low), int(self.high))

    def tune(self, value: object, draws: KeyedStream) -> int | float:
        """Returns another value: a new seed, or the old one scaled and kept in the range."""
        if self.kind == "seed" or not isinstance(value, int | float):
            return self.draw(draws)
        factor = draws.pick((0.5, 0.75, 0.9, 0.96, 0.99, 1.01, 1.04, 1.1, 1.3, 2.0))
        scaled = min(max(value * factor, self.low), self.high)
        if self.kind == "real":
            return shorten(scaled)
        moved = round(scaled) if round(scaled) != value else int(value) + (1 if factor > 1 else -1)
        return int(min(max(moved, self.low), self.high))


def shorten(value: float) -> float:
    """Returns the value to four significant digits, as people write literals."""
    return float(f"{value:.4g}")


class Idea(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One step that the model can write."""

    name: str
    title: str
    source: str
    weight: float
    arguments: dict[str, Argument] = {}
    choices: dict[str, tuple[int | float | tuple[int | float, ...], ...]] = {}
    fixed_ms: float = 0.2
    ms_per: dict[str, float] = {}

    def draw(self, draws: KeyedStream) -> dict[str, Value]:
        """Returns arguments for a call of the function."""
        drawn: dict[str, Value] = {name: draws.pick(list_) for name, list_ in self.choices.items()}
        return drawn | {name: range_.draw(draws) for name, range_ in self.arguments.items()}

    def milliseconds(self, arguments: Mapping[str, Value]) -> float:
        """Returns about how long a call takes."""
        total = self.fixed_ms
        for name, cost in self.ms_per.items():
            value = arguments.get(name, 0)
            total += cost * value if isinstance(value, int | float) else 0.0
        return total


class Bank(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What the model knows about one task, and its habits there."""

    entries: tuple[str, ...]
    title: str
    variable: str
    count: int
    wrapped: str
    ending: str
    layouts: tuple[Idea, ...]
    moves: tuple[Idea, ...]
    lasts: tuple[Idea, ...] = ()
    helpers: dict[str, str]
    operations: dict[Operation, float]
    caution: float
    most_moves: int
    nudge_sizes: tuple[float, ...]
    spoils: dict[str, tuple[str, ...]]

    def idea(self, name: str) -> Idea | None:
        """Returns the idea with this name, or None."""
        ideas = (*self.layouts, *self.moves, *self.lasts)
        return next((idea for idea in ideas if idea.name == name), None)


class Words(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The model's texts and knowledge beside programs."""

    prose: tuple[str, ...]
    instructions: tuple[str, ...]
    synonyms: dict[str, str]


class Family(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The words by which word problems, and what is asked of their solver, are read."""

    units: dict[str, tuple[str, float]]
    short: dict[str, str]
    take: frozenset[str]
    put: frozenset[str]
    cues: dict[str, tuple[str, ...]]


_S = TypeVar("_S", bound=msgspec.Struct)


def _read(name: str, kind: type[_S]) -> _S:
    path = Path(__file__).with_name("banks") / f"{name}.toml"
    return msgspec.convert(tomllib.loads(path.read_text(encoding="utf-8")), kind)


# Read here, once: msgspec crashes where threads use a type for the first time at once.
BANKS = tuple(_read(name, Bank) for name in ("packing", "distance", "triangle"))
WORDS = _read("words", Words)
FAMILY = _read("problems", Family)
