"""Small edits of any Python source: numeric literals, operators, loop bounds.

The text outside the edited spot stays as it is.
"""

from __future__ import annotations

import ast
import functools
import re
from typing import Literal, NamedTuple

from evo.keyed import KeyedStream
from evo.models.offline.bank import shorten
from evo.models.offline.program import parse

LARGEST_WHOLE = 400  # whole literals are not raised above this, so that loops stay short
_Kind = Literal["number", "bound", "operator"]
_WEIGHTS = {"number": 1.0, "bound": 0.3, "operator": 0.1}
_WORDS = {"number": "a constant", "bound": "a loop bound", "operator": "an operator"}
_OPERATORS = {"+": ("-",), "-": ("+",), "*": ("/",), "/": ("*",), "<": ("<=", ">")}
_OPERATORS |= {">": (">=", "<"), "<=": ("<",), ">=": (">",)}


class Site(NamedTuple):
    """A spot that can be edited: a half-open range of characters of the source."""

    kind: _Kind
    start: int
    end: int
    alternatives: tuple[str, ...] = ()


def edit(source: str, draws: KeyedStream, *, but: str = "") -> tuple[str, str]:
    """Makes one edit, sometimes two, of a program; `but`: a top-level function left alone.

    Returns:
        The edited source and what was done in words; a program without a spot stays as it is.
    """
    sites = find_sites(source, but)
    if not sites:
        return source, "I found nothing to change."
    weights = {site: _WEIGHTS[site.kind] for site in sites}
    chosen = {draws.weighted(weights) for _ in range(draws.integer(1, 2))}
    for site in sorted(chosen, key=lambda site: -site.start):
        text = source[site.start : site.end]
        new = draws.pick(site.alternatives) if site.alternatives else change_number(text, draws)
        source = source[: site.start] + new + source[site.end :]
    return source, f"I change {' and '.join(sorted({_WORDS[site.kind] for site in chosen}))}."


@functools.lru_cache(maxsize=32)
def find_sites(source: str, but: str = "") -> tuple[Site, ...]:
    """Returns the spots of a program that can be edited, none if it is not Python.

    The parser counts in bytes, so a program that is not ASCII has no spots.
    """
    tree = parse(source)
    if tree is None or not source.isascii():
        return ()
    starts = [0]
    for line in source.split("\n"):
        starts.append(starts[-1] + len(line) + 1)
    kept = [top for top in tree.body if not (but and getattr(top, "name", "") == but)]
    nodes = [node for top in kept for node in ast.walk(top)]
    bounds = {
        id(argument)
        for node in nodes
        if isinstance(node, ast.Call) and getattr(node.func, "id", "") == "range"
        for argument in node.args
    }
    sites: list[Site] = []
    for node in nodes:
        if isinstance(node, ast.Constant) and type(node.value) in (int, float):
            start = starts[node.lineno - 1] + node.col_offset
            kind: _Kind = "bound" if id(node) in bounds else "number"
            sites.append(Site(kind, start, _end(node, starts)))
        elif isinstance(node, ast.BinOp):
            sites += _operator(source, starts, node.left, node.right)
        elif isinstance(node, ast.Compare) and len(node.ops) == 1:
            sites += _operator(source, starts, node.left, node.comparators[0])
    return tuple(sorted(sites, key=lambda site: site.start))


def _end(node: ast.expr, starts: list[int]) -> int:
    return starts[(node.end_lineno or 0) - 1] + (node.end_col_offset or 0)


def _operator(source: str, starts: list[int], left: ast.expr, right: ast.expr) -> list[Site]:
    """Returns the spot of an operator if its sign stands alone between its operands."""
    low, high = _end(left, starts), starts[right.lineno - 1] + right.col_offset
    sign = source[low:high].strip("() \n")
    if sign not in _OPERATORS:
        return []
    start = source.index(sign, low)
    return [Site("operator", start, start + len(sign), _OPERATORS[sign])]


_LITERAL = re.compile(
    r"""//[^\n]*+ | /\*(?:.*?\*/|.*) | \#[^\n]*+ | "(?:\\.|[^"\\\n])*+" | '(?:\\.|[^'\\\n])*+'
    | (?<![\w.])(?P<number>\d++(?:\.\d*+)?+(?:[eE][+-]?\d++)?+)(?![\w.])""",
    re.DOTALL | re.VERBOSE,
)
"""Comments, strings, lines of the preprocessor, and numeric literals, which are the only ones that
are changed, of most languages."""


def edit_numbers(source: str, draws: KeyedStream) -> tuple[str, str]:
    """Changes one number, sometimes two, of a program in another language than Python.

    Returns:
        The edited source and what was done in words; a program without a number stays as it is.
    """
    found = [each for each in _LITERAL.finditer(source) if each["number"]]
    # A whole number is often an index or a bound.
    spots = {each.span(): 0.2 if each["number"].isdigit() else 1.0 for each in found}
    if not spots:
        return source, "I found nothing to change."
    chosen = {draws.weighted(spots) for _ in range(draws.integer(1, 2))}
    for start, end in sorted(chosen, reverse=True):
        source = source[:start] + change_number(source[start:end], draws) + source[end:]
    return source, "I change a constant."


def change_number(text: str, draws: KeyedStream) -> str:
    """Returns another literal: a whole number stays whole, near the old one or a multiple."""
    try:
        value: float = int(text, 0)
    except ValueError:
        value = float(text)
    if isinstance(value, int):
        moved = draws.pick((value + 1, value - 1, value * 2, value // 2, value + 5, value * 3 // 2))
        moved = max(moved, 0)
        return str(max(value, min(moved, LARGEST_WHOLE)) if moved > value else moved)
    factor = draws.pick((0.5, 0.8, 0.9, 0.97, 1.03, 1.1, 1.25, 2.0))
    return repr(shorten(value * factor) if value else draws.pick((0.01, 0.1, -0.1)))
