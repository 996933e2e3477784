"""The work that a run asks for, and the steps that ask for it.

A step is a generator: it yields what it wants and is sent what came of that, or what was raised.
It may want one item of work, a list of items and further steps that may be done at the same time,
or a step that is done once for all who want it. `yield from` composes steps.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

from evo.filters.base import Filter
from evo.filters.near_embeddings import NearEmbeddings
from evo.logs.records import Evaluation, Header, Planned
from evo.models import client
from evo.prompt import Message
from evo.searches.base import Member, Place

T = TypeVar("T")


@dataclass(frozen=True)
class Prompt:
    """What one child is asked for.

    Attributes:
        place: Generation and index of the child. They key its seed and its call; a child without
            a barrier gets another place once it is complete.
        planned: Its parents, operator and inspirations, as planned.
        messages: The messages that say so.
        hash: SHA-256 (hex) of the messages.
        program: The program to rewrite.
        request: Its number from 0, in a run without a barrier.
        after: How many children were complete when it was planned, in such a run.
        advice: Whether it asks for advice on the search instead, at index N.
    """

    place: Place
    planned: Planned
    messages: list[Message]
    hash: str
    program: str
    request: int | None = None
    after: int | None = None
    advice: bool = False


@dataclass(frozen=True, eq=False)
class CallItem:
    """A request to a model for a child or a draft; its result is what the client returns.

    Attributes:
        prompt: What the child is asked for, and its place.
        draft: Which of the child's drafts it is, from 0.
        seed: Seed of the call.
        header: Says which model is asked, and how.
    """

    prompt: Prompt
    draft: int
    seed: int
    header: Header


@dataclass(frozen=True, eq=False)
class ScoreItem:
    """A draft to be scored by the critic; its result is a number."""

    prompt: Prompt
    header: Header
    call: client.Call


@dataclass(frozen=True, eq=False)
class ScreenItem:
    """A program for the filters; its result is why they refuse it, or None.

    With its evaluation it passed, and the result is why they keep it out of the archive, or None.
    """

    program: str
    filters: Sequence[Filter]
    archive: Sequence[Member]
    evaluation: Evaluation | None = None


@dataclass(frozen=True, eq=False)
class CompareItem:
    """A program whose embedding is to be compared with those of the archive.

    Its result is why the filter refuses it, or None; `NoEmbedding` if that cannot be said.

    Attributes:
        place: Generation and index of the child's call.
    """

    program: str
    filter: NearEmbeddings
    archive: Sequence[Member]
    place: Place


@dataclass(frozen=True, eq=False)
class DrawItem:
    """One evaluation of a program; its result is an `Evaluation`.

    Attributes:
        program: The program.
        draw: Which draw of randomness.
        bars: On a task with stages, what the parent scored in each; None: all stages are run.
    """

    program: str
    draw: int
    bars: tuple[float, ...] | None = None


@dataclass(frozen=True, eq=False)
class BatchesItem:
    """Texts to be tried on growing batches of instances; its result is the evaluation of each.

    Attributes:
        rivals: The texts, each with the evaluation of its parent.
    """

    rivals: Mapping[str, Evaluation]


Item = CallItem | ScoreItem | ScreenItem | CompareItem | DrawItem | BatchesItem
"""One piece of work."""

CALLING = (CallItem, ScoreItem, CompareItem, BatchesItem)
"""Items that make calls; none of them begins once a stop was asked for."""


@dataclass(frozen=True, eq=False)
class Once:
    """A step that is done once for all who want it, as its key says."""

    key: Hashable
    step: Callable[[], Step[Any]]


Wanted = Item | Once | Sequence[Any]
"""What a step yields; a sequence holds items and steps."""

Step = Generator[Wanted, Any, T]
"""Asks for work, and returns a result."""


def complete(step: Step[T], perform: Callable[[Item], object]) -> T:
    """Does all the work that a step asks for, one after another, and returns its result."""

    def perform_all(wanted: Any) -> object:
        if isinstance(wanted, Item):
            return perform(wanted)
        if isinstance(wanted, Once):
            return complete(wanted.step(), perform)
        if isinstance(wanted, Generator):
            return complete(wanted, perform)
        return [perform_all(each) for each in wanted]

    result: object = None
    error: Exception | None = None
    try:
        while True:
            wanted = step.send(result) if error is None else step.throw(error)
            result, error = None, None
            try:
                result = perform_all(wanted)
            except Exception as raised:
                error = raised
    except StopIteration as done:
        value: T = done.value
        return value
