"""Writes instances.jsonl: 60 arithmetic word problems, ten of each of six kinds.

    python generate.py > instances.jsonl

The draws use random.random() alone, whose sequence Python guarantees, so that every version and
platform writes the same bytes.
"""

import json
import random
import sys
from collections.abc import Sequence
from typing import TypeVar

SEED = 2605
EACH = 10  # problems of each kind

NAMES = ("Ada", "Ben", "Chloe", "Dan", "Elif", "Farid", "Grace", "Hugo", "Ines", "Jonas")
THINGS = ("marbles", "stamps", "apples", "pencils", "shells", "buttons", "cards", "beads")
BOXES = ("boxes", "bags", "packs", "crates", "trays")
TAKING = ("loses", "sells", "gives away", "breaks")
GAINING = ("buys", "finds", "collects", "receives")
GROUPS = ("children", "friends", "teams", "classes", "shelves")
RATES = (
    ("tap", "give", "litres", "minute", "hours", 60),
    ("printer", "print", "pages", "minute", "hours", 60),
    ("machine", "fill", "bottles", "second", "minutes", 60),
    ("bakery", "make", "rolls", "hour", "days", 24),
    ("factory", "build", "lamps", "day", "weeks", 7),
)
UNITS = (
    ("kilograms", "grams", 1000),
    ("metres", "centimetres", 100),
    ("kilometres", "metres", 1000),
    ("litres", "millilitres", 1000),
    ("hours", "minutes", 60),
    ("minutes", "seconds", 60),
    ("days", "hours", 24),
    ("weeks", "days", 7),
)


T = TypeVar("T")
Problem = tuple[str, int]


class Draws:
    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)

    def pick(self, items: Sequence[T]) -> T:
        return items[int(len(items) * self.random.random())]

    def number(self, low: int, high: int) -> int:
        return low + int((high - low + 1) * self.random.random())


def running(draws: Draws) -> Problem:
    name, things = draws.pick(NAMES), draws.pick(THINGS)
    have, less, more = draws.number(40, 99), draws.number(5, 35), draws.number(6, 48)
    text = (
        f"{name} has {have} {things}, {draws.pick(TAKING)} {less} of them and then "
        f"{draws.pick(GAINING)} {more} more. How many {things} does {name} have now?"
    )
    return text, have - less + more


def groups(draws: Draws) -> Problem:
    name, things, boxes = draws.pick(NAMES), draws.pick(THINGS), draws.pick(BOXES)
    count, size, change = draws.number(3, 12), draws.number(8, 24), draws.number(3, 20)
    if draws.pick((True, False)):
        text = (
            f"{name} has {count} {boxes} of {size} {things} and {draws.pick(TAKING)} {change} "
            f"{things}. How many {things} are left?"
        )
        return text, count * size - change
    text = (
        f"{name} has {count} {boxes} of {size} {things} and {draws.pick(GAINING)} {change} more "
        f"{things}. How many {things} does {name} have in all?"
    )
    return text, count * size + change


def rate(draws: Draws) -> Problem:
    maker, verb, things, unit, units, factor = draws.pick(RATES)
    speed, time = draws.number(3, 25), draws.number(2, 6)
    text = (
        f"A {maker} {verb}s {speed} {things} per {unit} without a break. How many {things} does it "
        f"{verb} in {time} {units}?"
    )
    return text, speed * time * factor


def convert(draws: Draws) -> Problem:
    source, target, factor = draws.pick(UNITS)
    count = draws.number(2, 19)
    return f"How many {target} are there in {count} {source}?", count * factor


def compare(draws: Draws) -> Problem:
    one, things = draws.pick(NAMES), draws.pick(THINGS)
    other = draws.pick([name for name in NAMES if name != one])
    less = draws.number(12, 60)
    more = less + draws.number(3, 39)
    return (
        f"{one} has {less} {things} and {other} has {more}. How many more {things} does {other} "
        f"have than {one}?"
    ), more - less


def share(draws: Draws) -> Problem:
    things, among = draws.pick(THINGS), draws.pick(GROUPS)
    each, count = draws.number(4, 19), draws.number(3, 12)
    return (
        f"{each * count} {things} are divided equally among {count} {among}. How many {things} "
        "does each get?"
    ), each


def generate() -> str:
    draws, seen, lines = Draws(SEED), set[str](), list[str]()
    for number in range(1, EACH + 1):
        for kind in (running, groups, rate, convert, compare, share):
            text, answer = kind(draws)
            while text in seen:
                text, answer = kind(draws)
            seen.add(text)
            instance = {
                "id": f"{kind.__name__}-{number}",
                "prompt": f"Problem: {text}",
                "answer": answer,
            }
            lines.append(json.dumps(instance) + "\n")
    return "".join(lines)


if __name__ == "__main__":
    sys.stdout.write(generate())
