"""Growing batches: the new texts of a generation are tried against each other, not one by one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from evo.filters.base import Filter
from evo.logs.records import Evaluation, Header
from evo.models.client import Call
from evo.models.embeddings import NoEmbedding
from evo.runs.ask import Asks, program_in
from evo.runs.evaluate import Evaluate
from evo.runs.items import BatchesItem, Prompt, Step
from evo.runs.screening import screened
from evo.runs.state import State, program_digest, program_of
from evo.searches.base import Place


@dataclass(frozen=True)
class Race:
    """Asks for all children of a generation first, then tries their new texts in lockstep.

    It takes two steps of the loop: `race` comes before the children are made, and `ask` returns
    their calls.

    Attributes:
        header: Configuration of the generation.
        first: Asks the model for a child.
        evaluate: Learns how the texts did.
    """

    header: Header
    first: Asks
    evaluate: Evaluate
    calls: dict[Place, Call] = field(default_factory=dict)

    def race(
        self, prompts: Sequence[Prompt], state: State, filters: Sequence[Filter]
    ) -> Step[None]:
        """Asks for the children that are not logged, and evaluates the texts that are new."""
        left = [prompt for prompt in prompts if prompt.place[1] not in state.children]
        calls = yield [self.first(prompt, state) for prompt in left]
        self.calls.update(zip((prompt.place for prompt in left), calls, strict=True))
        rivals = dict[str, Evaluation]()
        for prompt in prompts:
            logged = state.children.get(prompt.place[1])
            call = self.calls.get(prompt.place)
            program = program_of(logged) if logged else None
            if call is not None:
                program = program_in(call, prompt, self.header)
            if not program or program_digest(program) in state.first:
                continue
            if filters and (yield from _is_refused(program, filters, prompt, state)):
                continue
            parent = state.entry(prompt.planned.parents[0])
            assert parent is not None  # the planner checked it
            rivals.setdefault(program, parent.evaluation)
        found: dict[str, Evaluation] = (yield BatchesItem(rivals)) if rivals else {}
        for program, evaluation in found.items():
            self.evaluate.known.setdefault(program_digest(program), evaluation)

    def ask(self, prompt: Prompt, state: State) -> Step[Call]:
        """Returns a child's call, which `race` has made."""
        yield from ()
        return self.calls.pop(prompt.place)


def _is_refused(
    program: str, filters: Sequence[Filter], prompt: Prompt, state: State
) -> Step[bool]:
    """Returns whether filters refuse a program, also since it could not be compared."""
    try:
        reason = yield from screened(program, filters, state.programs(), prompt.place)
    except NoEmbedding:
        return True
    return reason is not None
