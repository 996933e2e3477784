"""What a report says of runs and of policies, as tables: see `replay.tables`."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from evo.records import STATUSES
from replay.effects import time_to_threshold
from replay.frames import FAILURES
from replay.intervals import NOTHING, Interval, interval
from replay.logs import REPORTED, Tables
from replay.tables import CELLS, Section, title

if TYPE_CHECKING:
    from replay.contest import Contest

ORACLES = {
    "oracle_arm": "best fitness at the end, against all pulls on the best arm",
}
"""What regret to each hindsight baseline is measured in."""

OFFLINE_NOTE = "the offline model is a random rewriter, not an LLM"


@dataclass(frozen=True)
class Group:
    """Runs of one task and model.

    Attributes:
        task: Name of the task.
        model: Name of the model.
        is_llm: False for the offline model.
        tables: Its rows of the tables of all logs.
    """

    task: str
    model: str
    is_llm: bool
    tables: Tables

    @property
    def title(self) -> str:
        """Task, model, and whether that is an LLM."""
        return title(self.task, self.model, is_llm=self.is_llm)

    @property
    def identity(self) -> dict[str, Any]:
        """What its sections have in common."""
        return {"task": self.task, "model": self.model, "is_llm": self.is_llm}

    def sizes(self) -> Iterator[tuple[int, Group]]:
        """Each N, ascending, with the runs that have it."""
        for children in sorted(self.tables.runs["children"].unique().tolist()):
            part = Tables(*(table[table["children"] == children] for table in self.tables))
            yield children, Group(self.task, self.model, self.is_llm, part)

    @property
    def best_log(self) -> str | None:
        """The log whose fitness is highest; None if nothing is ok anywhere."""
        generations = self.tables.generations
        if generations["best_fitness"].isna().all():
            return None
        at = int(generations["best_fitness"].to_numpy(np.float64, na_value=-np.inf).argmax())
        return str(generations["source"].iloc[at])


def groups(tables: Tables) -> list[Group]:
    """Runs by task and model, in order of first appearance."""
    found = []
    for (task, model), runs in tables.runs.groupby(["task", "model"], sort=False):
        names = set(runs["run"])
        others = (table[table["run"].isin(names)] for table in tables[1:])
        is_llm = bool(runs["is_llm"].all())
        found.append(Group(str(task), str(model), is_llm, Tables(runs, *others)))
    return found


def sections(group: Group, *, tau: float | None = None) -> list[Section]:
    """Tables of a group's runs: fitness, children by status, cost.

    Args:
        group: The runs.
        tau: A fitness whose time to reach it is shown, too.
    """
    parts = list(group.sizes())
    common = {**group.identity, "heading": "N"}
    return [
        Section(
            title="Fitness",
            cells=_stack({str(n): _fitness(part, tau) for n, part in parts}),
            notes=tuple(_notes(group)),
            **common,
        ),
        Section(
            title="Children by status",
            cells=_stack({str(n): _statuses(part) for n, part in parts}),
            notes=("ok: mean over runs of the share of children", FAILURES),
            **common,
        ),
        *_confirmed(parts, common),
        Section(
            title="Cost",
            cells=_stack({str(n): _costs(part) for n, part in parts}),
            notes=(
                "sums over the runs; tokens as far as reported"
                + (
                    "; FLOPs and dollars take an attempt without usage for max_tokens of output"
                    if group.is_llm
                    else ""
                ),
            ),
            **common,
        ),
    ]


def _confirmed(parts: Sequence[tuple[int, Group]], common: dict[str, Any]) -> Iterator[Section]:
    """Where rivals were tried on fresh draws: what of the gain is left there."""
    if not any((part.tables.runs["n_tests"] > 0).any() for _, part in parts):
        return
    rows = {}
    for n, part in parts:
        runs = part.tables.runs
        known = runs[runs["fresh_gain"].notna()]
        rows[str(n)] = [
            _exact("tests", int(runs["n_tests"].sum()), len(runs), "count"),
            _exact("accepted", int(runs["n_accepted"].sum()), len(runs), "count"),
            _exact("false acceptances allowed", float(runs["false_acceptances"].sum()),
                   len(runs), "p"),
            _estimate("gain", interval(known["gain"].to_numpy(np.float64), "mean"), "difference"),
            _estimate("gain on fresh draws",
                      interval(known["fresh_gain"].to_numpy(np.float64), "mean"), "difference"),
        ]  # fmt: skip
    note = (
        "gain: final less initial fitness, means over the runs whose final program was measured on "
        "draws that no decision saw; false acceptances: what the error rates of all tests allow"
    )
    yield Section(title="Gain on fresh draws", cells=_stack(rows), notes=(note,), **common)


def policy_sections(group: Group, contest: Contest) -> list[Section]:
    """Tables of what policies make of a group's runs of one N."""
    common = {**group.identity, "heading": "policy"}
    setting = contest.setting
    effects = [
        _quantity(contest.effects[contest.effects["effect"] == name], f"{name} effect")
        for name in ("pool", "allocation")
    ]
    made = [
        Section(
            title=f"Policies after {contest.rounds} pulls ({setting})",
            cells=pd.concat([_quantity(contest.finals, "best fitness", "fitness"), *effects]),
            notes=(
                "pool effect: random less a single run; allocation effect: the policy less random",
                *contest.notes,
            ),
            **common,
        ),
        Section(
            title=f"Regret in hindsight after {contest.rounds} pulls ({setting})",
            cells=pd.concat(
                _quantity(rows, str(oracle))
                for oracle, rows in contest.regrets.groupby("oracle", sort=False)
            ),
            notes=tuple(f"{name}: {text}" for name, text in ORACLES.items()),
            **common,
        ),
    ]
    if contest.tau is not None:
        made.append(
            Section(
                title=f"Pulls until fitness {contest.tau:g} ({setting})",
                cells=_times(contest),
                notes=(
                    "90 %: the first pull by which 90 % of the replicates reach it (the paper's "
                    "rule); median: by which half do; never: not within the budget",
                ),
                **common,
            )
        )
    return made


