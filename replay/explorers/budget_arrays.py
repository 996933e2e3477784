"""Everything that the browser needs to draw the budgets of one task and model, as bytes.

All numbers are computed here; `view.js` looks them up, scales and draws them. The head says where
in the array of floats each column lies, as (first, count).
"""

from __future__ import annotations

import json
import math
import struct
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from replay.explorers.budget_data import (
    LEVEL,
    MAPS,
    NAMES,
    UNITS,
    CostAxis,
    Outlook,
)
from replay.explorers.budget_values import behind_in_cell
from replay.explorers.budget_view import costs_in_words, limits_in_words
from replay.planning.grid import FloatArray
from replay.plots.limits import with_room
from replay.plots.marks import RAMP
from replay.statistics.intervals import clopper_pearson

Span = tuple[int, int]
"""First float and number of floats of a column."""


class Packed:
    """Columns of floats, one behind the other."""

    def __init__(self) -> None:
        self._parts: list[FloatArray] = []
        self._length = 0

    def add(self, column: ArrayLike) -> Span:
        """Appends a column and returns where it lies."""
        values = np.ascontiguousarray(column, dtype="<f8").ravel()
        place = self._length, len(values)
        self._parts.append(values)
        self._length += len(values)
        return place

    def with_head(self, head: Mapping[str, Any]) -> bytes:
        """The length of the head as uint32, the head as JSON, then the floats (little endian)."""
        text = json.dumps(head, allow_nan=False, separators=(",", ":")).encode()
        text += b" " * (-(len(text) + 4) % 8)
        return struct.pack("<I", len(text)) + text + b"".join(p.tobytes() for p in self._parts)


