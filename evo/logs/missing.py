"""Finds what a log lacks although its other lines say that it was there.

A damaged line is found by its checksum. A line that was cut out as a whole leaves no gap in the
file, and is found by the other lines that refer to it. Nothing refers to a tick, a session, a
failed call or a critic's call, so that these are not missed.
"""

from __future__ import annotations

import hashlib
from collections import Counter, defaultdict
from collections.abc import Iterator

from evo.logs.log import Log
from evo.logs.records import Child, Outcome
from evo.logs.vectors import COMPARING, NO_VECTOR, embedding_key

_CALLS_APART = 3
"""First schema in which the call of a child is a line of its own."""


def missing_lines(log: Log) -> Iterator[str]:
    """Yields, in words, each line that was cut out of a log and that other lines tell of.

    A log of another tool has lines of its own kind, and nothing is missed in it.
    """
    if log.header.source != "evo":
        return
    if log.initial is None and (log.outcomes or log.generations):
        yield "the evaluation of the initial program is missing"
    yield from _missing_plans(log)
    yield from _missing_advice(log)
    if log.header.schema >= _CALLS_APART:
        yield from _missing_calls(log)
    yield from _missing_instance_calls(log)
    yield from _missing_embeddings(log)
    made = sum(not each.inherited for each in log.generations)
    told = sum(int(end.stats.get("generations", 0)) for end in log.ends)
    if told > made:
        yield f"its sessions made {told} generations, and it holds {made} of them"


def _missing_plans(log: Log) -> Iterator[str]:
    """Yields the plans that are missing; greedy's children have none."""
    for number in sorted({child.generation for child in log.outcomes}):
        header = log.header.at_generation(number)
        if header.is_planned and not header.asynchronous and number not in log.plans:
            yield f"the plan of generation {number} is missing"
    asked = {child.request for child in log.outcomes if child.request is not None}
    for request in sorted(asked - log.requests.keys()):
        yield f"the plan of request {request} is missing"


def _missing_advice(log: Log) -> Iterator[str]:
    """Yields the generations before which a model was asked for advice, with no line of that."""
    asked = {call.generation for call in log.advice_calls if not call.again}
    for number in sorted({child.generation for child in log.outcomes} - asked):
        if log.header.advises(number):
            yield f"the call for advice before generation {number} is missing"


def _missing_calls(log: Log) -> Iterator[str]:
    """Yields the children whose call, or the calls of whose drafts, are missing."""
    drafts = Counter((generation, index) for generation, index, _ in log.replies)
    for child in log.outcomes:
        place = (child.generation, child.index)
        header, who = log.header.at_generation(child.generation), _named(child)
        apart = log.has_call(*place) or log.header.compact
        if not apart and log.child(*place).reply is None:  # or its own line holds it
            yield f"{who} has no line of its call"
            continue
        others = drafts[child.reply_key(header.children)[:2]]
        if others + 1 < header.drafts:
            yield f"{who} has {others + 1} of {header.drafts} calls of its drafts"


def _missing_instance_calls(log: Log) -> Iterator[str]:
    """Yields the texts that were scored on more instances than the log has calls for."""
    if not log.header.task.asks_model or log.header.compact:
        return
    calls = defaultdict[str, set[int]](set)
    for call in log.instance_calls:
        calls[call.program].add(call.index)
    for child in log.children:
        if tried := len(child.evaluation.instances):
            text = (child.program or "").encode("utf-8", "surrogatepass")
            found = len(calls[hashlib.sha256(text).hexdigest()[:16]])
            if found < tried:
                yield f"{_named(child)} was tried on {tried} instances, with calls for {found}"


def _missing_embeddings(log: Log) -> Iterator[str]:
    """Names programs that a filter compared by their embeddings, where the log lacks these."""
    headers = [log.header, *(each.header for each in log.header.segments)]
    asked = any(each.name == COMPARING for header in headers for each in header.filters)
    if log.header.compact or not asked:
        return
    logged = {call.program for call in log.embedding_calls if call.reply is not None}
    compared = [(child, by) for child in log.children if (by := _compared_by(child, log))]
    initial = log.header.task.files[log.header.task.program_file]
    if any(embedding_key(by, initial) not in logged for _, by in compared):
        yield "the embedding of the initial program is missing"
    for child, by in compared:
        if embedding_key(by, child.program or "") not in logged:
            yield f"the embedding of {_named(child)} is missing"


def _compared_by(child: Child, log: Log) -> str:
    """Returns what embedded a child's program; empty: it was not compared, or could not be."""
    if child.program is None:
        return ""
    for each in log.header.at_generation(child.generation).filters:
        reason = (child.evaluation.error or "") if child.evaluation.status == "rejected" else ""
        if each.name == COMPARING:
            unknown = reason.startswith(f"{COMPARING}: {NO_VECTOR}")
            return "" if unknown else str(each.fields["embed"])
        if reason.startswith(f"{each.name}: "):
            return ""
    return ""


def _named(child: Outcome) -> str:
    return f"child {child.index} of generation {child.generation}"
