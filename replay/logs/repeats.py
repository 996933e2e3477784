"""Repeats: logs that hold the same run as another log, in full or its beginning.

A cell that was run twice, a copied folder, a compact copy and a shorter run of the same seed all
hold children that another log holds too. Counted again, they would double n and narrow every
interval. A run is a repeat if another run has the same configuration and seed, and each of its
children (seed, prompt, status and fitness) at the same place. A fork shares only a beginning with
the run that it left, under an identity of its own, and is no repeat.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import pandas as pd

from evo.logs.records import Header
from replay.logs.decode import LeanRun, read_run
from replay.logs.rows import evaluation_of, programs_of

if TYPE_CHECKING:
    from numpy.typing import NDArray


class Lines(NamedTuple):
    """What tells whether two logs hold the same run.

    Attributes:
        name: The run.
        identity: Equal where configuration and seed are; empty where the seed is not known.
        children: A hash of each child with its place, (children,).
    """

    name: str
    identity: str
    children: NDArray[np.int64]


def lines_of(run: LeanRun) -> Lines:
    """Returns what identifies a run and its children."""
    header = run.header
    found = (
        (c.generation, c.index, c.seed, c.prompt_hash, c.evaluation.status, c.evaluation.fitness)
        for c in run.children
    )
    hashes = np.fromiter(map(hash, found), np.int64, len(run.children))
    return Lines(run.name, _identity(header), hashes)


def _identity(header: Header) -> str:
    if header.seed < 0:
        return ""
    return repr((programs_of(header), evaluation_of(header), header.source, header.condition))


def repeats_of(runs: Iterable[Lines]) -> dict[str, str]:
    """Returns the run that each repeat repeats, by name; of equal ones the longest, then the first.

    Args:
        runs: The runs, in the order in which they were read.
    """
    alike: dict[str, list[Lines]] = {}
    for run in runs:
        if run.identity:
            alike.setdefault(run.identity, []).append(run)
    found: dict[str, str] = {}
    for group in alike.values():
        originals: list[Lines] = []
        for run in sorted(group, key=lambda each: -len(each.children)):
            for other in originals:
                if np.isin(run.children, other.children).all():
                    found[run.name] = other.name
                    break
            else:
                originals.append(run)
    return found


def repeats_across(one: pd.DataFrame, other: pd.DataFrame) -> dict[str, str]:
    """Returns the repeats of two frames of `load` that were read apart, as of `repeats_of`.

    Only the logs of runs of one seed that went alike are read again.
    """
    sides = [
        [(part["run"].iloc[0], part["source"].iloc[0], part["seed"].iloc[0], _went(part))
         for _, part in frame.groupby("run", sort=False)]
        for frame in (one, other)
    ]  # fmt: skip
    alike: dict[str, str] = {}
    for run, source, seed, went in sides[0]:
        for another, its_source, its_seed, its_way in sides[1]:
            length = min(len(went), len(its_way))
            if seed == its_seed >= 0 and np.array_equal(went[:length], its_way[:length], True):
                alike |= {run: source, another: its_source}
    return repeats_of(lines_of(read_run(Path(source), run)) for run, source in alike.items())


def _went(part: pd.DataFrame) -> NDArray[np.float64]:
    """The best fitness of a run by generation."""
    return part["best_fitness"].to_numpy(np.float64)
