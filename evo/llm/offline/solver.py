"""Answers arithmetic word problems, better or worse depending on what the prompt asks for.

It works out the right answer where it can read the problem (see `problems`) and then errs with a
probability that the system message sets. From `accuracy`, on a scale of probabilities:

- 0.45 to begin with, 0.30 if the problem takes two steps;
- `step by step` (or `show each calculation`, `show your work`): +0.20, with two steps +0.35;
- `units` or `unit of`, and the problem needs a conversion: +0.20; without: -0.15;
- `check` or `verify`: +0.08; `list the known quantities` or `what is asked`: +0.05;
- `only the answer`, `concise` or `guess`: -0.15; `nearest ten`: rounds the answer to tens;
- more than 120 words of system message: -0.10.

The sum is kept within 0.05 and 0.97. If the prompt asks for a format (`answer: <number>`, or
`final answer` with `last line`), the reply ends so; if not, two replies in five end with a sentence
whose last number is not the answer. The draws depend on the problem and the seed alone, so that
prompts are compared on the same luck.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from evo.keyed import KeyedStream
from evo.llm.offline.problems import Reading, read_problem


@dataclass(frozen=True)
class Demands:
    """What a system message asks of a solver."""

    steps: bool
    units: bool
    check: bool
    known: bool
    hasty: bool
    round_to_ten: bool
    format: bool
    long: bool


def read_demands(system: str) -> Demands:
    """Reads what a system message asks for; case does not matter."""
    text = " ".join(system.lower().split())

    def has(*cues: str) -> bool:
        return any(cue in text for cue in cues)

    return Demands(
        steps=has("step by step", "show each calculation", "show your work", "step-by-step"),
        units=has("units", "unit of"),
        check=has("check", "verify"),
        known=has("known quantities", "what is asked"),
        hasty=has("only the answer", "concise", "guess"),
        round_to_ten=has("nearest ten"),
        format=has("answer: <number>", "answer: <n>") or (has("final answer") and has("last line")),
        long=len(text.split()) > 120,
    )


def accuracy(reading: Reading, demands: Demands) -> float:
    """Returns the probability of the right answer, rounding to tens apart."""
    two = reading.steps >= 2
    value = 0.30 if two else 0.45
    value += (0.35 if two else 0.20) * demands.steps
    if reading.converted:
        value += 0.20 if demands.units else -0.15
    value += 0.08 * demands.check + 0.05 * demands.known
    value -= 0.15 * demands.hasty + 0.10 * demands.long
    return min(max(value, 0.05), 0.97)


def solve(problem: str, system: str, *, seed: int | None) -> str:
    """Returns the reply to a word problem.

    Args:
        problem: Text of the problem.
        system: The system message.
        seed: The request's seed.
    """
    draws = KeyedStream("solve", problem, seed)
    luck, clear = draws.uniform(0, 1), draws.chance(0.6)
    reading = read_problem(problem)
    if reading is None:
        return "I find no numbers in this problem, so I cannot work it out."
    demands = read_demands(system)
    wrong = _mistake(reading, draws)
    value = reading.value if luck < accuracy(reading, demands) else wrong
    if demands.round_to_ten:
        value = 10.0 * round(value / 10)
    answer = format_number(value)
    lines = []
    if demands.steps:
        lines.append(f"The numbers are {', '.join(map(format_number, reading.numbers))}.")
        lines.append(f"This takes {reading.steps} step{'s' if reading.steps > 1 else ''}.")
    if demands.check:
        lines.append("I went over it once more.")
    if demands.format:
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
