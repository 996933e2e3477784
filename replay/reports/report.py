"""The tables of a report about runs and policies: see `replay.reports.tables`."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from evo.logs.records import STATUSES
from evo.plugins import Registry, plugged_in, with_refusals
from replay.logs.columns import REPORTED
from replay.logs.frames import FAILURES, bounds_of, empty_note, repeats_note, split_repeats
from replay.logs.others import united
from replay.logs.tables import Tables
from replay.reports.asked import sections_of
from replay.reports.configurations import configuration_labels
from replay.reports.counting import begun, by_root, noise_note, unended_note
from replay.reports.limits import notes_on_limits
from replay.reports.models import cells_of_models, notes_on_models
from replay.reports.stages import STAGES, cells_of_stages
from replay.reports.tables import CELLS, LEVEL, Cell, Section, estimate, exact, stack, title
from replay.reports.timeouts import timeouts_of_tables
from replay.simulation.effects import time_to_threshold
from replay.simulation.shortfall import note_on_times
from replay.simulation.sizes import lack_of_runs, needed_runs
from replay.statistics.intervals import interval, name_of, rare_jumps

if TYPE_CHECKING:
    from replay.simulation.contest import Contest

UNDETERMINED = "undetermined: without an interval, not even the sign of an effect is known"
EFFECTS = (
    "policy effect: the policy less a single run, which is the sum of the pool effect, random less "
    "a single run, and the allocation effect, the policy less random"
)
REGRETS = "oracle_arm: best fitness at the end, against all pulls on the best arm"
REPEATS = "repeats: children, whatever their status, whose program equals an earlier one of the run"
SHARES = "ok: mean over runs of the share of children"
FRESH = (
    "gain: final less initial fitness, means over the runs whose final program was measured on "
    "draws that no decision saw; false acceptances: what the error rates of all tests allow"
)
TIMES = (
    "90 %: the first pull by which 90 % of the replicates reach it (the paper's rule); median: by "
    "which half do; never: not within the budget"
)
MOST_CONFIGURATIONS = 8
"""Configurations of one task and model that a report shows."""

OFFLINE_NOTE = "the offline model is a random rewriter, not an LLM"


@dataclass(frozen=True)
class Group:
    """The runs of one task, model and configuration.

    Attributes:
        task: Name of the task.
        model: Name of the model.
        is_llm: Whether the model is an LLM.
        tables: The rows of these runs in the tables of `replay.load_tables`, without repeats.
        repeats: Number of runs that were left out, since they repeat others.
        setting: What tells its runs from those of other configurations; empty if there is one.
        of: Number of configurations that it was chosen from, where not all are shown; 0: all are.

    Example:
        >>> [group] = replay.reports.groups(replay.load_tables(path))
        >>> group.task
        'min_max_distance'
    """

    task: str
    model: str
    is_llm: bool
    tables: Tables
    repeats: int = 0
    setting: str = ""
    of: int = 0

    @property
    def title(self) -> str:
        """Task, model, whether that is an LLM, and the configuration where there are several."""
        return title(self.task, self.model, self.setting, is_llm=self.is_llm)

    def section(
        self, title: str, heading: str, cells: pd.DataFrame, notes: Iterable[str]
    ) -> Section:
        """One of its tables."""
        return Section(
            title=title, heading=heading, cells=cells, notes=tuple(notes),
            task=self.task, model=self.model, is_llm=self.is_llm, setting=self.setting,
        )  # fmt: skip

    def sizes(self) -> Iterator[tuple[int, Group]]:
        """Each N, ascending, with the runs that have it."""
        for children in sorted(self.tables.runs["children"].unique().tolist()):
            part = Tables(*(table[table["children"] == children] for table in self.tables))
            yield children, replace(self, tables=part)

    @property
    def best_log(self) -> str | None:
        """The log whose fitness is highest; None if nothing is ok anywhere."""
        generations = self.tables.generations
        if generations["best_fitness"].isna().all():
            return None
        at = int(generations["best_fitness"].to_numpy(np.float64, na_value=-np.inf).argmax())
        return str(generations["source"].iloc[at])


def groups(tables: Tables) -> list[Group]:
    """Returns the runs of some logs, grouped by task, model and configuration.

    N and the seed are no part of a configuration. Where a task and model have more than
    `MOST_CONFIGURATIONS`, those with the highest median final fitness are returned.

    Args:
        tables: The tables of the logs, from `replay.load_tables`.

    Returns:
        The groups, in order of their first run.

    Example:
        >>> [group.task for group in replay.reports.groups(replay.load_tables(path))]
        ['min_max_distance']
    """
    found = []
    for (task, model), part in tables.runs.groupby(["task", "model"], sort=False):
        labels = configuration_labels(part["configuration"])
        chosen = list(dict.fromkeys(labels))
        if len(chosen) > MOST_CONFIGURATIONS:
            best = tables.generations.groupby("run", sort=False)["best_fitness"].max()
            final = part["run"].map(best).groupby(labels).median().sort_values(ascending=False)
            chosen = list(final.index[:MOST_CONFIGURATIONS])
        left_out = labels.nunique() > len(chosen)
        for label in chosen:
            runs, repeats = split_repeats(part[labels == label])
            names = set(runs["run"])
            is_llm = bool(runs["is_llm"].all())
            own = Tables(runs, *(table[table["run"].isin(names)] for table in tables[1:]))
            of = labels.nunique() if left_out else 0
            found.append(Group(str(task), str(model), is_llm, own, repeats, label, of))
    return found


def sections(group: Group, *, tau: float | None = None) -> list[Section]:
    """Returns the tables of a report about one group of runs.

    Args:
        group: The group, from `groups`.
        tau: A fitness; the table of fitness then has the time to reach it.

    Returns:
        The tables of `replay.reports.SECTIONS` that apply to these runs.

    Example:
        >>> [group] = replay.reports.groups(replay.load_tables(path))
        >>> [section.title for section in replay.reports.sections(group)]
        ['Fitness', 'Children by status', 'Cost']
    """
    known = with_refusals(plugged_in("replay.sections", SECTIONS))
    ours = {name for name, make in known.items() if make in SECTIONS.built_in.values()}
    makers = {
        name: partial(
            make, group if name in ours else replace(group, tables=group.tables.copy()), tau
        )
        for name, make in known.items()
    }
    return sections_of(makers, group.section, ours)


def by_size(
    group: Group, title: str, cells: Callable[[Group], list[Cell]], notes: Iterable[str] = ()
) -> Section:
    """Returns a table with one row per N.

    Args:
        group: The runs.
        title: Title of the table.
        cells: Returns the cells of a row from the runs of one N.
        notes: Sentences that are needed to read the table.

    Example:
        >>> [group] = replay.reports.groups(replay.load_tables(path))
        >>> def runs(part):
        ...     count = len(part.tables.runs)
        ...     return [replay.reports.Cell("runs", count, count, count, count, "count")]
        >>> replay.reports.by_size(group, "Runs", runs).cells["value"].tolist()
        [1]
    """
    rows = {str(children): cells(part) for children, part in group.sizes()}
    return group.section(title, "N", stack(rows), notes)


def fitness_section(group: Group, tau: float | None) -> Section:
    """Initial and final fitness, and when `tau` was reached."""
    sizes = [len(begun(part.tables)[0]) for _, part in group.sizes()]
    made = by_size(group, "Fitness", lambda part: _fitness(part, tau), _notes(group))
    beyond = notes_on_limits(made.cells, group.tables.generations)
    return replace(
        made, notes=(*made.notes, *note_on_times(sizes if tau is not None else []), *beyond)
    )


def status_section(group: Group, tau: float | None) -> Section:
    """The children by status."""
    partial = int((group.tables.children["status"] == "partial").sum())
    message = (
        f"partial: dropped on a batch or refused by a stage, {partial} in all; no figure of "
        "fitness holds such children"
    )
    known = group.tables.generations["n_repeats"].notna().any()
    notes = (SHARES, *([REPEATS] if known else []), FAILURES, *([message] if partial else []))
    return by_size(group, "Children by status", _statuses, notes)


def fresh_section(group: Group, tau: float | None) -> Section | None:
    """The gain measured on fresh draws, if rivals were confirmed on some."""
    tested = (group.tables.runs["n_tests"] > 0).any()
    return by_size(group, "Gain on fresh draws", _confirmed, (FRESH,)) if tested else None


def stages_section(group: Group, tau: float | None) -> Section | None:
    """What the stages of an evaluation spared, if it has some."""
    if not (group.tables.children["stages"] > 0).any():
        return None
    return by_size(group, "Stages", lambda part: cells_of_stages(part.tables), (STAGES,))


def cost_section(group: Group, tau: float | None) -> Section:
    """Calls, tokens, FLOPs, dollars and seconds."""
    unknown = "; FLOPs and dollars take an attempt without usage for max_tokens of output"
    summed = f"sums over the runs; tokens as far as reported{unknown if group.is_llm else ''}"
    return by_size(group, "Cost", _costs, (summed, *timeouts_of_tables(group.tables)))


def models_section(group: Group, tau: float | None) -> Section | None:
    """Calls, costs and gains of each model, if runs use several."""
    if group.tables.children["asked_model"].nunique() < 2:
        return None
    notes = notes_on_models(group.tables)
    return by_size(group, "Models", lambda part: cells_of_models(part.tables, part.is_llm), notes)


SECTIONS: Registry[Callable[[Group, float | None], Section | None]] = Registry(
    "section",
    {
        "fitness": fitness_section,
        "children by status": status_section,
        "gain on fresh draws": fresh_section,
        "stages": stages_section,
        "models": models_section,
        "cost": cost_section,
    },
    kind="function",
    group="replay.sections",
)
"""Name -> table of a group of runs, given tau or None; None: it does not apply. One that is added
here joins `replay report`, `replay site` and the page of a protocol. It cannot change the tables
that it is given, and its failure of any kind is a sentence in its place."""


def _confirmed(group: Group) -> list[Cell]:
    """Where rivals were tried on fresh draws: what of the gain is left there."""
    runs, n = group.tables.runs, len(group.tables.runs)
    known = runs[runs["fresh_gain"].notna()]
    return [
        exact("tests", int(runs["n_tests"].sum()), n, "count"),
        exact("accepted", int(runs["n_accepted"].sum()), n, "count"),
        exact("false acceptances allowed", float(runs["false_acceptances"].sum()), n, "p"),
        *(
            estimate(name, interval(known[column].to_numpy(np.float64), "mean"), "difference")
            for name, column in (("gain", "gain"), ("gain on fresh draws", "fresh_gain"))
            if len(known)
        ),
    ]


def policy_sections(group: Group, contest: Contest) -> list[Section]:
    """Tables of what policies make of a group's runs of one N."""
    after = f"after {contest.rounds} pulls ({contest.setting})"
    effects = _quantity(contest.effects, contest.effects["effect"] + " effect", "effect")
    finals = pd.concat([_quantity(contest.finals, "best fitness", "fitness"), effects])
    beyond = notes_on_limits(finals, group.tables.generations)
    notes = [EFFECTS, *_null(contest), *beyond]
    if effects["low"].isna().any():
        few = contest.runs < needed_runs(contest.arms)
        lack = f"; {lack_of_runs(contest.runs, contest.arms)}" if few else ""
        notes.append(f"{UNDETERMINED}{lack}")
    if effects["low"].notna().any():
        held = name_of(effects["coverage"], LEVEL, contest.effects["least"].min())
        notes += [f"effects: {held}", rare_jumps(contest.runs)]
    if contest.identical:
        made = [(f"Policies {after}", finals, (*contest.notes, *beyond))]
    else:
        regrets = _quantity(contest.regrets, contest.regrets["oracle"])
        made = [
            (f"Policies {after}", finals, (*notes, *contest.notes)),
            (f"Regret in hindsight {after}", regrets, (REGRETS,)),
        ]
    if contest.tau is not None:
        title = f"Pulls until fitness {contest.tau:g} ({contest.setting})"
        made.append((title, _times(contest), (TIMES,)))
    return [group.section(title, "policy", cells, notes) for title, cells, notes in made]


