"""Live runs as the arms of an allocation, and the threads on which their pulls fly."""

from __future__ import annotations

import contextlib
import dataclasses
from collections.abc import Generator, Iterable, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from evo.gate.engines.runs import EngineRun
from evo.logs.cost import added
from evo.logs.journal import Writer
from evo.logs.log import Log, read_log
from evo.logs.records import RunEnd
from evo.policies.base import Bools, Floats, Ints
from evo.runs.arm import Arm
from evo.runs.bounds import cost_bound
from evo.runs.handle import Control
from evo.runs.identity import as_begun
from evo.runs.opening import open_log, session_line
from evo.runs.resources import Resources
from evo.runs.state import costs_of_log
from evo.runs.workers import Stopped
from evo.sandbox import EvaluatorClosed
from evo.studies.allocation.journal import Closed, Journal
from evo.studies.allocation.loop import InOrder, PullOutcome
from evo.studies.allocation.sources import Source, header_of
from evo.studies.study import Study
from evo.tasks.instances import calls_of_evaluation


@dataclass
class LiveArm:
    """An arm that replays its log to the end and then calls the model."""

    fitness: list[float]  # best so far after each logged generation, NaN while nothing is ok
    costs: list[dict[str, float]]  # by unit, of each generation from 0 on
    free: int  # generations, 0 included, that were paid for before the allocation
    run: Arm | None  # None for a log that ends where it ends: a compact one, or another tool's
    log: Log | None  # what it goes on from, until it has begun
    begun: bool  # whether generation 0 is known: where it costs calls, not before the first pull
    most: tuple[int, int]  # calls that generation 0 and each other one cost at most
    played: int = 0  # generations that this allocation has pulled
    new: bool = False  # whether its log was begun in this session

    @property
    def open(self) -> bool:
        """Whether it has a next generation."""
        return (self.run is not None and not self.run.over) or self.ready

    @property
    def ready(self) -> bool:
        """Whether its next generation is made."""
        return self.played + 1 < len(self.costs)

    def begin(self) -> None:
        """Evaluates the initial program, or takes over what is logged."""
        if not self.begun:
            assert self.run is not None
            self.run.begin(self.log)
            self.fitness, self.costs = self.run.state.trajectory, self.run.state.costs
            self.begun, self.log = True, None

    def advance(self) -> None:
        """Makes its next generation, unless it is logged already; what was played stays."""
        self.begin()
        if not self.ready:
            assert self.run is not None
            self.run.advance()

    def cost(self, *, initial: bool) -> dict[str, float]:
        """Returns the cost of its next generation, which exists; the first adds generation 0."""
        parts = [self.played + 1, *([0] if initial and self.played == 0 else [])]
        paid = [self.costs[part] for part in parts if part >= self.free]
        return {unit: added(each[unit] for each in paid) for unit in self.costs[0]}


@dataclass
class LiveArms:
    """Live runs as the arms of one replicate; see `evo.studies.allocation.loop.Arms`."""

    arms: list[LiveArm]
    cap: int | None  # generations of an arm at most
    initial: bool  # whether generation 0 is charged, at an arm's first pull
    control: Control
    stopped: bool = False  # whether an arm gave up its generation because a stop was requested
    asked: int = 0  # rounds that the policy was asked for
    closed: dict[int, int] = field(default_factory=dict)  # by arm, the round from which on it is

    @property
    def shape(self) -> tuple[int, int]:
        """(1, arms)."""
        return 1, len(self.arms)

    def open_arms(self) -> Bools:
        """(1, arms), the arms below their cap that can go on."""
        cap = np.inf if self.cap is None else self.cap
        return np.array(
            [
                [
                    arm.open and arm.played < cap and self.asked < self.closed.get(k, np.inf)
                    for k, arm in enumerate(self.arms)
                ]
            ]
        )

    def close_abandoned(self, journal: Journal, writer: Writer) -> None:
        """Closes arms whose engine ended with an earlier session, once all its rounds are asked."""
        self.closed = dict(journal.closed)
        for k, arm in enumerate(self.arms):
            if arm.run is not None and arm.run.abandoned and k not in self.closed:
                self.closed[k] = len(journal.asked)
                writer.append(Closed(round=self.closed[k], arm=k))

    def fitness(self) -> Floats:
        """(1, arms), each arm's fitness so far; NaN before the first pull where that costs."""
        known = [each.begun and (each.played > 0 or each.most[0] == 0) for each in self.arms]
        pairs = zip(known, self.arms, strict=True)
        return np.array([[each.fitness[each.played] if k else np.nan for k, each in pairs]])

    def worst(self, arm: Ints) -> dict[str, Floats]:
        """The most calls that a pull of this arm may make."""
        chosen = self.arms[int(arm[0])]
        first = chosen.most[0] if chosen.played == 0 else 0
        return {"calls": np.array([float(first + chosen.most[1])])}

    def advance(self, arm: int) -> None:
        """Makes an arm's next generation; `pull` reveals it."""
        try:
            self.arms[arm].advance()
        except (Stopped, EvaluatorClosed):
            self.stopped = True

    def pull(self, arm: Ints, active: Bools) -> PullOutcome:
        """Reveals an arm's next generation; the allocation is over if the arm was stopped."""
        chosen = self.arms[int(arm[0])]
        made = active & chosen.ready
        before = chosen.fitness[chosen.played] if chosen.begun else np.nan
        costs = chosen.cost(initial=self.initial) if made[0] else {}
        chosen.played += int(made[0])
        after = np.array([chosen.fitness[chosen.played] if made[0] else before])
        paid = {unit: np.array([cost]) for unit, cost in costs.items()}
        known = self.fitness
        return PullOutcome(
            arm=arm, before=np.array([before]), after=after, known=known, made=made, costs=paid
        )

    def drop_uncalled(self) -> bool:
        """Removes the logs that this session began and for which no call was made.

        With a search that is corrected they would be other runs, and refused. Returns whether there
        were any.
        """
        runs = [arm.run for arm in self.arms if arm.new and arm.run is not None]
        uncalled = [run for run in runs if not run.state.has_called]
        for run in uncalled:
            run.path.unlink(missing_ok=True)
        return bool(uncalled)

    def end(self) -> None:
        """Notes in each arm's log that the session ended in an orderly way."""
        end = self.control.interruption if self.stopped else RunEnd(reason="completed")
        for arm in self.arms:
            if arm.run is not None:
                arm.run.end(end)


