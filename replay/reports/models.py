"""What each model of runs that use several was asked, and what its children gained and cost."""

from __future__ import annotations

from replay.logs.tables import Tables
from replay.reports.tables import Cell, exact

MODELS = (
    "gain: sum over children of what they exceed the best fitness before them by, without those "
    "that a filter kept out"
)
ONE_CALL_EACH = (
    "calls, tokens and dollars: of the replies that were evaluated; other drafts, and calls of "
    "critics, on instances and for advice, are in the table of costs alone, and by model in "
    "`evo stats`"
)


def cells_of_models(tables: Tables, is_llm: bool) -> list[Cell]:
    """For each model its calls, and what they gained and cost."""
    children, n = tables.children, len(tables.runs)
    own, cells = children[~children["inherited"]], list[Cell]()
    for name, rows in own.groupby("asked_model"):
        gains = (rows["fitness"] - rows["best_fitness"]).clip(lower=0.0)
        cells += [
            exact(f"{name}: calls", len(rows), n, "count"),
            exact(f"{name}: ok", int((rows["status"] == "ok").sum()), n, "count"),
            exact(f"{name}: improved", int(rows["improved"].sum()), n, "count"),
            exact(f"{name}: gain", float(gains[rows["kept_out"] == ""].sum()), n, "difference"),
            exact(f"{name}: tokens", rows["tokens"].sum(skipna=False), n, "tokens"),
            *([exact(f"{name}: dollars", rows["dollars"].sum(skipna=False), n, "dollars")]
              if is_llm else []),
        ]  # fmt: skip
    return cells


def notes_on_models(tables: Tables) -> tuple[str, ...]:
    """What is needed to read them; whose calls they leave out, where there are such."""
    children = int((~tables.children["inherited"]).sum())
    beside = int(tables.runs["n_calls"].sum()) > children
    return (MODELS, *([ONE_CALL_EACH] if beside else []))
