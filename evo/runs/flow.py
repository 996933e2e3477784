"""Several steps under way at once: which items are ready, and which step waits for which result."""

from __future__ import annotations

from collections import deque
from collections.abc import Generator, Hashable
from dataclasses import dataclass, field
from typing import Any

from evo.runs.items import CALLING, Item, Once, Step


@dataclass(eq=False)
class _Branch:
    """A step under way.

    Attributes:
        step: The step.
        waiting: Who waits for its result: a branch, and the position among the results that it
            waits for; None: it waits for this one alone.
        results: What came of the list of items and steps that it wants.
        missing: How many of them are still to come.
        once: The key under which others may wait for it, too.
    """

    step: Step[Any]
    waiting: list[tuple[_Branch, int | None]] = field(default_factory=list)
    results: list[Any] = field(default_factory=list)
    missing: int = 0
    once: Hashable = None


class Flow:
    """Leads steps from one item of work to the next; it does no work itself.

        flow.start(step)
        while items := flow.ask(1):
            flow.tell(items[0], perform(items[0]))

    Items come in the order in which they were asked for, those of a step that goes on before those
    of steps that have not begun. Nothing here is thread-safe.

    Attributes:
        failure: What a step raised first. The others go on as far as they need no further call.
        draining: Whether no further call may begin.
    """

    def __init__(self) -> None:
        self.failure: Exception | None = None
        self.draining = False
        self._ready: deque[tuple[Item, _Branch, int | None]] = deque()
        self._under_way: dict[Item, tuple[_Branch, int | None]] = {}
        self._once: dict[Hashable, _Branch] = {}
        self._done: dict[Hashable, Any] = {}

    @property
    def idle(self) -> bool:
        """Whether nothing is under way, and nothing can be handed out."""
        return not self._under_way and not self.ready

    @property
    def ready(self) -> int:
        """How many items can be handed out."""
        if not self.draining:
            return len(self._ready)
        return sum(not isinstance(item, CALLING) for item, _, _ in self._ready)

    def start(self, step: Step[Any]) -> None:
        """Begins a step; its items come after those that are ready."""
        earlier, self._ready = self._ready, deque()
        self._go_on(_Branch(step), None)
        self._ready.extendleft(reversed(earlier))

    def ask(self, count: int, kind: type[Item] | None = None) -> list[Item]:
        """Returns at most so many items, all of one kind if it is named; see `tell`."""
        found, kept = list[Item](), list[tuple[Item, _Branch, int | None]]()
        while self._ready and len(found) < count:
            item, branch, position = self._ready.popleft()
            barred = self.draining and isinstance(item, CALLING)
            if barred or not (kind is None or isinstance(item, kind)):
                kept.append((item, branch, position))
            else:
                self._under_way[item] = branch, position
                found.append(item)
        self._ready.extendleft(reversed(kept))
        return found

    def tell(self, item: Item, result: object) -> None:
        """Takes the result of an item, an exception where it failed."""
        branch, position = self._under_way.pop(item)
        if position is None or isinstance(result, Exception):
            self._go_on(branch, result)
        else:
            branch.results[position] = result
            branch.missing -= 1
            if not branch.missing:
                self._go_on(branch, branch.results)

    def fail(self, error: Exception) -> None:
        """Notes what went wrong, unless something did before; no further call begins."""
        self.failure, self.draining = self.failure or error, True

    def _go_on(self, branch: _Branch, result: object) -> None:
        """Sends a result to a step, and to those that wait for it once it is done."""
        before, self._ready = self._ready, deque()
        going = deque[tuple[_Branch, object]]([(branch, result)])
        while going:
            branch, result = going.popleft()
            try:
                if isinstance(result, Exception):
                    wanted = branch.step.throw(result)
                else:
                    wanted = branch.step.send(result)
            except StopIteration as done:
                going.extendleft(reversed(self._finish(branch, done.value)))
            except Exception as error:
                self.fail(error)
            else:
                going.extendleft(reversed(self._want(branch, wanted)))
        self._ready.extend(before)

    def _finish(self, branch: _Branch, value: Any) -> list[tuple[_Branch, object]]:
        """Returns which steps go on once another is done, and with what."""
        if branch.once is not None:
            self._done[branch.once] = value
        ready: list[tuple[_Branch, object]] = []
        for waiting, position in branch.waiting:
            if position is None:
                ready.append((waiting, value))
                continue
            waiting.results[position] = value
            waiting.missing -= 1
            if not waiting.missing:
                ready.append((waiting, waiting.results))
        return ready

    def _want(self, branch: _Branch, wanted: Any) -> list[tuple[_Branch, object]]:
        """Notes what a step wants; returns the steps that begin, or go on at once."""
        if isinstance(wanted, Item):
            self._ready.append((wanted, branch, None))
            return []
        if isinstance(wanted, Once):
            return self._want_once(branch, wanted)
        branch.results, branch.missing = [None] * len(wanted), len(wanted)
        if not wanted:
            return [(branch, [])]
        begun: list[tuple[_Branch, object]] = []
        for position, each in enumerate(wanted):
            if isinstance(each, Generator):
                begun.append((_Branch(each, [(branch, position)]), None))
            else:
                self._ready.append((each, branch, position))
        return begun

    def _want_once(self, branch: _Branch, wanted: Once) -> list[tuple[_Branch, object]]:
        if wanted.key in self._done:
            return [(branch, self._done[wanted.key])]
        if (known := self._once.get(wanted.key)) is not None:
            known.waiting.append((branch, None))
            return []
        once = self._once[wanted.key] = _Branch(wanted.step(), [(branch, None)], once=wanted.key)
        return [(once, None)]