def _times(contest: Contest) -> pd.DataFrame:
    parts = []
    for share, name in ((0.9, "90 %"), (0.5, "median")):
        rows = contest.times[contest.times["share"] == share]
        parts.append(_quantity(rows.rename(columns={"time": "value"}), name, "pulls"))
    reached = rows.assign(value=rows["share_reached"], low=math.nan, high=math.nan)
    return pd.concat([*parts, _quantity(reached, "share that reached it", "share")])


def _quantity(rows: pd.DataFrame, quantity: str, unit: str = "difference") -> pd.DataFrame:
    renamed = rows.rename(columns={"policy": "row"})
    return renamed.assign(quantity=quantity, unit=unit)[list(CELLS)]


def _stack(rows: dict[str, list[tuple[Any, ...]]]) -> pd.DataFrame:
    return pd.DataFrame(
        [(row, *cell) for row, cells in rows.items() for cell in cells], columns=list(CELLS)
    )


def _fitness(group: Group, tau: float | None) -> list[tuple[Any, ...]]:
    runs, generations = group.tables.runs, group.tables.generations
    n = len(runs)
    lengths = runs["generations"]
    by_run = generations.groupby("run", sort=False)["best_fitness"]
    initial = generations.loc[generations["generation"] == 0, "best_fitness"]
    final = by_run.max().fillna(-math.inf).to_numpy(dtype=np.float64)
    cells: list[tuple[Any, ...]] = [_exact("runs", n, n, "count")]
    if lengths.nunique() > 1:
        cells.append(_exact("least T", int(lengths.min()), n, "count"))
    cells += [
        _exact("T", int(lengths.max()), n, "count"),
        _exact("initial", float(initial.median()), n, "fitness"),
        *(
            _estimate(f"final, {name}", _final(final, name), "fitness")
            for name in ("median", "mean")
        ),
        _exact("best of runs", float(by_run.max().max()), n, "fitness"),
    ]
    if tau is not None:
        for share, rule in ((0.9, "bootstrap"), (0.5, "share")):
            time = time_to_threshold(generations, tau, share=share, rule=rule)  # type: ignore[arg-type]
            what = "90 % rule" if rule == "bootstrap" else "median"
            cells.append((f"T to {tau:g}, {what}", time.time, time.low, time.high, time.n, "pulls"))
        reached = float((final >= tau).mean())
        cells.append(_exact(f"reached {tau:g}", reached, n, "share"))
    return cells


