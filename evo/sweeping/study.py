"""A sweep as a study of Optuna, for its dashboard and its own analyses."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

from evo.sweeping.events import EventLog
from evo.sweeping.plan import read_plan
from evo.sweeping.strategies import tell_study

if TYPE_CHECKING:
    import optuna


def fill_study(folder: str | os.PathLike[str], study: optuna.Study) -> int:
    """Adds the trials of a sweep, of whatever strategy, that the study does not hold yet.

        study = optuna.create_study(
            storage="sqlite:///sweep.db", study_name="sweep", direction="maximize",
            load_if_exists=True,
        )
        fill_study("logs/local/sweep-random", study)     # then: optuna-dashboard sqlite:///sweep.db

    Called again it adds what has come since. The sweep never reads the study: `events.jsonl` is
    what counts. A trial's value is the mean fitness over the seeds; one with a failed run fails.

    Args:
        folder: Of the sweep.
        study: One that this function alone fills.

    Returns:
        Trials added: those before the first that has a run to come.

    Raises:
        LogError: Not the folder of a sweep.
    """
    plan, events = read_plan(Path(folder)), EventLog(Path(folder))
    events.refresh()
    state = events.state
    over = 0
    for _, hash_ in state.trials:
        runs = [(hash_, seed) for seed in plan.seeds]
        if any(run not in state.completed and run not in state.failed for run in runs):
            break
        over += 1
    held = len(study.trials)
    tell_study(study, plan.parsed_space(), state.history(plan.seeds)[held:over])
    return max(0, over - held)
