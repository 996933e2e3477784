"""What the children of a generation are asked for: the one place where a search comes in."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from evo.llm.recorded import prompt_hash
from evo.log import Best
from evo.prompt import Message, Shown, Tried, build_messages, feedback, inspire
from evo.records import Evaluation, Header
from evo.searches.base import Place, Request
from evo.task import read_instances


@dataclass(frozen=True)
class Planned:
    """What a child is asked for: its parents and operator, and the messages that say so."""

    request: Request
    messages: list[Message]
    prompt_hash: str


class Planner:
    """Plans the requests of a generation from what it remembers of all complete ones.

    Args:
        header: Of the run.
        replies_under: Gives what the model said under a text, by the instance's id.
    """

    def __init__(self, header: Header, replies_under: Callable[[str], dict[str, str]]) -> None:
        self._header, self._replies_under = header, replies_under
        self._archive: list[Shown] = []  # what a prompt may show
        self._latest: list[Tried] = []  # what it may tell of: programs of the latest generation
        self._latest_generation = 0

    def remember(self, place: Place, program: str | None, tried: Evaluation) -> None:
        """Keeps what prompts may tell of a program of a complete generation."""
        if self._header.inspirations and program is not None and tried.fitness is not None:
            self._archive.append(Shown(place, tried.fitness, program))
        if self._header.feedback:
            if self._latest_generation != place[0]:
                self._latest, self._latest_generation = [], place[0]
            replies = {} if program is None else self._replies_under(program)
            self._latest.append(Tried(tried, replies))

    def plan(self, best: Best) -> list[Planned]:
        """Returns what each child is asked for, in order: under greedy, all rewrite the best."""
        request = Request(((best.generation, best.index),))
        messages = self._messages(best)
        return [Planned(request, messages, prompt_hash(messages))] * self._header.children

    def _messages(self, parent: Best) -> list[Message]:
        header, program = self._header, parent.program or ""
        told = ""
        if header.feedback:
            instances = read_instances(header.task) if header.task.instances_file else []
            told = feedback(header.task, parent.evaluation, self._latest, instances)
        return build_messages(
            header.task,
            program,
            parent.evaluation.fitness,
            statement=header.statement,
            inspirations=inspire(self._archive, program, header.inspirations),
            feedback=told,
        )
