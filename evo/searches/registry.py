"""Searches by name, and what a log keeps of one."""

from __future__ import annotations

import ast
import difflib
import hashlib
import inspect
import textwrap
from collections.abc import Callable
from dataclasses import is_dataclass
from typing import Any

import msgspec

from evo.searches.base import Search
from evo.searches.greedy import BestOfN, Greedy
from evo.searches.islands import Islands
from evo.searches.population import Population

SEARCHES: dict[str, Callable[..., Search]] = {
    "greedy": Greedy,
    "best_of_n": BestOfN,
    "population": Population,
    "islands": Islands,
}
"""Search classes by name; `SEARCHES["mine"] = Mine` makes one's own known, here and to resume."""


def find_search(search: str | Search) -> Search:
    """Returns a search by name, with its default parameters, or the one given.

    Raises:
        ValueError: Unknown name.
        TypeError: No search: it has no `plan` and `fold`, or is no frozen dataclass.
    """
    if isinstance(search, str):
        if search not in SEARCHES:
            close = difflib.get_close_matches(search, SEARCHES, n=1)
            hint = f"; did you mean {close[0]!r}?" if close else ""
            raise ValueError(f"unknown search {search!r}: one of {', '.join(SEARCHES)}{hint}")
        return SEARCHES[search]()
    sound = all(callable(getattr(search, name, None)) for name in ("start", "plan", "fold"))
    if isinstance(search, type) or not sound or not is_dataclass(search):
        raise TypeError(
            "expected the name of a search, or a value of a frozen dataclass with `name`, `start`, "
            f"`plan` and `fold`, got {search!r}"
        )
    return search


def fields_of(search: Search) -> dict[str, Any]:
    """Returns a search's fields as JSON values."""
    found: dict[str, Any] = msgspec.to_builtins(search)
    return found


def source_hash(search: Search) -> str:
    """Returns SHA-256 (hex) of a search's code, apart from its comments, docstrings and layout."""
    tree = ast.parse(textwrap.dedent(inspect.getsource(type(search))))
    for node in ast.walk(tree):
        if isinstance(node, ast.ClassDef | ast.FunctionDef) and ast.get_docstring(node) is not None:
            node.body = node.body[1:]
    return hashlib.sha256(ast.dump(tree).encode()).hexdigest()


def restore_search(name: str, fields: dict[str, Any]) -> Search:
    """Returns the search that a log names.

    Raises:
        ValueError: It is not registered here, or has other fields.
    """
    if name not in SEARCHES:
        raise ValueError(
            f"unknown search {name!r}: this log's search is not known here; register its class, "
            f"evo.SEARCHES[{name!r}] = ..., or it cannot go on (known: {', '.join(SEARCHES)})"
        )
    try:
        found: Search = msgspec.convert(fields, SEARCHES[name])
    except msgspec.ValidationError as error:
        raise ValueError(
            f"search {name!r}: its fields do not fit the class here: {error}"
        ) from None
    return found
