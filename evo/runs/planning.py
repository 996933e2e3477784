"""What the children of a generation are asked for: the one place where a search comes in."""

from __future__ import annotations

import bisect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import msgspec

from evo.keyed import KeyedStream
from evo.logs.journal import LogError
from evo.logs.log import Best, Log
from evo.logs.records import Evaluation, Header, Plan, Planned
from evo.models.recorded import prompt_hash
from evo.prompt import OPERATORS, Message, Shown, Tried, build_messages, feedback, inspire
from evo.runs.instances import text_key
from evo.searches.base import Member, Place
from evo.searches.registry import search_of
from evo.tasks.task import read_instances


@dataclass(frozen=True)
class Asked:
    """What a child is asked for, and the messages that say so."""

    planned: Planned
    messages: list[Message]
    prompt_hash: str


class Planner:
    """Plans the requests of a generation from what it remembers of all complete ones.

    The headers are of the run and its segments; `replies_under` gives what the model said under a
    text, by the instance's id. `logged` plans are kept to, whatever the search plans now: where it
    plans otherwise, the generation is `differing`. A log that is `played` again goes by its plans
    where its search is not known.
    """

    def __init__(
        self,
        headers: Sequence[Header],
        replies_under: Callable[[str], dict[str, str]],
        *,
        played: bool = False,
    ) -> None:
        self.logged: Mapping[int, Plan] = {}
        self.differing: list[int] = []
        self.played = played
        self._replies_under = replies_under
        self._keeps = any(each.search or each.inspirations for each in headers)
        self._tells = any(each.feedback for each in headers)
        self._shown: dict[Place, tuple[Shown, Evaluation]] = {}  # programs that may be shown
        self._ranked: list[Shown] = []  # those with a fitness, best first
        self._latest: list[Tried] = []  # of the latest generation, for feedback
        self._born: list[list[Member]] = []  # by generation
        self.enter(headers[0])

    def enter(self, header: Header) -> None:
        """Plans under this configuration from here on; what is remembered stays."""
        self._header = header
        self._state: Any = None
        self._folded = 0
        read = header.feedback and header.task.instances_file
        self._instances = read_instances(header.task) if read else []

    def remember(
        self, place: Place, program: str | None, tried: Evaluation, parents: tuple[Place, ...] = ()
    ) -> None:
        """Keeps what plans and prompts may rest on of a program of a complete generation."""
        new = len(self._born) <= place[0]
        if new:
            self._born.append([])
            self._latest = []
        if self._tells:
            replies = {} if program is None else self._replies_under(program)
            self._latest.append(Tried(tried, replies))
        if not self._keeps:
            return
        self._born[-1].append(Member(place, tried.fitness, parents))
        if program is not None and (tried.fitness is not None or place == (0, 0)):
            shown = Shown(place, tried.fitness, program)
            self._shown[place] = shown, tried
            if tried.fitness is not None:
                bisect.insort(self._ranked, shown, key=lambda each: each.rank)

    def plan(self, number: int, best: Best) -> list[Asked]:
        """Returns what each child of a generation is asked for, in order; greedy rewrites `best`.

        ValueError: the search asks for what cannot be. LogError: it is not known here, and the log
        does not say what it planned.
        """
        planned, line = self._planned(number, best), self.logged.get(number)
        if line is not None and planned != line.requests:
            if planned is not None:
                self.differing.append(number)
            planned = line.requests
        if planned is None:
            raise LogError(f"no plan of generation {number} is logged, and its search is not known")
        self._check(planned)
        asked: dict[Planned, Asked] = {}
        for each in planned:
            if each not in asked:
                messages = self._messages(each, best)
                asked[each] = Asked(each, messages, prompt_hash(messages))
        return [asked[each] for each in planned]

    def _planned(self, number: int, best: Best) -> tuple[Planned, ...] | None:
        """What the search plans; None where it is not known."""
        header = self._header
        if header.search is None:
            parent = self._inspired(((best.generation, best.index),), "rewrite", best)
            return (parent,) * header.children
        try:
            search = search_of(header.search)
        except ValueError:
            if self.played:
                return None
            raise
        if not self._folded:
            self._state = search.start(self._born[0][0], header.min_improvement)
        for generation in self._born[max(self._folded, 1) : number]:
            self._state = search.fold(self._state, generation)
        self._folded = number
        rng = KeyedStream("search", header.seed, header.children, number)
        requests = search.plan(self._state, header.children, rng)
        return tuple(self._inspired(tuple(r.parents), r.operator, best) for r in requests)

    def _inspired(self, parents: tuple[Place, ...], operator: str, best: Best) -> Planned:
        chosen: tuple[Place, ...] = ()
        if self._header.inspirations:
            texts = [self._text(place, best).program for place in parents]
            shown = inspire(self._ranked, texts, self._header.inspirations)
            chosen = tuple(each.place for each in shown)
        return Planned(parents=parents, operator=operator, inspirations=chosen)

    def _check(self, planned: Sequence[Planned]) -> None:
        header = self._header
        name = "greedy" if header.search is None else header.search.name
        if len(planned) != header.children:
            raise ValueError(
                f"search {name!r}: expected a request for each of {header.children} children, "
                f"got {len(planned)}"
            )
        for each in planned:
            if each.operator not in OPERATORS:
                raise ValueError(
                    f"search {name!r}: unknown operator {each.operator!r}, expected one of "
                    f"{', '.join(OPERATORS)}"
                )
            if not each.parents:
                raise ValueError(f"search {name!r}: expected a parent for each request, got none")

    def _text(self, place: Place, best: Best) -> Shown:
        if place == (best.generation, best.index):
            return Shown(place, best.evaluation.fitness, best.program or "")
        if place not in self._shown:
            raise ValueError(
                f"expected parents that are ok programs of complete generations, or (0, 0), "
                f"got {place!r}"
            )
        return self._shown[place][0]

    def evaluation_of(self, place: Place, best: Best) -> Evaluation:
        """Returns how a program that may be a parent did."""
        return best.evaluation if place == (best.generation, best.index) else self._shown[place][1]

    def _messages(self, planned: Planned, best: Best) -> list[Message]:
        header = self._header
        parent, *mixed = (self._text(place, best) for place in planned.parents)
        told = ""
        if header.feedback:
            tried = self.evaluation_of(parent.place, best)
            told = feedback(header.task, tried, self._latest, self._instances)
        shown = [self._text(place, best) for place in planned.inspirations]
        return build_messages(
            header.task, parent.program, parent.fitness, statement=header.statement, mixed=mixed,
            inspirations=shown, feedback=told, operator=planned.operator,
        )  # fmt: skip


