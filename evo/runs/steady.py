"""The machine of a run without a barrier: a child is planned as soon as there is room for it.

Request k, from 0, is planned from the children that are complete by then. Its plan is logged before
its call is made, and says after how many complete children that was; its seed and its call are
keyed as those of child k mod N of generation 1 + k // N. A child that is complete gets the next
place, a generation is the next N of them, and from then on the child can be rewritten. So what is
planned is a function of the order in which children are complete, which the log holds, and a log
that is played again has the same children. They do not follow from the seed alone.
"""

from __future__ import annotations

import math
from collections.abc import Callable

from evo.logs.journal import LogError
from evo.logs.records import Line
from evo.models.client import EndpointRefused
from evo.runs.loop import Machine, MadeChild, Steps, child_line, generation_line
from evo.runs.state import State


def machine_of(
    state: State, stamp: Callable[[Line], Line] = lambda line: line, *, window: int
) -> Machine:
    """Returns the machine of a run; without a barrier so many children are under way at most."""
    if not state.header.asynchronous:
        return Machine(state, stamp)
    return SteadyMachine(state, stamp, window=min(window, state.header.children))


class SteadyMachine(Machine):
    """Makes the children of a run, of which so many are under way at any time.

    It is asked and told as `Machine` is. `begin` lets N more children be planned, each once there
    is room for it, and may be called while others are under way.

    Attributes:
        window: How many children are under way at most.
    """

    def __init__(
        self, state: State, stamp: Callable[[Line], Line] = lambda line: line, *, window: int
    ) -> None:
        """Makes the machine of a run.

        Args:
            state: What its log holds, folded.
            stamp: Returns a line as it is logged.
            window: How many children are under way at most.
        """
        super().__init__(state, stamp)
        self.window, self._begun = window, 0
        self._steps: Steps | None = None
        self._under_way = set[int]()
        self._done = dict[int, MadeChild]()
        self._refused: list[int] = []

    @property
    def begun(self) -> int:
        """How many generations were let begin."""
        return self._begun

    @property
    def wants_more(self) -> bool:
        """Whether a further child could be under way, if only it were let begin."""
        going = not self._flow.draining and self._steps is not None
        return going and not self._played and self._answerable < self._room

    @property
    def _answerable(self) -> int:
        """How many children are under way that were not refused."""
        return len(self._under_way) - len(self._refused)

    @property
    def _room(self) -> float:
        """How many children that were not refused may be under way; a played log waits for none."""
        if self._played:
            return math.inf
        refused_all = len(self._refused) >= self.state.header.children
        return 0 if refused_all else self.window  # what is under way shows whether to go on

    @property
    def _played(self) -> bool:
        """Whether a log is played again, in the order of its children."""
        return self._steps is not None and bool(self._steps.plan.order)

    def begin(self, steps: Steps) -> list[Line]:
        """Lets the children of one more generation be planned; returns new lines."""
        if self.idle:
            self._reset()
            self._begun = self.state.generation
        self._steps = steps
        self._begun += 1
        self._plan_more()
        return self.take_lines()

    def _reset(self) -> None:
        super()._reset()
        self._under_way.clear()
        self._done.clear()
        self._refused.clear()

    def _plan_more(self) -> None:
        """Plans children while there is room for them."""
        while not self._flow.draining and self._answerable < self._room:
            # What earlier sessions have planned comes first.
            waiting = self.state.requested.keys() - self._under_way
            if not waiting and not self._may_plan:
                if not self._log_next():
                    return
                continue
            try:
                self._begin_child(min(waiting) if waiting else self._next)
            except (ValueError, LogError) as error:  # the search asks for what cannot be
                self._flow.fail(error)

    def _begin_child(self, number: int) -> None:
        assert self._steps is not None
        state, planner = self.state, self._steps.plan
        if number not in state.requested:
            self.log(planner.request(state, number))
        plan = state.requested[number]
        self._under_way.add(number)
        if not self._played or number in planner.order:
            archive = state.programs(plan.after) if self._steps.filters else ()
            self._flow.start(self._child(planner.prompt(state, plan), self._steps, archive))

    @property
    def _next(self) -> int:
        """The number of the next request that was not planned before."""
        return self.state.complete + len(self.state.requested)

    @property
    def _may_plan(self) -> bool:
        """Whether that can be planned now."""
        assert self._steps is not None
        if not self._played:
            return self._next < self.begun * self.state.header.children and self.has_room()
        logged = self._steps.plan.requests.get(self._next)
        return logged is not None and logged.after == self.state.complete

    def _finish(self, made: MadeChild) -> None:
        """Logs a child; one that the endpoint refused for good once another one is answered.

        EndpointRefused: it refused N of them and answered none in between, nor is one under way.
        """
        number, state = made.prompt.request, self.state
        assert number is not None
        assert self._steps is not None
        self._done[number] = made
        if self._played:  # each is logged when its turn comes
            return
        if made.refused:
            self._refused.append(number)
            self.denied.append(child_line(made, state))
        else:
            self._log_child(number)
        silent = made.refused or self._tells_nothing(made.program)
        refused_all = silent and len(self._refused) >= state.header.children
        if refused_all and not self._answerable:
            raise EndpointRefused(self._refusal(self.denied[0]))
        if silent and (self._answerable or self._may_plan):
            return
        while self._refused:
            self._log_child(self._refused.pop(0))
        self.denied.clear()

    def _log_next(self) -> bool:
        """Logs the child whose turn it is in a log that is played again, if it is complete."""
        assert self._steps is not None
        due = self._steps.plan.order[self.state.complete :][:1]
        if not (self._played and due and due[0] in self._done):
            return False
        self._log_child(due[0])
        return True

    def _log_child(self, number: int) -> None:
        """Logs a child that is complete, and the generation if it is the last one of that."""
        state = self.state
        self._under_way.discard(number)
        self.log(child_line(self._done.pop(number), state))
        width = state.header.children
        if state.complete % width == 0:
            children = [state.children[index] for index in range(width)]
            place = state.best.place
            chosen = state.children[place[1]] if place[0] == state.generation + 1 else None
            self.log(generation_line(state, children, chosen, self.seconds))