def pack(
    known: Outlook,
    *,
    rows: Sequence[int],
    columns: Sequence[int],
    tau: float,
    about: Mapping[str, Any],
) -> bytes:
    """Returns the numbers of a task and model, and how to call what is drawn.

    Args:
        known: Its splits.
        rows: Each N that can be chosen.
        columns: Each T that can be chosen.
        tau: The fitness for which predicted shares are given; those of logged runs are counted from
            the runs, for any fitness.
        about: Further entries of the head.
    """
    out = Packed()
    beside = {M for N in rows for M in (N // 2 if N % 2 == 0 else N, 2 * N)}
    sizes = sorted({*rows, *(N for N in beside if _any_cell(known, N, columns))})
    axes = [axis for axis in UNITS if axis in ("generation", "calls") or axis in known.costs]
    shown = known.grid
    head = {
        **about,
        "about": known.about,
        "brackets": brackets(known),
        "names": list(NAMES),
        "maps": list(MAPS.items()),
        "ramp": RAMP,
        "grid": {"rows": shown[0], "columns": shown[1]},
        "sizes": sizes,
        "columns": list(columns),
        "cells": _cells(known, sizes, columns, out),
        "strata": {str(N): _stratum(known, N, out) for N in known.depths},
        "shares": _shares(known, out),
        "predicted": _predictions(known, sizes, columns, tau, out),
        "costs": {axis: {str(N): _position(known, N, axis, out) for N in sizes} for axis in axes},
        "limits": {
            "fitness": fitness_limits(known),
            "costs": {axis: cost_limits(known, axis, shown[0]) for axis in axes},
        },
    }
    return out.with_head(head)


def _any_cell(known: Outlook, N: int, columns: Sequence[int]) -> bool:
    return any(known.cell(T, N) is not None for T in columns)


def _cells(
    known: Outlook, sizes: Sequence[int], columns: Sequence[int], out: Packed
) -> dict[str, Any]:
    """Every split: its value, interval and runs; 0 for unknown, 1 for logged, 2 for predicted."""
    offline = known.fitness.model == "offline"
    numbers = np.full((5, len(sizes), len(columns)), np.nan)
    kinds = np.zeros((len(sizes), len(columns)), dtype=int)
    words: list[list[str]] = []
    for row, column in np.ndindex(kinds.shape):
        N, T = sizes[row], columns[column]
        cell = known.cell(T, N)
        if cell is None:
            words.append([])
            continue
        behind = known.behind.get((T, N))
        less = math.nan if behind is None else behind.value
        numbers[:, row, column] = cell.value, cell.low, cell.high, cell.n, less
        kinds[row, column] = 1 if cell.logged else 2
        costs = costs_in_words(T, N, known.costs_of(T, N), offline=offline)
        of = ["", ""] if behind is None else [behind.words(), behind_in_cell(behind.value)]
        words.append([cell.words(T, N), costs, *of])
    names = ("value", "low", "high", "n", "behind")
    columns_of = {name: out.add(part) for name, part in zip(names, numbers, strict=True)}
    return {**columns_of, "kinds": kinds.ravel().tolist(), "words": words}


def _stratum(known: Outlook, N: int, out: Packed) -> dict[str, Any]:
    """The logged runs of N: their mean, how many are so deep, and each run where it changes."""
    value, low, high, n = known.logged(N)
    matrix = known.fitness.values[known.strata[N], : known.depths[N] + 1]
    runs, ends = [], known.fitness.depth[known.strata[N]]
    for run in matrix:
        same = (run[1:] == run[:-1]) | (np.isnan(run[1:]) & np.isnan(run[:-1]))
        begins = np.flatnonzero(np.concatenate([[True], ~same]))
        runs.append([out.add(begins), out.add(run[begins])])
    return {
        "depth": known.depths[N],
        "mean": [out.add(column) for column in (value, low, high)],
        "n": out.add(n),
        "runs": runs,
        "names": [str(each) for each in known.fitness.runs[known.strata[N]]],
        "depths": ends.tolist(),
    }


def _shares(known: Outlook, out: Packed) -> dict[str, list[Span]]:
    """Limits of a share by the number of runs n, for each k of n."""
    counts = {int(n) for N in known.depths for n in known.logged(N)[3]}
    found = {}
    for n in sorted(counts - {0}):
        k = np.arange(n + 1, dtype=np.float64)
        limits = clopper_pearson(k, np.full(n + 1, float(n)), LEVEL)
        found[str(n)] = [out.add(each) for each in limits]
    return found


def _predictions(
    known: Outlook, sizes: Sequence[int], columns: Sequence[int], tau: float, out: Packed
) -> dict[str, Any]:
    """Means of simulated runs by N, and the shares of them that reach tau."""
    found = {}
    for N in sizes:
        cells = (known.cell(T, N) for T in columns)
        if any(cell is not None and not cell.logged for cell in cells):
            mean, share = known.predicted(N, None), known.predicted(N, tau)
            found[str(N)] = {
                "mean": [out.add(column) for column in mean[:3]],
                "share": [out.add(column) for column in share[:3]],
                "n": int(mean[3][-1]),
            }
    return {"tau": tau, "sizes": found}


def _position(known: Outlook, N: int, axis: CostAxis, out: Packed) -> Span | None:
    """Cost so far after each generation; None where N generations or calls are counted."""
    if axis in ("generation", "calls"):
        return None
    position = known.position(N, axis)
    return None if position is None else out.add(position)


def fitness_limits(known: Outlook) -> tuple[float, float]:
    """From the lowest usual mean of a split to the highest limit; not below 0 without need."""
    rows, columns, *_ = known.grid
    cells = [cell for N in rows for T in columns if (cell := known.cell(T, N)) is not None]
    means = np.array([cell.value for cell in cells])
    if not np.isfinite(means).any():
        return 0.0, 1.0
    least, quarter, most = np.nanquantile(means, [0.0, 0.25, 1.0]).tolist()
    low = max(least, quarter - 3 * (most - quarter))  # a very low start does not squeeze the rest
    high = float(np.nanmax([most, *(cell.high for cell in cells)]))
    return with_room(low, high, signed=False)


def cost_limits(known: Outlook, axis: CostAxis, rows: Sequence[int]) -> tuple[float, float]:
    """First and last cost of any split that is shown."""
    found = [x for N in rows if (x := known.position(N, axis)) is not None]
    low, high = min(x[0] for x in found), max(x[-1] for x in found)
    return float(low) * 0.9, float(max(high, 2 * low)) * 1.1


def brackets(known: Outlook) -> dict[str, str]:
    """What intervals are called, by whether what is shown was all logged, all predicted, both."""
    return {
        kind: limits_in_words(known.interval, logged=logged, predicted=predicted)
        for kind, logged, predicted in (
            ("logged", True, False), ("predicted", False, True), ("both", True, True)
        )
    }  # fmt: skip
