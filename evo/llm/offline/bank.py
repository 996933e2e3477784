"""What the offline model knows about one task: steps it can compose programs of.

A program is a chain over one array: a layout makes it, moves change it, and for some tasks a last
step turns it into the rest of the answer. Each step is the source of one function. The banks are
data: `banks/*.toml`.
"""

from __future__ import annotations

import functools
import threading
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Literal

import msgspec

from evo.keyed import KeyedStream

Value = int | float | tuple["Value", ...]
"""A literal argument of a step."""

Operation = Literal[
    "copy", "edit", "tune", "nudge", "add", "swap", "drop", "layout", "last", "restart"
]
"""What one rewrite does.

- `copy`: nothing; `edit`: one or two small edits anywhere in the code;
- `tune`: other arguments for one step; `nudge`: moves single points by literal offsets;
- `add`, `swap`, `drop`: one move more, another one, one less;
- `layout`: another layout; `last`: another last step; `restart`: a new chain altogether.
"""

BOLD: frozenset[Operation] = frozenset({"add", "swap", "layout", "last", "restart"})
"""The operations that bring in an idea; a long parent makes them rarer."""


class Argument(msgspec.Struct, frozen=True, array_like=True):
    """Range of a numeric argument.

    Attributes:
        low: Least value.
        high: Greatest value.
        kind: `real`, `whole`, or `seed`, which is drawn anew instead of scaled.
    """

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
        step = 1 if factor > 1 else -1
        moved = round(scaled) if round(scaled) != value else int(value) + step
        return int(min(max(moved, self.low), self.high))


def shorten(value: float) -> float:
    """Returns the value to four significant digits, as people write literals."""
    return float(f"{value:.4g}")


class Idea(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One step that the model can write.

    Attributes:
        name: Name of the function.
        title: The step in a few words, for prose and docstrings.
        source: The function. A layout takes only keyword arguments, other steps the array first.
        weight: How often it comes to mind, relative to the others of its kind.
        arguments: Range of each numeric argument.
        choices: Values of each argument that is chosen from a list.
        fixed_ms: About how long it takes, milliseconds.
        ms_per: About how many milliseconds each unit of an argument adds.
    """

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
    """What the model knows about one task, and its habits there.

    Attributes:
        entries: Names of the function that the task calls; the first one found is rewritten.
        title: What the program makes, in a few words.
        variable: Name of the array.
        count: Number of points in it.
        wrapped: Expression for the array, `{}` being a call of the parent's function.
        ending: Last line of the entry function.
        layouts: Ways to make the array.
        moves: Ways to change it.
        lasts: Ways to make the rest of the answer; empty where the array is the answer.
        helpers: Source of the functions that steps use, by name.
        operations: How often each operation comes to mind.
        caution: Each step that a parent has multiplies the weight of bold operations by this.
        most_moves: Moves in a program at most.
        nudge_sizes: Offsets of single points are at most one of these.
        spoils: Ways to spoil the answer: statements for before the end of the entry function.
    """

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


def draw_idea(ideas: tuple[Idea, ...], draws: KeyedStream, *, but: str = "") -> Idea:
    """Returns an idea by weight, other than the one named."""
    number = draws.weighted({k: idea.weight for k, idea in enumerate(ideas) if idea.name != but})
    return ideas[number]


class Words(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What the model says and knows beside programs.

    Attributes:
        prose: Replies without a program.
        instructions: Sentences that a rewrite of a text may add: some help a solver, some do
            nothing, some harm; which is which, the rewriter does not know.
        synonyms: Words by the one that may stand for them.
    """

    prose: tuple[str, ...]
    instructions: tuple[str, ...]
    synonyms: dict[str, str]


_loading = threading.Lock()  # msgspec crashes where threads use a type for the first time at once


def load_banks() -> tuple[Bank, ...]:
    """Returns the banks of the shipped tasks."""
    with _loading:
        return _banks()


def load_words() -> Words:
    """Returns what the model knows beside programs."""
    with _loading:
        return _words()


@functools.cache
def _banks() -> tuple[Bank, ...]:
    names = ("packing", "distance", "triangle")
    return tuple(msgspec.convert(_read(name), Bank) for name in names)


@functools.cache
def _words() -> Words:
    return msgspec.convert(_read("words"), Words)


def _read(name: str) -> dict[str, object]:
    path = Path(__file__).with_name("banks") / f"{name}.toml"
    return tomllib.loads(path.read_text(encoding="utf-8"))
