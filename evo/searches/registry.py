"""Searches by name, and what a log keeps of one."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TypeGuard

import msgspec

from evo.logs.records import Header, SearchRecord
from evo.plugins import Registry
from evo.searches.base import Search
from evo.searches.greedy import BestOfN, Greedy
from evo.searches.islands import Islands, LoggedIslands
from evo.searches.map_elites import MapElites
from evo.searches.pareto import Pareto
from evo.searches.population import LoggedPopulation, Population
from evo.searches.tree import Tree
from evo.values import Kind

SEARCHES: Registry[Callable[..., Search]] = Registry(
    "search",
    {
        "greedy": Greedy,
        "best_of_n": BestOfN,
        "population": Population,
        "islands": Islands,
        "map_elites": MapElites,
        "pareto": Pareto,
        "tree": Tree,
    },
    kind="class",
    group="evo.searches",
)
"""Search classes by name; `SEARCHES["mine"] = Mine` makes one's own known, here and to resume."""


def _all_elite(fields: object) -> bool:
    """Whether the elite of a logged population is all of it, which is refused now."""
    return isinstance(fields, Mapping) and fields.get("elite") == fields.get("size")


KIND: Kind[Search] = Kind(
    what="search",
    registry="evo.SEARCHES",
    group="evo.searches",
    known=SEARCHES,
    shipped=frozenset(
        {
            Greedy,
            BestOfN,
            Population,
            LoggedPopulation,
            Islands,
            LoggedIslands,
            MapElites,
            Pareto,
            Tree,
        }
    ),
    methods=("start", "plan", "fold"),
    advice="give it, `--search FILE.py:CLASS` or search=CLASS(...), or ",
    earlier={
        "population": lambda record: LoggedPopulation if _all_elite(record.fields) else Population,
        "islands": lambda record: (
            LoggedIslands if _all_elite(record.fields.get("population")) else Islands
        ),
    },
)
"""How searches are found, made and recorded."""


def find_search(search: str | Mapping[str, object] | Search) -> Search:
    """Returns the search of a name.

    Args:
        search: A name in `evo.SEARCHES`, a mapping of `name` and fields, or a search, which is
            returned as it is.

    Raises:
        ValueError: The name or a field is unknown.
        TypeError: It is not a frozen dataclass with `name`, `start`, `plan` and `fold`.

    Example:
        >>> evo.searches.find_search({"name": "population", "size": 20}).size
        20
    """
    return KIND.find(search)


def is_search(value: object) -> TypeGuard[Search]:
    """Whether something is a search, rather than the name of one."""
    return KIND.has(value)


def record_of(search: str | Mapping[str, object] | Search) -> SearchRecord | None:
    """Returns what a header keeps of a search; None for greedy."""
    if search == "greedy" and SEARCHES["greedy"] is Greedy:
        return None
    found = find_search(search)
    return None if type(found) is Greedy else KIND.record(found, SearchRecord)


def known_search(header: Header, search: Search | None = None) -> Header:
    """Returns the header of a log with the search that goes on with it, `search` or a known one."""
    record = header.search
    if search is not None:
        search = find_search(search)
    if record is None:
        if search is not None and type(search) is not Greedy:
            raise ValueError(f"search: the log was made by 'greedy', got {search!r}")
        return header
    if search is None:
        search = search_of(record)
    return msgspec.structs.replace(header, search=KIND.attach(record, search))


def search_of(record: SearchRecord | None) -> Search:
    """Returns the search of a header, or raises ValueError where it is not known here."""
    return Greedy() if record is None else KIND.of(record)
