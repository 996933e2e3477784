"""Waves: which generations of runs that share a budget are begun together.

A wave is the next generation of as many runs as can be paid, those with the fewest generations
first, then in order, and further generations as long as twice their price can be paid. The next
wave begins once all of it is settled. So all runs get equally far, and what is begun follows from
what the logged generations cost, whatever finished first: after a kill the waves are gone through
again from the logs, up to the first that is not complete.

A limit in seconds may end all runs at any time. Then no run of a wave begins a generation before
all others of it have begun the one before, see `Turns`.
"""

from __future__ import annotations

import itertools
import math
import threading
import time
from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from evo.runs.budget import Ledger


@dataclass
class Payer:
    """A run that pays out of a budget which it shares.

    Attributes:
        name: By which the ledger knows it.
        kind: Runs of one kind pay about alike for a child.
        generations: T, the last generation that it may begin.
        children: Children of a generation.
        shared: Generations that a fork inherits, 0 included; they cost nothing.
        advised: Says whether a model is asked for advice before a generation, which is expected to
            cost as much as a child.
        costs: What its complete generations cost by unit, from 0 on, as far as they are logged.
        beside: What else it has cost, such as a test at its end, until that is settled.
        kept: What the test at its end is expected to cost, by unit.
        over: Whether it begins no further generation.
    """

    name: Hashable
    kind: Hashable
    generations: int
    children: int = 1
    shared: int = 0
    advised: Callable[[int], bool] = lambda number: False
    costs: list[Mapping[str, float]] = field(default_factory=list)
    beside: list[Mapping[str, float]] = field(default_factory=list)
    kept: Mapping[str, float] = field(default_factory=dict)
    over: bool = False

    def asked(self, number: int) -> int:
        """Returns how many calls a generation is expected to make, without those of its critic."""
        return self.children + self.advised(number) if number else 1

    def finish(self) -> None:
        """Notes that it costs nothing more."""
        self.over, self.kept = True, {}


def payable(
    prices: Iterable[Mapping[str, float] | None],
    settled: Mapping[str, float],
    limits: Mapping[str, float],
    *,
    once: int | None = None,
) -> int:
    """Returns how many generations, in this order, can begin together.

    These are as many as leave what is settled below every limit once each has cost its price; and
    the first in any case, if what is settled is below every limit. One of an unknown price is the
    last of its wave.

    Args:
        prices: What each is expected to cost, by unit; None: unknown.
        settled: What has been spent, by unit.
        limits: Limits by unit; without any, all can begin.
        once: More than so many begin only if twice their prices can be paid, since nobody looks at
            their costs before all are made; None: any number.

    Example:
        >>> payable([{"calls": 4}] * 6, settled={"calls": 20}, limits={"calls": 40})
        4
        >>> payable([{"calls": 4}] * 6, settled={"calls": 20}, limits={"calls": 40}, once=1)
        2
        >>> payable([{"calls": 4}, None, {"calls": 4}], settled={}, limits={"calls": 40})
        2
    """
    expected, count = dict.fromkeys(limits, 0.0), 0

    def reached(factor: int) -> bool:
        return any(
            settled.get(unit, 0.0) + factor * expected[unit] >= limit
            for unit, limit in limits.items()
        )

    for count, price in enumerate(prices, start=1):
        if reached(1):
            return count - 1
        if limits and price is None:
            return count
        expected = {unit: amount + (price or {})[unit] for unit, amount in expected.items()}
        if count > 1 and reached(1 if once is None or count <= once else 2):
            return count - 1
    return count


