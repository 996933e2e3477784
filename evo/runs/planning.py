"""What the children of a generation are asked for: a search's plan, made into prompts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from numbers import Real

import msgspec

from evo.filters.registry import rules_of
from evo.keyed import KeyedStream
from evo.logs.inputs import as_float
from evo.logs.journal import LogError
from evo.logs.log import Log
from evo.logs.records import Header, Plan, Planned
from evo.logs.types import JsonObject
from evo.models.client import prompt_hash
from evo.prompt import (
    EXACT_VERSION,
    OPERATORS,
    Message,
    ShownProgram,
    TriedProgram,
    build_messages,
    feedback,
    inspire,
    placed,
)
from evo.runs.dataset import text_key
from evo.runs.items import Prompt
from evo.runs.mixture import with_models
from evo.runs.state import ArchiveEntry, State, state_of
from evo.searches import base as searches
from evo.searches.base import Place, Request, Search, SearchError
from evo.searches.registry import search_of
from evo.tasks.instances import read_instances
from evo.values import UnknownValue
from evo.warning import warn


@dataclass
class Planner:
    """Plans the next generation from the state of a run.

    Attributes:
        name: What warnings call the run.
        logged: Plans by generation that are kept to, whatever the search plans now: those of a log
            that is played again.
        played: Whether a log is played again. Its plans are followed even where its search is not
            known here.
        differing: Generations that the search would plan otherwise than they were logged.
        requests: Without a barrier, the plans of a log that is played again, by number.
        order: The numbers of that log's children, in the order in which they were complete.
    """

    name: str = "the run"
    logged: Mapping[int, Plan] = field(default_factory=dict)
    played: bool = False
    differing: list[int] = field(default_factory=list)
    requests: Mapping[int, Plan] = field(default_factory=dict)
    order: Sequence[int] = ()

    def __call__(self, state: State) -> list[Prompt]:
        """Returns the prompt of each child of the next generation, in order.

        Raises:
            ValueError: The search asks for what cannot be.
            LogError: The search is not known here, and the log does not say what it planned.
        """
        number = state.generation + 1
        header = state.header.at_generation(number)
        planned, line = self._planned(state, header), state.plan or self.logged.get(number)
        if line is not None and planned != line.requests:
            if planned is not None:
                self._note(number)
            planned = line.requests
        if planned is None:
            raise LogError(f"no plan of generation {number} is logged, and its search is not known")
        _check(planned, state, header, header.children)
        texts = _Texts(state, header)
        messages = {each: texts.messages(each) for each in dict.fromkeys(planned)}
        hashes = {each: prompt_hash(messages[each]) for each in messages}
        return [
            Prompt((number, index), each, messages[each], hashes[each], texts.program(each))
            for index, each in enumerate(planned)
        ]

    def request(self, state: State, number: int) -> Plan:
        """Returns the plan of one child of a run without a barrier, as it is logged.

        A log that is played again says what was planned.

        Raises:
            ValueError: The search asks for what cannot be.
            LogError: The search is not known here, and the log does not say what it planned.
        """
        header, width = state.header, state.header.children
        planned, logged = self._planned_one(state, number), self.requests.get(number)
        if logged is not None:
            generation = 1 + number // width
            if planned not in (None, logged.requests) and generation not in self.differing:
                self.differing.append(generation)
            planned = logged.requests
        if planned is None:
            raise LogError(f"no plan of request {number} is logged, and its search is not known")
        _check(planned, state, header, 1)
        return Plan(
            generation=1 + number // width, requests=planned, request=number, after=state.complete
        )

    def prompt(self, state: State, plan: Plan) -> Prompt:
        """Returns the prompt of one child of a run without a barrier, now or later."""
        assert plan.request is not None
        width, (planned,) = state.header.children, plan.requests
        texts = _Texts(state, state.header, plan.after)
        messages = texts.messages(planned)
        return Prompt(
            (1 + plan.request // width, plan.request % width), planned, messages,
            prompt_hash(messages), texts.program(planned), plan.request, plan.after,
        )  # fmt: skip

    def _planned_one(self, state: State, number: int) -> tuple[Planned, ...] | None:
        """Returns what the search plans; None where a played log's search is not known."""
        header = state.header
        waiting = [plan.requests[0] for _, plan in sorted(state.requested.items())]
        if header.search is None:  # greedy
            asked = [Planned(parents=(state.best.place,))]
        else:
            search = self._search(header)
            if search is None:
                return None
            rng = KeyedStream("request", header.seed, header.children, number)
            known = state.searched(search, header.min_improvement)
            parents = [each.parents for each in waiting]
            found = searches.plan_one(search, known, number, header.children, parents, rng)
            asked = [_plain(found, header)]
        planned = _inspired(state, header, asked)
        if header.models:
            models = [each.model for each in waiting]
            planned = with_models(planned, header, number, state.returns, models)
        return with_edits(planned, header, number)

    def _search(self, header: Header) -> Search | None:
        """Returns the search of a run; None where a played log's search is not known."""
        try:
            return search_of(header.search)
        except UnknownValue:
            if self.played:
                return None
            raise

    def _note(self, number: int) -> None:
        self.differing.append(number)
        if not self.played:
            warn(
                f"{self.name}: generation {number} goes on as it was planned when it began, though "
                "its search plans it otherwise now",
            )

    def _planned(self, state: State, header: Header) -> tuple[Planned, ...] | None:
        """Returns what the search plans; None where a played log's search is not known."""
        if header.search is None:  # greedy
            asked = [Planned(parents=(state.best.place,))] * header.children
        else:
            search = self._search(header)
            if search is None:
                return None
            rng = KeyedStream("search", header.seed, header.children, state.generation + 1)
            known = state.searched(search, header.min_improvement)
            requests = searches.plan(search, known, header.children, rng)
            asked = [_plain(each, header) for each in requests]
        planned = _inspired(state, header, asked)
        if header.models:
            planned = with_models(planned, header, state.generation + 1, state.returns)
        return with_edits(planned, header, state.generation + 1)


