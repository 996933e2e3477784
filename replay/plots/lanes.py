"""Where the programs of a tree stand: each in a lane, as near to its parent's as there is room."""

from __future__ import annotations

from bisect import bisect_right, insort
from typing import TYPE_CHECKING

import numpy as np

from replay.plots.style import FloatArray

if TYPE_CHECKING:
    from collections.abc import Iterator

    import pandas as pd

    from replay.logs.lineage import Place


def lanes_of(table: pd.DataFrame) -> tuple[FloatArray, dict[float, tuple[float, float]]]:
    """The height of each row, as near to its parent's as there is room, and each island's strip."""
    home = table["island"].fillna(-1).to_numpy()
    first, last = table["generation"].to_numpy(float), table["last"].to_numpy(float)
    taken: dict[float, dict[int, list[tuple[float, float]]]] = {}
    # Lanes only fill up, so that paths alike go on searching where the one before them stopped.
    searches: dict[tuple[float, ...], Iterator[int]] = {}
    lane = np.zeros(len(table))
    where: dict[Place, int] = {}
    made_from: list[tuple[Place, ...]] = table["parents"].to_list()
    places = list(zip(table["generation"], table["index"], strict=True))
    block_of = np.zeros(len(table))
    for path in _paths(table):
        start, end = first[path[0]], max(last[path])
        block = home[path[-1]]
        parents = made_from[path[0]]
        wish = where.get(parents[0], 0) if parents else 0
        used = taken.setdefault(block, {})
        search = searches.setdefault((block, wish, start, end), _outwards(wish))
        chosen = next(at for at in search if _is_free(used.get(at, []), start, end))
        insort(used.setdefault(chosen, []), (start, end))
        for row in path:
            lane[row], block_of[row] = chosen, block
            where[places[row]] = chosen
    strips: dict[float, tuple[float, float]] = {}
    foot = 0.0
    for block in sorted(taken):
        inside = block_of == block
        low, high = lane[inside].min(), lane[inside].max()
        lane[inside] += foot - low
        strips[block] = (foot - 0.7, foot + high - low + 0.7)
        foot += high - low + 2.0
    return lane, strips


def _paths(table: pd.DataFrame) -> list[list[int]]:
    """Rows that share a lane, each path from where it branches off to its end; the best's first."""
    rows = {
        place: row
        for row, place in enumerate(zip(table["generation"], table["index"], strict=True))
    }
    best, home = table["best_line"].to_numpy(), table["island"].fillna(-1).to_numpy()
    weight = np.ones(len(table))
    above = np.full(len(table), -1)
    made_from: list[tuple[Place, ...]] = table["parents"].to_list()
    for row, parents in reversed([*enumerate(made_from)]):
        if parents and parents[0] in rows:
            above[row] = rows[parents[0]]
            weight[above[row]] += weight[row]
    goes_on: dict[int, int] = {}
    for row in range(len(table)):
        parent = int(above[row])
        if parent < 0 or (home[parent] != home[row] and home[parent] >= 0):
            continue
        rival = goes_on.get(parent, -1)
        if rival < 0 or (best[row], weight[row]) > (best[rival], weight[rival]):
            goes_on[parent] = row
    follow = set(goes_on.values())
    paths = []
    for row in range(len(table)):
        if row not in follow:
            path = [row]
            while path[-1] in goes_on:
                path.append(goes_on[path[-1]])
            paths.append(path)
    return sorted(paths, key=lambda path: (not best[path].any(), path[0]))


def _is_free(taken: list[tuple[float, float]], start: float, end: float) -> bool:
    """Whether a span keeps clear of those of a lane, which are in order and apart."""
    at = bisect_right(taken, (start, end))
    before, after = taken[at - 1 : at], taken[at : at + 1]
    return all(last + 0.5 < start for _, last in before) and all(
        end + 0.5 < first for first, _ in after
    )


def _outwards(start: int) -> Iterator[int]:
    """A whole number, then those beside it, ever farther away."""
    yield start
    away = 1
    while True:
        yield from (start + away, start - away)
        away += 1
