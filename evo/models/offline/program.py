"""Python programs as chains of steps: read from source, written as source.

A chain is what the offline model composes:

    def entry():
        points = layout(...)
        points = move(points, ...)
        return points

A program of another form becomes a chain by wrapping: its entry function gets another name and is
the layout of the new chain.
"""

from __future__ import annotations

import ast
import contextlib
import functools
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

from evo.models.offline.bank import BANKS, Bank, Value
from evo.parsing import parsed

LONGEST_WRAPPED = 6000  # characters; a longer program is not wrapped but replaced
_IMPORTS = {
    "np": "import numpy as np",
    "combinations": "from itertools import combinations",
    "linprog": "from scipy.optimize import linprog",
    "minimize": "from scipy.optimize import minimize",
}
_NAME = re.compile(r"[A-Za-z_]\w*")
_RADII = re.compile(r"def \w*radii\w*\(\w+\)")  # takes the centres and nothing else


@dataclass(frozen=True)
class Statement:
    """A call of a function on the array with literal arguments."""

    function: str
    arguments: Mapping[str, Value]


@dataclass(frozen=True)
class Chain:
    """A program as a chain."""

    entry: str
    layout: Statement | None  # None where `base` makes the array
    base: str  # an expression
    moves: tuple[Statement, ...]
    last: Statement | None  # None where the array is the answer
    imports: tuple[str, ...]  # and other statements that come first
    definitions: Mapping[str, str]  # source of every other top-level definition by name, in order
    native: bool = False  # it was a chain already and was not wrapped

    @property
    def length(self) -> int:
        """Number of moves, plus one for a known layout."""
        return len(self.moves) + (self.layout is not None)


def find_bank(source: str) -> tuple[Bank, str] | None:
    """Returns the bank of the task whose entry function a program defines, and its name."""
    for bank in BANKS:
        for entry in bank.entries:
            if re.search(rf"^def {entry}\(", source, re.MULTILINE):
                return bank, entry
    return None


@functools.lru_cache(maxsize=32)
def parse(source: str) -> ast.Module | None:
    """Parses a program; None if it is not Python."""
    with contextlib.suppress(SyntaxError, ValueError, RecursionError, MemoryError):
        return parsed(source)
    return None


@functools.lru_cache(maxsize=32)
def read_chain(source: str) -> Chain | None:
    """Reads a program as a chain, wrapping it where needed.

    None if it is not Python, of no shipped task, or too long to wrap.
    """
    found, tree = find_bank(source), parse(source)
    if found is None or tree is None:
        return None
    bank, entry = found
    imports, definitions = _split(source, tree)
    body = next(n for n in tree.body if isinstance(n, ast.FunctionDef) and n.name == entry).body
    chain = _match(body, bank, Chain(entry, None, "", (), None, imports, definitions), source)
    if chain is not None:
        rest = {name: text for name, text in definitions.items() if name != entry}
        return replace(chain, definitions=rest, native=True)
    if len(source) > LONGEST_WRAPPED:
        return None
    return _wrap(bank, entry, imports, definitions)


def _split(source: str, tree: ast.Module) -> tuple[tuple[str, ...], dict[str, str]]:
    """Splits a module into what comes first and its definitions by name."""
    lines = source.splitlines()
    first: list[str] = []
    definitions: dict[str, str] = {}
    for node in tree.body:
        start = min([node.lineno, *(d.lineno for d in getattr(node, "decorator_list", ()))])
        text = "\n".join(lines[start - 1 : node.end_lineno])
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            definitions[node.name] = text
        elif isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
            definitions[node.targets[0].id] = text
        elif isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
            continue  # a docstring: each program gets its own
        elif "__main__" not in text:
            first.append(text)
    return tuple(first), definitions


def _match(body: list[ast.stmt], bank: Bank, empty: Chain, source: str) -> Chain | None:
    """Reads the body of an entry function if it is a chain."""
    if body and isinstance(body[0], ast.Expr) and isinstance(body[0].value, ast.Constant):
        body = body[1:]
    ending = parse(f"def entry():\n    {bank.ending}")
    if len(body) < 2 or ending is None or ast.dump(body[-1]) not in ast.dump(ending):
        return None
    first, steps = _assigned(body[0], bank.variable), body[1:-1]
    if first is None:
        return None
    layout, last = _step(first, None), None
    if layout is not None and all(idea.name != layout.function for idea in bank.layouts):
        layout = None
    base = "" if layout else ast.get_source_segment(source, first) or ""
    if bank.lasts:
        last = _step(_assigned(steps.pop(), "radii"), bank.variable) if steps else None
    moves = [_step(_assigned(node, bank.variable), bank.variable) for node in steps]
    if None in moves or (bank.lasts and last is None) or len(moves) > bank.most_moves + 1:
        return None
    kept = tuple(move for move in moves if move is not None)
    return replace(empty, layout=layout, base=base, moves=kept, last=last)


