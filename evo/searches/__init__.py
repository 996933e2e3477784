"""Searches: which programs the next generation's children rewrite. One file each."""

from evo.searches.base import Member, Request, Search
from evo.searches.greedy import BestOfN, Greedy
from evo.searches.islands import Islands
from evo.searches.map_elites import MapElites
from evo.searches.pareto import Pareto
from evo.searches.population import Population
from evo.searches.registry import SEARCHES, find_search
from evo.searches.tree import Tree

__all__ = [
    "SEARCHES",
    "BestOfN",
    "Greedy",
    "Islands",
    "MapElites",
    "Member",
    "Pareto",
    "Population",
    "Request",
    "Search",
    "Tree",
    "find_search",
]
