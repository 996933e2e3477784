"""Steps that ask the model for a child: one call, or drafts among which a critic chooses."""

from __future__ import annotations

import hashlib
from collections import defaultdict
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from typing import Protocol

from evo.logs.log import Log
from evo.logs.records import Evaluation, Header, Outcome, ReplyLine
from evo.models.client import Call, CallCancelled, EndpointError, was_sent
from evo.models.critics import Scorer, Triple
from evo.prompt import NoMatch, apply_blocks, files_after, parse_reply
from evo.runs import items
from evo.runs.items import Prompt, Step
from evo.runs.state import State
from evo.searches.base import Place


def child_seed(seed: int, children: int, generation: int, index: int, draft: int = 0) -> int:
    """Returns the seed of a child's draft in [0, 2**31): it rests on these alone, never on T."""
    key = f"{seed}/{children}/{generation}/{index}" + (f"/draft {draft}" if draft else "")
    return int.from_bytes(hashlib.sha256(key.encode()).digest()[:4], "big") >> 1


class Asks(Protocol):
    """Asks a model for a child."""

    def __call__(self, prompt: Prompt, state: State) -> Step[Call]:
        """Returns the call; of several drafts, that of the chosen one."""
        ...


def program_in(call: Call, prompt: Prompt, header: Header) -> str | None:
    """Returns the program in the reply of a call, or None."""
    if header.edits_of(prompt.planned) == "rewrite" and not header.task.program_files:
        return parse_reply(
            call.reply,
            finish_reason=call.finish_reason,
            evolves=header.task.evolves,
            language=header.task.language,
        )
    try:
        return None if is_cut(call) else _changed(call.reply or "", prompt, header)
    except NoMatch:
        return None


def _changed(reply: str, prompt: Prompt, header: Header) -> str:
    """Returns the parent after the changes in a reply; NoMatch: there are none, or they fail."""
    if header.task.program_files:
        return files_after(reply, prompt.program, header.task, header.edits_of(prompt.planned))
    return apply_blocks(prompt.program, reply)


def failure_of(call: Call, prompt: Prompt, header: Header) -> Evaluation:
    """Returns why a call gave no program."""
    if call.reply is None:
        last = call.attempts[-1].error if call.attempts else None
        return Evaluation(status="no_reply", error=call.rejected or last or "the reply is empty")
    reason = "truncated" if is_cut(call) else "no complete block"
    changes = header.edits_of(prompt.planned) == "diff" or header.task.program_files
    if changes and not is_cut(call):
        try:
            _changed(call.reply, prompt, header)
        except NoMatch as error:
            reason = str(error)
    return Evaluation(status="no_program", error=f"the reply has no program: {reason}")


def is_cut(call: Call) -> bool:
    """Whether the reply of a call ends where its limit of tokens was reached."""
    return call.finish_reason == "length"


def reply_line(prompt: Prompt, call: Call) -> ReplyLine:
    """Returns the line of a call."""
    generation, index = prompt.place
    return ReplyLine(
        generation=generation, index=index, draft=call.draft, attempts=call.attempts,
        reply=call.reply, reasoning=call.reasoning, model=prompt.planned.model,
    )  # fmt: skip


@dataclass(frozen=True)
class OneCall:
    """Asks a model for a child, unless an earlier session has logged its reply.

    Attributes:
        header: Configuration of the generation.
        log: Takes a line for the run's log.
    """

    header: Header
    log: Callable[[ReplyLine], None]

    def __call__(self, prompt: Prompt, state: State, draft: int = 0) -> Step[Call]:
        """Returns the call for a child, or for one of its drafts."""
        generation, index = prompt.place
        if (known := state.replies.get((generation, index, draft))) is not None:
            reason = known.attempts[-1].finish_reason if known.attempts else None
            return Call(known.attempts, known.reply, known.reasoning, reason, draft=draft)
        planned = prompt.planned
        header = self.header.with_model(planned.model).at_temperature(planned.temperature)
        seed = child_seed(header.seed, header.children, generation, index, draft)
        try:
            call: Call = yield items.CallItem(prompt, draft, seed, header)
        except (EndpointError, CallCancelled) as error:
            if was_sent(error):
                self._log(prompt, Call(error.attempts, rejected=str(error)), state)
            raise
        return self._log(prompt, replace(call, draft=draft), state)

    def _log(self, prompt: Prompt, call: Call, state: State) -> Call:
        """Logs a call at once, since it may have been paid for.

        One that was refused, or that the run ends with, gets a negative draft: it is counted, and
        made again if the run goes on.
        """
        if call.rejected is not None:
            call = replace(call, draft=state.failed.get(prompt.place, 0) - 1)
        self.log(reply_line(prompt, call))
        return call


def replies_by_draft(
    log: Log, children: Iterable[Outcome]
) -> dict[tuple[int, int, int], ReplyLine]:
    """Returns the logged calls without a child, by generation, index and draft, to be played.

    Calls that were refused are logged under negative numbers. In place of a complete child's drafts
    that have no other call, its refused calls stand under the drafts' own numbers, so that a draft
    that failed in the run is not asked again, and is counted once.
    """
    found, refused = log.replies.copy(), defaultdict[Place, list[int]](list)
    for generation, index, draft in sorted(found, reverse=True):
        if draft < 0:
            refused[generation, index].append(draft)
    for child in children:
        header = log.header.at_generation(child.generation)
        generation, index, chosen = child.reply_key(header.children)
        drafts = [(generation, index, k) for k in range(header.drafts) if k != max(chosen, 0)]
        missing = [key for key in drafts if key not in found]
        for key, number in zip(missing, refused[generation, index], strict=False):
            found[key] = found.pop((generation, index, number))
    return found


@dataclass(frozen=True)
class Drafts:
    """Asks for several drafts of each child and returns the one that the critic scores highest.

    Equal programs are scored once. With fewer than two different programs there is nothing
    to choose.

    Attributes:
        ask: Asks for one draft.
        scored: Whether there is a critic; without one the first program is taken.
    """

    ask: OneCall
    scored: bool

    def __call__(self, prompt: Prompt, state: State) -> Step[Call]:
        """Returns the call of the chosen draft."""
        header = self.ask.header
        calls: list[Call] = yield [self.ask(prompt, state, k) for k in range(header.drafts)]
        distinct = dict[str, Call]()
        for call in calls:
            if (program := program_in(call, prompt, header)) is not None:
                distinct.setdefault(program, call)
        rivals = list(distinct.values())
        if len(rivals) < 2 or not self.scored:
            answered = [call for call in calls if call.reply is not None]
            return [*rivals, *answered, calls[0]][0]
        scores: list[float] = yield [items.ScoreItem(prompt, header, call) for call in rivals]
        return rivals[scores.index(max(scores))]


def score_of(scorer: Scorer, item: items.ScoreItem) -> float:
    """Returns the critic's score of a draft; a draft without one is below all others."""
    system, query = (str(message["content"]) for message in item.prompt.messages)
    triple = Triple(system, query, item.call.reply or "")
    generation, index = item.prompt.place
    found = scorer.score(triple, generation=generation, index=item.header.children + index)
    return -1.0 if found.score is None else found.score
