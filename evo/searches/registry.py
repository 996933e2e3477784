"""Searches by name, and what a log keeps of one."""

from __future__ import annotations

import ast
import hashlib
import inspect
import textwrap
import threading
import warnings
from collections.abc import Callable, Mapping
from dataclasses import asdict, is_dataclass
from typing import Any, TypeGuard

import msgspec

from evo.logs.records import Header, SearchRecord
from evo.plugins import meant, plugged_in
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

SHIPPED = frozenset({Greedy, BestOfN, Population, Islands})
"""The searches of this package: their version stands for their code, so no hash is kept."""


class UnknownSearch(ValueError):  # noqa: N818
    """A log was made by a search that is not known here."""


_converting = threading.Lock()


def find_search(search: str | Mapping[str, Any] | Search) -> Search:
    """Returns a search: the one given, or by name, with the fields that a mapping names besides.

    ValueError: unknown name or field; TypeError: no frozen dataclass with `plan` and `fold`.
    """
    if isinstance(search, str):
        search = {"name": search}
    if isinstance(search, Mapping):
        fields = dict(search)
        name = fields.pop("name", None)
        known = {**plugged_in("evo.searches"), **SEARCHES}
        if name not in known:
            hint = meant(str(name), known)
            raise ValueError(f"unknown search {name!r}: one of {', '.join(known)}{hint}")
        return _made(name, known[name], fields)
    if not is_search(search):
        raise TypeError(
            "expected the name of a search, or a value of a frozen dataclass with `name`, `start`, "
            f"`plan` and `fold`, got {search!r}"
        )
    return search


def is_search(value: object) -> TypeGuard[Search]:
    """Whether something is a search, rather than the name of one."""
    sound = all(callable(getattr(value, name, None)) for name in ("start", "plan", "fold"))
    return sound and is_dataclass(value) and not isinstance(value, type)


def _made(name: str, made: Callable[..., Search], fields: dict[str, Any]) -> Search:
    try:
        with _converting:  # the first conversion to a type is not safe in several threads
            found: Search = msgspec.convert(fields, made)
    except (msgspec.ValidationError, TypeError) as error:
        raise ValueError(f"search {name!r}: its fields do not fit: {error}") from None
    if unknown := _unknown(fields, fields_of(found)):
        raise ValueError(
            f"search {name!r}: unknown field {unknown!r}, known: {', '.join(fields_of(found))}"
        )
    return found


def _unknown(given: Mapping[str, Any], known: Mapping[str, Any]) -> str:
    """Returns a name that is given and not known, however deep; empty: there is none."""
    for name, value in given.items():
        if name not in known:
            return name
        if isinstance(value, Mapping) and (deeper := _unknown(value, known[name])):
            return f"{name}.{deeper}"
    return ""


def fields_of(search: Search) -> dict[str, Any]:
    """Returns a search's fields as JSON values."""
    found: dict[str, Any] = msgspec.to_builtins(asdict(search))  # type: ignore[call-overload]
    return found


def source_hash(search: Search) -> str:
    """Returns SHA-256 (hex) of a search's code, apart from its comments, docstrings and layout.

    That is its methods, inherited ones included, and constants; empty where the source is unknown.
    """
    parts: list[str] = []
    for owner in type(search).__mro__[:-1]:
        for name, value in sorted(vars(owner).items()):
            function = getattr(value, "fget", getattr(value, "__func__", value))
            function = inspect.unwrap(function) if callable(function) else function
            if inspect.isfunction(function) and function.__code__.co_filename != "<string>":
                try:
                    parts.append(_code(inspect.getsource(function)))
                except (OSError, SyntaxError):
                    return ""
            elif not name.startswith("_") and isinstance(value, str | int | float | tuple):
                parts.append(f"{name} = {value!r}")
    return hashlib.sha256("\n".join(parts).encode()).hexdigest()


def _code(source: str) -> str:
    tree = ast.parse(textwrap.dedent(source))
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef) and ast.get_docstring(node) is not None:
            node.body = node.body[1:] or [ast.Pass()]
    return ast.unparse(tree)


def record_of(search: str | Mapping[str, Any] | Search) -> SearchRecord | None:
    """Returns what a header keeps of a search; None for greedy.

    The search itself goes along with its record, which is not written, for `search_of`.
    """
    found = find_search(search)
    if type(found) is Greedy:
        return None
    record = SearchRecord(
        name=found.name,
        version=getattr(found, "version", 1),
        fields=fields_of(found),
        source="" if type(found) in SHIPPED else source_hash(found),
    )
    return with_search(record, found)


def with_search(record: SearchRecord, search: Search) -> SearchRecord:
    """Returns the record of a log with the search that goes on with it, or raises ValueError."""
    if (search.name, fields_of(search)) != (record.name, record.fields):
        raise ValueError(
            f"search: the log was made by {record.name!r} with {record.fields!r}, "
            f"got {search.name!r} with {fields_of(search)!r}"
        )
    if not _same_code(record, search):
        warnings.warn(
            f"the code of search {record.name!r} is not that which began the log: generations "
            "from here on may be planned otherwise",
            stacklevel=3,
        )
    record = msgspec.structs.replace(record)
    record.__dict__["search"] = search
    return record


def _same_code(record: SearchRecord, search: Search) -> bool:
    """Whether a search plans as the one in a log's record does.

    A shipped search is known by its version, which changes when its plans do; the hash of its
    source, which older logs hold, would change with every edit that leaves the plans alone.
    """
    if type(search) in SHIPPED:
        return record.version == getattr(search, "version", 1)
    return not record.source or source_hash(search) in ("", record.source)


def known_search(header: Header, search: Search | None = None) -> Header:
    """Returns the header of a log with the search that goes on with it, `search` or a known one."""
    record = header.search
    if record is None:
        if search is not None and type(search) is not Greedy:
            raise ValueError(f"search: the log was made by 'greedy', got {search!r}")
        return header
    if search is None:
        search = search_of(record)
    return msgspec.structs.replace(header, search=with_search(record, search))


def search_of(record: SearchRecord | None) -> Search:
    """Returns the search of a header, or raises ValueError where it is not known here."""
    if record is None:
        return Greedy()
    if "search" in record.__dict__:
        found: Search = record.__dict__["search"]
        return found
    known = {**plugged_in("evo.searches"), **SEARCHES}
    if record.name not in known:
        raise UnknownSearch(
            f"unknown search {record.name!r}: what made this log is not known here; give it, "
            f"evo.resume(path, search=...), or register its class, evo.SEARCHES[{record.name!r}] = "
            f"... (known: {', '.join(known)})"
        )
    found = _made(record.name, known[record.name], record.fields)
    record.__dict__.update(with_search(record, found).__dict__)
    return found
