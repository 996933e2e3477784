"""A child and its call are two lines of a log, and one value for whoever reads it."""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable, Iterator
from typing import Any, TypeVar

import msgspec

from evo.logs.records import Child, Header, InheritableLine, LoggedCall, Outcome, Plan, ReplyLine

OutcomeT = TypeVar("OutcomeT", bound=Outcome)


def joined(outcome: OutcomeT, call: LoggedCall | None) -> OutcomeT:
    """Returns a child with what the line of its call says, unless it says that itself."""
    if call is None or outcome.attempts:
        return outcome
    more: dict[str, object] = {"attempts": call.attempts, "model": call.model}
    if isinstance(outcome, Child) and isinstance(call, ReplyLine):
        more |= {"reply": call.reply, "reasoning": call.reasoning}
    return msgspec.structs.replace(outcome, **more)


def parted(child: Child, children: int) -> tuple[ReplyLine, Child]:
    """Returns the two lines that a child and its call are in a log of N children."""
    generation, index, draft = child.reply_key(children)
    reply = ReplyLine(
        inherited=child.inherited, generation=generation, index=index,
        attempts=child.attempts, draft=draft, model=child.model,
        reply=child.reply, reasoning=child.reasoning,
    )  # fmt: skip
    return reply, without_call(child)


def as_written(lines: Iterable[InheritableLine], header: Header) -> Iterator[InheritableLine]:
    """Yields lines as a log with this header holds them: from schema 3 on, children and calls."""
    for line in lines:
        if header.schema >= 3 and isinstance(line, Child) and line.attempts:
            yield from parted(line, header.children)
        else:
            yield line


def without_call(child: Child) -> Child:
    """Returns a child as its own line holds it beside the line of its call."""
    return msgspec.structs.replace(child, attempts=(), reply=None, reasoning=None, model="")


def generations_of_calls(
    header: Header, children: Iterable[Outcome], under_way: int
) -> Callable[[Any], int]:
    """Returns what says to which generation a line belongs.

    Without a barrier a plan or a call of a child is of the generation in which the child was
    complete, or of the one under way.
    """
    if not header.asynchronous:
        return operator.attrgetter("generation")
    width = header.children
    complete = {child.reply_key(width)[:2]: child.generation for child in children}

    def generation_of(record: Any) -> int:
        if isinstance(record, LoggedCall):
            return complete.get((record.generation, record.index), under_way)
        if isinstance(record, Plan) and record.request is not None:
            number = record.request
            return complete.get((1 + number // width, number % width), under_way)
        generation: int = record.generation
        return generation

    return generation_of
