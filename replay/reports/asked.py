"""The tables of a group of runs, and why one that somebody added gives none."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

from evo.plugins import guarded
from replay.reports.tables import Section, stack

if TYPE_CHECKING:
    import pandas as pd


def sections_of(
    makers: Mapping[str, Callable[[], Section | None]],
    section: Callable[[str, str, pd.DataFrame, tuple[str, ...]], Section],
    ours: Collection[str],
) -> list[Section]:
    """The tables that apply; in the place of one that cannot be loaded or made stands the reason.

    Args:
        makers: By name, what makes a table, or None where it does not apply.
        section: Makes a table of the group, as `Group.section` does.
        ours: Names of tables of this package, whose failures are raised.
    """
    found = []
    for name, make in makers.items():
        made = make() if name in ours else _added(name, make, section)
        if made is not None:
            found.append(made)
    return found


def _added(
    name: str,
    make: Callable[[], Section | None],
    section: Callable[[str, str, pd.DataFrame, tuple[str, ...]], Section],
) -> Section | None:
    """A table that somebody added, or why there is none."""
    try:
        made = guarded("section", name, make)()
        if made is None or isinstance(made, Section):
            return made
        raise ValueError(
            f"expected the function of the section {name!r} to return a table, such as "
            f"`group.section(...)` makes, or None, got {type(made).__name__}"
        )
    except ValueError as error:
        heading = f"{name[:1].upper()}{name[1:]}"
        said = ((f"{heading}: not made.", str(error)),)
        return replace(section(heading, "", stack({}), ()), words=said)