def _assigned(node: ast.stmt, name: str) -> ast.expr | None:
    """Returns what a statement assigns to a name; None if it is no such assignment."""
    if not isinstance(node, ast.Assign) or len(node.targets) != 1:
        return None
    target = node.targets[0]
    return node.value if isinstance(target, ast.Name) and target.id == name else None


def _step(node: ast.expr | None, variable: str | None) -> Statement | None:
    """Reads `function(variable, name=literal, ...)`; without the variable for a layout."""
    if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Name):
        return None
    given = [argument.id for argument in node.args if isinstance(argument, ast.Name)]
    if len(node.args) != len(given) or given != ([] if variable is None else [variable]):
        return None
    arguments: dict[str, Value] = {}
    for keyword in node.keywords:
        try:
            literal = ast.literal_eval(keyword.value)
        except ValueError:
            return None
        if keyword.arg is None or not isinstance(literal, int | float | tuple):
            return None
        arguments[keyword.arg] = literal
    return Statement(node.func.id, arguments)


def _wrap(bank: Bank, entry: str, imports: tuple[str, ...], definitions: dict[str, str]) -> Chain:
    """Makes a chain whose layout is the program's own entry function under another name."""
    name = "first_" + entry.removeprefix("construct_").removeprefix("run_")
    while name in definitions:
        name += "_again"
    renamed = {}
    for key, text in definitions.items():
        other = key in bank.entries and key != entry
        new = text if other else re.sub(rf"\b{entry}\b", name, text)
        renamed[name if key == entry else key] = new
    last = None
    if bank.lasts:
        own = [key for key, text in definitions.items() if _RADII.match(text)]
        last = Statement(own[0] if own else bank.lasts[1].name, {})
    return Chain(entry, None, bank.wrapped.format(f"{name}()"), (), last, imports, renamed)


def write_chain(chain: Chain, bank: Bank) -> str:
    """Writes a chain as a program; definitions that nothing uses are left out."""
    body = [f"{bank.variable} = {_call(chain.layout, None) if chain.layout else chain.base}"]
    body += [f"{bank.variable} = {_call(move, bank.variable)}" for move in chain.moves]
    if chain.last is not None:
        body.append(f"radii = {_call(chain.last, bank.variable)}")
    body.append(bank.ending)
    steps = [s for s in (chain.layout, *chain.moves, chain.last) if s is not None]
    ideas = [idea for step in steps if (idea := bank.idea(step.function)) is not None]
    titles = ", ".join(dict.fromkeys(idea.title for idea in ideas)) or "the first layout"
    title = f'"""{bank.title}: {titles}."""'
    entry = "\n    ".join([f"def {chain.entry}():", title, *body])
    sources = {name: text.strip() for name, text in bank.helpers.items()}
    sources |= {idea.name: idea.source.strip() for idea in ideas}
    sources |= chain.definitions
    aliases = {name for name in bank.entries if name in chain.definitions}
    used = _reach([entry, *(chain.definitions[name] for name in aliases)], sources) | aliases
    parts = [text for name, text in sources.items() if name in used] + [entry]
    words, have = set(_NAME.findall("\n".join(parts))), "\n".join(chain.imports)
    wanted = [line for name, line in _IMPORTS.items() if name in words]
    kept = [line for line in chain.imports if line not in _IMPORTS.values()]
    known = [line for line in wanted if line in chain.imports]
    header = "\n".join([*kept, *known, *(line for line in wanted if line not in have)])
    return "\n\n\n".join([f"{title}\n\n{header}", *parts]) + "\n"


def _call(step: Statement, variable: str | None) -> str:
    given = [] if variable is None else [variable]
    given += [f"{name}={value!r}" for name, value in step.arguments.items()]
    line = f"{step.function}({', '.join(given)})"
    if len(line) <= 84:
        return line
    return f"{step.function}(\n" + "".join(f"        {part},\n" for part in given) + "    )"


def _reach(roots: Iterable[str], sources: Mapping[str, str]) -> set[str]:
    """Returns the names of the sources that the roots use, directly or not."""
    used: set[str] = set()
    queue = list(roots)
    while queue:
        new = (set(_NAME.findall(queue.pop())) & sources.keys()) - used
        used |= new
        queue += [sources[name] for name in new]
    return used
