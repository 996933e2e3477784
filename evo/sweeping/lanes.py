"""Lanes: the logs of a sweep, each brought as far as its configurations ask.

By the prefix property a run with T = 64 holds every run with less, so configurations that differ
in T alone share one log per seed: a lane.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Mapping
from contextlib import closing, suppress
from dataclasses import dataclass
from pathlib import Path

import msgspec

from evo.configuration import Settings
from evo.cost import Cost, cost_of_children
from evo.handle import Control, read_begun
from evo.journal import LogBusyError
from evo.log import Log, read_log
from evo.records import End, EndReason, Header
from evo.runs.arm import Arm, Stopped
from evo.runs.resources import Resources
from evo.runs.session import Goal, open_log, session_line
from evo.sandbox import EvaluatorClosed
from evo.sweeping.admission import Admission, RunCaller
from evo.sweeping.events import EventLog, State
from evo.sweeping.fields import Configuration
from evo.sweeping.plan import RUNS, Plan


@dataclass(frozen=True)
class Lane:
    """One log of a sweep.

    Attributes:
        name: Of the log, relative to the folder of the sweep.
        header: Of the log.
        goals: T of each configuration that it serves and that is not done, by its hash.
    """

    name: str
    header: Header
    goals: dict[str, int]

    @property
    def goal(self) -> int:
        """The farthest T."""
        return max(self.goals.values())


def log_name(configuration: Configuration, seed: int) -> str:
    """Returns the path of a run's log, relative to the folder of its sweep."""
    header = configuration.header
    model = "".join(c if c.isalnum() or c in "-_." else "-" for c in header.model.name)
    stem = f"{header.task.name}-{model}-N{header.children}-{configuration.run}-s{seed}"
    return f"{RUNS}/{stem}.jsonl"


def pending_lanes(plan: Plan, state: State, known: Mapping[str, Configuration | str]) -> list[Lane]:
    """Returns the logs that have something left to do, in the order of trials, then of seeds.

    Args:
        plan: Names the seeds.
        state: Says what is done.
        known: Configurations by hash; where there can be none, why.
    """
    lanes: dict[str, Lane] = {}
    for hash_ in state.configurations:
        configuration = known[hash_]
        if isinstance(configuration, str):
            continue
        for seed in plan.seeds:
            if (hash_, seed) in state.completed or (hash_, seed) in state.failed:
                continue
            name = log_name(configuration, seed)
            header = msgspec.structs.replace(configuration.header, seed=seed)
            lane = lanes.setdefault(name, Lane(name, header, {}))
            lane.goals[hash_] = configuration.generations
    return list(lanes.values())


@dataclass(frozen=True)
class LaneWork:
    """What bringing lanes forward needs.

    Attributes:
        folder: Of the sweep.
        events: Told of every step.
        admission: Says which calls may begin.
        settings: How the session works.
        resources: Of a run, its caller apart.
    """

    folder: Path
    events: EventLog
    admission: Admission
    settings: Settings
    resources: Resources

    def advance(self, lane: Lane, caller: RunCaller) -> None:
        """Brings a lane to its goal, as far as it may go now.

        Where another process is at the log, nothing happens.

        Raises:
            EndpointDown: The endpoint does not answer.
            EndpointRefused: It refuses the model, or all of a generation.
            LogError: The log is damaged.
            TaskError: The task cannot be evaluated here.
        """
        path = self.folder / lane.name
        if path.exists() and (done := read_begun(path)) and len(done.generations) >= lane.goal:
            self._report(lane, done)
            return
        resources = dataclasses.replace(
            self.resources, only=caller, control=Control(), active=set(), isolated=True
        )
        try:
            session = session_line(resources, Goal(lane.goal))
            writer, log = open_log(path, lane.header, session)
        except LogBusyError:
            return
        with closing(writer):
            self._begin(lane)
            arm = Arm(writer, lane.header, resources)
            with suppress(EvaluatorClosed):
                arm.begin(log)
                self._finish(lane, arm, caller)

    def _finish(self, lane: Lane, arm: Arm, caller: RunCaller) -> None:
        reason: EndReason = "interrupted"
        done = arm.generation
        try:
            while arm.generation < lane.goal:
                if arm.generation in lane.goals.values():
                    self._report(lane, read_log(arm.path))
                arm.advance(caller.logged)
            reason = "completed"
        except Stopped:
            reason = "budget" if self.admission.halted == "budget" else "interrupted"
        finally:
            arm.end(End(reason=reason, stats={"generations": float(arm.generation - done)}))
        self._report(lane, read_log(arm.path))

    def _begin(self, lane: Lane) -> None:
        with self.events.writing() as write:
            for hash_ in lane.goals:
                if hash_ not in self.events.state.begun:
                    write("configuration_started", configuration=hash_)
                write("run_started", configuration=hash_, seed=lane.header.seed, log=lane.name)

    def _report(self, lane: Lane, log: Log) -> None:
        """Writes down which configurations the log now serves."""
        ready = {h: T for h, T in lane.goals.items() if len(log.generations) >= T}
        figures = {hash_: measure(log, T) for hash_, T in ready.items()}
        with self.events.writing() as write:
            for hash_, data in figures.items():
                if (hash_, lane.header.seed) not in self.events.state.completed:
                    write(
                        "run_completed",
                        configuration=hash_,
                        seed=lane.header.seed,
                        log=lane.name,
                        data=data,
                    )

    def fail(self, lane: Lane, error: Exception) -> None:
        """Writes down that the lane's configurations cannot be run."""
        with self.events.writing() as write:
            for hash_ in lane.goals:
                if (hash_, lane.header.seed) not in self.events.state.completed:
                    write(
                        "run_failed",
                        configuration=hash_,
                        seed=lane.header.seed,
                        log=lane.name,
                        message=" ".join(str(error).split()),
                    )


def measure(log: Log, generations: int) -> dict[str, float | None]:
    """Returns the figures of the first T generations of a run; None where unknown.

    They are what the run with that T costs, whatever else the log holds.

    Returns:
        fitness, initial_fitness, n_calls, n_ok, prompt_tokens, completion_tokens, flops, dollars
        and seconds (wall time).
    """
    part = log.generations[:generations]
    cost = cost_of_log(log, generations)
    walls = [generation.seconds for generation in part]
    known = [seconds for seconds in walls if seconds is not None]
    outcomes = [each for each in log.outcomes if each.generation <= generations]
    return {
        "fitness": part[-1].best_fitness if part else None,
        "initial_fitness": log.initial.evaluation.fitness if log.initial else None,
        "n_calls": float(cost.calls),
        "n_ok": float(sum(each.evaluation.status == "ok" for each in outcomes)),
        "prompt_tokens": cost.prompt_tokens,
        "completion_tokens": cost.completion_tokens,
        "flops": cost.flops,
        "dollars": cost.dollars,
        "seconds": sum(known) if len(known) == len(walls) else None,
    }


def cost_of_log(log: Log, generations: int | None = None) -> Cost:
    """Returns what a log's calls cost, those of the evaluator included.

    Args:
        log: The log.
        generations: The first so many alone; None: all, one under way included.
    """
    chosen = [each for each in log.calls if generations is None or each.generation <= generations]
    return cost_of_children(chosen, log.header.model, log.header.sampling)


def logs_of(folder: Path) -> Iterable[Log]:
    """Reads every log of a sweep."""
    for path in sorted((folder / RUNS).glob("*.jsonl")):
        if (log := read_begun(path)) is not None:
            yield log
