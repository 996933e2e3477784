"""The page of a protocol: what was claimed before the first call, and what its runs say.

write_findings("local-tsp", "logs/corpus/local-tsp", "findings.html")
"""

from __future__ import annotations

import math
import os
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pandas as pd

from evo.logs.journal import write_new
from evo.logs.types import JsonObject
from evo.studies.protocol import Protocol, logs_of
from evo.studies.protocol_status import status_rows
from replay.claims.further import further_runs, nearer_none
from replay.claims.protocols import ALPHA, Stated, best_of, loaded, protocol_claims
from replay.claims.questions import answer
from replay.logs.frames import FAILURES
from replay.logs.tables import load, load_tables
from replay.markup import clean, page
from replay.plots.scripts import charts_script
from replay.reports.forms import FORMATS, html_table
from replay.reports.pictures import figure_of_group, live
from replay.reports.report import OFFLINE_NOTE, groups, sections
from replay.reports.tables import LEVEL, Cell, Section, exact, stack
from replay.statistics.numbers import brackets

if TYPE_CHECKING:
    from evo.logs.log import Log

SHOWN = (1, 2, 4, 8, 16, 24)
"""n of the best of n that the page shows."""


def write_findings(
    protocol: Stated,
    folder: str | os.PathLike[str] | None,
    output: str | os.PathLike[str],
) -> list[Section]:
    """Writes the page of a protocol, over one that is there; returns its tables.

    Logs lie in `folder`; None: `logs/local/NAME`.
    """
    stated = loaded(protocol)
    logs = logs_of(stated, folder)
    claims = protocol_claims(stated, folder)
    title = stated.title[:1].upper() + stated.title[1:]
    every = [log for each in logs.values() for log in each]
    tables = list(_sections(stated, folder, claims, every))
    paths = [log.path for log in every if log.generations]
    parts = [
        f"<header><div><strong>Protocol {clean(stated.name)}</strong></div></header>",
        f"<main><h1>{clean(title)}</h1>",
        "<p class='muted'>Written down before its first call: "
        f"SHA-256 <code>{stated.digest[:16]}</code> stands in the header of every log.</p>",
        "" if tables[0].is_llm else f"<p class='muted'>Here {OFFLINE_NOTE}.</p>",
        _progress(stated, logs),
        "<h2>What was claimed</h2>",
        *(
            f"<section class='claim'><h3>{clean(row['text'])} <span class='verdict "
            f"{row['verdict']}'>{row['verdict']}</span></h3>{_list(_facts(row))}</section>"
            for row in claims.to_dict("records")
        ),
        f"<h2>How</h2><p>{clean(methods(stated, claims))}</p>",
        _list([*(("power", text) for text in stated.detects), *stated.notes.items()], "long"),
        "<h2>Exploratory: not claimed before</h2>",
        "<p class='muted'>What follows was not stated in the protocol, or described there only: "
        "it suggests, it confirms nothing.</p>",
        _pictures(paths) if paths else "<p>No run has a complete generation yet.</p>",
        FORMATS["html"](tables[1:]) if len(tables) > 1 else "",
        f"<footer>{clean(FAILURES)}</footer></main>",
    ]
    target = Path(output)
    target.unlink(missing_ok=True)
    write_new(target, page(title, "\n".join(parts)).encode())
    return tables


