"""Searches: which programs the next generation's children rewrite. One file each."""

from evo.searches.base import Member, Request, Search
from evo.searches.greedy import BestOfN, Greedy
from evo.searches.islands import Islands
from evo.searches.population import Population
from evo.searches.registry import SEARCHES, find_search

__all__ = [
    "SEARCHES",
    "BestOfN",
    "Greedy",
    "Islands",
    "Member",
    "Population",
    "Request",
    "Search",
    "find_search",
]
