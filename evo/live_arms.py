"""Live runs as the arms of an allocation, and the threads on which their pulls fly."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from pathlib import Path
from typing import TYPE_CHECKING

from evo.allocation import InOrder, Outcome
from evo.log import Log, read_log
from evo.records import End, Header
from evo.runs.arm import Arm, Stopped, costs_of_log
from evo.runs.resources import Resources
from evo.runs.session import open_log, session_line

if TYPE_CHECKING:
    from evo.policies.base import Bools, Floats, Ints


class LiveArm:
    """An arm that plays its log as far as it reaches and asks the model beyond.

    Attributes:
        arm: The run; None for a compact log, which ends where it ends.
        fitness: Best so far after each generation that is logged, NaN while nothing is ok.
        costs: By generation from 0, what it cost by unit.
        played: Generations that this allocation has pulled.
    """

    def __init__(self, log: Log, arm: Arm | None, *, free: int) -> None:
        self.arm = arm
        self.fitness: list[float] = log.trajectory.tolist() if arm is None else arm.trajectory
        self.costs = costs_of_log(log) if arm is None else arm.costs
        for k in range(min(free + 1, len(self.costs))):
            self.costs[k] = dict.fromkeys(self.costs[k], 0.0)
        self.played = 0

    @property
    def open(self) -> bool:
        """Whether it has a next generation."""
        return self.arm is not None or self.ready

    @property
    def ready(self) -> bool:
        """Whether its next generation is made."""
        return self.played + 1 < len(self.costs)

    def advance(self) -> None:
        """Makes its next generation, unless it is logged already; what was played stays.

        Raises:
            Stopped: A stop was asked for.
        """
        if not self.ready:
            assert self.arm is not None
            self.arm.advance()


class LiveArms:
    """Live runs as the arms of one replicate; see `evo.allocation.Arms`.

    Args:
        cap: Generations of an arm at most.
        resources: What the arms share.

    Attributes:
        control: Says when no further call may begin.
        stopped: Whether an arm gave up its generation for it.
    """

    def __init__(self, cap: int | None, resources: Resources) -> None:
        self.stopped = False
        self.control = resources.control
        self._cap = cap
        self._arms: list[LiveArm] = []

    def add(self, arm: LiveArm) -> None:
        """Adds the next arm."""
        self._arms.append(arm)

    def end(self) -> None:
        """Notes in each arm's log that the session ended in an orderly way."""
        for arm in self._arms:
            if arm.arm is not None:
                arm.arm.end(End(reason="interrupted" if self.stopped else "completed"))

    @property
    def shape(self) -> tuple[int, int]:
        """(1, arms)."""
        return 1, len(self._arms)

    def open_arms(self) -> Bools:
        """(1, arms), the arms below their cap that can go on."""
        import numpy as np

        return np.array(
            [[arm.open and (self._cap is None or arm.played < self._cap) for arm in self._arms]]
        )

    def fitness(self) -> Floats:
        """(1, arms), each arm's fitness so far."""
        import numpy as np

        return np.array([[arm.fitness[arm.played] for arm in self._arms]])

    def advance(self, arm: int) -> None:
        """Makes an arm's next generation; `pull` reveals it."""
        try:
            self._arms[arm].advance()
        except Stopped:
            self.stopped = True

    def pull(self, arm: Ints, active: Bools) -> Outcome:
        """Reveals an arm's next generation; the allocation is over if the arm was stopped."""
        import numpy as np

        chosen = self._arms[int(arm[0])]
        before = chosen.fitness[chosen.played]
        made = active & chosen.ready
        costs = chosen.costs[chosen.played + 1] if made[0] else {}
        chosen.played += int(made[0])
        return Outcome(
            arm=arm,
            before=np.array([before]),
            after=np.array([chosen.fitness[chosen.played]]),
            known=self.fitness,
            made=made,
            costs={unit: np.array([cost]) for unit, cost in costs.items()},
        )


class LiveFlights(InOrder):
    """Arms advance on threads of their own, except where only one may.

    Rounds land in the order of the journal, as far as it reaches, then as they are complete.

    Args:
        arms: The arms.
        told: Rounds in the order told by the journal.
        in_flight: Pulls at once at most.
    """

    def __init__(self, arms: LiveArms, told: Iterable[int], in_flight: int) -> None:
        super().__init__(told)
        self._arms = arms
        self._pool = ThreadPoolExecutor(in_flight, "pull") if in_flight > 1 else None
        self._pulls: dict[int, Future[None]] = {}

    def begin(self, round_index: int, arm: Ints) -> None:
        """Advances the arm, if there is a thread for it."""
        if self._pool is None:
            self._arms.advance(int(arm[0]))
        else:
            self._pulls[round_index] = self._pool.submit(self._arms.advance, int(arm[0]))

    def land(self, flying: Sequence[int]) -> int:
        """The next round of the journal, or the first to be complete; raises what it raised."""
        index = super().land(flying)
        if self._pool is not None:
            self._pulls.pop(index).result()
            if self._arms.stopped:  # by another that failed, it may be, and then raises here
                self._wind_down()
                for pull in self._pulls.values():
                    pull.result()
        return index

    def first(self, flying: Sequence[int]) -> int:
        """The first round to be complete; of several, the oldest."""
        if self._pool is None:
            return flying[0]
        wait([self._pulls[index] for index in flying], return_when=FIRST_COMPLETED)
        return next(index for index in flying if self._pulls[index].done())

    def close(self) -> None:
        """Ends what is still in flight."""
        if self._pool is not None:
            if not all(pull.done() for pull in self._pulls.values()):
                self._wind_down()
            self._pool.shutdown()

    def _wind_down(self) -> None:
        """Gives pulls in flight a moment to end, then ends their calls."""
        self._arms.control.stop()
        wait(self._pulls.values())


def open_arm(
    path: Path,
    header: Header,
    resources: Resources,
    stack: contextlib.ExitStack,
    *,
    free: int,
) -> LiveArm:
    """Opens an arm's log for writing, new or old.

    Args:
        path: The log.
        header: Of the arm's run.
        resources: Of the session.
        stack: Closes what is opened.
        free: Generations that were logged before the allocation and cost nothing.

    Raises:
        LogError: The log is damaged, busy or of another run.
    """
    if header.compact:
        return LiveArm(read_log(path), None, free=free)
    writer, log = open_log(path, header, session_line(resources, None))
    stack.callback(writer.close)
    arm = Arm(writer, header, resources)
    arm.begin(log)
    return LiveArm(read_log(path), arm, free=free)
