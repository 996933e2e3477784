"""The state of a run: a fold over the lines of its log.

`State.take(line)` is the only way in which a run learns anything. A line is taken in the same way
whether it was just written, is read again on resume, was inherited by a fork, or is played again,
so no fact is derived twice:

    state = State(header)
    for line in lines:
        state.take(line)

What cannot be derived from lines, such as open connections and timers, is not state.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

import msgspec

from evo.logs.cost import Attempted, cost_of_calls
from evo.logs.log import Log
from evo.logs.maintenance import lines_through
from evo.logs.records import (
    Advice,
    Child,
    Confirmation,
    CriticCall,
    Evaluation,
    Generation,
    Header,
    InheritableLine,
    Initial,
    InstanceCall,
    Outcome,
    Plan,
    Record,
    ReplyLine,
    RunEnd,
    Tick,
)
from evo.models.critics import Known, known_of
from evo.prompt import public_metrics, read_advice
from evo.runs.mixture import Returns, added
from evo.searches import base as searches
from evo.searches.base import Member, Place, Search
from evo.tasks.instances import checks_of


@dataclass(frozen=True)
class ArchiveEntry:
    """A program of a run and how it did.

    Attributes:
        place: Generation and index; (0, 0) is the initial program.
        program: Its text; None where the reply held none, or the log is compact.
        evaluation: Its evaluation, without the construction.
        parents: The places of the programs that it was made from.
        request: The number of its request, in a run without a barrier.
        kept_out: Which filter kept it out of what searches and filters see, and why; "": none did.
    """

    place: Place
    program: str | None
    evaluation: Evaluation
    parents: tuple[Place, ...] = ()
    request: int | None = None
    kept_out: str = ""


class State:
    """What a run knows, as far as its log has been taken.

    Attributes:
        header: The run's configuration.
        generation: The number of complete generations.
        archive: The programs that children can rewrite, as lists of those that became known at
            once: those of each complete generation from 0 on; without a barrier every single one.
        best: The best program of the archive. Its fitness is that of its latest confirmation, if
            any.
        improved: The generations that replaced the best program, in order.
        trajectory: Best fitness by generation from 0 on; NaN while nothing is ok.
        costs: What each generation cost by unit, from 0 on; NaN where unknown.
        limit: The time limit of evaluations that the run fixed, seconds; None: it fixed none.
        initial_cost: What the evaluation of the initial program cost by unit, whoever paid for it.
        evaluations: The evaluation of every program that was evaluated, by its digest.
        first: The place where each program of the archive was seen first, by its digest.
        known: Calls of evaluations and of the critic that got a reply, and need not be repeated.
        checks: How many sessions have tested the final program on instances held out for that.
        plan: The plan of the generation under way, if it is logged.
        requested: Without a barrier, the plans of children that are not complete, by number.
        children: The logged children of the generation under way, by index.
        replies: Logged replies without a child, by generation, index and draft: those that are
            still to be evaluated, and drafts that were not chosen.
        failed: The lowest number of a failed call of a child, which is negative; 0: none failed.
        advice: The calls for advice that are not to be made again, by generation.
        confirmation: The confirmation of the generation under way, if it is logged.
        returns: What each of several models has cost and gained, by its name.
        seconds: Wall time of earlier sessions on the generation under way, to a second or so.
    """

    best: ArchiveEntry

    def __init__(self, header: Header) -> None:
        self.header = header
        self.generation = self.checks = 0
        self.improved: list[int] = []
        self.archive: list[list[ArchiveEntry]] = []
        self.trajectory: list[float] = []
        self.costs: list[dict[str, float]] = []
        self.limit: float | None = None
        self.initial_cost: dict[str, float] = {}
        self.evaluations: dict[bytes, Evaluation] = {}
        self.first: dict[bytes, Place] = {}
        self.known: Known = {}
        self.plan: Plan | None = None
        self.requested: dict[int, Plan] = {}
        self.children: dict[int, Outcome] = {}
        self.replies: dict[tuple[int, int, int], ReplyLine] = {}
        self.confirmation: Confirmation | None = None
        self.advice: dict[int, Advice] = {}
        self.failed: dict[Place, int] = {}
        self.seconds = 0.0
        self.returns: dict[str, Returns] = {}
        self._calls: dict[int, list[InstanceCall]] = {}  # of generations that are not complete
        self._advice: dict[int, list[Advice]] = {}  # likewise
        self._places: dict[Place, ArchiveEntry] = {}
        self._members: list[list[Member]] = []
        self._folded: tuple[Search, int, object] | None = None

    def take(self, line: Record) -> None:
        """Takes one line of the log, in the order in which lines are logged."""
        match line:
            case Initial():
                self._begin(line)
            case Plan(request=None):
                self.plan = line
            case Plan(request=number) if number is not None:
                self.requested[number] = line
            case InstanceCall():
                self._call(line)
            case ReplyLine():
                self.replies[line.generation, line.index, line.draft] = line
                place = (line.generation, line.index)
                self.failed[place] = min(self.failed.get(place, 0), line.draft)
            case Outcome():
                self.children[line.index] = line
                self.replies.pop(line.reply_key(self.header.children), None)
                self._evaluated(program_of(line), line.evaluation)
                if line.request is not None:
                    self._add(line)
            case Advice():
                self._advice.setdefault(line.generation, []).append(line)
                if not line.again:
                    self.advice[line.generation] = line
            case Confirmation():
                self.confirmation = line
            case Tick():
                self.seconds = line.seconds
            case Generation():
                self._complete(line)
            case RunEnd():
                self.checks += "check_use" in line.stats
            case _:  # the header, and sessions: how processes worked is no part of the state
                pass

    def _begin(self, line: Initial) -> None:
        task, self.limit = self.header.task, line.limit
        self.best = ArchiveEntry((0, 0), task.files.get(task.program_file), line.evaluation)
        seconds = line.evaluation.seconds
        if seconds is not None and line.second is not None:
            seconds += line.second.seconds or 0.0
        self._enter([self.best])
        self._evaluated(self.best.program, line.evaluation)
        self.trajectory.append(_number(line.evaluation.fitness))
        calls = self._calls.get(0, [])
        self.initial_cost = cost_of_calls(calls, self.header.at_generation(0)).by_unit(seconds)
        self._pay(0, (), seconds, line)

    def _evaluated(self, program: str | None, evaluation: Evaluation) -> None:
        if program is not None and evaluation.status != "rejected":
            self.evaluations.setdefault(program_digest(program), evaluation)

    def _call(self, line: InstanceCall) -> None:
        if line.reply is not None:  # what failed may do better another time
            self.known |= known_of([line])
        self._calls.setdefault(line.generation, []).append(line)
        if line.generation < len(self.costs):  # such as the test at a session's end
            paid = [] if line.inherited else [line]
            more = cost_of_calls(paid, self.header.at_generation(line.generation)).by_unit(0.0)
            before = self.costs[line.generation]
            self.costs[line.generation] = {unit: before[unit] + more[unit] for unit in before}

    def _add(self, child: Outcome) -> None:
        """Takes a child of a run without a barrier, which can be rewritten from now on."""
        assert child.request is not None
        self.requested.pop(child.request, None)
        self._know([child], self.header)
        fitness, before = child.evaluation.fitness, self.best_fitness
        if (
            fitness is not None
            and not child.kept_out
            and (before is None or fitness > before + self.header.min_improvement)
        ):
            self.best = self.archive[-1][0]

    def _know(self, children: Sequence[Outcome], header: Header) -> None:
        """Adds children to the archive, and what the models that they are of have returned."""
        if header.models:
            drafts = self._unchosen(children)
            self.returns = added(self.returns, children, header, self.best_fitness, drafts)
        self._enter(
            ArchiveEntry(
                (each.generation, each.index), program_of(each), each.evaluation, each.parents,
                each.request, each.kept_out,
            )
            for each in children
        )  # fmt: skip

    def _complete(self, line: Generation) -> None:
        number = line.generation
        children = [self.children[index] for index in sorted(self.children)]
        if not self.header.asynchronous:
            self._know(children, self.header.at_generation(number))
        self.generation = number
        self._pay(number, children, line.seconds, line)
        self.best = self._found(line.best) or self.best
        fitness = self.best.evaluation.fitness
        if line.best_fitness is not None and fitness not in (None, line.best_fitness):  # confirmed
            evaluation = msgspec.structs.replace(self.best.evaluation, fitness=line.best_fitness)
            self.best = replace(self.best, evaluation=evaluation)
        if line.improved:
            self.improved.append(number)
        self.trajectory.append(_number(line.best_fitness))
        if self.header.asynchronous:
            done = {child.reply_key(self.header.children)[:2] for child in children}
            self.replies = {k: reply for k, reply in self.replies.items() if k[:2] not in done}
            self.failed = {
                place: least for place, least in self.failed.items() if place not in done
            }
        else:
            self.replies = {k: reply for k, reply in self.replies.items() if k[0] > number}
            self.failed = {}
        self.plan = self.confirmation = None
        self.children, self.seconds = {}, 0.0

    def _enter(self, entries: Iterable[ArchiveEntry]) -> None:
        """Adds programs to the archive that became known at once."""
        self.archive.append(list(entries))
        for entry in self.archive[-1]:
            self._places[entry.place] = entry
            if entry.program is not None:
                self.first.setdefault(program_digest(entry.program), entry.place)

    def _pay(
        self, number: int, children: Sequence[Outcome], seconds: float | None, line: InheritableLine
    ) -> None:
        """Notes what a generation cost: nothing where it was inherited.

        The calls are added in a fixed order, so that the sum does not depend on who answered first.
        """
        calls = self._calls.pop(number, [])
        calls.sort(key=lambda each: (isinstance(each, CriticCall), each.program, each.index))
        drafts = self._unchosen(children)
        asked = self._advice.pop(number, [])
        every: list[Outcome | InstanceCall | ReplyLine | Advice]
        every = [*children, *calls, *drafts, *asked]
        made: list[Attempted] = [each for each in every if not each.inherited]
        cost = cost_of_calls(made, self.header.at_generation(number))
        self.costs.append(cost.by_unit(0.0 if line.inherited else seconds))

    def _unchosen(self, children: Sequence[Outcome]) -> list[ReplyLine]:
        """Returns the drafts of children that were not evaluated, in the order of their lines."""
        of = {child.reply_key(self.header.children)[:2] for child in children}
        found = [reply for key, reply in self.replies.items() if key[:2] in of]
        return sorted(found, key=lambda reply: (reply.generation, reply.index, reply.draft))

    @property
    def best_fitness(self) -> float | None:
        """Best fitness so far; None while nothing is ok."""
        return self.best.evaluation.fitness

    @property
    def under_way_cost(self) -> dict[str, float]:
        """What calls have cost that no generation held when it was complete, by unit."""
        every: list[Outcome | InstanceCall | ReplyLine | Advice]
        every = [*self.children.values(), *self.replies.values()]
        every += [call for calls in self._calls.values() for call in calls]
        every += [call for calls in self._advice.values() for call in calls]
        made: list[Attempted] = [each for each in every if not each.inherited]
        return cost_of_calls(made, self.header.at_generation(self.generation + 1)).by_unit(0.0)

    @property
    def complete(self) -> int:
        """How many children of a run without a barrier are complete."""
        return len(self.archive) - 1

    def latest(self, after: int | None) -> list[ArchiveEntry]:
        """Returns the programs of the last generation; of the last N after so many children."""
        if after is None:
            return self.archive[-1]
        first = max(0, 1 + after - self.header.children)
        return [entry for step in self.archive[first : 1 + after] for entry in step]

    @property
    def advised(self) -> str:
        """The advice that prompts show by now; empty: none was given."""
        texts = (read_advice(self.advice[each].reply) for each in sorted(self.advice, reverse=True))
        return next(filter(None, texts), "")

    @property
    def barren(self) -> int:
        """Generations since the best program was last replaced."""
        return self.generation - (self.improved[-1] if self.improved else 0)

    @property
    def members(self) -> list[list[Member]]:
        """The archive as searches and filters see it."""
        for generation in self.archive[len(self._members) :]:
            self._members.append([self._member(entry) for entry in generation])
        return self._members

    def programs(self, after: int | None = None) -> list[Member]:
        """Returns the members that have a program, as filters see them, after so many children."""
        known = self.members if after is None else self.members[: 1 + after]
        return [each for members in known for each in members if each.program is not None]

    def _member(self, entry: ArchiveEntry) -> Member:
        evaluation = entry.evaluation
        if entry.kept_out:
            return Member(entry.place, None, entry.parents)
        return Member(
            entry.place,
            evaluation.fitness,
            entry.parents,
            None if evaluation.status == "rejected" else entry.program,
            public_metrics(self.header.task, evaluation.metrics),
            {each.id: each.score for each in evaluation.instances},
        )

    @property
    def has_called(self) -> bool:
        """Whether the run has made calls, or logged that it is about to."""
        begun = self.plan or self.requested or self.advice or self.archive[1:]
        made = self.children or self.replies or self._calls or self.initial_cost.get("calls")
        return bool(begun or made)

    @property
    def untested(self) -> bool:
        """Whether the best text is still to be tested on instances held out for that."""
        return self.best.place != (0, 0) and not self.checks and bool(checks_of(self.header.task))

    def entry(self, place: Place) -> ArchiveEntry | None:
        """Returns a program of the archive, the best one as it was confirmed last, or None."""
        if place == self.best.place:
            return self.best
        return self._found(place)

    def _found(self, place: Place) -> ArchiveEntry | None:
        return self._places.get(place)

    def searched(self, search: Search, min_improvement: float) -> object:
        """Returns the state of a search after all that is in the archive."""
        if self._folded is None or self._folded[0] != search:
            start = searches.start(search, self.members[0][0], min_improvement)
            self._folded = search, 0, start
        _, folded, state = self._folded
        width = self.header.children
        for number, members in enumerate(self.members[folded + 1 :], start=folded + 1):
            if (request := self.archive[number][0].request) is not None:
                state = searches.fold_one(search, state, members[0], request, width)
            else:
                state = searches.fold(search, state, list(members))  # which it may sort or empty
        self._folded = search, len(self.members) - 1, state
        return state


def state_of(
    log: Log, *, through: int | None = None, children: Sequence[Outcome] | None = None
) -> State:
    """Returns the state of a run as its log leaves it.

    Args:
        log: A log that was read.
        through: The last generation to take; None: all, the one under way included.
        children: The log's children; None: with their texts, which have to be read.
    """
    state = State(log.header)
    for line in lines_of(log, through=through, children=children):
        state.take(line)
    return state


def lines_of(
    log: Log, *, through: int | None = None, children: Sequence[Outcome] | None = None
) -> Iterator[Record]:
    """Yields what a log holds in the order of generations; see `state_of`."""
    last = len(log.generations) + 1 if through is None else through
    yield from lines_through(log, last, log.children if children is None else children)
    if through is None:
        yield Tick(generation=last, seconds=log.seconds_under_way)
        yield from log.ends


def costs_of_log(log: Log) -> list[dict[str, float]]:
    """Returns what each complete generation of a log cost by unit, from generation 0 on."""
    return state_of(log, children=log.outcomes).costs


def program_of(outcome: Outcome) -> str | None:
    """Returns the program of a child, None where it has none or was read without its texts."""
    return outcome.program if isinstance(outcome, Child) else None


def program_digest(program: str) -> bytes:
    """Returns SHA-256 of a program."""
    return hashlib.sha256(program.encode("utf-8", "surrogatepass")).digest()


def _number(fitness: float | None) -> float:
    return math.nan if fitness is None else fitness
