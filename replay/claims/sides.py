"""Two sides of a comparison as arrays of runs: which runs, at which depth, and what pairs them."""

from __future__ import annotations

import warnings
from dataclasses import dataclass

import numpy as np
import pandas as pd

from evo.logs.types import Fields
from replay.logs.columns import FAMILY
from replay.logs.frames import (
    ReplayWarning,
    fitness_matrix,
    repeats_note,
    run_lengths,
    split_repeats,
)
from replay.statistics.intervals import NOTHING, FloatArray

SEVERAL_TASKS = (
    "select one with frame[frame.task == ...], or compare over all of them with "
    "replay.compare(frame, by=...)"
)
"""What to do with several tasks."""


@dataclass(frozen=True, kw_only=True)
class Sides:
    """Values of the two groups at their depths, those that belong together first.

    Attributes:
        left: One number per run of a, or per root of copies; pairs first, then in order of seeds.
        right: The same of b.
        pairs: Number of pairs: entries i < pairs of both sides belong together.
        by: What pairs them; empty if nothing does.
        given: What copies of runs mean for the comparison; empty without copies.
        depths: Generations after which a and b are compared.
        runs: Single runs on both sides together, copies included.
    """

    left: FloatArray
    right: FloatArray
    pairs: int
    by: str
    given: str
    depths: tuple[int, int]
    runs: int

    @property
    def paired(self) -> bool:
        """Whether every run has its partner."""
        return 0 < self.pairs == len(self.left) == len(self.right)

    @property
    def units(self) -> int:
        """Pairs where every run has its partner, else runs (or roots) of both sides."""
        return self.pairs if self.paired else len(self.left) + len(self.right)

    @property
    def setting(self) -> str:
        """In words, what is compared."""
        text = f"whole runs after {self.depths[0]} and {self.depths[1]} generations"
        if self.paired:
            text += f", paired by {self.by}"
        elif self.pairs:
            text += (
                f", compared as groups in which {self.pairs} pairs of one {self.by} stay together"
            )
        return text + self.given

    @property
    def differences(self) -> FloatArray:
        """One difference per pair: of runs that belong together, then of the others in order."""
        least = min(len(self.left), len(self.right))
        return self.left[:least] - self.right[:least]


def sides_of(frame: pd.DataFrame, a: Fields, b: Fields, calls: int | None) -> Sides:
    """The runs of two sides at a common budget, see `replay.judge`."""
    parts = [_part(frame, side) for side in (a, b)]
    if left := sum(repeats for _, _, repeats in parts):
        runs = left + sum(part["run"].nunique() for part, *_ in parts)
        warnings.warn(repeats_note(left, runs), ReplayWarning, stacklevel=3)
    if len({part["task"].iloc[0] for part, *_ in parts}) > 1:
        raise ValueError(f"expected runs of one task on both sides, got two; {SEVERAL_TASKS}")
    sizes = [int(part["children"].iloc[0]) for part, *_ in parts]
    budget = calls or min(
        int(run_lengths(part).min()) * N for (part, *_), N in zip(parts, sizes, strict=True)
    )
    depths = [depth or budget // N for (_, depth, _), N in zip(parts, sizes, strict=True)]
    ends = [_ends(part, depth) for (part, *_), depth in zip(parts, depths, strict=True)]
    return _matched(ends[0], ends[1], (depths[0], depths[1]))


def _part(frame: pd.DataFrame, side: Fields) -> tuple[pd.DataFrame, int | None, int]:
    """The rows of one side, the depth at which it wants to be compared, and repeats left out."""
    wanted = dict(side)
    depth = wanted.pop("generations", None)
    if unknown := sorted(set(wanted) - set(frame.columns)):
        raise ValueError(
            f"expected columns among {sorted(frame.columns)}, got {unknown}; fields of a sweep "
            "are columns of replay.load_sweep(folder), whose column `log` names the runs to load"
        )
    part = frame
    for column, value in wanted.items():
        part = part[part[column] == value]
    if part.empty:
        raise ValueError(f"no run has {dict(side)!r}")
    for column in FAMILY:
        if column in part and part[column].nunique(dropna=False) > 1:
            found = sorted(map(str, part[column].unique()))
            advice = f"; {SEVERAL_TASKS}" if column == "task" else ""
            raise ValueError(
                f"expected runs of one {column} in {dict(side)!r}, got {found}{advice}"
            )
    part, repeats = split_repeats(part)
    return part, None if depth is None else int(depth), repeats


def _ends(part: pd.DataFrame, depth: int) -> pd.DataFrame:
    """Value at a depth of each run that is so deep, with its seed, root and copy, -1 for none."""
    deep = run_lengths(part) >= depth
    if not deep.any():
        deepest = run_lengths(part).max()
        raise ValueError(f"expected runs of {depth} generations, the deepest has {deepest}")
    first = part.groupby("run", sort=False).first()
    if "root" not in first:
        first = first.assign(root=first.index, copy=-1)
    found = first.loc[deep, ["seed", "root", "copy"]].reset_index(drop=True)
    found["value"] = fitness_matrix(part)[deep, depth]
    if found["value"].isna().any():
        raise ValueError(NOTHING)
    return found


def _matched(left: pd.DataFrame, right: pd.DataFrame, depths: tuple[int, int]) -> Sides:
    """Pairs what belongs together, first of all copies of one run.

    Copies of one root are no independent runs: they count as their mean, and the means of one root
    are a pair. Where there is one root alone, its copies of one number are pairs, and what is found
    holds given this state. Other runs are pairs where they have one seed.
    """
    key, given, runs = "seed", "", len(left) + len(right)
    if any(bool((side["copy"] >= 0).all()) for side in (left, right)):
        if pd.concat([left, right])["root"].nunique() == 1:
            key, given = "copy", ", given this state"
        else:
            key, given = "root", ", copies of a run taken together"
            left, right = (
                side.groupby("root")[["value"]].mean().reset_index() for side in (left, right)
            )
    left, right = (side.sort_values(key, kind="stable") for side in (left, right))
    shared: set[object] = set()
    if not any(side[key].duplicated().any() for side in (left, right)):
        shared = set(left[key]) & set(right[key])
    elif any(side.loc[side["seed"] >= 0, "seed"].duplicated().any() for side in (left, right)):
        given = ", in which several runs of one seed count as independent"
    one, other = (_pairs_first(side, key, shared) for side in (left, right))
    return Sides(
        left=one, right=other, pairs=len(shared), by=key, given=given, depths=depths, runs=runs
    )


def _pairs_first(side: pd.DataFrame, key: str, shared: set[object]) -> FloatArray:
    is_paired = side[key].isin(shared)
    return np.concatenate(
        [side.loc[mine, "value"].to_numpy(np.float64) for mine in (is_paired, ~is_paired)]
    )
