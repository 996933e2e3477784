"""The step that asks a model for advice before some generations, which the prompts then show.

With `advice=R` it is asked after each R generations, before the next one is planned: the run's
model, the first one if it has several. The advice is logged when it arrives and stands until the
next one. A call without a reply changes nothing, and the generation goes on.
"""

from __future__ import annotations

import hashlib
import math
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass

from evo.logs.records import Advice, Planned
from evo.models.client import Call, CallCancelled, EndpointError, prompt_hash, was_sent
from evo.prompt import (
    GenerationSummary,
    ShownProgram,
    TriedProgram,
    TriedRewrite,
    advice_messages,
    feedback,
)
from evo.runs.items import CallItem, Prompt, Step
from evo.runs.planning import replies_under, shown_program
from evo.runs.state import ArchiveEntry, State
from evo.tasks.instances import read_instances


def advice_seed(seed: int, children: int, generation: int) -> int:
    """Returns the seed of the call before a generation, in [0, 2**31)."""
    key = f"{seed}/{children}/{generation}/advice"
    return int.from_bytes(hashlib.sha256(key.encode()).digest()[:4], "big") >> 1


@dataclass(frozen=True)
class Advise:
    """Asks for advice before the next generation, unless it is not due or was given already.

    Attributes:
        log: Takes a line for the run's log.
    """

    log: Callable[[Advice], None]

    def __call__(self, state: State) -> Step[None]:
        """Asks, and logs what came of it.

        EndpointError, CallCancelled: the run ends with the call, which is logged if it was sent.
        """
        number = state.generation + 1
        header = state.header.at_generation(number)
        if number in state.advice or not state.header.advises(number):
            return
        prompt = prompt_for_advice(state)
        seed = advice_seed(header.seed, header.children, number)
        try:
            call: Call = yield CallItem(prompt, 0, seed, header)
        except (EndpointError, CallCancelled) as error:
            if was_sent(error):
                self._log(prompt, Call(error.attempts), again=True)
            raise
        self._log(prompt, call)

    def _log(self, prompt: Prompt, call: Call, *, again: bool = False) -> None:
        self.log(
            Advice(
                generation=prompt.place[0], prompt_hash=prompt.hash, attempts=call.attempts,
                reply=call.reply, reasoning=call.reasoning, again=again,
            )
        )  # fmt: skip


def prompt_for_advice(state: State) -> Prompt:
    """Returns what is asked before the next generation, from what is logged by then."""
    number = state.generation + 1
    header = state.header.at_generation(number)
    task, since = header.task, max(0, state.generation - header.advice)
    lately = [entry for step in state.archive[:since:-1] for entry in step]
    instances = read_instances(task) if task.instances_file else []
    failures = [
        TriedProgram(each.evaluation, replies_under(state, header, instances, each.program))
        for each in lately
    ]
    messages = advice_messages(
        task,
        _best(state),
        generations=_summaries(state),
        tried=_tried(state, lately),
        feedback=feedback(
            task, state.best.evaluation, failures, instances, version=header.prompt_version
        ),
        earlier=state.advised,
        statement=header.statement,
    )
    place = (number, header.children)
    return Prompt(place, Planned(parents=()), messages, prompt_hash(messages), "", advice=True)


def _best(state: State) -> list[ShownProgram]:
    """Returns the programs of the archive, each text once: the best one first, then by fitness."""
    able = [
        shown_program(entry)
        for step in state.archive
        for entry in step
        if entry.program is not None and entry.evaluation.fitness is not None and not entry.kept_out
    ]
    distinct = dict[str, ShownProgram]()
    for each in (shown_program(state.best), *sorted(able, key=lambda each: each.rank)):
        distinct.setdefault(each.program.strip(), each)
    return [*distinct.values()]


def _summaries(state: State) -> list[GenerationSummary]:
    found = []
    for number, entries in enumerate(state.archive):
        counts = Counter(entry.evaluation.status or "unknown" for entry in entries)
        best = state.trajectory[number]
        known = None if math.isnan(best) else best
        found.append(GenerationSummary(number, known, tuple(counts.items()) if number else ()))
    return found


def _tried(state: State, entries: list[ArchiveEntry]) -> list[TriedRewrite]:
    """Returns the rewrites among some programs, each with its first parent."""
    found = []
    for entry in entries:
        parent = state.entry(entry.parents[0]) if entry.parents else None
        if entry.program is not None and parent is not None and parent.program is not None:
            found.append(TriedRewrite(shown_program(entry), shown_program(parent)))
    return found
