"""What a report decides, in words: the first thing that it says."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from replay.claims.advice import advise
from replay.claims.task_comparison import TaskComparison
from replay.logs.tables import Tables
from replay.reports.tables import Section, stack
from replay.simulation.contest import Contest

TITLE = "Decision"


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
        ("Which configuration is best?", _configuration(comparison, why)),
        *(
            (
                f"Does a policy over {contest.arms} runs beat one run on "
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


def _configuration(comparison: TaskComparison | None, why: str) -> str:
    if comparison is not None:
        return advise(comparison)
    reason = why or (
        "no two configurations have two runs each on one task, of at least half its usual calls"
    )
    return f"These logs do not tell: {reason}."


def _best(tables: Tables) -> Iterator[tuple[str, str]]:
    """The best program of each task and model: its fitness, its log, what it was chosen from."""
    stand_ins = set(tables.runs.loc[~tables.runs["is_llm"].astype(bool), "run"])
    for (task, model), part in tables.generations.groupby(["task", "model"], sort=False):
        known = part["best_fitness"].to_numpy(np.float64, na_value=-np.inf)
        offline = " (not an LLM)" if set(part["run"]) <= stand_ins else ""
        asked = f"What is the best program for {task}, {model}{offline}?"
        runs = part["run"].nunique()
        each = f"{runs} run{'s' * (runs > 1)}"
        if not len(known) or known.max() == -np.inf:
            yield asked, f"There is none: nothing was ok in {each}."
            continue
        source = part["source"].iloc[int(known.argmax())]
        initial = part.loc[part["generation"] == 0, "best_fitness"].dropna()
        start = f", where the initial program has {initial.median():.5g}" if len(initial) else ""
        where = f"Fitness {known.max():.5g} in {source}, the highest of {each}{start}."
        yield asked, f"{where} `evo best` shows it."
