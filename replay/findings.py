"""The page of a protocol: what was claimed before the first call, and what its runs say.

write_findings("local-tsp", "logs/corpus/local-tsp", "findings.html")
"""

from __future__ import annotations

import math
import os
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from evo.journal import write_new
from evo.protocol import Protocol, load_protocol, logs_of, status_rows
from replay.evidence import ALPHA, best_of, protocol_claims
from replay.frames import FAILURES
from replay.logs import load, load_tables
from replay.markup import clean, page
from replay.report import OFFLINE_NOTE, groups, sections
from replay.tables import CELLS, FORMATS, Section
from replay.website import both_themes

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes

SHOWN = (1, 2, 4, 8, 16, 24)
"""n of the best of n that the page shows."""


def write_findings(
    protocol: Protocol | str | os.PathLike[str],
    folder: str | os.PathLike[str] | None,
    output: str | os.PathLike[str],
) -> list[Section]:
    """Writes the page of a protocol: its claims judged, then what else its runs say.

    Args:
        protocol: A protocol, its file, or the name of a shipped one.
        folder: Where its logs are; None: `logs/local/NAME`.
        output: The page, `.html`; one that is there is written over.

    Returns:
        The claims and what was not claimed as tables of a report.

    Raises:
        ProtocolError: There is no such protocol.
        LogError: A log cannot be read, or the page cannot be written.
    """
    stated = protocol if isinstance(protocol, Protocol) else load_protocol(protocol)
    logs = logs_of(stated, folder)
    claims = protocol_claims(stated, folder)
    paths = [log.path for each in logs.values() for log in each if log.generations]
    is_llm = all(log.header.model.is_llm for each in logs.values() for log in each)
    tables = [_claims_section(stated, claims, is_llm), *_explored(stated, folder, paths, is_llm)]
    parts = [
        f"<header><div><strong>{clean(stated.title)}</strong></div></header>",
        f"<main><h1>{clean(stated.title)}</h1>",
        f"<p class='muted'>Protocol {clean(stated.name)}, written down before its first call: "
        f"SHA-256 <code>{stated.digest[:16]}</code> stands in the header of every log.</p>",
        "" if is_llm else f"<p class='muted'>Here {OFFLINE_NOTE}.</p>",
        _progress(stated, logs),
        "<h2>What was claimed</h2>",
        *(_claim(row) for row in claims.to_dict("records")),
        f"<h2>How</h2><p>{clean(methods(stated, claims))}</p>",
        _list([*(("detects", text) for text in stated.detects), *stated.notes.items()]),
        "<h2>Exploratory: not claimed before</h2>",
        "<p class='muted'>What follows was not stated in the protocol, or described there only: "
        "it suggests, it confirms nothing.</p>",
        _picture(paths) if paths else "<p>No run has a complete generation yet.</p>",
        FORMATS["html"](tables[1:]) if len(tables) > 1 else "",
        f"<footer>{clean(FAILURES)}.</footer></main>",
    ]
    target = Path(output)
    target.unlink(missing_ok=True)
    write_new(target, page(stated.title, "\n".join(parts)).encode())
    return tables


def methods(protocol: Protocol, claims: pd.DataFrame) -> str:
    """Returns a paragraph that says how a protocol's runs were made and judged."""
    made = "; ".join(
        f"{each.name}: {len(each.numbers)} runs of T = {each.generations} generations with "
        f"N = {each.children} children on {each.task}"
        for each in protocol.conditions
    )
    options = ", ".join(f"{name} {value}" for name, value in protocol.options.items())
    measures = "; ".join(f"{name} is the {text}" for name, text in protocol.measures.items())
    stated = claims[claims["kind"] == "confirmatory"]
    nulls = " or ".join(dict.fromkeys(filter(None, stated["null"]))) or "runs exchanged"
    return (
        f"Conditions ({protocol.calls} calls in all): {made}. Settings: {options}. Measures: "
        f"{measures}. Complete runs alone count. An effect is the mean of the first condition less "
        f"that of the second, its interval is over whole runs at 95 %. The null distribution is "
        f"that of {nulls}; p is two-sided, Holm's over the {len(stated)} confirmatory claims. A "
        f"claim is supported at p < {ALPHA:g}, refuted where the interval lies within the margin, "
        "and else undetermined. Detectable is the effect that such runs would find in four of five "
        "repetitions."
    )


def _progress(protocol: Protocol, logs: dict[str, list[Any]]) -> str:
    rows = "".join(
        f"<tr><td class='word'>{clean(name)}</td><td class='word'>{clean(condition.role)}</td>"
        f"<td>{runs} runs</td><td>{calls}</td><td>{ok}</td></tr>"
        for condition, (name, runs, calls, ok) in zip(
            protocol.conditions, status_rows(protocol, logs), strict=True
        )
    )
    return (
        "<div class='scroll' tabindex='0'><table><thead><tr><th scope='col'>condition</th>"
        "<th scope='col' class='word'>what for</th><th scope='col'>complete</th>"
        "<th scope='col'>calls</th><th scope='col'>children ok</th></tr></thead>"
        f"<tbody>{rows}</tbody></table></div>"
    )


