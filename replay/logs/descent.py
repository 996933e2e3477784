"""Descent as tables: every program of a run with its parents, and where each line came from."""

from __future__ import annotations

import difflib
from collections.abc import Sequence

import numpy as np
import pandas as pd

from evo.logs.log import Log
from evo.logs.records import Evaluation
from replay.logs.edits import known_texts
from replay.logs.given import check_loaded
from replay.logs.lineage import MOST_LINES, Place, fitness_by_place, parent_of
from replay.logs.rows import islands_of

FOLDS = 3
"""The highest level of folding of `tree`."""


def tree(log: Log, *, fold: int = 0) -> pd.DataFrame:
    """Returns the tree of a run: every program with its parents and descendants.

    Args:
        log: A run.
        fold: How much is folded into one row. 0: nothing. 1: programs of one generation and parent
            that nobody rewrote. 2: programs of one parent that nobody rewrote. 3: everything
            beside the line that leads to the best program, by where it branches off.

    Returns:
        One row per program or fold, in order, with columns: generation, index, last (generation of
        the last program of a fold), status, fitness (NaN where there is none), parents (places;
        two or more after a crossover), operator, island (NaN without islands), rewrites (children
        that have it as their first parent), members (programs in the row), ok (how many of them
        have a fitness) and best_line (whether the best program descends from it, or is it). A fold
        has the first generation of its programs, and index, status and fitness of the best one.

    Raises:
        ValueError: The level of folding is unknown, or the log holds no evaluation yet.

    Example:
        >>> replay.tree(log)["generation"].tolist()
        [0, 1, 2]
    """
    check_loaded("tree", log, "evo.read_log")
    if fold not in range(FOLDS + 1):
        raise ValueError(f"expected fold to be 0 to {FOLDS}, got {fold!r}")
    best = log.best
    parents = parents_by_place(log)
    line = ancestors(parents, (best.generation, best.index))
    rewrites = dict.fromkeys(parents, 0)
    for found in parents.values():
        if found:
            rewrites[found[0]] += 1
    initial = log.initial.evaluation if log.initial else Evaluation(status=None)
    judged: list[tuple[Place, Evaluation, str, int | None]] = [((0, 0), initial, "", None)]
    judged += [((o.generation, o.index), o.evaluation, o.operator, o.island) for o in log.outcomes]
    rows = [
        (*place, place[0], each.status, each.fitness, parents[place], operator, island,
         rewrites[place], 1, int(each.fitness is not None), place in line)
        for place, each, operator, island in judged
    ]  # fmt: skip
    columns = ["generation", "index", "last", "status", "fitness", "parents", "operator", "island"]
    table = pd.DataFrame(rows, columns=[*columns, "rewrites", "members", "ok", "best_line"])
    table = table.astype({"fitness": float, "island": float})
    children = table["generation"] > 0
    if table["island"].isna().all() and children.any():
        made = table.loc[children, ["generation", "index"]].to_numpy()
        table.loc[children, "island"] = islands_of(log.header, made[:, 0], made[:, 1])
    return _folded(table, fold) if fold else table


def parents_by_place(log: Log) -> dict[Place, tuple[Place, ...]]:
    """The parents of every program of a run, as far as the log states them, in order of place."""
    found: dict[Place, tuple[Place, ...]] = {(0, 0): ()}
    for each in log.outcomes:
        place = (each.generation, each.index)
        stated = each.parents or (parent_of(log, each.generation),)
        found[place] = tuple(p for p in stated if p is not None and p < place and p in found)
    return found


def ancestors(parents: dict[Place, tuple[Place, ...]], place: Place) -> set[Place]:
    """A program and its first parents, back to where the log begins."""
    line = {place}
    while parents[place]:
        place = parents[place][0]
        line.add(place)
    return line


