"""The progress of a sweep, from its files alone."""

from __future__ import annotations

import math
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from evo.logs.cost import UNITS, Cost, cost_of_calls
from evo.logs.log import Log
from evo.runs.handle import read_begun
from evo.studies.folders import ALLOCATION
from evo.studies.sweep.design import RUNS, read_design
from evo.studies.sweep.events import EventLog


@dataclass(frozen=True)
class Summary:
    """The progress of a sweep.

    `ended` is why the last session ended: completed, stopped, paused, budget, interrupted (by an
    error); running: it goes on, or was killed; not begun: nothing has.
    """

    total: int  # runs in all; of trials not proposed yet, as many as there may be
    completed: int
    failed: int  # runs that cannot be made; going on tries them again
    cancelled: int  # runs left out because the sweep was stopped
    pending: int  # runs still to be made
    prompt_tokens: float | None  # of all calls in the logs; None: unknown, as the next
    completion_tokens: float | None
    ended: str
    folder: Path
    trials: int  # asked for
    configurations: int  # different ones among those that were proposed
    begun: int = 0  # runs that are neither completed nor failed and have a log
    failure: str = ""  # why the first of those failed that cannot be made

    def __str__(self) -> str:
        """Render as one line."""
        tokens = [self.prompt_tokens, self.completion_tokens]
        shown = " + ".join("unknown" if each is None else f"{each:,.0f}" for each in tokens)
        more = ""
        if self.ended == "completed" and self.configurations < self.trials:
            more = (
                f"; {self.configurations} configurations, although {self.trials} trials were asked "
                "for: the strategy proposed no other ones"
            )
        if self.failure:
            more += f"; a run failed: {self.failure}"
        whole = self.completed == self.total
        ended = "ended" if self.ended == "completed" and not whole else self.ended
        return (
            f"{ended}: {self.completed} of {self.total} runs completed, {self.failed} failed, "
            f"{self.cancelled} cancelled, {self.pending} pending; {shown} tokens; {self.folder}"
            f"{more}"
        )

    __repr__ = __str__


@dataclass(frozen=True, repr=False)
class Sweep:
    """A sweep in its folder; it can be given wherever a path can.

    Attributes:
        folder: The folder, which holds sweep.json, events.jsonl and the logs.

    Example:
        >>> settings = {"base": {"generations": 1}, "log_dir": new(""), "progress": False}
        >>> made = evo.sweep({"children": [1, 2]}, task="mmd", seeds=[1], **settings)
        >>> made.completed_runs, made.total_runs
        (2, 2)
    """

    folder: Path  # of sweep.json, events.jsonl and the logs

    @property
    def summary(self) -> Summary:
        """Progress and costs at this time."""
        return summarise(self.folder)

    @property
    def total_runs(self) -> int:
        """Number of runs in all."""
        return self.summary.total

    @property
    def completed_runs(self) -> int:
        """Number of runs that are complete."""
        return self.summary.completed

    @property
    def failed_runs(self) -> int:
        """Number of runs that cannot be made."""
        return self.summary.failed

    @property
    def total_tokens_in(self) -> float | None:
        """Prompt tokens of all calls; None where unknown."""
        return self.summary.prompt_tokens

    @property
    def total_tokens_out(self) -> float | None:
        """Completion tokens of all calls; None where unknown."""
        return self.summary.completion_tokens

    @property
    def stopped_reason(self) -> str:
        """Why the last session ended: completed, stopped, paused, budget or interrupted."""
        return self.summary.ended

    def __fspath__(self) -> str:
        return str(self.folder)

    def __repr__(self) -> str:
        return f"<Sweep {self.summary}>"


