"""What the rewrites of a run changed, line by line: what comes back, what only turns numbers."""

from __future__ import annotations

import difflib
import io
import tokenize

import numpy as np
import pandas as pd

from evo.logs.log import Log
from replay.logs.given import check_loaded
from replay.logs.lineage import MOST_LINES, Place, first_parents, fitness_by_place, program_of

_COLUMNS = [
    *("generation", "index", "status", "fitness", "gain", "added", "removed", "returned", "kind")
]


def edits(log: Log) -> pd.DataFrame:
    """Returns what each child changed of the program that it rewrote.

    Args:
        log: A run whose log holds its programs.

    Returns:
        One row per child with a program and a known parent, in order, with columns: generation,
        index, status, fitness, gain (over its parent; NaN where one of them has no fitness), added
        and removed (lines, blanks at their ends aside), returned (added lines, not blank, that an
        ancestor had and that were removed on the way to the parent) and kind:

        - `none`: the same lines as the parent.
        - `layout`: the same tokens; only comments, blanks or line breaks differ.
        - `constants`: the same tokens but for the values of numbers and texts.
        - `structure`: anything else, and whatever cannot be split into tokens.

        Programs of more than 5,000 lines are left out.

    Example:
        >>> replay.edits(log).columns.tolist()[:2]
        ['generation', 'index']
    """
    check_loaded("edits", log, "evo.read_log")
    fitness = fitness_by_place(log)
    status = {(o.generation, o.index): o.evaluation.status for o in log.outcomes}
    parents = first_parents(log)
    texts = known_texts(log, [place for place in parents if place != (0, 0)])
    gone: dict[Place, frozenset[str]] = {(0, 0): frozenset()}
    rows = []
    for place, parent in sorted(parents.items()):
        after = texts.get(place)
        before = None if parent is None else texts.get(parent)
        if parent is None or before is None or after is None:
            continue
        old, new = _lines(before), _lines(after)
        if max(len(old), len(new)) > MOST_LINES:
            continue
        added, removed = _changed(old, new)
        missing = gone.get(parent, frozenset())
        returned = sum(line in missing for line in added if line)
        gone[place] = (missing | set(removed)) - set(new)
        gain = np.array([fitness[place], fitness.get(parent)], dtype=np.float64)
        rows.append(
            (*place, status[place], gain[0], gain[0] - gain[1], len(added), len(removed), returned,
             _kind(before, after, old == new))
        )  # fmt: skip
    return pd.DataFrame(rows, columns=_COLUMNS)


def known_texts(log: Log, places: list[Place]) -> dict[Place, str | None]:
    """The initial program, and those of children as far as the log holds them, by place."""
    found: dict[Place, str | None] = {(0, 0): program_of(log, (0, 0))}
    if not log.header.compact:
        found.update((place, child.program) for place, child in log.find(places).items())
    return found


def _lines(text: str) -> list[str]:
    return [line.rstrip() for line in text.splitlines()]


def _changed(old: list[str], new: list[str]) -> tuple[list[str], list[str]]:
    """Lines that were added and lines that were removed."""
    added: list[str] = []
    removed: list[str] = []
    for kind, a, b, c, d in difflib.SequenceMatcher(None, old, new, autojunk=False).get_opcodes():
        if kind != "equal":
            removed += old[a:b]
            added += new[c:d]
    return added, removed


def _kind(before: str, after: str, same_lines: bool) -> str:
    """Which kind of change it is; see `edits`."""
    if same_lines:
        return "none"
    try:
        old, new = _tokens(before), _tokens(after)
    except (tokenize.TokenError, SyntaxError):
        return "structure"
    if old == new:
        return "layout"
    if [kind for kind, _ in old] != [kind for kind, _ in new]:
        return "structure"
    values = {tokenize.NUMBER, tokenize.STRING}
    differ = {one[0] for one, other in zip(old, new, strict=True) if one[1] != other[1]}
    return "constants" if differ <= values else "structure"


_LAYOUT = {tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE, tokenize.ENCODING, tokenize.ENDMARKER}


def _tokens(text: str) -> list[tuple[int, str]]:
    """Type and text of each token that does something; indentation counts and not its width."""
    found = tokenize.generate_tokens(io.StringIO(text).readline)
    blank = {tokenize.INDENT, tokenize.DEDENT}
    return [
        (token.type, "" if token.type in blank else token.string)
        for token in found
        if token.type not in _LAYOUT
    ]
