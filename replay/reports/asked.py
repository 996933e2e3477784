"""The tables of a group of runs, and why an entry point gives none."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

from evo.plugins import PluginError
from replay.reports.tables import Section, stack

if TYPE_CHECKING:
    import pandas as pd


def sections_of(
    makers: Mapping[str, Callable[[], Section | None]],
    section: Callable[[str, str, pd.DataFrame, tuple[str, ...]], Section],
) -> list[Section]:
    """The tables that apply; in the place of one that cannot be loaded stands the reason.

    Args:
        makers: By name, what makes a table, or None where it does not apply.
        section: Makes a table of the group, as `Group.section` does.
    """
    found = []
    for name, make in makers.items():
        try:
            made = make()
        except PluginError as error:
            heading = f"{name[:1].upper()}{name[1:]}"
            said = ((f"{heading}: not made.", str(error)),)
            made = replace(section(heading, "", stack({}), ()), words=said)
        if made is not None:
            found.append(made)
    return found
