"""A child and its call are two lines of a log, and one value for whoever reads it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TypeVar

import msgspec

from evo.logs.records import Asked, Child, Header, Made, Outcome, ReplyLine

OutcomeT = TypeVar("OutcomeT", bound=Outcome)


def joined(outcome: OutcomeT, call: Asked | None) -> OutcomeT:
    """Returns a child with what the line of its call says, unless it says that itself."""
    if call is None or outcome.attempts:
        return outcome
    more: dict[str, object] = {"attempts": call.attempts, "model": call.model}
    if isinstance(outcome, Child) and isinstance(call, ReplyLine):
        more |= {"reply": call.reply, "reasoning": call.reasoning}
    return msgspec.structs.replace(outcome, **more)


def parted(child: Child) -> tuple[ReplyLine, Child]:
    """Returns the two lines that a child and its call are in a log."""
    reply = ReplyLine(
        inherited=child.inherited, generation=child.generation, index=child.index,
        attempts=child.attempts, draft=child.draft, model=child.model,
        reply=child.reply, reasoning=child.reasoning,
    )  # fmt: skip
    return reply, without_call(child)


def as_written(lines: Iterable[Made], header: Header) -> Iterator[Made]:
    """Yields lines as a log with this header holds them: from schema 3 on, children and calls."""
    for line in lines:
        if header.schema >= 3 and isinstance(line, Child) and line.attempts:
            yield from parted(line)
        else:
            yield line


def without_call(child: Child) -> Child:
    """Returns a child as its own line holds it beside the line of its call."""
    return msgspec.structs.replace(child, attempts=(), reply=None, reasoning=None, model="")
