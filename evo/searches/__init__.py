"""Searches: which programs the next generation's children rewrite. One file each."""

from evo.searches.base import Member, Request, Search, choose
from evo.searches.greedy import BestOfN, Greedy
from evo.searches.islands import Islands
from evo.searches.population import Population, genetic
from evo.searches.registry import (
    SEARCHES,
    fields_of,
    find_search,
    is_search,
    known_search,
    record_of,
    search_of,
    source_hash,
    with_search,
)

__all__ = [
    "SEARCHES",
    "BestOfN",
    "Greedy",
    "Islands",
    "Member",
    "Population",
    "Request",
    "Search",
    "choose",
    "fields_of",
    "find_search",
    "genetic",
    "is_search",
    "known_search",
    "record_of",
    "search_of",
    "source_hash",
    "with_search",
]
