"""Replies and evaluations of one's own, given to `evo.Searcher.tell`, as a log can hold them.

A user's objects may hold anything. A log that took them as they are could not be read again.
"""

from __future__ import annotations

from typing import Any

import msgspec

from evo.logs.records import Attempt, Evaluation
from evo.models.answer import fit_reason, fit_reply
from evo.models.client import Call
from evo.models.functions import usage_of
from evo.plugins import MistakenType
from evo.sandbox.scores import read_score


def call_of(reply: Any) -> Call:
    """Returns the call that a reply of one's own stands for.

    Raises:
        MistakenType: It is neither a text nor an `evo.Reply` nor None.
    """
    if not isinstance(text := getattr(reply, "text", reply), str | None):
        raise MistakenType(f"reply: expected a text, evo.Reply or None, got {reply!r:.80}")
    if text is None:
        words = "it was told that there is no reply"
        return Call((Attempt(status="error", latency=None, error=words),))
    usage = usage_of(getattr(reply, "usage", None))
    reason = fit_reason(getattr(reply, "finish_reason", None))
    thoughts = fit_reply(getattr(reply, "reasoning", None))
    attempt = Attempt(status="ok", latency=None, usage=usage, finish_reason=reason)
    return Call((attempt,), fit_reply(text), thoughts, reason)


def evaluation_of(given: Any) -> Evaluation:
    """Returns a score or an evaluation of one's own as an evaluation that a log can hold.

    Raises:
        MistakenType: It is no evaluation.
        ValueError: A number is not finite.
    """
    failure = "a failure is told as evo.Evaluation(status='error', error='...')"
    try:
        if isinstance(given, Evaluation):
            return _as_logged(given)
        fitness, metrics, notes = read_score(given, "an evaluator")
    except (TypeError, msgspec.ValidationError) as error:
        raise MistakenType(f"evaluation: {error}; {failure}") from None
    except ValueError as error:
        raise ValueError(f"evaluation: {error}; {failure}") from None
    return Evaluation(status="ok", fitness=fitness, metrics=metrics, notes=notes, seconds=None)


def _as_logged(given: Evaluation) -> Evaluation:
    """Returns an evaluation as it reads in a log, which types it more strictly than Python."""
    if given.fitness is not None:
        numbers = {**given.metrics, "fitness": given.fitness}
        fitness, metrics, _ = read_score(numbers, "an evaluator")
        given = msgspec.structs.replace(given, fitness=fitness, metrics=metrics)
    encoded = msgspec.json.encode(msgspec.structs.replace(given, value=None))
    return msgspec.json.decode(encoded, type=Evaluation)
