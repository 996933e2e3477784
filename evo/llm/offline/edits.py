"""Small edits of Python source: numeric literals, operators, loop bounds.

Works on any program. The text outside the edited spot stays as it is.
"""

from __future__ import annotations

import ast
import functools
from dataclasses import dataclass
from typing import Literal

from evo.keyed import KeyedStream
from evo.llm.offline.bank import shorten
from evo.llm.offline.program import parse

LARGEST_WHOLE = 400
"""Whole literals are not raised above this, so that loops stay short."""

_OPERATORS: dict[type[ast.operator] | type[ast.cmpop], tuple[str, tuple[str, ...]]] = {
    ast.Add: ("+", ("-",)),
    ast.Sub: ("-", ("+",)),
    ast.Mult: ("*", ("/",)),
    ast.Div: ("/", ("*",)),
    ast.Lt: ("<", ("<=", ">")),
    ast.Gt: (">", (">=", "<")),
    ast.LtE: ("<=", ("<",)),
    ast.GtE: (">=", (">",)),
}


@dataclass(frozen=True)
class Site:
    """A spot that can be edited: a half-open range of characters of the source."""

    kind: Literal["number", "bound", "operator"]
    start: int
    end: int
    alternatives: tuple[str, ...] = ()


def edit(source: str, draws: KeyedStream, *, but: str = "") -> tuple[str, str]:
    """Makes one edit, sometimes two.

    Args:
        source: A program.
        draws: Where chance comes from.
        but: Name of a top-level function that is left alone.

    Returns:
        The edited source and what was done in words; a program without a spot stays as it is.
    """
    sites = find_sites(source, but)
    if not sites:
        return source, "I found nothing to change."
    weights = {site: {"number": 1.0, "bound": 0.3, "operator": 0.1}[site.kind] for site in sites}
    chosen = {draws.weighted(weights) for _ in range(draws.integer(1, 2))}
    for site in sorted(chosen, key=lambda site: -site.start):
        text = source[site.start : site.end]
        new = draws.pick(site.alternatives) if site.alternatives else _number(text, draws)
        source = source[: site.start] + new + source[site.end :]
    kinds = {"number": "a constant", "bound": "a loop bound", "operator": "an operator"}
    words = " and ".join(sorted({kinds[site.kind] for site in chosen}))
    return source, f"I change {words}."


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
    nodes = [
        node
        for top in tree.body
        if not (but and isinstance(top, ast.FunctionDef) and top.name == but)
        for node in ast.walk(top)
    ]
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
            end = starts[(node.end_lineno or 0) - 1] + (node.end_col_offset or 0)
            sites.append(Site("bound" if id(node) in bounds else "number", start, end))
        elif isinstance(node, ast.BinOp):
            sites += _operator(source, starts, node.left, node.op, node.right)
        elif isinstance(node, ast.Compare) and len(node.ops) == 1:
            sites += _operator(source, starts, node.left, node.ops[0], node.comparators[0])
    return tuple(sorted(sites, key=lambda site: site.start))


def _operator(
    source: str, starts: list[int], left: ast.expr, op: ast.operator | ast.cmpop, right: ast.expr
) -> list[Site]:
    """Returns the spot of an operator if its sign stands alone between its operands."""
    if type(op) not in _OPERATORS:
        return []
    sign, alternatives = _OPERATORS[type(op)]
    low = starts[(left.end_lineno or 0) - 1] + (left.end_col_offset or 0)
    high = starts[right.lineno - 1] + right.col_offset
    if source[low:high].strip("() \n") != sign:
        return []
    start = source.index(sign, low)
    return [Site("operator", start, start + len(sign), alternatives)]


def _number(text: str, draws: KeyedStream) -> str:
    """Returns another literal: a whole number stays whole, near the old one or a multiple."""
    value = ast.literal_eval(text)
    if isinstance(value, int):
        moved = draws.pick((value + 1, value - 1, value * 2, value // 2, value + 5, value * 3 // 2))
        moved = max(moved, 0)
        return str(max(value, min(moved, LARGEST_WHOLE)) if moved > value else moved)
    factor = draws.pick((0.5, 0.8, 0.9, 0.97, 1.03, 1.1, 1.25, 2.0))
    return repr(shorten(value * factor) if value else draws.pick((0.01, 0.1, -0.1)))
