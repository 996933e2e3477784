"""A session's work on a sweep: propose trials, make their runs, pause and stop on request."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Unpack

import msgspec

from evo.logs.cost import UNITS
from evo.logs.log import Log, read_log
from evo.logs.records import Header
from evo.models.client import EndpointDown, EndpointRefused
from evo.plugins import MistakenType
from evo.runs.arm import Arm
from evo.runs.concurrency import find_preset
from evo.runs.resources import Resources
from evo.runs.session import JobResult, RunJob, run_jobs
from evo.runs.settings import Goal, every_goal
from evo.studies.allocation.driver import describe, play
from evo.studies.allocation.goal import goal_of
from evo.studies.folders import ALLOCATION
from evo.studies.study import Study
from evo.studies.sweep.design import RUNS, Design, keep_trials
from evo.studies.sweep.events import Ending, EventFields, EventLog, RunKey, SweepEventKind
from evo.studies.sweep.fields import Configuration, short_hash
from evo.studies.sweep.summary import Sweep, cost_of_pool, measure, measure_pool


class Sweeping:
    """A session's work on a sweep, from beginning to end."""

    def __init__(self, study: Study, design: Design, events: EventLog) -> None:
        self._study, self._design, self._events = study, design, events
        self._folder, self._control, self._ledger = study.folder, study.control, study.ledger
        self._strategy = design.build_strategy()
        self._known: dict[str, Configuration | str] = {}  # what a hash stands for, or why nothing
        self._goals: dict[Path, dict[str, Goal]] = {}  # by configuration
        self._answered: set[str] = set()  # endpoints of runs that were brought to their goals
        self._down: dict[str, EndpointDown] = {}  # endpoints that no longer answer
        self._unheard: BaseException | None = None  # what a listener raised

    def work(self) -> Sweep:
        """Works until all runs are made, a pause or a stop is requested, or the budget is spent."""
        events = self._events
        self._study.claim(events.claimed())
        keep_trials(self._folder, self._design)
        self._ledger.settle(dict.fromkeys(UNITS, 0.0) | {"seconds": events.state.seconds})
        again = any(event.event == "started" for event in events.events)
        self._append("resumed" if again else "started", data=dict(self._ledger.limits))
        ended: Ending = "interrupted"
        message: str | None = None
        try:
            with self._study.resources(isolated=True) as resources:
                ended = self._work(resources)
        except KeyboardInterrupt:
            ended = "paused"
            raise
        except Exception as error:
            ended, message = "interrupted", str(error)
            raise
        finally:
            self._append(ended, message=message)
        if self._unheard is not None:
            raise self._unheard
        return Sweep(self._folder)

    def _work(self, resources: Resources) -> Ending:
        """Proposes and runs; returns why it ended."""
        settings = self._study.settings
        preset = find_preset(settings.preset) if settings.preset else None
        usual = preset is not None and preset.max_concurrent == settings.max_concurrent
        spent = True  # what earlier sessions did counts as well, once
        while not self._control.stopping.is_set():
            left = [*self._left(done=spent)]
            if not left and not self._propose():
                return "completed"
            jobs, spent = self._jobs(left), False
            done = run_jobs(
                jobs,
                resources,
                ledger=self._ledger,
                label=f"sweep {self._folder.name}",
                at_once=preset.configurations_in_flight if preset and usual else None,
                on_generation=self._note,
            )
            failed = [*self._take(done), *self._allocate_all(left, resources)]
            # Once no endpoint of the sweep answers, it ends as it stands, to go on later.
            if self._down and not self._answered - self._down.keys():
                raise next(iter(self._down.values()))
            for run, error in failed:
                self._fail(run, error)
            if self._ledger.exhausted or any(each.end == "budget" for each in done):
                return "budget_exhausted" if self._has_more() else "completed"
        return "paused" if self._control.wish == "pause" else "stopped"

    def _take(self, done: Iterable[JobResult]) -> Iterator[tuple[RunKey, Exception]]:
        """Reports what came of runs; yields those that failed, with why."""
        for each in done:
            if each.log is not None:
                self._report(each.job, each.log)
                self._heard_of(each.job.header, each.error)
            if each.error is not None:
                yield from ((run, each.error) for run in self._served(each.job))

    def _allocate_all(
        self, left: Iterable[tuple[RunKey, Configuration]], resources: Resources
    ) -> Iterator[tuple[RunKey, Exception]]:
        """Makes the allocations among what is left; yields those that failed, with why."""
        for run, known in left:
            stopping = self._control.stopping.is_set()
            if known.pool and not stopping and self._ledger.open().all():
                reason = self._allocate(run, known, resources)
                self._heard_of(known.header, reason)
                if reason is not None:
                    yield run, reason

    def _heard_of(self, header: Header, error: Exception | None) -> None:
        """Notes whether the endpoint of a run answers."""
        if error is None:
            self._answered.add(_endpoint(header))
        elif isinstance(error, EndpointDown):
            self._down.setdefault(_endpoint(header), error)

    def _left(self, *, done: bool = False) -> Iterator[tuple[RunKey, Configuration]]:
        """Yields the runs still to make, or all, in the order of trials, then of seeds."""
        state = self._events.state
        for hash_, values in state.configurations.items():
            if hash_ not in self._known:
                self._known[hash_] = configured(self._folder, self._design, values, hash_)
            known = self._known[hash_]
            for run in [(hash_, seed) for seed in self._design.seeds]:
                if run in state.failed or (run in state.completed and not done):
                    continue
                if isinstance(known, str):
                    self._fail(run, known)
                elif (down := self._down.get(_endpoint(known.header))) is not None:
                    self._fail(run, down)
                else:
                    yield run, known

    def _jobs(self, left: Iterable[tuple[RunKey, Configuration]]) -> list[RunJob]:
        """Returns the logs to extend to their goals.

        By the prefix property a run with T = 64 holds every run with less, so configurations that
        differ in T, target or patience alone share one log per seed.
        """
        jobs = dict[Path, RunJob]()
        for (hash_, seed), known in ((run, each) for run, each in left if not each.pool):
            path = self._folder / log_name(known, seed)
            goals = self._goals.setdefault(path, {})
            goals[hash_] = known.goal
            header = msgspec.structs.replace(known.header, seed=seed)
            jobs[path] = RunJob(path, header, every_goal([*goals.values()]))
        return list(jobs.values())

    def _has_more(self) -> bool:
        """Whether there is more to make, or to propose."""
        history = self._events.state.history(self._design.seeds)
        return any(True for _ in self._left()) or bool(self._strategy.propose(history))

    def _propose(self) -> bool:
        """Records the next trials, and returns whether there are any."""
        state = self._events.state
        batch = self._strategy.propose(state.history(self._design.seeds))
        for trial, values in enumerate(batch, start=len(state.trials)):
            try:
                hash_ = self._design.configure(values).id
            except (ValueError, MistakenType):
                hash_ = short_hash(values)
            self._append("proposed", trial=trial, configuration=hash_, values=values)
        return bool(batch)

    def _note(self, job: RunJob, arm: Arm) -> None:
        """Records what a generation of a run means for its configurations."""
        for run in self._served(job):
            if run not in self._events.state.logs:
                self._append("run_started", run, log=self._place(job.path))
        state, completed = arm.state, self._events.state.completed
        goals = {run: self._goals[job.path][run[0]] for run in self._served(job)}
        left = [goal for run, goal in goals.items() if run not in completed]
        if any(goal.end_of(state.trajectory, state.improved) is not None for goal in left):
            self._report(job, read_log(arm.path))

    def _report(self, job: RunJob, log: Log) -> None:
        """Records which configurations a log completes."""
        for run in self._served(job):
            end = self._goals[job.path][run[0]].end_in(log)
            if end is not None and run not in self._events.state.completed:
                data, place = measure(log, end), self._place(job.path)
                self._append("run_completed", run, log=place, data=data)

    def _allocate(
        self, run: RunKey, known: Configuration, resources: Resources
    ) -> EndpointDown | EndpointRefused | ValueError | None:
        """Makes or continues an allocation within the budget; returns its error."""
        folder = self._folder / log_name(known, run[1]).removesuffix(".jsonl")
        place, arms = self._place(folder), known.arms(run[1])
        goal = goal_of(known.goal.target, known.goal.patience)
        if (made := self._events.state.completed.get(run)) is not None:
            self._ledger.settle(cost_of_pool(made.data))
            return None
        if run not in self._events.state.logs:
            self._append("run_started", run, log=place)
        try:
            header, policy = describe(
                folder, known.find_policy(), arms, rounds=known.generations,
                reward=known.pool["reward"], seed=run[1],
            )  # fmt: skip
            marker, settings = folder / ALLOCATION, self._study.settings
            with Study(marker, settings, self._control, self._ledger) as study:
                done = play(study, header, policy, arms, resources, goal)
        except (EndpointDown, EndpointRefused, ValueError) as error:
            if resources.is_fatal(error):
                raise
            return error
        if done.end in ("completed", "target", "patience"):
            self._append("run_completed", run, log=place, data=measure_pool(done.arms))
        return None

    def _fail(self, run: RunKey, why: object) -> None:
        if run not in self._events.state.completed:
            self._append("run_failed", run, message=" ".join(str(why).split()))

    def _append(
        self, event: SweepEventKind, run: RunKey | None = None, **more: Unpack[EventFields]
    ) -> None:
        """Records an event; a listener's exception ends the session and is raised at its end."""
        if run is not None:
            more |= {"configuration": run[0], "seed": run[1]}
        try:
            with self._events.lock:
                self._events.append(event, **more, **self._counts(event, run))
        except BaseException as error:
            self._unheard = self._unheard or error
            self._control.stop()
            raise

    def _counts(self, event: str, run: RunKey | None) -> dict[str, int]:
        """Returns how many runs are completed after an event, and how many there are in all."""
        state = self._events.state
        left = max(0, self._strategy.planned - len(state.trials))
        total = (len(state.configurations) + left) * len(self._design.seeds)
        new = event == "run_completed" and run not in state.completed
        return {"completed": len(state.completed) + new, "total": total}

    def _served(self, job: RunJob) -> list[RunKey]:
        """Returns the runs of configurations that a log serves."""
        return [(hash_, job.header.seed) for hash_ in self._goals[job.path]]

    def _place(self, path: Path) -> str:
        return path.relative_to(self._folder).as_posix()


def log_name(configuration: Configuration, seed: int) -> str:
    """Returns the path of a run's log, relative to the folder of its sweep."""
    header, pool = configuration.header, f"pool-{configuration.id}"
    id_ = pool if configuration.pool else configuration.run
    model = "".join(c if c.isalnum() or c in "-_." else "-" for c in header.model.name)
    return f"{RUNS}/{header.task.name}-{model}-N{header.children}-{id_}-s{seed}.jsonl"


def _endpoint(header: Header) -> str:
    """Returns a key for the endpoints of a run, its critic's included."""
    models = [each.model for each in header.models] or [header.model]
    return repr((models, header.critic and header.critic.model))


def configured(
    folder: Path, design: Design, values: dict[str, object], hash_: str
) -> Configuration | str:
    """Returns the configuration that was proposed under a hash, or why it is impossible."""
    try:
        configuration = design.configure(values)
    except (ValueError, MistakenType) as error:
        return str(error)
    if configuration.id != hash_:
        raise ValueError(
            f"{folder}: cannot go on: {values!r} was configuration {hash_} when it was proposed "
            f"and is {configuration.id} now: the model or this software has changed since"
        )
    return configuration