def with_fitness(best: Best, fitness: float | None) -> Best:
    """Returns a program with the fitness that its latest confirmation gave it."""
    if fitness is None or best.evaluation.fitness is None:
        return best
    evaluation = msgspec.structs.replace(best.evaluation, fitness=fitness)
    return replace(best, evaluation=evaluation)


def asked_in(log: Log, generation: int) -> list[Asked]:
    """Returns what the children of a logged generation were asked for, made again from the log.

    Whether it is what was sent is told by the children's own `prompt_hash`. LogError: the log holds
    no plan of it, though its search is not known here; ValueError: nor a program that prompts show.
    """
    header = log.header
    task, under = header.task, header.under(generation)
    instances = read_instances(task) if task.instances_file and under.feedback else []

    def replies_under(text: str) -> dict[str, str]:
        made = (call for call in log.instance_calls if call.program == text_key(text))
        return {instances[call.index]["id"]: call.reply for call in made if call.reply}

    planner = Planner([under], replies_under if instances else lambda text: {}, played=True)
    planner.logged = log.plans
    places = [(0, 0), *(each.best for each in log.generations[: generation - 1])]
    if log.initial is None or places[-1] is None:
        raise LogError(f"{log.path}: generation {generation} has no parent")
    program = task.files.get(task.program_file)
    planner.remember((0, 0), program, log.initial.evaluation)
    if header.search or under.inspirations or under.feedback:
        for child in log.children:
            if child.generation < generation:
                place = child.generation, child.index
                planner.remember(place, child.program, child.evaluation, child.parents)
    best = Best(program, log.initial.evaluation, 0, 0)
    if places[-1] != (0, 0):
        chosen = log.child(*places[-1])
        best = Best(chosen.program, chosen.evaluation, *places[-1])
        if header.confirm:
            best = with_fitness(best, log.generations[generation - 2].best_fitness)
    if best.program is None:
        raise LogError(f"{log.path}: it does not hold the program that was to be rewritten")
    return planner.plan(generation, best)
