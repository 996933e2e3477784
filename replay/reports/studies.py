"""Allocations and sweeps below a folder as they stand now: pulls by arm, runs by configuration."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from evo.logs.journal import LogError
from evo.studies.allocation.journal import Journal, read_journal
from evo.studies.folders import ALLOCATION, EVENTS
from evo.studies.sweep.design import DESIGN
from replay.logs.allocations import load_allocation
from replay.markup import clean
from replay.planning.sweeps import load_sweep, main_effects
from replay.plots import charts
from replay.plots.chart import Chart, pack
from replay.plots.runs import pulled
from replay.plots.scripts import chart_figure
from replay.plots.style import number
from replay.reports.tables import html_table

if TYPE_CHECKING:
    import pandas as pd

MOST_CONFIGURATIONS = 60
"""Configurations of a sweep that are listed, those that are ahead first."""

Row = Sequence[tuple[str, bool]]
"""Cells as text, and whether they are words."""


def journals(folder: Path) -> list[Path]:
    """The files that name an allocation or a sweep, in a folder and below."""
    if not folder.is_dir():
        return []
    return sorted(each for name in (ALLOCATION, DESIGN) for each in folder.rglob(name))


def stamp(folder: Path) -> list[tuple[str, int, int]]:
    """What changes when an allocation or a sweep goes on."""
    lines = (
        path if path.name == ALLOCATION else path.with_name(EVENTS) for path in journals(folder)
    )
    facts = ((path, path.stat()) for path in lines if path.exists())
    return [(str(path), each.st_mtime_ns, each.st_size) for path, each in facts]


def studies(folder: Path) -> Iterator[str]:
    """A section of a page for every allocation and sweep of a folder; or why one is missing."""
    for path in journals(folder):
        place = path.parent.relative_to(folder)
        name = str(place) if place.parts else folder.resolve().name
        try:
            if path.name == ALLOCATION:
                title, inside = "Allocation", _allocation(path)
            else:
                title, inside = "Sweep", _sweep(path.parent)
        except (LogError, ValueError, OSError) as error:
            title, inside = "Study", f"<p class='muted'>{clean(str(error)[:300])}</p>"
        yield f"<section class='study'><h2>{title} {clean(name)}</h2>{inside}</section>"


def _allocation(path: Path) -> str:
    """What each arm got, and the best fitness over all arms."""
    journal = read_journal(path)
    header = journal.header
    order = np.array([told.arm for told in journal.told.values()], dtype=np.int64)
    budget = ", ".join(f"{number(limit)} {unit}" for unit, limit in header.budget.items())
    words = f"{len(order)} of {header.rounds} rounds by {header.policy}, reward {header.reward}"
    words += f"; budget {budget}" if budget else ""
    under_way = len(journal.asked) - len(order)
    words += f"; {under_way} under way" if under_way > 0 else ""
    charts_of = []
    if len(order):
        frame = load_allocation(path)
        charts_of = [pulled(order, len(header.arms), of=header.policy), charts.trajectories(frame)]
    heads = ["arm", "log", "pulls", "share", "best reward", "latest round"]
    table = _table(heads, [_arm(journal, order, k) for k in range(len(header.arms))])
    return f"<p>{clean(words)}.</p>{_figures(charts_of)}{table}"


def _arm(journal: Journal, order: np.ndarray[Any, Any], arm: int) -> Row:
    """The line of an arm."""
    own = [told for told in journal.told.values() if told.arm == arm]
    share = f"{100 * len(own) / len(order):.0f} %" if len(order) else ""
    best = f"{max(told.reward for told in own):.6g}" if own else ""
    latest = str(max(told.round for told in own) + 1) if own else ""
    closed = " (closed)" if arm in journal.closed else ""
    name = Path(journal.header.arms[arm].log).name
    return [
        (f"{arm + 1}{closed}", False), (name, True), (str(len(own)), False), (share, False),
        (best, False), (latest, False),
    ]  # fmt: skip


def _sweep(folder: Path) -> str:
    """How far each configuration is, and what its fields do."""
    frame = load_sweep(folder)
    fields = list(frame.attrs["fields"])
    counts = frame["status"].value_counts()
    words = ", ".join(f"{count} {status}" for status, count in counts.items())
    known = frame[frame["status"] == "completed"]
    charts_of = [charts.main_effects(frame)] if len(known) and len(main_effects(frame)) else []
    groups = [_cell(part, fields) for _, part in frame.groupby("configuration", sort=False)]
    groups.sort(key=lambda each: -each[0])
    heads = [*fields, "runs", "generations", "mean fitness"]
    table = _table(heads, [row for _, row in groups[:MOST_CONFIGURATIONS]])
    more = len(groups) - MOST_CONFIGURATIONS
    rest = f"<p class='muted'>{more} further configurations are not listed.</p>" if more > 0 else ""
    count = f"{len(groups)} configurations of {frame['seed'].nunique()} seeds"
    return f"<p>{clean(f'{count}: {words}')}.</p>{_figures(charts_of)}{table}{rest}"


def _cell(runs: pd.DataFrame, fields: Sequence[str]) -> tuple[float, Row]:
    """Mean fitness of a configuration (-inf where none is known), and its line."""
    known = runs["fitness"].dropna()
    mean = float(known.mean()) if len(known) else -np.inf
    states = ", ".join(f"{n} {status}" for status, n in runs["status"].value_counts().items())
    first = runs.iloc[0]
    values = [str(first[name]) for name in fields]
    done = f"{int(runs['done'].sum())} of {int(runs['generations'].sum())}"
    shown = f"{mean:.6g} (n = {len(known)})" if len(known) else ""
    return mean, [*((each, True) for each in values), (states, True), (done, False), (shown, False)]


def _figures(made: Sequence[Chart]) -> str:
    shown = "".join(chart_figure(pack(each), each.words) for each in made)
    return f'<div class="figures">{shown}</div>' if shown else ""


def _table(heads: Sequence[str], rows: Sequence[Row]) -> str:
    words = [rows[0][k][1] if rows else True for k in range(len(heads))]
    kinds = ["word" if each else "" for each in words]
    lines = [
        "".join(f'<td class="{"word" if word else ""}">{clean(text)}</td>' for text, word in row)
        for row in rows
    ]
    return html_table(list(zip(map(clean, heads), kinds, strict=True)), lines)
