"""The arithmetic word problems that the offline model reads, and how well it answers them.

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
`take` (gives, sells, eats, ...), else added. `groups` with further numbers, and `rate` with a
conversion, take two steps. Words and units: `banks/problems.toml`. This is the whole of it: a
problem outside the family is read wrongly, or not at all.

It works out the right answer and then errs with a probability that the system message sets:
`accuracy`. If the prompt asks for a format (`answer: <number>`, or `final answer` with `last
line`), the reply ends so; if not, two replies in five end with a sentence whose last number is not
the answer. The draws depend on the problem and the seed alone, so that prompts are compared on the
same luck.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal

from evo.keyed import KeyedStream
from evo.models.offline.bank import FAMILY

Kind = Literal["convert", "rate", "compare", "share", "groups", "running"]

NUMBER = r"\d[\d,]*(?:\.\d+)?"
_TOKEN = re.compile(rf"{NUMBER}|[A-Za-z]+")


@dataclass(frozen=True)
class Reading:
    """The content of a problem: its numbers, the right answer, and the answer given in haste.

    `half`: if the last step is forgotten; `unconverted`: if units are ignored.
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
    numbers = tuple(_value(found) for found in re.findall(NUMBER, text))
    if not numbers:
        return None
    lower = text.lower()
    if reading := _read_convert(lower, numbers) or _read_rate(lower, numbers):
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


def _factor(source: str, target: str) -> float | None:
    """Returns how many `target` one `source` is; None if they measure different things."""
    found = []
    for word in (source, target):
        long = FAMILY.short.get(word, word).replace("meter", "metre").replace("liter", "litre")
        forms = (long, long.removesuffix("s"))
        found.append(next((FAMILY.units[form] for form in forms if form in FAMILY.units), None))
    if found[0] is None or found[1] is None or found[0][0] != found[1][0]:
        return None
    return found[0][1] / found[1][1]


def _read_convert(text: str, numbers: tuple[float, ...]) -> Reading | None:
    if len(numbers) != 1:
        return None
    if found := re.search(rf"how many (\w+)\b.*?\b(?:in|is|are)\b.*?({NUMBER}) ?(\w+)", text):
        target, number, source = found.groups()
    elif found := re.search(rf"({NUMBER}) ?(\w+)\b.*\bin (\w+)\s*\?", text):
        number, source, target = found.groups()
    else:
        return None
    factor, value = _factor(source, target), _value(number)
    if factor is None:
        return None
    return Reading("convert", numbers, value * factor, 1, True, value, value)


def _read_rate(text: str, numbers: tuple[float, ...]) -> Reading | None:
    match = re.search(
        rf"({NUMBER}) ?\w+(?: \w+)? (?:per|an|a|each|every) (\w+)\b.*?"
        rf"\b(?:for|in) ({NUMBER}) ?(\w+)",
        text,
    )
    factor = _factor(match[4], match[2]) if match else None
    if match is None or factor is None:
        return None
    each, times = _value(match[1]), _value(match[3])
    converted, plain = factor != 1, each * times
    value = each * (times * factor)
    return Reading("rate", numbers, value, 1 + converted, converted, plain, plain)


def _read_running(text: str, numbers: tuple[float, ...]) -> Reading:
    """Reads groups, and sums and differences in the order of the text."""
    signs: list[int] = []
    sign = 1
    for token in _TOKEN.findall(text):
        if token[0].isdigit():
            signs.append(sign)
        elif token in FAMILY.take:
            sign = -1
        elif token in FAMILY.put:
            sign = 1
    grouped = len(numbers) >= 2 and re.search(
        rf"{NUMBER} \w+(?: \w+)? (?:of|with|at|for|(?:that )?(?:each )?(?:hold|contain)s?) "
        rf"{NUMBER}|{NUMBER} [^.?]*?{NUMBER} [^.?]*?\beach\b",
        text,
    )
    rest = list(zip(signs, numbers, strict=True))
    total = rest.pop(0)[1]
    if grouped:
        total *= rest.pop(0)[1]
    steps = len(rest) + bool(grouped)
    half = total
    for sign, number in rest:
        half, total = total, total + sign * number
    kind: Kind = "groups" if grouped else "running"
    return Reading(kind, numbers, total, max(steps, 1), False, half, total)


def read_demands(system: str) -> set[str]:
    """Reads what a system message asks for, by the name of its cues; case does not matter."""
    text = " ".join(system.lower().split())
    found = {name for name, cues in FAMILY.cues.items() if any(cue in text for cue in cues)}
    if "final answer" in text and "last line" in text:
        found.add("format")
    return found | {"long"} if len(text.split()) > 120 else found


def accuracy(reading: Reading, demands: set[str]) -> float:
    """Returns the probability of the right answer, rounding to tens apart."""
    two = reading.steps >= 2
    value = 0.30 if two else 0.45
    if "steps" in demands:
        value += 0.35 if two else 0.20
    if reading.converted:
        value += 0.20 if "units" in demands else -0.15
    value += 0.08 * ("check" in demands) + 0.05 * ("known" in demands)
    value -= 0.15 * ("hasty" in demands) + 0.10 * ("long" in demands)
    return min(max(value, 0.05), 0.97)


def solve(problem: str, system: str, *, seed: int | None) -> str:
    """Returns the reply to a word problem under a system message."""
    draws = KeyedStream("solve", problem, seed)
    luck, clear = draws.uniform(0, 1), draws.chance(0.6)
    reading = read_problem(problem)
    if reading is None:
        return "I find no numbers in this problem, so I cannot work it out."
    demands = read_demands(system)
    wrong = _mistake(reading, draws)
    value = reading.value if luck < accuracy(reading, demands) else wrong
    if "tens" in demands:
        value = 10.0 * round(value / 10)
    answer = format_number(value)
    lines = []
    if "steps" in demands:
        lines.append(f"The numbers are {', '.join(map(format_number, reading.numbers))}.")
        lines.append(f"This takes {reading.steps} step{'s' if reading.steps > 1 else ''}.")
    if "check" in demands:
        lines.append("I went over it once more.")
    if "format" in demands:
        lines.append(f"Answer: {answer}")
    elif clear:
        lines.append(f"The result is {answer}")
    else:
        first = format_number(reading.numbers[0])
        lines.append(f"It comes to {answer}, starting from the {first} in the question.")
    return "\n".join(lines)


def format_number(value: float) -> str:
    """Returns a number without needless digits: at most four decimals."""
    return re.sub(r"\.?0+$", "", f"{value:.4f}") if value % 1 else f"{value:.0f}"


def _mistake(reading: Reading, draws: KeyedStream) -> float:
    """Returns a wrong answer of the kind that haste gives."""
    value = reading.value
    slips = [reading.half, reading.unconverted, value + draws.pick((1, -1, 10, -10)), value * 10]
    slips.append(sum(reading.numbers))
    different = [slip for slip in slips if abs(slip - value) > 1e-6]
    return draws.pick(different or [value + 1])