class Waves:
    """The waves of runs that share a ledger.

        waves = Waves(ledger, payers)
        while wave := waves.next():
            for place, number in wave.items():
                payers[place].costs += costs_of_its_next(number)
        waves.close()

    What a generation is expected to cost is the most that a child of its kind has cost so far, for
    each of its children. So the first run of a kind goes ahead of the others.

    Args:
        ledger: What is spent, and the limits. A limit in seconds ends all waves at its time.
        payers: The runs, in order. Whoever makes their generations adds the costs to them.
        whole: Whether a run counts only once it is complete. Then it is brought to its end before
            the next ones, as if they were served one after another.
    """

    def __init__(self, ledger: Ledger, payers: Sequence[Payer], *, whole: bool = False) -> None:
        self._ledger, self._payers, self._whole = ledger, payers, whole
        self._limits = {u: limit for u, limit in ledger.limits.items() if u != "seconds"}
        self._began = time.monotonic()
        seconds = ledger.limits.get("seconds", math.inf) - ledger.total.get("seconds", 0.0)
        self._deadline = self._began + seconds

    @property
    def timed(self) -> bool:
        """Whether a limit in seconds may end several runs while they are unequally far."""
        return "seconds" in self._ledger.limits and len(self._payers) > 1 and not self._whole

    @property
    def in_time(self) -> bool:
        """Whether a limit in seconds, if there is one, is not reached."""
        return time.monotonic() < self._deadline

    def next(self) -> dict[int, int]:
        """Returns how many generations each run begins now, by its place; empty: none does.

        All of the wave before has to be logged, or its runs over.
        """
        self._settle_beside()
        while self.in_time:
            if (every := self._every_further()) is not None:
                return every
            wave = self._wave()
            missing = Counter[int]()
            for place in wave:
                if self._uncounted(place):
                    self._count(place)
                else:
                    missing[place] += 1
            if wave and not missing:
                continue
            if not any(map(self._uncounted, range(len(self._payers)))):
                return dict(missing)
            self._count_all()  # logged otherwise than in waves, such as under another goal
        return {}

    def leaves_room(self) -> bool:
        """Whether a further child may begin while others of its run are under way."""
        self._count_all()
        settled = self._settled()
        return self.in_time and all(settled[unit] < limit for unit, limit in self._limits.items())

    def close(self) -> None:
        """Settles what is logged, and the seconds that all took."""
        self._settle_beside()
        self._count_all()
        nothing = dict.fromkeys(self._limits, 0.0)
        self._ledger.settle({**nothing, "seconds": time.monotonic() - self._began})

    def _wave(self) -> list[int]:
        """Returns the runs whose generations follow on what is counted, each once for each."""
        waiting = [place for place in range(len(self._payers)) if self._further(place) > 0]
        several = self._whole and any(self._further(place) > 1 for place in waiting)
        order, priced = itertools.tee(self._in_order(waiting))
        if len(self._payers) == 1:  # its generations come one after another in any case
            priced = itertools.islice(priced, 1)
        count = payable(
            itertools.starmap(self._price, priced),
            self._settled(),
            self._limits,
            once=1 if several else len(waiting),
        )
        return [place for place, _ in itertools.islice(order, count)]

    def _every_further(self) -> dict[int, int] | None:
        """Returns all generations that are left, where no limit stands in the way of any.

        These are those of several runs whose generations cost nothing of what is limited. What is
        logged of them is counted. None: prices decide.
        """
        if len(self._payers) == 1:
            return None
        waiting = [place for place in range(len(self._payers)) if self._further(place) > 0]
        settled = self._settled()
        if any(settled[unit] >= limit for unit, limit in self._limits.items()):
            return None
        for place in waiting if self._limits else ():
            payer = self._payers[place]
            kinds = ["child"] if self._counted(place) else ["initial", "child"]
            known = [self._ledger.dearest.get((payer.kind, each)) for each in kinds]
            costly = self._uncounted(place) or None in known
            if costly or any(each[unit] for each in known if each for unit in self._limits):
                return None
        self._count_all()
        left = [place for place in waiting if self._further(place) > 0]
        if not self._whole:
            left.sort(key=self._counted)
        return {place: self._further(place) for place in left}

    def _further(self, place: int) -> int:
        """Returns how many generations a run may begin, those that are logged included."""
        payer = self._payers[place]
        if payer.over:
            return self._uncounted(place)
        return payer.generations + 1 - self._counted(place)

    def _in_order(self, waiting: Sequence[int]) -> Iterator[tuple[int, int]]:
        """Yields runs and their further generations, in the order in which they are begun."""
        first = {place: self._counted(place) for place in waiting}
        if self._whole:
            for place in waiting:
                for further in range(self._further(place)):
                    yield place, first[place] + further
            return
        last = {place: first[place] + self._further(place) - 1 for place in waiting}
        for number in range(min(first.values(), default=0), max(last.values(), default=-1) + 1):
            for place in waiting:
                if first[place] <= number <= last[place]:
                    yield place, number

    def _settled(self) -> dict[str, float]:
        """Returns what is settled by unit, and what is kept for tests at the end of runs."""
        begun = [payer for place, payer in enumerate(self._payers) if self._counted(place)]
        total = self._ledger.total
        return {
            unit: total.get(unit, 0.0) + math.fsum(payer.kept.get(unit, 0.0) for payer in begun)
            for unit in self._limits
        }

    def _price(self, place: int, number: int) -> dict[str, float] | None:
        """Returns what a generation of a run is expected to cost; None: that is unknown."""
        payer = self._payers[place]
        what, children = "child" if number else "initial", payer.asked(number)
        dearest = self._ledger.dearest.get((payer.kind, what))
        if dearest is None:
            return None
        return {unit: children * dearest[unit] for unit in self._limits}

    def _counted(self, place: int) -> int:
        return self._ledger.settled.get(self._payers[place].name, 0)

    def _uncounted(self, place: int) -> int:
        """Returns how many logged generations of a run are not counted yet."""
        payer = self._payers[place]
        return max(0, min(len(payer.costs), payer.generations + 1) - self._counted(place))

    def _count(self, place: int) -> None:
        """Counts the next logged generation of a run; of a fork all that it inherited at once."""
        payer, first = self._payers[place], self._counted(place)
        for number in range(first, max(first + 1, min(payer.shared, len(payer.costs)))):
            cost = payer.costs[number]
            self._ledger.settle({**cost, "seconds": 0.0})
            self._ledger.settled[payer.name] = number + 1
            if 0 < number < payer.shared:
                continue
            what, share = "child" if number else "initial", payer.asked(number)
            kept = {} if number else payer.kept
            before = self._ledger.dearest.get((payer.kind, what), {})
            self._ledger.dearest[payer.kind, what] = {
                unit: max(before.get(unit, 0.0), cost[unit] / share + kept.get(unit, 0.0))
                for unit in self._limits
            }

    def _count_all(self) -> None:
        for place in range(len(self._payers)):
            while self._uncounted(place):
                self._count(place)

    def _settle_beside(self) -> None:
        for payer in self._payers:
            while payer.beside:
                self._ledger.settle({**payer.beside.pop(0), "seconds": 0.0})


