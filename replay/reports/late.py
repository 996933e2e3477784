"""What programs that ran into their time limit cost, for the report."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from evo.logs.timeouts import EVALUATED

if TYPE_CHECKING:
    from replay.logs.tables import Tables


def late_programs(tables: Tables) -> Iterator[str]:
    """Yields a sentence if there were some; equal programs of a run count once."""
    children = tables.children
    own = children[~children["inherited"] & children["repeats"].isna()]
    late = own[own["status"] == "timeout"]
    if len(late):
        programs = int(own["status"].isin(EVALUATED).sum())
        seconds = late["evaluation_seconds"].sum()
        yield (
            f"{len(late):,} of {programs:,} programs ran into their time limit: {seconds:,.4g} s "
            "of evaluation"
        )
