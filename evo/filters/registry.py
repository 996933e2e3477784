"""Filters by name, and what a log keeps of them."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable, Mapping

from evo.filters.base import Filter, rule_of
from evo.filters.near_duplicates import NearDuplicates, SimilarBlocks
from evo.filters.near_embeddings import NearEmbeddings
from evo.filters.protected_regions import ProtectedRegions
from evo.filters.same_output import SameOutput
from evo.filters.same_program import SameLines, SameProgram, SameTokens
from evo.logs.records import FilterRecord, Header
from evo.plugins import Registry
from evo.values import Kind, UnknownValue

FILTERS: Registry[Callable[..., Filter]] = Registry(
    "filter",
    {
        "same_program": SameProgram,
        "near_duplicates": NearDuplicates,
        "near_embeddings": NearEmbeddings,
        "protected_regions": ProtectedRegions,
        "same_output": SameOutput,
    },
    kind="class",
    group="evo.filters",
)
"""Filter classes by name; `FILTERS["mine"] = Mine` makes one's own known, here and to resume."""

_SAME: dict[int, type[SameProgram]] = {1: SameLines, 2: SameTokens}

KIND: Kind[Filter] = Kind(
    what="filter",
    registry="evo.FILTERS",
    group="evo.filters",
    known=FILTERS,
    shipped=frozenset(
        {
            *(SameProgram, SameTokens, SameLines, NearDuplicates, SimilarBlocks),
            *(NearEmbeddings, ProtectedRegions, SameOutput),
        }
    ),
    methods=("check",),
    earlier={
        "same_program": lambda record: _SAME.get(record.version, SameProgram),
        "near_duplicates": lambda record: SimilarBlocks if record.version == 1 else NearDuplicates,
    },
)
"""How filters are found, made and recorded."""

GivenFilter = str | Mapping[str, object] | Filter
"""A filter, its name, or a mapping of its name and fields."""


def records_of(filters: GivenFilter | Iterable[GivenFilter]) -> tuple[FilterRecord, ...]:
    """Returns what a header keeps of filters, in the order in which they are asked.

    Raises:
        ValueError: A name or a field is unknown.
        TypeError: One is no frozen dataclass with `name` and `check`, or its `rule` is no text.
    """
    single = isinstance(filters, str | Mapping) or not isinstance(filters, Iterable)
    given = [filters] if single else list(filters)  # type: ignore[arg-type]
    found = [KIND.find(each) for each in given]
    for each in found:
        rule_of(each)  # before the first call rather than with its prompt
    return tuple(KIND.record(each, FilterRecord) for each in found)


def filters_of(header: Header) -> tuple[Filter, ...]:
    """Returns the filters of a run, or raises ValueError where one is not known here."""
    return tuple(KIND.of(record) for record in header.filters)


def rules_of(header: Header) -> str:
    """Returns the sentences that the filters of a run add to its prompts, if they have any.

    A filter that is not known here has none: its run can be read, but not go on.
    """
    rules = []
    for record in header.filters:
        with contextlib.suppress(UnknownValue):
            rules.append(rule_of(KIND.of(record)))
    return "".join(f"{rule} " for rule in rules if rule)
