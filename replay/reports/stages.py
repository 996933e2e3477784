"""What the stages of an evaluation spared, for the report."""

from __future__ import annotations

from typing import TYPE_CHECKING

from replay.reports.tables import Cell, exact

if TYPE_CHECKING:
    from replay.logs.tables import Tables

STAGES = (
    "seconds saved: what refused children would have taken beyond what they took, had they taken "
    "as long as those that passed all stages; audited: refused ones that were evaluated in full; "
    "would have been the best: those that exceed the best fitness before their generation"
)


def cells_of_stages(tables: Tables) -> list[Cell]:
    """How many children each stage refused, what that saved, and what audits say of it."""
    n, children = len(tables.runs), tables.children
    made = children[~children["inherited"] & (children["stages"] > 0)]
    refused, whole = made[made["status"] == "partial"], made[made["status"] == "ok"]
    cells = [exact("evaluated", len(made), n, "count")]
    for stage, rows in refused.groupby("stages"):
        cells.append(exact(f"refused by stage {stage}", len(rows), n, "count"))
    spared = len(refused) * whole["evaluation_seconds"].mean()
    saved = spared - refused["evaluation_seconds"].sum(skipna=False)
    cells.append(exact("seconds saved", float(saved), n, "seconds"))
    if (audited := refused[refused["audit_status"].notna()]).empty:
        return cells
    better = audited["audit_fitness"] > audited["best_fitness"]
    return [
        *cells,
        exact("audited", len(audited), n, "count"),
        exact("would have been the best", int(better.sum()), n, "count"),
    ]
