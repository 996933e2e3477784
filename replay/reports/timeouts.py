"""What programs that ran into their time limit cost, for the report."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from evo.logs.timeouts import EVALUATED, stated_timeouts

if TYPE_CHECKING:
    from replay.logs.tables import Tables


def timeouts_of_tables(tables: Tables) -> Iterator[str]:
    """Yields the sentence of `evo.logs.timeouts` if there were some, without the limits."""
    children = tables.children
    own = children[~children["inherited"] & children["repeats"].isna()]
    late = own[own["status"] == "timeout"]
    if len(late):
        programs = int(own["status"].isin(EVALUATED).sum())
        yield stated_timeouts(late["evaluation_seconds"].tolist(), programs, "their time limit")