class Turns:
    """Who begins the next generation of a wave, so that runs keep equally far at any time.

        while (place := turns.take()) is not None:
            make_a_generation(place)
            turns.give_back(place)

    It is that run that has begun the fewest generations, those that it began before the wave
    included, and waits until that run is free. Several threads may take turns.

    Args:
        begun: How many generations each run has begun, by its place.
        wave: How many it begins now.
    """

    def __init__(self, begun: Mapping[int, int], wave: Mapping[int, int]) -> None:
        self._begun, self._left = dict(begun), dict(wave)
        self._busy = set[int]()
        self._changed = threading.Condition()

    def take(self) -> int | None:
        """Returns whose turn it is, once there is one; None: no run has a generation left."""
        with self._changed:
            while waiting := [place for place, left in self._left.items() if left > 0]:
                fewest = min(self._begun[place] for place in waiting)
                for place in waiting:
                    if place not in self._busy and self._begun[place] == fewest:
                        self._begun[place] += 1
                        self._left[place] -= 1
                        self._busy.add(place)
                        self._changed.notify_all()
                        return place
                self._changed.wait()
            return None

    def give_back(self, place: int, *, over: bool = False) -> None:
        """Takes back a turn; a run that is over has no other."""
        with self._changed:
            self._busy.discard(place)
            if over:
                self._left[place] = 0
            self._changed.notify_all()
