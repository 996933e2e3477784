"""Logged runs as one static page: a folder that opens from the disk, without server or network.

    site("logs/local/first", "supplement")      # then open supplement/index.html

`index.html` holds what the runs decide, figures, the report's tables and the table of runs; what a
run's page shows lies in `runs/NUMBER.js` and is read when the run is opened. Texts of logs are
escaped here or set as text in the browser.
"""

from __future__ import annotations

import glob
import json
import math
import os
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

import numpy as np

from evo.logs.journal import LogError
from evo.logs.log import Log, read_log
from evo.logs.noise import noise_of
from evo.logs.sparkline import sparkline
from evo.logs.types import as_path
from evo.studies.folders import ALLOCATION
from replay.explorers.run_arrays import drawing_arrays, parents_of, run_arrays
from replay.explorers.run_data import drawing_of, with_ok
from replay.explorers.run_data import name as in_words
from replay.explorers.scripts import script
from replay.importers.anything import load_tables, whole
from replay.logs.columns import FAMILY, varies
from replay.logs.lineage import Place, program_of
from replay.logs.others import Source
from replay.logs.selected import Where, chosen_tables
from replay.logs.tables import Tables
from replay.markup import clean, difference, middle_cut, page, program
from replay.plots.comparison import comparison
from replay.plots.registry import GroupFigure, figures
from replay.plots.scripts import CHARTS
from replay.reports.comparison import comparison_with_sections
from replay.reports.decision import TITLE, decision_section
from replay.reports.figures import best_construction
from replay.reports.forms import FORMATS, html_table
from replay.reports.pictures import Drawn, figure_of_group, live
from replay.reports.report import OFFLINE_NOTE, Group, groups, sections
from replay.reports.studies import studies
from replay.reports.titles import Words, apart, compared_runs, menu_names, named, settled, titled
from replay.statistics.numbers import amount
from replay.statistics.numbers import number as in_digits

if TYPE_CHECKING:
    import pandas as pd

    from evo.logs.types import JsonObject
    from replay.claims.task_comparison import TaskComparison
    from replay.reports.tables import Section

Texts = dict[Place | None, str | None]
"""Programs by their place."""

SCRIPT = Path(__file__).with_name("site.js")
LONGEST_NAME = 40
"""Characters of a run's name in the table."""

MOST_STEPS = 60
"""Improving children of a run whose differences are shown, the last ones."""


def site(
    logs: Source | Log | Iterable[Source | Log],
    folder: str | os.PathLike[str],
    *,
    title: str | None = None,
    strict: bool = True,
    where: Where | None = None,
    task: str | None = None,
) -> Path:
    """Writes logged runs as a static page, as for the supplement of a paper.

    Args:
        logs: Logs, folders, glob patterns, Log values, or what other tools wrote.
        folder: Where it goes: `index.html` and `runs/`; made if need be, and earlier pages there
            are written over.
        title: Of the page; None: the tasks.
        strict: Raise at a log that cannot be read; otherwise leave it out and warn.
        where: Values by column, such as {"model": ["NAME"]}: only runs that have them are shown.
        task: The task of runs of other tools that do not say it themselves (default: unknown).

    Returns:
        The page: `folder/index.html`.

    Raises:
        LogError: A log cannot be read, or the folder cannot be written.

    Example:
        >>> replay.site(path, new("")).name
        'index.html'
    """
    folder = as_path("folder", folder)
    tables = chosen_tables(load_tables(logs, strict=strict, task=task), where)
    parts = groups(tables)
    title = title or f"Runs of {', '.join(dict.fromkeys(part.task for part in parts))}"
    try:
        (folder / "runs").mkdir(parents=True, exist_ok=True)
        for number, path in enumerate(tables.runs["source"]):
            shown = run_of(read_log(whole(Path(path))), tables.runs.iloc[number])
            data = json.dumps(shown, allow_nan=False, separators=(",", ":"))
            target = folder / "runs" / f"{number}.js"
            target.write_text(f"replaySite({number}, {data});\n", encoding="utf-8")
        body = _index(title, tables, parts, list(studies(*dict.fromkeys(_folders(logs)))))
        code = "\n".join([script("run_view"), CHARTS, SCRIPT.read_text(encoding="utf-8")])
        target = folder / "index.html"
        target.write_text(page(title, body, script=code), encoding="utf-8")
    except OSError as error:
        raise LogError(f"{folder}: cannot be written: {error.strerror or error}") from None
    return target