class ArmsInThreads(InOrder):
    """Arms advance on a pool's threads, if there is one; rounds land as they are complete."""

    def __init__(
        self, arms: LiveArms, pool: ThreadPoolExecutor | None, order: Iterable[int]
    ) -> None:
        super().__init__(order)
        self.arms, self.pool = arms, pool
        self.pulls: dict[int, Future[None]] = {}

    def begin(self, round_index: int, arm: Ints) -> None:
        """Advances the arm, if there is a thread for it."""
        self.arms.asked = round_index + 1
        if self.pool is None:
            self.arms.advance(int(arm[0]))
        else:
            self.pulls[round_index] = self.pool.submit(self.arms.advance, int(arm[0]))

    def land(self, flying: Sequence[int]) -> int:
        """The next round of the journal, or the first to be complete; raises what it raised."""
        index = super().land(flying)
        if self.pool is not None:
            self.pulls.pop(index).result()
            if self.arms.stopped:  # by another that failed, it may be, and then raises here
                if not self.arms.control.stopping.is_set():  # else pulls under way may finish
                    self.arms.control.stop()
                for pull in self.pulls.values():
                    pull.result()
        return index

    def first(self, flying: Sequence[int]) -> int:
        """The first round to be complete; of several, the oldest."""
        if self.pool is None:
            return flying[0]
        wait([self.pulls[index] for index in flying], return_when=FIRST_COMPLETED)
        return next(index for index in flying if self.pulls[index].done())


@contextlib.contextmanager
def open_threads(arms: LiveArms, order: Iterable[int], in_flight: int) -> Generator[ArmsInThreads]:
    """Yields the flights of live arms, and ends what is still in flight."""
    pool = ThreadPoolExecutor(in_flight, "pull") if in_flight > 1 else None
    with pool or contextlib.nullcontext():
        threads = ArmsInThreads(arms, pool, order)
        try:
            yield threads
        finally:
            if not all(pull.done() for pull in threads.pulls.values()):
                arms.control.stop()
                wait(threads.pulls.values())


def open_arm(
    path: Path, source: Source, resources: Resources, study: Study, *, free: int
) -> LiveArm:
    """Opens an arm's log for writing, new or old; what costs no calls is known at once.

    The first `free` generations were logged before the allocation and cost nothing.

    Raises:
        LogError: The log is damaged, busy or of another run.
    """
    header = header_of(source)
    asked = calls_of_evaluation(header.task)
    bound = cost_bound(header, 1, retries=0)
    most = (int(bound.initial["calls"]), int(bound.generation["calls"]) + (header.advice > 0))
    free = free + 1 if free else 0
    driven = source if isinstance(source, EngineRun) else None
    if header.compact or (driven is None and header.source != "evo"):
        log = read_log(path)
        return LiveArm(log.trajectory.tolist(), costs_of_log(log), free, None, None, True, most)
    writer, known = open_log(path, header, session_line(resources, header.task, None))
    study.at_end(writer.close)
    study.heed(path)
    if driven is None:
        run = Arm(writer, as_begun(header, known), resources)
    else:
        begun = dataclasses.replace(driven, header=as_begun(header, known))
        run = _driven(writer, begun, resources)
    study.at_end(run.close)
    arm = LiveArm([], [], free, run, known, False, most, new=known is None and driven is None)
    if not asked:
        with contextlib.suppress(EvaluatorClosed):  # stopped: the first pull then finds that out
            arm.begin()
    return arm


def _driven(writer: Writer, driven: EngineRun, resources: Resources) -> Arm:
    """Returns the run of an engine."""
    from evo.gate.engines.arm import EngineArm

    return EngineArm(writer, driven, resources)