def summarise(folder: Path) -> Summary:
    """Returns the progress and costs of a sweep, from its files alone."""
    design, state = read_design(folder), EventLog(folder).state
    planned = design.build_strategy().planned
    left = 0 if state.ended == "completed" else max(0, planned - len(state.trials))
    total = (len(state.configurations) + left) * len(design.seeds)
    open_ = total - len(state.completed) - len(state.failed)
    stopped = state.ended == "stopped"
    paths = sorted((folder / RUNS).rglob("*.jsonl"))
    logs = [read_begun(path) for path in paths if path.name != ALLOCATION]
    cost = sum((cost_of_log(log) for log in logs if log is not None), Cost())
    return Summary(
        total=total,
        completed=len(state.completed),
        failed=len(state.failed),
        cancelled=open_ if stopped else 0,
        pending=0 if stopped else open_,
        prompt_tokens=cost.prompt_tokens,
        completion_tokens=cost.completion_tokens,
        ended=state.ended or "running",
        folder=folder,
        trials=planned,
        configurations=len(state.configurations),
        begun=len(state.logs.keys() - state.completed.keys() - state.failed.keys()),
        failure=next(iter(state.failed.values()), ""),
    )


def standings(folder: Path) -> list[tuple[str, dict[str, object], list[float]]]:
    """Returns each configuration's hash, values and the values of its runs so far, the best first.

    A run's value is its best fitness, minus infinity where there is none. Configurations go by
    their mean over all seeds, then by the median: those with runs to come stand behind.
    """
    seeds, state = len(read_design(folder).seeds), EventLog(folder).state
    runs: dict[str, list[float]] = {hash_: [] for hash_ in state.configurations}
    for (hash_, _), run in state.completed.items():
        fitness = run.data.get("fitness")
        runs[hash_].append(float("-inf") if fitness is None else fitness)

    def rank(hash_: str) -> tuple[bool, float, float]:
        found = runs[hash_] or [float("-inf")]
        return len(runs[hash_]) < seeds, -sum(found) / len(found), -statistics.median(found)

    return [(hash_, state.configurations[hash_], runs[hash_]) for hash_ in sorted(runs, key=rank)]


def measure(log: Log, generations: int) -> dict[str, float | None]:
    """Returns fitness and costs of the first T generations of a run.

    None where unknown; the seconds are wall time.
    """
    part, cost = log.generations[:generations], cost_of_log(log, generations)
    spent = cost.by_unit(None)
    amounts = {unit: None if math.isnan(cost) else cost for unit, cost in spent.items()}
    initial = log.initial.evaluation.fitness if log.initial else None
    known = [each.seconds for each in part if each.seconds is not None]
    outcomes = [each for each in log.outcomes if each.generation <= generations]
    return {
        "fitness": part[-1].best_fitness if part else initial,
        "initial_fitness": initial,
        "n_calls": float(cost.calls),
        "n_ok": float(sum(each.evaluation.status == "ok" for each in outcomes)),
        "prompt_tokens": cost.prompt_tokens,
        "completion_tokens": cost.completion_tokens,
        **{unit: amounts[unit] for unit in UNITS if unit not in ("calls", "tokens", "seconds")},
        "seconds": sum(known) if len(known) == len(part) else None,
    }


def measure_pool(arms: Sequence[Log]) -> dict[str, float | None]:
    """Returns the same for an allocation: the best fitness of its arms, and sums of costs."""
    pulled = [log for log in arms if log.generations] or arms
    parts = [measure(log, len(log.generations)) for log in pulled]

    def total(name: str) -> float | None:
        known = [value for part in parts if (value := part[name]) is not None]
        if name.endswith("fitness"):
            return max(known, default=None)
        return sum(known) if len(known) == len(parts) else None

    return {name: total(name) for name in parts[0]}


def cost_of_pool(data: Mapping[str, float | None]) -> dict[str, float]:
    """Returns what an allocation cost by unit, of its figures; NaN where unknown."""
    known = {name: math.nan if value is None else value for name, value in data.items()}
    tokens = known["prompt_tokens"] + known["completion_tokens"]
    rest = {unit: known.get(unit, math.nan) for unit in UNITS}
    return {**rest, "calls": known["n_calls"], "tokens": tokens, "seconds": 0.0}


def cost_of_log(log: Log, generations: int | None = None) -> Cost:
    """Returns what the calls of a log's first so many generations cost; None: of all."""
    chosen = [each for each in log.calls if generations is None or each.generation <= generations]
    return cost_of_calls(chosen, log.header)
