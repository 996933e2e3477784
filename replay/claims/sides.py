"""Two sides of a comparison as arrays of runs: which runs, at which depth, and what pairs them."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from dataclasses import dataclass, field, replace

import numpy as np
import pandas as pd

from evo.logs.types import Fields
from evo.warning import warn
from replay.claims.found import cost_of_run, mean_cost
from replay.logs.columns import FAMILY, in_order, varies
from replay.logs.frames import (
    ReplayWarning,
    begun_runs,
    fitness_matrix,
    originals,
    repeats_note,
    run_lengths,
    split_repeats,
    warn_of_short_runs,
)
from replay.logs.versions import scoring_of, what_differs
from replay.statistics.intervals import NOTHING, FloatArray
from replay.statistics.numbers import amount

MOST_NAMED = 8  # values of a column, in a message
SEVERAL_TASKS = (
    "select one with frame[frame.task == ...] or `--where task=NAME`, or compare over all of them "
    "with replay.compare(frame, by=...)"
)
"""What to do with several tasks."""


def lengths(one: object, other: object) -> str:
    """How long the runs of two sides are, said once where they are alike.

    Example:
        >>> from replay.claims.sides import lengths
        >>> lengths(12, 12), lengths(12, 8)
        ('12 generations', '12 and 8 generations')
    """
    if f"{one}" != f"{other}":
        return f"{one} and {other} generations"
    return f"{one} generation{'s' * (f'{one}' != '1')}"


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
        cost: What a run costs by unit, the mean of both sides, each at its depth.
    """

    left: FloatArray
    right: FloatArray
    pairs: int
    by: str
    given: str
    depths: tuple[int, int]
    runs: int
    cost: Mapping[str, float] = field(default_factory=dict)

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
        text = f"whole runs after {lengths(*self.depths)}"
        if self.paired:
            text += f", paired by {self.by}"
        elif self.pairs:
            text += (
                f", compared as groups in which {amount(self.pairs, 'pair')} of one {self.by} "
                f"stay{'s' * (self.pairs == 1)} together"
            )
        return text + self.given

    @property
    def differences(self) -> FloatArray:
        """One difference per pair: of runs that belong together, then of the others in order."""
        least = min(len(self.left), len(self.right))
        return self.left[:least] - self.right[:least]


