"""Filters: what refuses a program, or keeps it out of the archive. One file each."""

from evo.filters.base import Filter
from evo.filters.near_duplicates import NearDuplicates
from evo.filters.near_embeddings import NearEmbeddings
from evo.filters.protected_regions import ProtectedRegions
from evo.filters.registry import FILTERS
from evo.filters.same_output import SameOutput
from evo.filters.same_program import SameProgram

__all__ = [
    "FILTERS",
    "Filter",
    "NearDuplicates",
    "NearEmbeddings",
    "ProtectedRegions",
    "SameOutput",
    "SameProgram",
]