def _folders(source: Source | Log | Iterable[Source | Log]) -> Iterator[Path]:
    """The folders among some sources, in which studies are looked for."""
    if isinstance(source, Log):
        return
    if isinstance(source, str | os.PathLike):
        path = Path(source).expanduser()
        known = [path] if path.exists() else map(Path, sorted(glob.glob(str(path))))
        for each in known:
            if each.is_dir():
                yield each
            elif each.name == ALLOCATION:
                yield each.parent
    else:
        for part in source:
            yield from _folders(part)


def _index(title: str, tables: Tables, parts: Sequence[Group], found: Sequence[str]) -> str:
    """The body of the page, with a section for each study that was found."""
    best, made, why = comparison_with_sections(tables)
    compared = _compared(parts, best, made)
    decision = FORMATS["html"]([decision_section(tables, best, why)])
    others = [("studies", "Studies")] if found else []
    others += [("compared", "Comparison")] if compared else []
    names = menu_names(parts)[:7]
    menu = [
        ("decision", TITLE), ("runs", "Runs"), *others,
        *((f"part-{k}", name) for k, name in enumerate(names)),
    ]  # fmt: skip
    inside = [
        f'<section id="decision"><h2>{TITLE}</h2>{decision}</section>',
        _sums(tables),
        _table_of_runs(tables),
        *([f'<div id="studies">{"".join(found)}</div>'] if found else []),
        compared,
        parts_of(parts),
    ]
    return site_body(title, menu=menu, inside=inside)


def site_body(title: str, *, menu: Sequence[tuple[str, str]], inside: Iterable[str]) -> str:
    """The body of a page of runs: what is inside, and the place of a run that is opened."""
    links = " ".join(f'<a href="#{to}">{clean(text)}</a>' for to, text in menu)
    return "\n".join(
        [
            f"<header><div><strong>{clean(title)}</strong> {links}</div></header>",
            '<main><p id="lost" role="status" class="muted"></p>',
            f'<div id="all"><h1>{clean(title)}</h1>',
            *inside,
            '</div><div id="run" hidden></div>',
            "<footer>Intervals are over whole runs. Made from logs that hold every call; "
            "nothing on this page was asked of a model.</footer></main>",
        ]
    )


def _sums(tables: Tables) -> str:
    """The totals over all runs."""
    runs, children = tables.runs, tables.children
    tokens = runs[["prompt_tokens", "completion_tokens"]].sum().sum()
    facts = [
        ("runs", f"{len(runs):,}"),
        ("calls", f"{int(runs['n_calls'].sum()):,}"),
        ("children ok", f"{100 * (children['status'] == 'ok').mean():.0f} %"
                        if len(children) else "none"),
        ("tokens reported", in_digits(tokens) if tokens else "none"),
        ("models", ", ".join(dict.fromkeys(runs["model"]))),
    ]  # fmt: skip
    boxes = "".join(f"<div><b>{clean(text)}</b><span>{name}</span></div>" for name, text in facts)
    note = "" if runs["is_llm"].all() else f'<p class="muted">Here {OFFLINE_NOTE}.</p>'
    return f'<div class="sums">{boxes}</div>{note}'


def _table_of_runs(tables: Tables) -> str:
    """One row a run; what tells runs apart beside their N where it is not all the same."""
    curves = dict(list(tables.generations.groupby("run", sort=False)["best_fitness"]))
    ok = (tables.children["status"] == "ok").groupby(tables.children["run"]).mean().to_dict()
    named = [n for n in FAMILY if n != "children" and varies(tables.runs, n).any()]
    lines = []
    for number, row in enumerate(tables.runs.to_dict("records")):
        curve = curves[row["run"]].to_numpy(dtype=np.float64)
        values = {
            "initial": curve[0],
            "best": curve[-1],
            "N": row["children"],
            "T": row["generations"],
            "seed": row["seed"] if row["seed"] >= 0 else math.nan,
            "calls": row["n_calls"],
            "ok": 100 * ok.get(row["run"], math.nan),
            "tokens": row["prompt_tokens"] + row["completion_tokens"],
            "seconds": row["call_seconds"],
        }
        words = [str(row[name]) for name in named]
        lines.append(run_cells(number, row["run"], words, values, curve.tolist()))
    return (
        f'<section id="runs"><h2>Runs</h2><p class="find"><input type="search" id="find" '
        f'aria-label="find runs" placeholder="find: task, model, seed, ..."><span class="muted" '
        f'id="found" role="status">{amount(len(lines), "run")}</span></p>'
        f"{html_table(run_heads(named), lines)}</section>"
    )