def methods(protocol: Protocol, claims: pd.DataFrame) -> str:
    """Returns a paragraph about how a protocol's runs were made and judged."""
    made = "; ".join(
        f"{each.name}: {len(each.numbers)} runs of T = {each.generations} generations with "
        f"N = {each.children} children on {each.task}"
        for each in protocol.conditions
    )
    options = ", ".join(f"{name} {value}" for name, value in protocol.options.items())
    measures = "; ".join(f"{name}: {text}" for name, text in protocol.measures.items())
    stated = claims[claims["kind"] == "confirmatory"]
    nulls = " or ".join(dict.fromkeys(filter(None, stated["null"]))) or "runs exchanged"
    text = (
        f"Conditions ({protocol.calls} calls in all): {made}. Settings: {options}. Measures: "
        f"{measures}. Only complete runs count. An effect is the mean of the first condition less "
        "that of the second. "
    )
    if protocol.claims:
        text += (
            f"Claims about conditions: null {nulls}. p is two-sided, and the interval holds every "
            "effect that the same test does not reject. It is labelled by the worst coverage "
            "measured at so few runs. "
        )
        decides = "greater or less where the interval excludes no effect, else undetermined. "
        if any(claim.margin for claim in protocol.claims):
            text += (
                "Margins were fixed in the protocol. The verdict is within margin where the "
                f"interval lies inside it, else {decides}"
            )
        else:
            text += f"The protocol fixes no margin. The verdict is {decides}"
        text += (
            "Runs may stop as soon as the claims are settled: verdicts rest on e-values, which "
            "hold however often one looks, with e-Holm over the confirmatory claims. "
            if protocol.stop == "settled"
            else "By Holm's correction all confirmatory claims about conditions share an error of "
            f"{ALPHA:g}. "
        )
    if protocol.policy_claims:
        text += (
            "Claims about policies rest on the estimator that the protocol states, the "
            "infinitesimal jackknife over runs, and are tested in the order of the file, each only "
            "if all before it were accepted. Runs enter them in the written order of their seeds, "
            "up to the first that is not complete. "
        )
    return text + (
        "Detectable is the effect that as many runs find in four of five repetitions. It, the "
        "power for the effect that was seen, and the further runs for a power of 80 % if the true "
        "effect is that one (with the range of that power over what these runs leave open), are "
        "stated before any correction."
    )


def _progress(protocol: Protocol, logs: dict[str, list[Log]]) -> str:
    heads = ["condition", "what for", "complete", "calls", "children ok"]
    rows = [
        f"<td class='word'>{clean(name)}</td><td class='word'>{clean(condition.role)}</td>"
        f"<td>{runs} runs</td><td>{calls}</td><td>{ok}</td>"
        for condition, (name, runs, calls, ok) in zip(
            protocol.conditions, status_rows(protocol, logs), strict=True
        )
    ]
    return html_table([(head, "word" if k < 2 else "") for k, head in enumerate(heads)], rows)


def _list(facts: Iterable[tuple[str, str]], kind: str = "") -> str:
    rows = (f"<dt>{clean(name)}</dt><dd>{clean(text)}</dd>" for name, text in facts)
    return f"<dl class='{kind}'>{''.join(rows)}</dl>"


def _facts(row: dict[Hashable, Any]) -> Iterator[tuple[str, str]]:
    yield "measure", row["measure"].replace("_", " ")
    complete = (f"{row[k]}: {row[f'n_{k}']} of {row[f'planned_{k}']} runs" for k in "ab")
    yield "runs", "; ".join(complete)
    effect = "unknown" if math.isnan(row["effect"]) else f"{row['effect']:+.4g}"
    if not math.isnan(row["low"]):
        effect += f", {row['interval']} {brackets(row['low'], row['high'], '{:+.4g}'.format)}"
    yield f"{row['a']} less {row['b']}", effect
    if row["why"]:
        yield "no interval" if math.isnan(row["low"]) else "note", str(row["why"])
    if row["kind"] == "confirmatory" and row["margin"]:
        yield "margin, fixed in the protocol", f"{row['margin']:g}"
    if not math.isnan(row["e_value"]):
        yield "e-value", f"{row['e_value']:.3g} (null: {row['null']})"
    elif not math.isnan(row["p"]):
        holm = "" if math.isnan(row["p_holm"]) else f", Holm's {row['p_holm']:.3g}"
        yield "p", f"{row['p']:.3g}{holm} (null: {row['null']})"
    found = f"{row['detectable']:.3g} in four of five repetitions"
    yield "detectable", "unknown" if math.isnan(row["detectable"]) else found
    if not math.isnan(row["power"]):
        yield "power for the effect that was seen", f"{row['power']:.0%}"
    if row["verdict"] == "undetermined" and 0 < row["runs_needed"] < math.inf:
        band = (row["power_low"], row["power_high"])
        within = nearer_none(row["effect"], row["margin"])
        had = row["n_a"] + row["n_b"]
        yield "further runs", further_runs(row["runs_needed"], had=had, within=within, band=band)


