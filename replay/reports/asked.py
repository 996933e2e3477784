"""The tables of a group of runs, and why one that somebody added gives none."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import replace
from numbers import Real
from typing import TYPE_CHECKING

from evo.plugins import guarded
from replay.reports.tables import CELLS, Section, stack

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
        if made is not None and not isinstance(made, Section):
            raise ValueError(
                f"expected the function of the section {name!r} to return a table, such as "
                f"`group.section(...)` makes, or None, got {type(made).__name__}"
            )
        if made is not None:
            _check_written(made)
        return made
    except ValueError as error:
        heading = f"{name[:1].upper()}{name[1:]}"
        said = ((f"{heading}: not made.", str(error)),)
        return replace(section(heading, "", stack({}), ()), words=said)


def _check_written(made: Section) -> None:
    """Refuses what no form of a report can write.

    Raises:
        ValueError: The cells are no cells, or a text or a number is none.
    """
    cells = made.cells
    columns = [*map(str, cells)] if hasattr(cells, "columns") else []
    if columns != [*CELLS]:
        got = f"a table of {', '.join(columns)}" if columns else f"{cells!r}"
        raise ValueError(
            f"cells: expected what `replay.reports.stack` makes of cells, got {got:.200}"
        )
    texts: dict[str, Iterable[object]] = {
        "title": [made.title],
        "row": cells["row"],
        "quantity": cells["quantity"],
        "notes": made.notes,
    }
    for name, given in texts.items():
        if wrong := [each for each in given if not isinstance(each, str)]:
            raise ValueError(f"{name}: expected a text, got {wrong[0]!r:.80}")
    if wrong := [each for each in cells["value"] if not isinstance(each, Real)]:
        raise ValueError(f"value: expected a number, which may be NaN, got {wrong[0]!r:.80}")