NUMBERS = {
    "initial": (".4g", ""), "best": (".6g", ""), "N": (".0f", ""), "T": (".0f", ""),
    "seed": (".0f", ""), "calls": (".0f", ""), "ok": (".0f", " %"), "tokens": (",.0f", ""),
    "seconds": (",.0f", ""),
}  # fmt: skip
"""Columns of the table of runs that hold numbers: their form and unit."""


def run_heads(named: Sequence[str], *, live: bool = False) -> list[tuple[str, str]]:
    """Heads of the table of runs; a live one says how each run is doing."""
    words = ["run", *(["state"] if live else []), *named]
    heads = [(f'<button type="button">{name}</button>', "word") for name in words]
    heads += [(f'<button type="button">{name}</button>', "") for name in NUMBERS]
    return [*heads, ("best so far", "")]


def run_cells(
    number: int,
    name: str,
    named: Iterable[str],
    values: Mapping[str, float],
    curve: Sequence[float],
) -> str:
    """The cells of a run's line in the table; NaN leaves one empty."""
    shown = middle_cut(name, LONGEST_NAME)
    whole = "" if shown == name else f' title="{clean(name)}"'
    to = quote(name, safe="")  # a name lasts where a number counts what else is in the table
    link = f'<a href="#run/{to}" data-run="{number}"{whole}>{clean(shown)}</a>'
    cells = [f'<td class="word" data-key="{clean(name)}">{link}</td>']
    cells += [f'<td class="word">{clean(text)}</td>' for text in named]
    cells += [_number(values[name], *form) for name, form in NUMBERS.items()]
    return "".join([*cells, f"<td>{sparkline(list(curve), 96, 20) if len(curve) else ''}</td>"])


def _number(value: float, form: str, unit: str = "") -> str:
    """A cell; empty where the number is unknown."""
    if not math.isfinite(value):
        return '<td data-key=""></td>'
    return f'<td data-key="{value:.12g}">{value:{form}}{unit}</td>'


def parts_of(parts: Sequence[Group], drawn: Drawn | None = None) -> str:
    """Each task, model and configuration: its figures, and the report's tables.

    Pictures that are kept in `drawn` are drawn again only if their logs have changed.
    """
    known = settled(figures(), parts)
    words = apart(parts)
    return "".join(
        _part(number, part, own, said, drawn)
        for number, (part, own, said) in enumerate(zip(parts, known, words, strict=True))
    )


def _part(
    number: int, part: Group, known: Mapping[str, GroupFigure], words: Words, drawn: Drawn | None
) -> str:
    made, _ = best_construction(part)
    frame = part.tables.generations
    titles = [titled(name, words) for name in known]
    made_of = zip(titles, known.values(), strict=True)
    shown = [figure_of_group(title, each, frame, drawn) for title, each in made_of]
    if made is not None:
        shown.insert(1, live(named(made.chart, words), made.caption))
    tables = "".join(map(FORMATS["html"], ([each] for each in sections(part))))
    return (
        f'<section id="part-{number}"><h2>{clean(part.title)}</h2>'
        f'<div class="figures">{"".join(shown)}</div>{tables}</section>'
    )


def comparison_of(tables: Tables, parts: Sequence[Group]) -> str:
    """The comparison of the configurations over all tasks: its figures and tables; else empty."""
    found, made, _ = comparison_with_sections(tables)
    return _compared(parts, found, made)


def _compared(parts: Sequence[Group], found: TaskComparison | None, made: Sequence[Section]) -> str:
    shown = compared_runs(parts)
    if found is not None:
        shown.append(comparison(found))
    if not shown:
        return ""
    tables = "".join(map(FORMATS["html"], ([each] for each in made)))
    return (
        '<section id="compared"><h2>Configurations compared</h2>'
        f'<div class="figures">{"".join(map(live, shown))}</div>{tables}</section>'
    )


def run_of(log: Log, row: pd.Series[Any]) -> dict[str, object]:
    """What the page of a run shows."""
    header = log.header
    improving = [each.best for each in log.generations if each.improved][-MOST_STEPS:]
    parents = parents_of(log)
    texts = _texts(log, parents, improving)
    note = "" if header.model.is_llm else f": {OFFLINE_NOTE}"
    drawn = run_arrays(log, row["run"])
    if "chart" in drawn:
        drawn["chart"]["title"] = ""  # the page has it
    return {
        **drawn,
        "about": f"{header.task.name}, {header.model_name}{note}",
        "drawing": _drawing(log, texts),
        "facts": list(_facts(log, row)),
        "steps": list(_steps(log, parents, improving, texts)),
        "programs": list(_programs(log, texts)),
    }


