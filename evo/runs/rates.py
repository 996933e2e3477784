"""The prices that a logged call keeps, whatever its model costs later."""

from __future__ import annotations

import msgspec

from evo.logs.cost import RATES
from evo.logs.records import Advice, Child, Header, InstanceCall, Line, ReplyLine
from evo.runs.state import State


def with_rates(header: Header, state: State, line: Line) -> Line:
    """Returns a line whose calls keep their prices, if these are no longer the logged header's.

    Args:
        header: The configuration that the session works with.
        state: What the log holds, its header included.
        line: A line that is to be logged.
    """
    if not isinstance(line, Child | InstanceCall | ReplyLine | Advice):
        return line
    now, logged = (each.asked_of(line).model for each in (header, state.header))
    rates = {n: getattr(now, n) for n in RATES if getattr(now, n) != getattr(logged, n)}
    if isinstance(line, Child):  # a reply of an earlier session has its own
        known = state.replies.get(line.reply_key(header.children))
        if known is not None:
            return msgspec.structs.replace(line, attempts=known.attempts)
    if not rates:
        return line
    attempts = (msgspec.structs.replace(each, rates=rates) for each in line.attempts)
    return msgspec.structs.replace(line, attempts=tuple(attempts))
