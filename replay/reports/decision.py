"""What a report decides, in words: the first thing that it says."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from shlex import join, quote
from typing import Any

import numpy as np
import pandas as pd

from evo.logs.log import read_log
from evo.logs.records import Header
from evo.searches import SEARCHES
from evo.tasks.folder import TaskError
from evo.tasks.task import load_task, names_of_shipped_tasks
from replay.claims.advice import advise
from replay.claims.task_advice import ALONE
from replay.claims.task_comparison import TaskComparison
from replay.logs.decode import name_runs
from replay.logs.frames import GREEDY, models_apart, originals, split_repeats, tasks_apart
from replay.logs.others import from_here, origin_of
from replay.logs.tables import Tables
from replay.reports.comparison import asked_alone, named_runs
from replay.reports.tables import Section, stack
from replay.simulation.contest import Contest
from replay.statistics.groups import LEAST_PAIRS
from replay.statistics.numbers import amount, number

TITLE = "Decision"
SEEDS = LEAST_PAIRS
"""Runs of each configuration that a newcomer is told to make; fewer pairs decide nothing."""
LEAST_GENERATIONS = 4
"""Shorter runs say nothing of a last quarter."""


def decision_section(
    tables: Tables,
    comparison: TaskComparison | None,
    why: str = "",
    contests: Sequence[tuple[str, Contest]] = (),
) -> Section:
    """Returns the decisions that the runs of a report allow, as questions with their answers.

    Args:
        tables: The tables of the logs, from `replay.load_tables`.
        comparison: The comparison of their configurations, if there is one.
        why: Why there is none, where it was tried.
        contests: Policies that were replayed over runs, each with the runs' name.
    """
    words = [
        *(
            [("Which configuration is best?", _configuration(tables, comparison))]
            if comparison is not None
            else _alone(tables, why)
        ),
        *(
            (
                f"Does a policy over {amount(contest.arms, 'run')} beat one run on "
                f"{where.removesuffix(f': {contest.setting}')}?",
                advise(contest),
            )
            for where, contest in contests
        ),
        *_best(tables),
    ]
    return Section(
        title=TITLE, task="", model="", is_llm=True, heading="", cells=stack({}), words=tuple(words)
    )


def _configuration(tables: Tables, comparison: TaskComparison) -> str:
    text = advise(comparison)
    if ALONE in text:
        pair = comparison.table["configuration"].iloc[:2]
        text += f" Of the first two of the table, as an example: {asked_alone(tables, *pair)}."
    return text


def _alone(tables: Tables, why: str) -> Iterator[tuple[str, str]]:
    """Where nothing can be compared: what the runs tell all the same, and what to run next."""
    runs = originals(named_runs(tables), quiet=True)
    for (task, name), part in runs.groupby(["task", "configuration"], sort=False):
        own = tables.generations[tables.generations["run"].isin(part["run"])]
        known = own["best_fitness"].dropna()
        if known.empty:
            continue
        which = "" if name == "all" else f", {name}"
        count = f"{len(part)} run{'s' * (len(part) > 1)}"
        initial = own.loc[own["generation"] == 0, "best_fitness"].dropna()
        start = f", from {_of_runs(initial)} of the initial program" if len(initial) else ""
        text = f"Best fitness {known.max() + 0.0:.5g} in {count}{start}, after {_spent(part)}."
        yield f"What do the runs of {task}{which} tell?", f"{text} {_rising(own)}"
    yield "What would decide something?", _next(runs, why)


def _of_runs(fitness: pd.Series[float]) -> str:
    """The fitness of one program in some runs, whose evaluations may differ."""
    return f"{'a median of ' if fitness.nunique() > 1 else ''}{fitness.median():.5g}"


def _spent(runs: pd.DataFrame) -> str:
    """The calls of some runs, and their tokens and dollars as far as they are known."""
    calls = int(runs["n_calls"].sum())
    parts = [f"{calls:,} call{'s' * (calls != 1)}"]
    reported = float(runs[["prompt_tokens", "completion_tokens"]].sum().sum())
    parts += _at_least(runs["tokens"], reported, "tokens")
    if bool(runs["is_llm"].all()):
        parts += _at_least(runs["dollars"], float(runs["dollars"].sum()), "dollars")
    return ", ".join(parts)


def _at_least(costs: pd.Series, known: float, unit: str) -> list[str]:
    """The sum of the runs' costs; where that of a run is unknown, the part that is known."""
    partly = bool(costs.isna().any())
    amount = known if partly else float(costs.sum())
    return [f"{'at least ' * partly}{number(amount)} {unit}"] if amount > 0 else []