def _drawing(log: Log, texts: Texts) -> JsonObject:
    """The construction of the best program, where the log keeps it."""
    best = log.best if log.initial else None
    if best is None:
        return {}
    program = texts.get((best.generation, best.index))
    made = drawing_arrays(drawing_of(log, best.evaluation, program, best.value))
    if "chart" not in made:
        return {}
    [panel] = made["chart"]["panels"]
    panel["title"] = f"The best: {panel['title']}"
    return made


def _facts(log: Log, row: pd.Series[Any]) -> Iterator[tuple[str, str]]:
    """Configuration and cost of a run, in words."""
    header = log.header
    yield "best fitness", f"{log.trajectory[-1]:.8g}"
    yield "generations T", f"{len(log.generations)}{'' if log.finished else f' of {log.goal}'}"
    yield "children N", str(header.children)
    if header.seed >= 0:
        yield "seed", str(header.seed)
    yield "search", str(row["search"])
    for name in ("temperature", "top_p", "max_tokens"):
        if (value := getattr(header.sampling, name)) is not None:
            yield name.replace("_", " "), f"{value:g}"
    yield "calls", f"{row['n_calls']}"
    if header.models:
        for name, count in Counter(each.model for each in log.outcomes).items():
            yield f"children asked of {name}", str(count)
    for name, count in sorted(with_ok(log.status_counts).items(), key=lambda each: -each[1]):
        yield f"children {name.replace('_', ' ')}", str(count)
    dollars = [("dollars", ".4g")] if header.model.is_llm else []
    counts = [("prompt_tokens", ",.0f"), ("completion_tokens", ",.0f"), *dollars]
    for column, form in (*counts, ("call_seconds", ",.0f")):
        known = not math.isnan(row[column])
        yield column.replace("_", " "), format(row[column], form) if known else "unknown"
    if noise := noise_of(header, log.initial):
        yield "noise", noise
    if header.lost:
        yield f"from {header.source}", f"does not hold: {header.lost}"


def _steps(
    log: Log, parents: Mapping[Place, Place], improving: Sequence[Place], texts: Texts
) -> Iterator[dict[str, str]]:
    """Each improving child: what it gained, and what it changed of its parent."""
    fitness = {(o.generation, o.index): o.evaluation.fitness for o in log.outcomes}
    for place in improving:
        known, before = fitness[place], log.trajectory[place[0] - 1]
        text, was = texts.get(place), texts.get(parents.get(place))
        lines, html = "", "<p class='muted'>The log holds no program.</p>"
        if text is not None and was is not None:
            try:
                html, added, removed = difference(was, text, language=log.header.task.language)
                lines = f"lines: {added} added, {removed} removed"
            except ValueError as error:
                html = f"<p class='muted'>{clean(str(error))}</p>"
        elif text is not None:
            html = program(text, log.header.task.language)
        yield {
            "at": f"{place[0]}-{place[1]}",
            "head": f"{in_words(place)}: "
            + ("without a fitness" if known is None else f"fitness {known:.6g}"),
            "gain": "" if known is None or math.isnan(before) else f"+{known - before:.3g}",
            "lines": lines,
            "html": html,
        }


def _texts(log: Log, parents: Mapping[Place, Place], improving: Sequence[Place]) -> Texts:
    """The programs that a run's page shows, as far as the log holds them."""
    wanted = {*improving, *(parents[place] for place in improving if place in parents)}
    if log.initial:
        wanted.add((log.best.generation, log.best.index))
    found = {} if log.header.compact else log.find(wanted - {(0, 0)})
    texts: Texts = {place: child.program for place, child in found.items()}
    return texts | {(0, 0): program_of(log, (0, 0))}


def _programs(log: Log, texts: Texts) -> Iterator[tuple[str, str]]:
    """The best program and the initial one."""
    best = log.best if log.initial else None
    if best and best.generation and (text := texts.get((best.generation, best.index))) is not None:
        yield f"The best: {in_words((best.generation, best.index))}", program(text)
    if (first := texts[0, 0]) is not None:
        yield "The initial program", program(first)