def _folded(table: pd.DataFrame, fold: int) -> pd.DataFrame:
    """Puts rows together in the order of `tree`."""
    places = list(zip(table["generation"], table["index"], strict=True))
    line = dict(zip(places, table["best_line"], strict=True))
    stems: dict[Place, Place | None] = {}  # where the line to the best was left
    keys: list[object] = []
    kept: list[tuple[Place, ...]] = []
    rows = zip(places, table["parents"], table["rewrites"], table["island"], strict=True)
    for place, parents, rewrites, island in rows:
        parent = parents[0] if parents else None
        stem = parent if parent is None or line[parent] else stems[parent]
        stems[place] = stem
        home = -1.0 if np.isnan(island) else island
        single = line[place] or (fold < FOLDS and rewrites > 0)
        folds = {1: ("leaves", parent, home, place[0]), 2: ("leaves", parent, home)}
        keys.append(place if single else folds.get(fold, ("branch", stem, home)))
        kept.append(parents if single or fold < FOLDS else (stem,) if stem else ())
    table = table.assign(key=pd.Series(keys, dtype=object), parents=pd.Series(kept, dtype=object))
    by_fitness = table.sort_values("fitness", ascending=False, kind="stable")
    folded = by_fitness.drop_duplicates("key").set_index("key")
    groups = table.groupby("key", sort=False)
    folded["generation"], folded["last"] = groups["generation"].min(), groups["last"].max()
    folded["members"], folded["ok"] = groups.size(), groups["ok"].sum()
    if fold == FOLDS:
        folded.loc[~folded["best_line"], "rewrites"] = 0
    folded = folded.sort_values(["generation", "index"], kind="stable", ignore_index=True)
    return folded.drop(columns="key", errors="ignore")


def blame(log: Log, place: Place | None = None) -> pd.DataFrame:
    """Returns which generation each line of a program came from.

    A line belongs to the child that introduced it: it is followed from the program back through the
    programs it descends from, as long as these have it. After a crossover the other parents are
    asked for the lines that the first one does not have.

    Args:
        log: A run whose log holds its programs.
        place: Generation and index of the program; None: the best one.

    Returns:
        One row per line, in order, with columns: line (from 1), text, generation, index, fitness
        (of the program that introduced the line; NaN where it has none) and gain over its parent.

    Raises:
        ValueError: The log has no programs, or the program is too long to compare.

    Example:
        >>> replay.blame(log).columns.tolist()
        ['line', 'text', 'generation', 'index', 'fitness', 'gain']
    """
    check_loaded("blame", log, "evo.read_log")
    best = (log.best.generation, log.best.index)
    place = best if place is None else place
    parents = parents_by_place(log)
    if place not in parents:
        raise ValueError(f"expected the place of a program of the run, got {place!r}")
    wanted, line = {place}, [place]
    for each in line:
        line += [parent for parent in parents[each] if parent not in wanted]
        wanted.update(parents[each])
    texts = known_texts(log, sorted(wanted - {(0, 0)}))
    if texts.get(place) is None:
        raise ValueError(f"{log.path.name} holds no programs, so their lines cannot be compared")
    origins: dict[Place, list[Place]] = {}
    for each in sorted(wanted):
        if (text := texts.get(each)) is None:
            continue
        lines = text.splitlines()
        if len(lines) > MOST_LINES:
            raise ValueError(f"a program of {len(lines):,} lines is too long to compare")
        known = [parent for parent in parents[each] if parent in origins]
        others = [((texts[parent] or "").splitlines(), origins[parent]) for parent in known]
        origins[each] = _origins(each, lines, others)
    fitness = fitness_by_place(log)
    table = pd.DataFrame(origins[place], columns=["generation", "index"])
    first = [parents[each][0] if parents[each] else None for each in origins[place]]
    table["fitness"] = np.array([fitness[each] for each in origins[place]], dtype=float)
    before = np.array([None if each is None else fitness[each] for each in first], dtype=float)
    table["gain"] = table["fitness"] - before
    table.insert(0, "line", np.arange(1, len(table) + 1))
    table.insert(1, "text", pd.Series((texts[place] or "").splitlines(), dtype=object))
    return table


def _origins(
    place: Place, lines: list[str], parents: Sequence[tuple[list[str], list[Place]]]
) -> list[Place]:
    """Who introduced each line of a program, given the lines of its parents and whose they are."""
    found: list[Place | None] = [None] * len(lines)
    for old, whose in parents:
        matcher = difflib.SequenceMatcher(None, old, lines, autojunk=False)
        for a, b, size in matcher.get_matching_blocks():
            for k in range(size):
                if found[b + k] is None:
                    found[b + k] = whose[a + k]
    return [place if each is None else each for each in found]
