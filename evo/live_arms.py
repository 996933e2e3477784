"""Live runs as the arms of an allocation, and the threads on which their pulls fly."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from pathlib import Path
from typing import TYPE_CHECKING, Any

from evo.allocation import InOrder, Outcome
from evo.configuration import Settings, differences
from evo.cost import cost_of_children
from evo.journal import LogError
from evo.llm.client import Caller
from evo.log import Log, LogWriter, read_log
from evo.records import Child, End, Header
from evo.runs.arm import GRACE, Arm, Resources, Stopped
from evo.runs.session import begin_session, with_model
from evo.upkeep import stop_file

if TYPE_CHECKING:
    from evo.policies.base import Bools, Floats, Ints


class LiveArm:
    """An arm that plays its log as far as it reaches and asks the model beyond.

    Attributes:
        arm: The run; None for a compact log, which ends where it ends.
        caller: Its model; None likewise.
        fitness: Best so far after each generation that is logged, NaN while nothing is ok.
        costs: By generation from 1, what it cost by unit.
        played: Generations that this allocation has pulled.
    """

    def __init__(
        self, log: Log, arm: Arm | None, *, free: int, caller: Caller | None = None
    ) -> None:
        self.arm, self.caller = arm, caller
        self.fitness: list[float] = log.trajectory.tolist()
        by_generation: dict[int, list[Any]] = {}
        for call in log.calls:
            by_generation.setdefault(call.generation, []).append(call)
        self.costs = [
            _costs(log.header, by_generation[g.generation], g.seconds) for g in log.generations
        ]
        for k in range(min(free, len(self.costs))):
            self.costs[k] = dict.fromkeys(self.costs[k], 0.0)
        self.played = 0

    @property
    def open(self) -> bool:
        """Whether it has a next generation."""
        return self.arm is not None or self.played < len(self.costs)

    @property
    def ready(self) -> bool:
        """Whether its next generation is made."""
        return self.played < len(self.costs)

    def advance(self, asked_to_stop: Callable[[], bool]) -> None:
        """Makes its next generation, unless it is logged already; what was played stays.

        Args:
            asked_to_stop: Looked at after each child.

        Raises:
            Stopped: A stop was asked for.
        """
        if self.ready:
            return
        assert self.arm is not None
        made: list[Child] = []

        def noted(child: Child) -> None:
            made.append(child)
            if asked_to_stop():
                raise Stopped

        generation = self.arm.advance(noted)
        best = generation.best_fitness
        self.fitness.append(float("nan") if best is None else best)
        logged = read_log(self.arm.path) if len(made) < self.arm.header.children else None
        members = (
            [o for o in logged.outcomes if o.generation == generation.generation]
            if logged
            else made
        )
        calls = [*members, *self.arm.instance_calls]
        self.costs.append(_costs(self.arm.header, calls, generation.seconds))


def _costs(header: Header, children: Sequence[Any], seconds: float | None) -> dict[str, float]:
    """Returns what a generation cost by unit; NaN where unknown."""
    return cost_of_children(children, header.model, header.sampling).by_unit(seconds)


class LiveArms:
    """Live runs as the arms of one replicate; see `evo.allocation.Arms`.

    Args:
        cap: Generations of an arm at most.
        resources: What the arms share.
        watched: Files at which other processes may ask for a stop; see `evo.stop`.

    Attributes:
        stopping: Set once no further call may begin.
        stopped: Whether an arm gave up its generation for it.
    """

    def __init__(self, cap: int | None, resources: Resources, watched: Sequence[Path]) -> None:
        self._watched = [stop_file(path) for path in watched]
        self._forget_wishes()  # meant for an earlier session
        self.stopping: threading.Event = resources.stopping
        self.stopped = False
        self._cap, self._resources = cap, resources
        self._arms: list[LiveArm] = []

    def add(self, arm: LiveArm) -> None:
        """Adds the next arm."""
        self._arms.append(arm)

    def close(self) -> None:
        """Ends calls, of every arm's model, and evaluations at once."""
        self._resources.close()
        for arm in self._arms:
            if arm.caller is not None:
                arm.caller.cancel()

    def end(self) -> None:
        """Notes in each arm's log that the session ended in an orderly way."""
        for arm in self._arms:
            if arm.arm is not None:
                arm.arm.end(End(reason="interrupted" if self.stopped else "completed"))
        self._forget_wishes()

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
            self._arms[arm].advance(self._asked_to_stop)
        except Stopped:
            self.stopped = True

    def _asked_to_stop(self) -> bool:
        return any(wish.exists() for wish in self._watched)

    def _forget_wishes(self) -> None:
        for wish in self._watched:
            wish.unlink(missing_ok=True)

    def pull(self, arm: Ints, active: Bools) -> Outcome:
        """Reveals an arm's next generation; the allocation is over if the arm was stopped."""
        import numpy as np

        chosen = self._arms[int(arm[0])]
        before = chosen.fitness[chosen.played]
        made = active & chosen.ready
        costs = chosen.costs[chosen.played] if made[0] else {}
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
        self._arms.stopping.set()
        wait(self._pulls.values(), timeout=GRACE)
        self._arms.close()


def open_arm(
    path: Path,
    header: Header,
    settings: Settings,
    first: Resources,
    stack: contextlib.ExitStack,
    *,
    free: int,
) -> LiveArm:
    """Opens an arm's log for writing, new or old, and its model.

    Args:
        path: The log.
        header: Of the arm's run.
        settings: How the session works.
        first: The session's resources, whose slots and sandbox it shares.
        stack: Closes what is opened.
        free: Generations that were logged before the allocation and cost nothing.

    Raises:
        LogError: The log is damaged, busy or of another run.
    """
    if header.compact:
        return LiveArm(read_log(path), None, free=free)
    if path.exists():
        writer, log = LogWriter.reopen(path)
        stack.callback(writer.close)
        if other := differences(log.header, header):
            raise LogError(f"{path}: holds another run than this arm's: {', '.join(other)} differ")
    else:
        writer, log = LogWriter.create(path, header), None
        stack.callback(writer.close)
    resources = with_model(first, header, settings, stack)
    arm = Arm(writer, header, resources)
    writer.append(begin_session(None, settings, resources))
    arm.begin(log)
    return LiveArm(read_log(path), arm, free=free, caller=resources.caller)