def _null(contest: Contest) -> list[str]:
    """Says how often the policies do as well where nothing can be chosen."""
    rows = contest.effects[contest.effects["effect"] == "policy"].dropna(subset=["null_p"])
    if rows.empty:
        return []
    each = ", ".join(
        f"{name} {p:.3f}" for name, p in zip(rows["policy"], rows["null_p"], strict=True)
    )
    return [
        "null p, the probability of at least such a policy effect with the increments of the runs "
        f"exchanged, so that nothing can be chosen: {each}"
    ]


def _times(contest: Contest) -> pd.DataFrame:
    parts = []
    for share, name in ((0.9, "90 %"), (0.5, "median")):
        rows = contest.times[contest.times["share"] == share]
        parts.append(_quantity(rows.rename(columns={"time": "value"}), name, "pulls"))
    reached = rows.assign(
        value=rows["share_reached"], low=math.nan, high=math.nan, coverage=math.nan
    )
    return pd.concat([*parts, _quantity(reached, "share that reached it", "share")])


def _quantity(
    rows: pd.DataFrame, quantity: str | pd.Series[str], unit: str = "difference"
) -> pd.DataFrame:
    renamed = rows.rename(columns={"policy": "row"})
    level = np.where(rows["low"].isna(), np.nan, LEVEL)
    named = renamed.assign(quantity=quantity, unit=unit, level=level, without="")
    return named[list(CELLS)]


