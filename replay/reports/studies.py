"""The studies below a folder as they stand now: pulls by arm, runs by configuration."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec
import numpy as np

from evo.logs.journal import LogError
from evo.logs.locks import is_written
from evo.logs.log import read_log
from evo.policies.rewards import has_unit_scale
from evo.studies.allocation.journal import Journal, read_journal
from evo.studies.folders import ALLOCATION, EVENTS, SELECTION
from evo.studies.sweep.design import DESIGN
from replay.logs.allocations import load_allocation
from replay.logs.sweeps import load_sweep
from replay.markup import clean
from replay.planning.sweeps import main_effects
from replay.plots import charts
from replay.plots.chart import Chart, pack
from replay.plots.runs import pulled
from replay.plots.scripts import chart_figure
from replay.plots.style import counted, intervals
from replay.reports.forms import html_table
from replay.statistics.intervals import Interval, interval
from replay.statistics.numbers import number

if TYPE_CHECKING:
    import pandas as pd

MOST_CONFIGURATIONS = 60
"""Configurations of a study that are listed, those that are ahead first."""

MOST_DRAWN = 16
"""Configurations of a selection that are drawn, those that are ahead."""

Row = Sequence[tuple[str, bool]]
"""Cells as text, and whether they are words."""


class Identity(msgspec.Struct):
    """What is read of a selection's identity."""

    selector: str
    delta: float
    configurations: list[dict[str, Any]]


def journals(folder: Path) -> list[Path]:
    """The files that name an allocation, a sweep or a selection, in a folder and below."""
    if not folder.is_dir():
        return []
    return sorted(each for name in (ALLOCATION, DESIGN, SELECTION) for each in folder.rglob(name))


def stamp(folder: Path) -> list[tuple[str, int, int]]:
    """What changes when a study goes on, beside its runs."""
    lines = (path.with_name(EVENTS) if path.name == DESIGN else path for path in journals(folder))
    facts = ((path, path.stat()) for path in lines if path.exists())
    return [(str(path), each.st_mtime_ns, each.st_size) for path, each in facts]


def studies(*folders: Path) -> Iterator[str]:
    """A section of a page for every study of some folders, once; or why one is missing."""
    shown: set[Path] = set()
    for folder in folders:
        for path in journals(folder):
            if path.resolve() not in shown:
                shown.add(path.resolve())
                yield _section(folder, path)


def _section(folder: Path, path: Path) -> str:
    place = path.parent.relative_to(folder)
    name = str(place) if place.parts else folder.resolve().name
    title, make = {
        ALLOCATION: ("Allocation", _allocation),
        DESIGN: ("Sweep", _sweep),
        SELECTION: ("Selection", _selection),
    }[path.name]
    try:
        inside = make(path)
    except (LogError, ValueError, OSError) as error:
        title, inside = "Study", f"<p class='muted'>{clean(str(error)[:300])}</p>"
    return f"<section class='study'><h2>{title} {clean(name)}</h2>{inside}</section>"


def _allocation(path: Path) -> str:
    """What each arm got, and the best fitness over all arms."""
    journal = read_journal(path)
    header = journal.header
    order = np.array([told.arm for told in journal.told.values()], dtype=np.int64)
    budget = ", ".join(f"{number(limit)} {unit}" for unit, limit in header.budget.items())
    words = f"{len(order)} of {header.rounds} rounds by {header.policy}, reward {header.reward}"
    words += f"; budget {budget}" if budget else ""
    goal = journal.goals[-1] if journal.goals else None
    words += f"; target {number(goal.target)}" if goal and goal.target is not None else ""
    words += f"; patience {goal.patience}" if goal and goal.patience is not None else ""
    under_way = len(journal.asked) - len(order)
    kind = "under way" if is_written(path) else "begun and not ended"
    words += f"; {under_way} {kind}" if under_way > 0 else ""
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


def _sweep(path: Path) -> str:
    """How far each configuration is, and what its fields do."""
    frame = load_sweep(path.parent)
    fields = list(frame.attrs["fields"])
    counts = frame["status"].value_counts()
    words = ", ".join(f"{count} {status}" for status, count in counts.items())
    known = frame[frame["status"] == "completed"]
    charts_of = [charts.main_effects(frame)] if len(known) and len(main_effects(frame)) else []
    groups = [_cell(part, fields) for _, part in frame.groupby("configuration", sort=False)]
    table = _listed([*fields, "runs", "generations", "mean fitness"], groups)
    count = f"{len(groups)} configurations of {frame['seed'].nunique()} seeds"
    return f"<p>{clean(f'{count}: {words}')}.</p>{_figures(charts_of)}{table}"


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


def _selection(path: Path) -> str:
    """How many runs each configuration has had, and their mean fitness."""
    identity = msgspec.json.decode(path.read_bytes(), type=Identity)
    names = dict.fromkeys(name for each in identity.configurations for name in each)
    fields = [name for name in names if name != "id"]
    groups, estimated = [], dict[str, Interval]()
    for k, values in enumerate(identity.configurations):
        logs = [read_log(each) for each in sorted(path.parent.glob(f"{k:03}-*.jsonl*"))]
        known = [log.best.fitness for log in logs if log.finished and log.best is not None]
        fitness = [each for each in known if each is not None]
        unit = all(has_unit_scale(log.header.task) for log in logs)
        mean = float(np.mean(fitness)) if fitness else -np.inf
        words = [str(values.get(name, "")) for name in fields]
        if fitness:
            name = ", ".join(f"{each} {word}" for each, word in zip(fields, words, strict=True))
            estimated[name or str(k)] = interval(fitness, bounds=(0.0, 1.0) if unit else None)
        done = sum(len(log.generations) for log in logs)
        shown = f"{mean:.6g} (n = {len(fitness)})" if fitness else ""
        cells = [(str(len(logs)), False), (str(done), False), (shown, False)]
        groups.append((mean, [*((each, True) for each in words), *cells]))
    words_of = f"{len(groups)} configurations by {identity.selector}, delta {identity.delta:g}"
    table = _listed([*fields, "logs", "generations", "mean fitness"], groups)
    return f"<p>{clean(words_of)}.</p>{_figures(_standing(estimated))}{table}"


def _standing(estimated: Mapping[str, Interval]) -> list[Chart]:
    """The mean fitness of the configurations that are ahead; nothing where none has a run."""
    if not estimated:
        return []
    import pandas as pd

    ranked = sorted(estimated.items(), key=lambda each: -each[1].value)[:MOST_DRAWN]
    columns = ("value", "low", "high", "n")
    rows = [{"name": name} | {c: getattr(each, c) for c in columns} for name, each in ranked]
    table = pd.DataFrame(rows)
    about = f"{intervals(table, 'Mean')}; {counted(table['n'])}"
    about += f"; the first {MOST_DRAWN} of {len(estimated)}" if len(estimated) > MOST_DRAWN else ""
    return [
        charts.estimates(
            table, title="Configurations, those ahead first", about=about,
            x="best fitness at the end", rows="name",
        )
    ]  # fmt: skip


def _listed(heads: Sequence[str], groups: Sequence[tuple[float, Row]]) -> str:
    """A table of configurations, those that are ahead first."""
    ranked = sorted(groups, key=lambda each: -each[0])
    more = len(groups) - MOST_CONFIGURATIONS
    rest = f"<p class='muted'>{more} further configurations are not listed.</p>" if more > 0 else ""
    return f"{_table(heads, [row for _, row in ranked[:MOST_CONFIGURATIONS]])}{rest}"


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