def sides_of(frame: pd.DataFrame, a: Fields, b: Fields, calls: int | None) -> Sides:
    """The runs of two sides at a common budget, see `replay.judge`."""
    rows = [_rows(frame, side) for side in (a, b)]  # a side without runs is said before all else
    parts = [_part(each, side) for each, side in zip(rows, (a, b), strict=True)]
    if left := sum(repeats for _, _, repeats in parts):
        runs = left + sum(part["run"].nunique() for part, *_ in parts)
        warn(repeats_note(left, runs), ReplayWarning)
    if len({part["task"].iloc[0] for part, *_ in parts}) > 1:
        raise ValueError(f"expected runs of one task on both sides, got two; {SEVERAL_TASKS}")
    _check_version(parts[0][0], parts[1][0], named="task_version" in a and "task_version" in b)
    _warn_of_others(parts[0][0], parts[1][0], named={*a, *b})
    sizes = [int(part["children"].iloc[0]) for part, *_ in parts]
    budget = calls or min(
        int(run_lengths(part).min()) * N for (part, *_), N in zip(parts, sizes, strict=True)
    )
    depths = [depth or budget // N for (_, depth, _), N in zip(parts, sizes, strict=True)]
    for (part, asked, _), depth in zip(parts, depths, strict=True):
        if calls is None and asked is None:
            warn_of_short_runs(part, depth)
    if 0 in depths:
        raise ValueError(_too_few_calls(sizes, budget, given=calls is not None))
    if depths[0] == depths[1]:
        _check_apart(parts[0][0], parts[1][0])
    spent = [depth * N for depth, N in zip(depths, sizes, strict=True)]
    if spent[0] != spent[1] and not any(depth for _, depth, _ in parts):
        warn(
            f"whole generations of N = {sizes[0]} and N = {sizes[1]} within {budget} calls are "
            f"{spent[0]} and {spent[1]} calls; compared are these",
            ReplayWarning,
        )  # fmt: skip
    ends = [_ends(part, depth) for (part, *_), depth in zip(parts, depths, strict=True)]
    costs = [cost_of_run(part, depth) for (part, *_), depth in zip(parts, depths, strict=True)]
    matched = _matched(ends[0], ends[1], (depths[0], depths[1]))
    return replace(matched, cost=mean_cost(costs))


def _too_few_calls(sizes: list[int], budget: int, *, given: bool) -> str:
    """What to say where a generation of one side takes more calls than are compared."""
    least = f"at least {max(sizes)}, one generation of the larger N, got {budget}"
    if given:
        return f"calls: expected {least}"
    return (
        f"sides are compared at equal calls: expected {least}, which is what the shortest run of "
        f"N = {min(sizes)} made; make these runs longer"
    )


def _check_apart(left: pd.DataFrame, right: pd.DataFrame) -> None:
    """Raises ValueError where a run, or a copy of it, stands on both sides."""
    one, other = (
        part["run"].where(part["repeat_of"].fillna("") == "", part["repeat_of"])
        if "repeat_of" in part
        else part["run"]
        for part in (left, right)
    )
    if shared := sorted({*one} & {*other}):
        runs = len({*one} | {*other})
        raise ValueError(
            f"expected different runs on the two sides, got {shared[0]!r} on both, itself or as a "
            f"copy of the same configuration, seed and children ({len(shared)} of {runs} runs are "
            "on both); leave it out on one side"
        )


def _check_version(left: pd.DataFrame, right: pd.DataFrame, *, named: bool) -> None:
    """Raises ValueError where two sides were made with two versions of their task.

    Where both sides name a version, programs may begin otherwise, but must be scored alike.
    """
    if "task_version" not in left:
        return
    both = pd.concat([left, right])
    versions = {each for each in both["task_version"].dropna().unique() if each}
    if len({scoring_of(each) for each in versions} if named else versions) > 1:
        raise ValueError(
            f"the sides cannot be compared: expected on both of them runs of {what_differs(both)}"
        )


def _warn_of_others(left: pd.DataFrame, right: pd.DataFrame, *, named: set[str]) -> None:
    """Warns where two sides differ in a model, search or settings that neither of them names.

    A model or a search brings settings of its own, and a column that is not of FAMILY may stand for
    several of them.
    """
    if not named <= {*FAMILY, "generations"}:
        return
    own = {"settings"} if named & {"model", "search"} else set()
    for column in ("model", "search", "settings"):
        if column not in left or column in named | own:
            continue
        one, other = (part[column].iloc[0] for part in (left, right))
        if one != other and pd.notna(one) and pd.notna(other):
            warn(
                f"the sides also differ in {column}, {one!r} and {other!r}, so that the difference "
                f"may be due to it; name it in both sides, such as {{{column!r}: {one!r}}}, on the "
                f"command line {shlex.quote(f'{column}={one}')}",
                ReplayWarning,
            )  # fmt: skip


def _rows(frame: pd.DataFrame, side: Fields) -> pd.DataFrame:
    """The rows of one side, of whatever runs; ValueError: there are none."""
    wanted = {column: value for column, value in side.items() if column != "generations"}
    if unknown := sorted(set(wanted) - set(frame.columns)):
        raise ValueError(
            f"expected columns among {sorted(frame.columns)}, got {unknown}; fields of a sweep "
            "are columns of replay.load_sweep(folder), whose column `log` names the runs to load"
        )
    part = frame
    for column, value in wanted.items():
        known = part[column].dropna().unique()
        part = part[part[column] == value]
        if part.empty:
            shown = repr if column == "settings" else str  # which holds commas and semicolons
            others = ", ".join(map(shown, in_order(known)[:MOST_NAMED]))
            others += ", ..." * (len(known) > MOST_NAMED)
            raise ValueError(f"no run has {column} = {value}; there are runs of {others or 'none'}")
    return part


def _part(part: pd.DataFrame, side: Fields) -> tuple[pd.DataFrame, int | None, int]:
    """The rows of one side, the depth at which it wants to be compared, and repeats left out."""
    depth = dict(side).get("generations")
    for column in FAMILY:
        if column in part and varies(part, column).any():
            found = [str(each) for each in in_order(part[column].unique())]
            advice = f"; {SEVERAL_TASKS}" if column == "task" else ""
            one = "one N (column children)" if column == "children" else f"one {column}"
            words = f"{one} in {dict(side)!r}, got {found}{advice}"
            if column == "task_version":
                words = f"{what_differs(part)} (in {dict(side)!r})"
            elif column == "settings":
                words += f"; name it in the side as well, such as {{'settings': {found[0]!r}}}, or "
                words += "choose runs with `--where settings=VALUE`"
            elif column != "task":
                words += f"; name it in the side as well, on the command line {column}={found[0]}"
            raise ValueError(f"expected runs of {words}")
    part, repeats = split_repeats(part)
    part = begun_runs(originals(part))
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
        shared -= {-1} if key == "seed" else set()  # a seed that is unknown
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