def _plain(request: Request, header: Header) -> Planned:
    """Returns a request of a search as it is logged."""
    given = getattr(request, "temperature", None)
    if given is not None and not (isinstance(given, Real) and 0 <= as_float(given) <= 2):
        raise SearchError(
            f"search {_search_name(header)!r}: expected a temperature in [0, 2] or None for each "
            f"request, got {given!r:.60}"
        )
    parents = tuple((int(generation), int(index)) for generation, index in request.parents)
    temperature = None if given is None else as_float(given)
    return Planned(parents=parents, operator=request.operator, temperature=temperature)


def _inspired(state: State, header: Header, asked: Sequence[Planned]) -> tuple[Planned, ...]:
    """Returns the requests, each with the best programs besides its parents if these are wanted."""
    if not header.inspirations:
        return tuple(asked)
    entries = [entry for generation in state.archive for entry in generation]
    if header.prompt_version >= EXACT_VERSION:  # the best one counts as it was confirmed last
        entries = [state.best if each.place == state.best.place else each for each in entries]
    able = [
        ShownProgram(entry.place, entry.evaluation.fitness, entry.program)
        for entry in entries
        if entry.program is not None and entry.evaluation.fitness is not None and not entry.kept_out
    ]
    ranked = sorted(able, key=lambda each: each.rank)
    planned = []
    for request in asked:
        texts = [_parent(state, place).program or "" for place in request.parents]
        chosen = tuple(each.place for each in inspire(ranked, texts, header.inspirations))
        planned.append(msgspec.structs.replace(request, inspirations=chosen))
    return tuple(planned)


def with_edits(planned: tuple[Planned, ...], header: Header, number: int) -> tuple[Planned, ...]:
    """Returns the requests, each with what its replies are where that is mixed.

    `number` is that of the generation, or of the request, which keys the draws.
    """
    if header.diff_share is None:
        return planned
    rng = KeyedStream("edits", header.seed, header.children, number)
    return tuple(
        msgspec.structs.replace(
            request, edits="diff" if rng.chance(header.diff_share) else "rewrite"
        )
        for request in planned
    )


def _parent(state: State, place: Place) -> ArchiveEntry:
    """Returns a program that a prompt may show."""
    entry = state.entry(place)
    able = entry is not None and (
        place in ((0, 0), state.best.place)
        or (
            entry.program is not None
            and entry.evaluation.fitness is not None
            and not entry.kept_out
        )
    )
    if entry is None or not able:
        raise SearchError(
            f"search {_search_name(state.header)!r}: expected parents that are ok programs of "
            f"complete generations, or (0, 0), got {place!r}"
        )
    return entry