def _claim_in_words(row: Mapping[Hashable, Any]) -> tuple[str, str]:
    """A claim as it was written down, and whether its runs show it."""
    found = {
        "claim": row["claim"], "value": row["effect"], "low": row["low"], "high": row["high"],
        "n": row["n_a"] + row["n_b"], "p_holm": row["p_holm"], "detectable": row["detectable"],
        "verdict": row["verdict"], "why": row["why"] if math.isnan(row["effect"]) else "",
    }  # fmt: skip
    return str(row["text"]), f"{answer(found)}."


def _claims_cells(claims: pd.DataFrame) -> tuple[dict[str, list[Cell]], list[str]]:
    """The claims as cells of a report, and their notes."""
    cells, notes = {}, []
    for row in claims.to_dict("records"):
        n = row["n_a"] + row["n_b"]
        cells[row["claim"]] = [
            Cell("effect", row["effect"], row["low"], row["high"], n, "difference", row["level"]),
            exact("p (Holm)", row["p_holm"], n, "p"),
            exact("detectable", row["detectable"], n, "difference"),
        ]
        why = f"; {row['why']}" if row["why"] else ""
        notes.append(f"{row['claim']}: {row['verdict']}; {dict(_facts(row))['runs']}{why}")
    return cells, notes


def _sections(
    protocol: Protocol,
    folder: str | os.PathLike[str] | None,
    claims: pd.DataFrame,
    logs: Sequence[Log],
) -> Iterator[Section]:
    """The claims, the best of n rewrites, and a report's tables of the runs."""
    is_llm, model = all(log.header.model.is_llm for log in logs), protocol.options.get("model", "")
    common: JsonObject = {
        "task": ", ".join(protocol.tasks), "model": str(model), "is_llm": is_llm
    }  # fmt: skip
    cells, notes = _claims_cells(claims)
    yield Section(
        title="Claims", heading="claim", cells=stack(cells), notes=tuple(notes),
        words=tuple(_claim_in_words(row) for row in claims.to_dict("records")), **common,
    )  # fmt: skip
    paths = [log.path for log in logs if log.generations]
    if not paths:
        return
    best = best_of(protocol, folder)
    shown: list[dict[Hashable, Any]] = best[best["n"].isin(SHOWN)].to_dict("records")
    if shown:
        note = (
            f"{shown[0]['children']} rewrites of the initial program, of all runs begun; "
            "the range is that of resampled whole runs, its coverage was not measured"
        )
        cells = {
            f"best of {row['n']}": [
                Cell(
                    "fitness", row["value"], row["low"], row["high"], row["runs"], "fitness", LEVEL
                )
            ]
            for row in shown
        }
        title = "Exploratory: best of n rewrites of the initial program"
        yield Section(title=title, heading="", cells=stack(cells), notes=(note,), **common)
    for group in groups(load_tables(paths, progress=False)):
        for section in sections(group):
            yield replace(section, title=f"Exploratory: {section.title.lower()}")


def _pictures(paths: Sequence[Path]) -> str:
    """Best fitness so far by calls, condition by condition, and what else `FIGURES` holds."""
    from replay.plots.charts import best_so_far, trajectories
    from replay.plots.registry import figures

    frame = load(paths, progress=False)
    parts = [live(trajectories(frame, x="calls", by="condition"))]
    for name, each in figures().items():
        if each is not best_so_far:  # drawn above, by condition
            parts.append(figure_of_group(name, each, frame))
    return "".join(parts) + charts_script()
