"""Reports: tables, figures, a static site and the page of a protocol.

Their tables are those of `SECTIONS`, their figures those of `replay.plots.FIGURES`. A function of
your own that is added to one of these joins all reports. A table is made of cells:

    def tokens(group, tau):
        found = replay.interval(group.tables.runs["completion_tokens"])
        cells = {"all runs": [estimate("completion tokens of a run", found, "calls")]}
        return group.section("Tokens", "runs", stack(cells), ["means over runs"])

    SECTIONS["tokens"] = tokens
"""

from replay.reports.comparison import comparison_sections
from replay.reports.forms import FORMATS
from replay.reports.report import SECTIONS, Group, by_size, groups, sections
from replay.reports.tables import Cell, Section, estimate, exact, stack

__all__ = [
    "FORMATS",
    "SECTIONS",
    "Cell",
    "Group",
    "Section",
    "by_size",
    "comparison_sections",
    "estimate",
    "exact",
    "groups",
    "sections",
    "stack",
]