def _search_name(header: Header) -> str:
    return "greedy" if header.search is None else header.search.name


def _check(planned: Sequence[Planned], state: State, header: Header, children: int) -> None:
    """Raises SearchError where a search does not plan what it has to."""
    name = _search_name(header)
    if len(planned) != children:
        raise SearchError(
            f"search {name!r}: expected a request for each of {children} children, "
            f"got {len(planned)}"
        )
    for each in planned:
        if each.operator not in (*OPERATORS,):  # a tuple: an operator may lack a hash
            raise SearchError(
                f"search {name!r}: unknown operator {each.operator!r}, expected one of "
                f"{', '.join(OPERATORS)}"
            )
        if not each.parents:
            raise SearchError(f"search {name!r}: expected a parent for each request, got none")
        for place in each.parents:
            _parent(state, place)


class _Texts:
    """Makes prompts from the programs of a run."""

    def __init__(self, state: State, header: Header, after: int | None = None) -> None:
        self._state, self._header = state, header
        self._instances = []
        self._latest: list[TriedProgram] = []
        if header.feedback:
            if header.task.instances_file:
                self._instances = read_instances(header.task)
            self._latest = [
                TriedProgram(
                    entry.evaluation, replies_under(state, header, self._instances, entry.program)
                )
                for entry in state.latest(after)
            ]

    def messages(self, planned: Planned) -> list[Message]:
        """Returns the messages of a request."""
        header, state = self._header, self._state
        parent, *mixed = (_parent(state, place) for place in planned.parents)
        shown_feedback = ""
        if header.feedback:
            shown_feedback = feedback(
                header.task, parent.evaluation, self._latest, self._instances,
                version=header.prompt_version,
            )  # fmt: skip
        return build_messages(
            header.task, parent.program or "", parent.evaluation.fitness,
            statement=header.statement, mixed=[shown_program(each) for each in mixed],
            inspirations=[shown_program(_parent(state, place)) for place in planned.inspirations],
            feedback=shown_feedback, advice=placed(state.advised) if header.advice else "",
            operator=planned.operator, edits=header.edits_of(planned),
            rules=rules_of(header) if header.filters else "",
        )  # fmt: skip

    def program(self, planned: Planned) -> str:
        """Returns the program that a request has rewritten."""
        return _parent(self._state, planned.parents[0]).program or ""


def replies_under(
    state: State, header: Header, instances: Sequence[JsonObject], text: str | None
) -> dict[str, str]:
    """Returns what the model replied under a text, by the instance's id."""
    if text is None or not header.task.asks_model:
        return {}
    key = text_key(text)
    calls = ((row["id"], state.known.get((key, i))) for i, row in enumerate(instances))
    return {name: call.reply for name, call in calls if call and call.reply}


def shown_program(entry: ArchiveEntry) -> ShownProgram:
    """Returns a program of the archive as prompts show it."""
    return ShownProgram(entry.place, entry.evaluation.fitness, entry.program or "")


def asked_in(log: Log, generation: int) -> list[Prompt]:
    """Returns what the children of a logged generation were asked for, made again from the log.

    The children's own `prompt_hash` shows whether it equals what was sent.

    Raises:
        LogError: The log holds no plan of it, though its search is not known here, or not the
            program that was to be rewritten.
        ValueError: The log lacks another program that the prompts show.
    """
    if log.initial is None:
        raise LogError(f"{log.path}: generation {generation} has no parent")
    last = generation if log.header.asynchronous else generation - 1
    state, planner = state_of(log, through=last), Planner(str(log.path), log.plans, played=True)
    if state.best.program is None:
        raise LogError(f"{log.path}: it does not hold the program that was to be rewritten")
    if log.header.asynchronous:
        made = [child for child in log.outcomes if child.generation == generation]
        return [planner.prompt(state, log.requests[child.request or 0]) for child in made]
    for call in log.advice_calls:  # it was given before the generation was planned
        if call.generation == generation:
            state.take(call)
    return planner(state)
