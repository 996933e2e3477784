"""The ways in which the offline model fails, as models do: about a fifth of its replies.

Small edits of a sound program fail too, now and then; those come on top.
"""

from __future__ import annotations

import ast
from typing import Literal

from evo.keyed import KeyedStream
from evo.models.offline.program import find_bank, parse

Failure = Literal[
    "none", "prose", "truncated", "syntax", "shape", "infeasible", "exception", "endless"
]

RATES: dict[Failure, float] = {
    "prose": 0.025,
    "truncated": 0.025,
    "syntax": 0.02,
    "shape": 0.01,
    "infeasible": 0.015,
    "exception": 0.015,
    "endless": 0.00025,
}
"""Probability of each failure at temperature 0.6.

- `prose`: no code; `truncated`: cut off, mostly inside the code, finish reason `length`;
- `syntax`: not Python; `shape`: an answer of the wrong shape; `infeasible`: NaN or out of bounds;
  `exception`: raises; `endless`: never returns, one in 4,000, since each costs a whole time limit.

Outside the shipped tasks `shape` and `infeasible` raise instead, and a text has only the first two.
"""


def draw_failure(draws: KeyedStream, *, temperature: float) -> Failure:
    """Returns how a reply fails: half as often at temperature 0 as at 0.6, 2.17 times at 2."""
    scale = 0.5 + 0.5 * temperature / 0.6
    rates = {failure: rate * scale for failure, rate in RATES.items()}
    return draws.weighted({"none": 1 - sum(rates.values()), **rates})


def spoil(source: str, failure: Failure, draws: KeyedStream) -> str:
    """Breaks a program in one of the ways that leave a program in the reply."""
    found, tree = find_bank(source), parse(source)
    functions = [node for node in tree.body if isinstance(node, ast.FunctionDef)] if tree else []
    entry = found[1] if found else functions[-1].name if functions else ""
    node = next((node for node in functions if node.name == entry), None)
    if failure == "syntax" or node is None:
        return _break_syntax(source, draws)
    last = node.body[-1]
    lines = source.split("\n")
    first, end = last.lineno - 1, last.lineno - 1  # what the new lines replace
    if failure == "endless":
        new = ["error = 1.0", "while error > 0:", "    error = 0.5 * (error + 1e-12)"]
    elif found is None or not isinstance(last, ast.Return) or last.value is None:
        new = ["raise NotImplementedError('this case is not handled yet')"]
    else:
        bank, end = found[0], last.end_lineno or 0
        answer = "centers, radii, total" if bank.lasts else bank.variable
        value = "\n".join(lines[first:end]).strip().removeprefix("return").strip()
        new = [f"{answer} = {value}"] if value not in (answer, bank.variable) else []
        new += [draws.pick(bank.spoils[failure]), f"return {answer}"]
    lines[first:end] = [" " * last.col_offset + line for line in new]
    return "\n".join(lines)


def _break_syntax(source: str, draws: KeyedStream) -> str:
    """Loses a bracket or a colon, or leaves an ellipsis of another language."""
    places = [k for k, character in enumerate(source) if character in "):" and k > 0]
    if places and not draws.chance(0.2):
        for place in draws.sample(places, min(5, len(places))):
            broken = source[:place] + source[place + 1 :]
            if parse(broken) is None:
                return broken
    return source.rstrip() + "\n    // ... rest unchanged\n"