def _final(values: NDArray[np.float64], statistic: str) -> Interval:
    """Statistic of the runs' values; none where a run found nothing, which has no mean."""
    if statistic == "mean" and np.isneginf(values).any():
        return Interval(value=math.nan, low=math.nan, high=math.nan, n=len(values), note=NOTHING)
    return interval(values, statistic)


_ALWAYS = ("no_reply", "no_program", "invalid", "error", "timeout")


def _statuses(group: Group) -> list[tuple[Any, ...]]:
    children, n = group.tables.children, len(group.tables.runs)
    cells: list[tuple[Any, ...]] = [_exact("children", len(children), n, "count")]
    if len(children):
        shares = (children["status"] == "ok").groupby(children["run"], sort=False).mean()
        cells.append(_estimate("ok", interval(shares.to_numpy(np.float64)), "share"))
    cells += [
        _exact(status, int((children["status"] == status).sum()), n, "count")
        for status in (*STATUSES, "unknown")
        if status != "ok" and (status in _ALWAYS or (children["status"] == status).any())
    ]
    return cells


def _costs(group: Group) -> list[tuple[Any, ...]]:
    runs, n = group.tables.runs, len(group.tables.runs)
    cells = [_exact("calls", int(runs["n_calls"].sum()), n, "calls")]
    for quantity, column, unit in (
        ("attempts", "n_attempts", "calls"),
        ("without usage", "n_without_usage", "calls"),
        ("prompt tokens", "prompt_tokens", "calls"),
        ("of them cached", "cached_tokens", "calls"),
        ("completion tokens", "completion_tokens", "calls"),
        *((("FLOPs", "flops", "flops"), ("dollars", "dollars", "dollars")) if group.is_llm else ()),
    ):
        if column in REPORTED:
            total = runs[column].sum(min_count=1)
        else:
            total = runs[column].sum(skipna=False)
        cells.append(_exact(quantity, float(total), n, unit))
    seconds = float(group.tables.generations["seconds"].sum(skipna=False))
    cells.append(_exact("wall seconds", seconds, n, "seconds"))
    return cells


def _exact(quantity: str, value: float, n: int, unit: str) -> tuple[Any, ...]:
    return (quantity, value, math.nan, math.nan, n, unit)


def _estimate(quantity: str, found: Interval, unit: str) -> tuple[Any, ...]:
    low, high = found.low, found.high
    if unit == "share":  # no share lies beyond
        low, high = max(low, 0.0), min(high, 1.0)
    return (quantity, found.value, low, high, found.n, unit)


def _notes(group: Group) -> Iterator[str]:
    """What the fitness table does not say by itself."""
    runs, generations = group.tables.runs, group.tables.generations
    if not group.is_llm:
        yield OFFLINE_NOTE
    sizes = runs.groupby("children")["generations"]
    if sizes.ngroups > 1:
        yield "runs of different N are shown apart"
    if (sizes.nunique() > 1).any():
        yield "runs differ in length: final is each run's own last generation"
    empty = int(generations.groupby("run")["best_fitness"].max().isna().sum())
    if empty:
        yield f"{empty} of {len(runs)} runs found nothing ok; {FAILURES}"
    if len(runs) < 2:
        yield "a single run has no interval"
    if runs["configuration"].nunique() > 1:
        yield (
            f"{runs['configuration'].nunique()} configurations (task files, sampling, least "
            "improvement) are taken together"
        )
    known = runs[runs["seed"] >= 0]
    twice = int(known.duplicated(["children", "seed", "configuration"]).sum())
    if twice:
        yield (
            f"{twice} of {len(runs)} runs repeat the configuration, N and seed of another: they "
            "are the same run, and intervals that count them twice are too narrow"
        )
    for tool, part in runs[runs["lost"].notna()].groupby("tool", sort=False):
        lost = sorted(set(part["lost"]))
        yield f"imported from {tool}, which does not hold: {lost[0]}"