def _claim(row: dict[Any, Any]) -> str:
    """A claim, its verdict and what that rests on."""
    return (
        f"<section class='claim'><h3>{clean(row['text'])} "
        f"<span class='verdict {row['verdict']}'>{row['verdict']}</span></h3>{_list(_facts(row))}"
        "</section>"
    )


def _list(facts: Iterable[tuple[str, str]]) -> str:
    rows = (f"<dt>{clean(name)}</dt><dd>{clean(text)}</dd>" for name, text in facts)
    return f"<dl>{''.join(rows)}</dl>"


def _facts(row: dict[Any, Any]) -> Iterator[tuple[str, str]]:
    yield "measure", row["measure"].replace("_", " ")
    yield (
        "runs",
        (
            f"{row['a']}: {row['n_a']} of {row['planned_a']} runs; "
            f"{row['b']}: {row['n_b']} of {row['planned_b']} runs"
        ),
    )
    effect = "unknown" if math.isnan(row["effect"]) else f"{row['effect']:+.4g}"
    if not math.isnan(row["low"]):
        effect += f", {row['interval']} [{row['low']:+.4g}, {row['high']:+.4g}]"
    yield f"{row['a']} less {row['b']}", effect
    if row["why"] and math.isnan(row["low"]):
        yield "no interval", str(row["why"])
    yield "margin", f"{row['margin']:g}"
    if not math.isnan(row["p"]):
        holm = "" if math.isnan(row["p_holm"]) else f", Holm's {row['p_holm']:.3g}"
        yield "p", f"{row['p']:.3g}{holm} (null: {row['null']})"
    if not math.isnan(row["detectable"]):
        yield "detectable", f"{row['detectable']:.3g} in four of five repetitions"
    if 0 < row["runs_needed"] < math.inf:
        yield "further runs for a verdict", f"about {row['runs_needed']:.0f}, if the effect stays"


def _claims_section(protocol: Protocol, claims: pd.DataFrame, is_llm: bool) -> Section:
    """The claims as a table of a report."""
    cells: list[tuple[Any, ...]] = []
    notes = []
    for row in claims.to_dict("records"):
        n = row["n_a"] + row["n_b"]
        name = row["claim"]
        cells.append((name, "effect", row["effect"], row["low"], row["high"], n, "difference"))
        cells.append((name, "p (Holm)", row["p_holm"], math.nan, math.nan, n, "p"))
        cells.append((name, "detectable", row["detectable"], math.nan, math.nan, n, "difference"))
        notes.append(
            f"{name}: {row['verdict']}; {dict(_facts(row))['runs']}"
            + (f"; {row['why']}" if row["why"] else "")
        )
    return _section(protocol, "Claims", "claim", cells, is_llm, notes)


def _explored(
    protocol: Protocol, folder: str | os.PathLike[str] | None, paths: Sequence[Path], is_llm: bool
) -> Iterator[Section]:
    if not paths:
        return
    rows = best_of(protocol, folder)
    cells = [
        (f"best of {row['n']:.0f}", "fitness", row["value"], row["low"], row["high"],
         int(row["runs"]), "fitness")
        for row in rows.to_dict("records")
        if row["n"] in SHOWN
    ]  # fmt: skip
    if cells:
        note = (
            f"{rows['children'].iloc[0]:.0f} rewrites of the initial program, of all runs begun; "
            "the range is that of resampled whole runs, its coverage was not measured"
        )
        yield _section(protocol, "Exploratory: best of n rewrites of the initial program", "",
                       cells, is_llm, [note])  # fmt: skip
    for group in groups(load_tables(paths, progress=False)):
        for section in sections(group):
            yield replace(section, title=f"Exploratory: {section.title.lower()}")


def _section(
    protocol: Protocol,
    title: str,
    heading: str,
    cells: Sequence[tuple[Any, ...]],
    is_llm: bool,
    notes: Sequence[str],
) -> Section:
    import pandas as pd

    return Section(
        title=title,
        task=", ".join(protocol.tasks),
        model=str(protocol.options.get("model", "")),
        is_llm=is_llm,
        heading=heading,
        cells=pd.DataFrame(cells, columns=list(CELLS)),
        notes=tuple(notes),
    )


def _picture(paths: Sequence[Path]) -> str:
    """Best fitness so far by calls, condition by condition."""
    from replay.plots import trajectories

    frame = load(paths, progress=False)

    def draw(ax: Axes, theme: Any) -> None:
        trajectories(frame, x="calls", by="condition", ax=ax, theme=theme)

    return f"<figure>{both_themes(draw)}</figure>"
