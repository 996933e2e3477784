"""A run as one page: its picture, and every text of every child, compressed by generation.

The page needs no server, no network and no kernel. `#12-3` behind its address leads to a child.
"""

from __future__ import annotations

import gzip
import json
from collections.abc import Collection, Iterator, Mapping
from pathlib import Path
from typing import Any

from replay import markup
from replay.explorers import run_text
from replay.explorers.run_arrays import drawing_arrays
from replay.explorers.run_data import RunData, look_at
from replay.explorers.scripts import script
from replay.plots.scripts import encoded, spoken

SCRIPT = Path(__file__).with_name("run_file.js")
MOST_BYTES = 20_000_000
"""Size of a page above which texts are left out, the longest kind first."""

LEFT_OUT: tuple[tuple[str, tuple[str, ...]], ...] = (
    ("", ()),
    ("the replies", ("Reply",)),
    ("the replies and messages", ("Reply", "Messages")),
    ("all texts but the programs", ("Reply", "Messages", "What it changed")),
)
"""What may be left out, and under which heads it stands."""


def run_file(
    data: RunData,
    run: Mapping[str, Any],
    *,
    words: str,
    picture: bytes,
    at: object,
    most: int = MOST_BYTES,
) -> str:
    """Returns the page of a run.

    Args:
        data: The run.
        run: Its arrays, of `run_arrays`.
        words: What it is and what it has cost, in sentences.
        picture: A PNG, for readers without scripts.
        at: The program that is shown first, as (generation, index).
        most: Bytes of its texts; above that replies are left out, then messages, then changes.
    """
    missing, parts = _fitting(data, most)
    note = ""
    if missing:
        note = (
            f"<p class='muted'>Without {missing}: with them the page would exceed "
            f"{most / 1e6:.0f} MB. The log holds them.</p>"
        )
    image = f'<img style="max-width:100%" src="data:image/png;base64,{encoded(picture)}" alt="">'
    name = str(run["name"])
    body = (
        f"<header><div><strong>{markup.clean(name)}</strong></div></header>\n"
        f'<main><h1>{markup.clean(name)}</h1>{spoken(words)}{note}<div id="chart"></div>'
        f"<noscript>{image}</noscript>"
        '<div id="child" role="region" aria-label="the program that is chosen"></div></main>\n'
    )
    given = encoded(json.dumps({"run": run, "at": at, "parts": parts}, allow_nan=False))
    code = [script("run_view"), SCRIPT.read_text(encoding="utf-8"), f'open("{given}");\n']
    return markup.page(name, body, script="\n".join(code))


def _fitting(data: RunData, most: int) -> tuple[str, dict[str, str]]:
    """Texts by generation that are no longer than `most`, if any are, and what they leave out."""
    for missing, heads in LEFT_OUT:  # noqa: B007 - the last one is taken in any case
        parts = dict(_generations(data, heads))
        if sum(map(len, parts.values())) <= most:
            break
    return missing, parts


def _generations(data: RunData, without: Collection[str]) -> Iterator[tuple[str, str]]:
    """The children of each generation: what is shown of them, as JSON, gzip and base64."""
    texts: dict[int, dict[str, Any]] = {}
    for place in data.places:
        view = look_at(data, place)
        shown = {"html": run_text.child(view, without), **_drawn(view.drawing)}
        texts.setdefault(place[0], {})["-".join(map(str, place))] = shown
    for generation, children in texts.items():
        packed = gzip.compress(json.dumps(children, allow_nan=False).encode(), mtime=0)
        yield str(generation), encoded(packed)


def _drawn(drawing: Any) -> dict[str, Any]:
    """The construction of a program, else why there is none, where its task has pictures."""
    return {"drawing": drawing_arrays(drawing)} if drawing.pictured else {}
