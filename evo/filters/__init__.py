"""Filters: what refuses a program before it is evaluated. One file each."""

from evo.filters.base import Filter

__all__ = ["Filter"]
