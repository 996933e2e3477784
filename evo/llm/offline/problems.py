"""The arithmetic word problems that the offline model can read.

A problem is plain English with numbers in digits (`1,200` and `2.5` too). The family, by the cue
that decides, first match wins:

| kind | cue | value |
|---|---|---|
| `convert` | `how many U2 ... in|is|are N U1`, `N U1 ... in U2?` | N times U1 over U2 |
| `rate` | `N X per|an|each|every T ... for|in M T2` | N times M, M converted from T2 to T |
| `compare` | `how many|much more|fewer|less ... than` | absolute difference of the first two |
| `share` | `shared|divided|split ... among|between|into`, `each get` | first number / second |
| `groups` | `A boxes of|with|each hold(s) B`, `A ... at|for B each` | A times B, then `running` |
| `running` | anything else with numbers | first number, then each further one added or taken away |

In `groups` and `running` a further number is taken away if the last verb cue before it is one of
`TAKE` (gives, sells, eats, ...), else added. `groups` with further numbers, and `rate` with a
conversion, take two steps. Units: see `UNITS`. This is the whole of it: a problem outside the
family is read wrongly, or not at all.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal

Kind = Literal["convert", "rate", "compare", "share", "groups", "running"]

UNITS: dict[str, tuple[str, float]] = {
    "second": ("time", 1),
    "minute": ("time", 60),
    "hour": ("time", 3600),
    "day": ("time", 86400),
    "week": ("time", 604800),
    "millimetre": ("length", 0.001),
    "centimetre": ("length", 0.01),
    "metre": ("length", 1),
    "kilometre": ("length", 1000),
    "gram": ("mass", 1),
    "kilogram": ("mass", 1000),
    "millilitre": ("volume", 0.001),
    "litre": ("volume", 1),
    "cent": ("money", 0.01),
    "dollar": ("money", 1),
}
"""Dimension and size of each unit; plurals, American spelling and `SHORT` are understood too."""

SHORT = {
    "s": "second",
    "min": "minute",
    "h": "hour",
    "mm": "millimetre",
    "cm": "centimetre",
    "m": "metre",
    "km": "kilometre",
    "g": "gram",
    "kg": "kilogram",
    "ml": "millilitre",
    "l": "litre",
}

TAKE = frozenset(
    re.findall(
        r"\w+",
        "give gives gave lose loses lost sell sells sold eat eats ate use uses used spend "
        "spends spent break breaks broke remove removes removed take takes took donate "
        "donates donated leave leaves left fewer less throw throws threw fly flies flew",
    )
)
"""Verbs and words after which a number is taken away."""

PUT = frozenset(
    re.findall(
        r"\w+",
        "buy buys bought find finds found get gets got receive receives received add adds "
        "added win wins won pick picks picked collect collects collected more join joins "
        "joined arrive arrives arrived earn earns earned bake bakes baked has have had",
    )
)
"""Verbs and words after which a number is added."""

_NUMBER = r"\d[\d,]*(?:\.\d+)?"
_TOKEN = re.compile(rf"{_NUMBER}|[A-Za-z]+")


@dataclass(frozen=True)
class Reading:
    """What a problem says.

    Attributes:
        kind: Which kind of problem it is.
        numbers: All its numbers, in order.
        value: The right answer, if the problem belongs to the family.
        steps: Number of operations to get there.
        converted: Whether units must be converted.
        half: What comes out if the last step is forgotten.
        unconverted: What comes out if units are ignored.
    """

    kind: Kind
    numbers: tuple[float, ...]
    value: float
    steps: int
    converted: bool
    half: float
    unconverted: float


def find_problem(prompt: str) -> str | None:
    """Returns the text after `Problem:` at the start of a line, up to an empty line."""
    match = re.search(r"^[ \t]*problem:[ \t]*(.+?)(?:\n[ \t]*\n|\Z)", prompt, re.I | re.M | re.S)
    return " ".join(match[1].split()) if match else None


def read_problem(text: str) -> Reading | None:
    """Reads a word problem; None if it has no number."""
    numbers = tuple(_value(found) for found in re.findall(_NUMBER, text))
    if not numbers:
        return None
    lower = text.lower()
    for reader in (_read_convert, _read_rate):
        reading = reader(lower, numbers)
        if reading is not None:
            return reading
    if len(numbers) >= 2:
        a, b = numbers[:2]
        if re.search(r"how (many|much) (more|fewer|less)\b.*\bthan\b", lower):
            return Reading("compare", numbers, abs(a - b), 1, False, max(a, b), abs(a - b))
        shared = re.search(r"\b(share|divide|split)\w*\b.*\b(among|between|into)\b", lower)
        if b and (shared or re.search(r"\beach (one )?gets?\b", lower)):
            return Reading("share", numbers, a / b, 1, False, a, a / b)
    return _read_running(lower, numbers)


def _value(text: str) -> float:
    return float(text.rstrip(",").replace(",", ""))


def _unit(word: str) -> str | None:
    """Returns the unit that a word means, or None."""
    word = word.lower()
    word = SHORT.get(word, word)
    for form in (word, word.removesuffix("s")):
        name = form.replace("meter", "metre").replace("liter", "litre")
        if name in UNITS:
            return name
    return None


def _factor(source: str, target: str) -> float | None:
    """Returns how many `target` one `source` is; None if they measure different things."""
    (kind, size), (other, unit) = UNITS[source], UNITS[target]
    return size / unit if kind == other else None


def _read_convert(text: str, numbers: tuple[float, ...]) -> Reading | None:
    if len(numbers) != 1:
        return None
    forward = re.search(rf"how many (\w+)\b.*?\b(?:in|is|are)\b.*?({_NUMBER}) ?(\w+)", text)
    backward = re.search(rf"({_NUMBER}) ?(\w+)\b.*\bin (\w+)\s*\?", text)
    if forward:
        target, number, source = forward[1], forward[2], forward[3]
    elif backward:
        number, source, target = backward[1], backward[2], backward[3]
    else:
        return None
    units = _unit(source), _unit(target)
    if units[0] is None or units[1] is None:
        return None
    factor = _factor(units[0], units[1])
    if factor is None:
        return None
    value = _value(number)
    return Reading("convert", numbers, value * factor, 1, True, value, value)


def _read_rate(text: str, numbers: tuple[float, ...]) -> Reading | None:
    match = re.search(
        rf"({_NUMBER}) ?\w+(?: \w+)? (?:per|an|a|each|every) (\w+)\b.*?"
        rf"\b(?:for|in) ({_NUMBER}) ?(\w+)",
        text,
    )
    if not match:
        return None
    source, target = _unit(match[4]), _unit(match[2])
    if source is None or target is None:
        return None
    factor = _factor(source, target)
    if factor is None:
        return None
    plain = _value(match[1]) * _value(match[3])
    converted = factor != 1
    value = _value(match[1]) * (_value(match[3]) * factor)
    return Reading("rate", numbers, value, 1 + converted, converted, plain, plain)


def _read_running(text: str, numbers: tuple[float, ...]) -> Reading:
    """Reads groups, and sums and differences in the order of the text."""
    signs: list[int] = []
    sign = 1
    for token in _TOKEN.findall(text):
        if token[0].isdigit():
            signs.append(sign)
        elif token in TAKE:
            sign = -1
        elif token in PUT:
            sign = 1
    grouped = len(numbers) >= 2 and re.search(
        rf"{_NUMBER} \w+(?: \w+)? (?:of|with|at|for|(?:that )?(?:each )?(?:hold|contain)s?) "
        rf"{_NUMBER}|{_NUMBER} [^.?]*?{_NUMBER} [^.?]*?\beach\b",
        text,
    )
    rest = list(zip(signs, numbers, strict=True))
    total = rest.pop(0)[1]
    steps = 0
    if grouped:
        total *= rest.pop(0)[1]
        steps = 1
    half = total
    for sign, number in rest:
        half, total = total, total + sign * number
        steps += 1
    kind: Kind = "groups" if grouped else "running"
    return Reading(kind, numbers, total, max(steps, 1), False, half, total)