def _rising(rows: pd.DataFrame) -> str:
    """Whether runs still improved in the last quarter of their generations."""
    rose, long = 0, 0
    for _, run in rows.groupby("run", sort=False):
        best = run.sort_values("generation")["best_fitness"].to_numpy(np.float64, na_value=-np.inf)
        if (last := len(best) - 1) >= LEAST_GENERATIONS:
            long += 1
            rose += bool(best[-1] > best[last - last // 4])
    if not long:
        return f"Fewer than {LEAST_GENERATIONS} generations do not say whether they still rise."
    if long == 1:
        still = "still rose" if rose else "no longer rose"
        which = (
            "It"
            if rows["run"].nunique() == 1
            else f"The one run beyond T = {LEAST_GENERATIONS - 1}"
        )
        return f"{which} {still} in the last quarter of its generations."
    return f"{rose} of {long} still rose in the last quarter of their generations."


def _next(runs: pd.DataFrame, why: str) -> str:
    """What to run next, with a command where the runs are ours."""
    reason = why or (
        "no two configurations have two runs each on one task, of at least half its usual calls"
        if runs["configuration"].nunique() > 1
        else "there is one configuration, which nothing is compared with"
    )
    advice = f"Nothing yet: {reason}. Next, make {SEEDS} runs each of two configurations"
    if len(runs) and (runs["tool"] == "evo").all():
        advice += f", such as {_how(runs.iloc[0])}"
    return (
        f"{advice}, then judge the logs of one against those of the other (`replay judge --help`). "
        "One run tells nothing of luck, so compare no single runs."
    )


def _how(run: pd.Series[Any]) -> str:
    """How runs like one of ours are made, from where the report is made."""
    header = read_log(str(run["source"])).header
    depth, size = int(run["generations"]), int(run["children"])
    models = [each.model for each in header.models] or [header.model]
    names, several = [model.name for model in models], "s" * (len(models) > 1)
    default = names == ["offline"]
    asked = "" if default else f" --model{several} {join(names)}"
    own, other = GREEDY, "population"
    if run["search"] != GREEDY and run["search"] in SEARCHES:
        own, other = str(run["search"]), GREEDY
        asked += f" --search {own}"
    beside = f"the same with `--search {other}`"
    options = f"-T {depth} -N {size} --seeds 0:{SEEDS}{asked}"
    folder = ""
    if all(model.way == "endpoint" for model in models):
        if _is_known(header):
            return f"`evo run {quote(header.task.name)} {options}` and {beside}"
        folder = f"`evo run FOLDER {options}` with the task's folder, and {beside}, or of "
    given = "" if default else f", model{several}=MODEL{several.upper()}"
    given += "" if own == GREEDY else f', search="{own}"'
    call = f"evo.run_many(task, generations={depth}, children={size}, seeds=range({SEEDS}){given})"
    return f'{folder}a task of functions `{call}` and the same with `search="{other}"`'


def _is_known(header: Header) -> bool:
    """Whether a command finds a run's task under its name, which other folders may have, too."""
    if header.task.name in names_of_shipped_tasks():
        return True
    try:
        return load_task(header.task.name).record.hash == header.task.hash
    except (TaskError, OSError):
        return False


def _best(tables: Tables) -> Iterator[tuple[str, str]]:
    """The best program of each task: its fitness, its log, and what it was chosen from."""
    stand_ins = set(tables.runs.loc[~tables.runs["is_llm"].astype(bool), "run"])
    noisy = set(tables.runs.loc[tables.runs["noise"] != "", "run"])
    frame = originals(tables.generations, quiet=True)
    for task, part in frame.groupby(tasks_apart(frame), sort=False):
        labels = models_apart(part)
        known = part["best_fitness"].to_numpy(np.float64, na_value=-np.inf)
        top = int(known.argmax())
        offline = " (not an LLM)" if part["run"].iloc[top] in stand_ins else ""
        counted, _ = split_repeats(part)
        begun = counted.loc[counted["generation"] > 0, "run"].nunique()
        runs = begun or counted["run"].nunique()
        each = f"{runs} run{'s' * (runs > 1)}"
        if (several := labels.nunique()) > 1:
            asked, by = f"What is the best program for {task}?", f" by {labels.iloc[top]}{offline}"
            each += f" of {several} configurations"
        else:
            asked, by = f"What is the best program for {task}, {labels.iloc[0]}{offline}?", ""
        if known[top] == -np.inf:
            yield asked, f"There is none: nothing was ok in {each}."
            continue
        initial = part.loc[part["generation"] == 0, "best_fitness"].dropna()
        start = f", where the initial program has {_of_runs(initial)}" if len(initial) else ""
        where, advice = _place(str(part["source"].iloc[top]))
        luck = (
            " Evaluations are noisy, so that it is partly luck." if noisy & {*part["run"]} else ""
        )
        where = f"Fitness {known[top] + 0.0:.5g}{by} in {where}, the highest of {each}{start}."
        yield asked, f"{where}{luck} {advice}"


def _place(source: str) -> tuple[str, str]:
    """Where a run lies, in a form that lasts, and what shows its best program."""
    near = from_here(source)
    if (origin := origin_of(source)) is None:
        best = read_log(source).best
        if best.program is None:
            return near, "This log holds no programs."
        return near, f"`evo best {quote(near)}` shows it."
    where = from_here(origin.place)
    if len(origin.logs) > 1:
        where = f"{where}, run {name_runs(origin.logs)[Path(source)]}"
    if Path(source) not in origin.texts:
        return where, "The tool kept no text of it."
    log = Path(f"{origin.place.absolute().name}-logs", Path(source).relative_to(origin.folder))
    tool = "auto" if " " in origin.tool else origin.tool
    return where, (
        f"`replay import {tool} {quote(from_here(origin.place))} "
        f"--full -o {quote(log.parts[0])}` keeps it, then `evo best {quote(str(log))}` shows it."
    )