def _fitness(group: Group, tau: float | None) -> list[Cell]:
    runs, generations = begun(group.tables)
    n, lengths = len(runs), runs["generations"]
    initial = generations.loc[generations["generation"] == 0, "best_fitness"].dropna()
    best = generations.groupby("run", sort=False)["best_fitness"].max()
    final = best.fillna(-math.inf).to_numpy(dtype=np.float64)
    apart = by_root(runs, best.fillna(-math.inf))
    bounds = bounds_of(generations)
    mean = exact("final, mean", math.nan, n, "fitness")
    if np.isfinite(final).all():  # a run that found nothing has none
        mean = estimate("final, mean", interval(apart, "mean", bounds=bounds), "fitness")
    cells = [
        exact("runs", n, n, "count"),
        *([exact("least T", int(lengths.min()), n, "count")] if lengths.nunique() > 1 else []),
        exact("T", int(lengths.max()), n, "count"),
        exact("initial", float(initial.median()) if len(initial) else math.nan, n, "fitness"),
        estimate("final, median", interval(apart, "median"), "fitness"),
        mean,
        exact("best of runs", float(best.max()), n, "fitness"),
    ]
    if tau is not None:
        for share, rule, name in ((0.9, "bootstrap", "90 % rule"), (0.5, "share", "median")):
            time = time_to_threshold(generations, tau, share=share, rule=rule)  # type: ignore[arg-type]
            level = math.nan if math.isnan(time.low) else LEVEL
            limits = (time.time, time.low, time.high, time.n)
            cells.append(Cell(f"T to {tau:g}, {name}", *limits, "pulls", level, time.coverage))
        cells.append(exact(f"reached {tau:g}", float((final >= tau).mean()), n, "share"))
    return cells


_ALWAYS = ("no_reply", "no_program", "invalid", "error", "timeout")


def _statuses(group: Group) -> list[Cell]:
    runs, children = group.tables.runs, group.tables.children
    n, made = len(runs), children[~children["inherited"]]
    status = made["status"].fillna("unknown")
    cells = [exact("children", len(status), n, "count")]
    if len(status):
        shares = (status == "ok").astype(float).groupby(made["run"], sort=False).mean()
        cells.append(estimate("ok", interval(by_root(runs, shares)), "share"))
    counts = status.value_counts()
    repeats = group.tables.generations["n_repeats"].dropna()
    if len(repeats):
        cells.append(exact("repeats", int(repeats.sum()), n, "count"))
    return cells + [
        exact(name, int(counts.get(name, 0)), n, "count")
        for name in (*STATUSES, "unknown")
        if name != "ok" and (name in _ALWAYS or name in counts)
    ]


_COSTS = (
    ("calls", "n_calls", "calls"),
    ("attempts", "n_attempts", "calls"),
    ("without usage", "n_without_usage", "calls"),
    ("prompt tokens", "prompt_tokens", "tokens"),
    ("of them cached", "cached_tokens", "tokens"),
    ("completion tokens", "completion_tokens", "tokens"),
    ("FLOPs", "flops", "flops"),
    ("dollars", "dollars", "dollars"),
)


def _costs(group: Group) -> list[Cell]:
    runs, n = group.tables.runs, len(group.tables.runs)
    seconds = float(group.tables.generations["seconds"].sum(skipna=False))
    cells = []
    for name, column, unit in _COSTS if group.is_llm else _COSTS[:-2]:
        skip = column in REPORTED
        cells.append(exact(name, runs[column].sum(skipna=skip, min_count=int(skip)), n, unit))
    return [*cells, exact("seconds, sum over runs", seconds, n, "seconds")]


def _notes(group: Group) -> Iterator[str]:
    """Sentences that are needed to read the table of fitness."""
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
        yield f"{empty} of {len(runs)} runs found nothing ok. {FAILURES}"
    if group.of:
        yield (
            f"shown are the {MOST_CONFIGURATIONS} configurations with the highest median final "
            f"fitness of {group.of}, whose figures this flatters"
        )
    forks = runs[runs["forked_from"] != ""]
    if len(forks):
        yield (
            f"{len(forks)} of {len(runs)} runs are forks of {forks['root'].nunique()}: intervals "
            "are over these, with the mean of their forks; children that forks inherited are "
            "not counted"
        )
    rescored = int(runs["rescored"].sum())
    if rescored:
        yield (
            f"{rescored} of {len(runs)} runs are rescored logs of others here: intervals are over "
            "the originals, with the mean of both; their calls are counted once"
        )
    if left := len(runs) - len(begun(group.tables)[0]):
        yield f"{empty_note(left, len(runs))}; their calls are part of the cost"
    if unended := unended_note(runs):
        yield unended
    if noise := noise_note(runs):
        yield noise
    if group.repeats:
        yield repeats_note(group.repeats, len(runs) + group.repeats)
    for tool, part in runs[runs["lost"].notna()].groupby("tool", sort=False):
        yield f"imported from {tool}, which does not hold: {united(part['lost'])}"
