"""How a child comes about: a machine that is asked for work and told what came of it.

The machine makes no call, starts no thread and reads no clock. Whoever drives it does the work, in
any order, and writes the lines to the log:

    lines = machine.begin(steps)                  # plans the next generation
    while not machine.idle:
        (item,) = machine.ask(1)
        lines += machine.tell(item, perform(item))

A generation is planned, and every child goes its own way: a model's reply is asked for (`CallItem`)
and logged, the program in it is parsed, screened by the filters (`ScreenItem`) and evaluated
(`DrawItem`), and the child is logged. Once all are, the best of them is chosen and accepted, after
fresh draws where the run confirms, and the generation is logged. The steps are generators that ask
for this work, see `evo.runs.items`; a capability such as drafts, batches or confirmation is one
file, and a run without it does not pass through it:

    advise    what a model advises after some generations        evo.runs.advice
    plan      what each child is asked for, from the archive     evo.runs.planning
    ask       a model's reply to that                            evo.runs.ask
    screened  why a program is refused without an evaluation,    evo.runs.screening, evo.filters
              or kept out of the archive after it
    evaluate  how good a program is                              evo.runs.evaluate, evo.runs.dataset
    accept    whether a better child replaces the best program   evo.runs.accept

A run without a barrier between its generations has a machine of its own, `evo.runs.steady`.

Steps are not state: each line is folded into the state, `evo.runs.state`, before it is handed
over. After a kill the generation begins anew, and what is logged of it is not asked for again.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

import msgspec

from evo.filters.base import Filter
from evo.logs.means import confirmed_fitness
from evo.logs.records import Child, Evaluation, Generation, Header, Line, Outcome, Plan
from evo.models.client import Call, EndpointRefused
from evo.models.embeddings import NoEmbedding
from evo.prompt import public_metrics
from evo.runs import items
from evo.runs.ask import Asks, child_seed, failure_of, program_in
from evo.runs.evaluate import plain
from evo.runs.flow import Flow
from evo.runs.items import Item, Prompt, ScreenItem, Step
from evo.runs.planning import Planner
from evo.runs.screening import screened
from evo.runs.state import State, program_digest, program_of
from evo.searches.base import Member, Place, choose


class Evaluates(Protocol):
    """Evaluates a program."""

    def __call__(
        self, program: str, state: State, prompt: Prompt | None = None
    ) -> Step[Evaluation]:
        """Returns the evaluation; the prompt is a child's."""
        ...


@dataclass(frozen=True)
class Steps:
    """The steps of a generation.

    Attributes:
        plan: Says what each child is asked for.
        ask: Asks a model for a child.
        evaluate: Evaluates a program.
        filters: Refuse programs without an evaluation.
        race: Evaluates all new texts of a generation together before its children are made; None:
            each is evaluated as soon as its reply is there.
        advise: Asks a model for advice, which the prompts then show, where it is due.
        accept: Returns whether a child that is better replaces the best program so far; None: it
            always does.
    """

    plan: Planner
    ask: Asks
    evaluate: Evaluates
    filters: Sequence[Filter] = ()
    race: Callable[[Sequence[Prompt], State, Sequence[Filter]], Step[None]] | None = None
    advise: Callable[[State], Step[None]] | None = None
    accept: Callable[[Outcome, State], Step[bool]] | None = None


class Machine:
    """Makes the generations of a run, one after another, out of work that others do.

    It is not thread-safe: whoever drives it from several threads holds one lock around each call.

    Attributes:
        state: What the run knows.
        seconds: How long the generation under way has taken so far, as the driver says.
        denied: Children of the generation under way for which the endpoint refused every call.
        has_room: Says without a barrier, before each child, whether it may be planned.
    """

    def __init__(self, state: State, stamp: Callable[[Line], Line] = lambda line: line) -> None:
        """Makes the machine of a run.

        Args:
            state: What its log holds, folded.
            stamp: Returns a line as it is logged, such as with the prices of a call.
        """
        self.state, self.seconds = state, 0.0
        self._stamp = stamp
        self._flow = Flow()
        self._lines: list[Line] = []
        self.denied: list[Child] = []
        self.has_room: Callable[[], bool] = lambda: True
        self._evaluations: dict[Place, Evaluation] = {}  # told, not made here

    @property
    def begun(self) -> int:
        """How many generations were begun, those that are complete included."""
        return self.state.generation + (not self.idle)

    @property
    def wants_more(self) -> bool:
        """Whether a further generation can begin while children are under way; here never."""
        return False

    @property
    def idle(self) -> bool:
        """Whether no work is under way and none can be handed out."""
        return self._flow.idle

    @property
    def ready(self) -> int:
        """How many items can be handed out."""
        return self._flow.ready

    @property
    def failure(self) -> Exception | None:
        """What ended the generation under way, such as an endpoint that refuses."""
        return self._flow.failure

    def drain(self) -> None:
        """Lets no further call of this generation begin; replies that are there are evaluated."""
        self._flow.draining = True

    def begin(self, steps: Steps) -> list[Line]:
        """Begins the next generation, or what earlier sessions left of it; returns new lines.

        Nothing else begins a generation.
        """
        if not self.idle:
            raise RuntimeError("begin: expected a run of which nothing is under way")
        self._reset()
        self._flow.start(self._generation(steps))
        return self.take_lines()

    def _reset(self) -> None:
        """Forgets what an earlier generation left."""
        self._flow = Flow()
        self.denied.clear()
        self._evaluations.clear()

    def ask(self, count: int = 1, kind: type[Item] | None = None) -> list[Item]:
        """Returns at most so many items of work that are ready, all of one kind if it is named."""
        return self._flow.ask(count, kind)

    def tell(
        self,
        item: Item,
        result: object,
        *,
        evaluation: Evaluation | None = None,
        seconds: float | None = None,
    ) -> list[Line]:
        """Takes what came of an item and returns the lines to log, which the state has taken.

        Args:
            item: An item that `ask` returned.
            result: Its result; an exception where it failed, was refused or cancelled.
            evaluation: With the result of a `Call`: how good its program is, where somebody else
                found that out.
            seconds: How long the generation has taken so far.
        """
        if evaluation is not None and isinstance(item, items.CallItem):
            self._evaluations[item.prompt.place] = evaluation
        self.seconds = self.seconds if seconds is None else seconds
        self._flow.tell(item, result)
        self._plan_more()
        return self.take_lines()

    def _plan_more(self) -> None:
        """Plans children for which there is room now; a whole generation is planned at once."""

    def log(self, line: Line) -> None:
        """Folds a line into the state, and keeps it to be handed over."""
        line = self._stamp(line)
        self.state.take(line)
        self._lines.append(line)

    def take_lines(self) -> list[Line]:
        """Returns the lines that were logged since they were last handed over."""
        lines, self._lines = self._lines, []
        return lines

    def _generation(self, steps: Steps) -> Step[None]:
        """Makes a generation.

        EndpointRefused: the endpoint refused every child for good, and none of them is logged.
        """
        state = self.state
        # Of a fork, the original's settings up to where it left.
        header = state.header.at_generation(number := state.generation + 1)
        if steps.advise is not None:
            yield from steps.advise(state)
        prompts = steps.plan(state)
        if header.is_planned and state.plan is None:
            self.log(Plan(generation=number, requests=tuple(p.planned for p in prompts)))
        if steps.race is not None:
            yield from steps.race(prompts, state, steps.filters)
        left = [prompt for prompt in prompts if prompt.place[1] not in state.children]
        archive = state.programs() if steps.filters else ()
        yield [self._child(prompt, steps, archive) for prompt in left]
        self._log_denied(of=len(prompts))

        children = [state.children[index] for index in range(header.children)]
        rival = choose(children, state.best_fitness, header.min_improvement, fitness_of)
        if rival is not None and steps.accept is not None:
            accepted = yield from steps.accept(rival, state)
            rival = rival if accepted else None
        self.log(generation_line(state, children, rival, self.seconds))

    def _child(self, prompt: Prompt, steps: Steps, archive: Sequence[Member]) -> Step[None]:
        """Makes one child and logs it, unless the endpoint refused it for good."""
        state = self.state
        header = state.header.at_generation(prompt.place[0])
        call = yield from steps.ask(prompt, state)
        program = program_in(call, prompt, header)
        reason, compared = None, True
        if program is not None and steps.filters:
            try:
                reason = yield from screened(program, steps.filters, archive, prompt.place)
            except NoEmbedding as error:
                reason, compared = str(error), False
        if program is None:
            evaluation = failure_of(call, prompt, header)
        elif reason is not None:
            evaluation = Evaluation(status="rejected", error=reason)
        elif (told := self._evaluations.pop(prompt.place, None)) is not None:
            evaluation = told
        else:
            evaluation = yield from steps.evaluate(program, state, prompt)
        kept_out = ""
        if program is not None and any(hasattr(each, "after") for each in steps.filters):
            kept_out = yield from keep_out(program, evaluation, steps.filters, archive, header)
        # The endpoint refused the child's own request for good; or there is a program, but its
        # evaluation asks the model itself and none of those requests got an answer, or it has no
        # embedding.
        unanswered = not compared or (program and evaluation.status == "no_reply")
        refused = call.rejected is not None or unanswered
        self._finish(MadeChild(prompt, call, program, evaluation, bool(refused), kept_out))

    def _finish(self, made: MadeChild) -> None:
        """Logs a child, or puts it by if the endpoint refused it for good."""
        child = child_line(made, self.state)
        if made.refused:
            self.denied.append(child)
        else:
            self.log(child)

    def _log_denied(self, *, of: int) -> None:
        """Logs the children that the endpoint refused for good, unless it refused all of them."""
        made = map(program_of, self.state.children.values())
        silent = sum(map(self._tells_nothing, made))
        if self.denied and len(self.denied) + silent == of:
            raise EndpointRefused(self._refusal(self.denied[0]))
        for child in self.denied:
            self.log(child)

    def _tells_nothing(self, program: str | None) -> bool:
        """Whether a child has no program, where it was embeddings of programs that were denied."""
        return program is None and all(c.evaluation.status == "rejected" for c in self.denied)

    def _refusal(self, first: Child) -> str:
        """Returns why no child of a generation was logged, in words."""
        if first.evaluation.status == "rejected":
            return (
                f"no program of generation {first.generation} can be compared: "
                f"{first.evaluation.error}; none of their children was logged, so the run can go "
                "on once that is mended"
            )
        asked = self.state.header.with_model(first.model).model
        if asked.way == "function" and not first.program:
            return (
                f"the function of the model {asked.name!r} raised an error in every call of "
                f"generation {first.generation}: {first.evaluation.error}; no child of it was "
                "logged, so the same call goes on there, or evo.resume(LOG, model="
                f"{asked.name}) with the function as it is once you have edited it. To have a call "
                "made again within the run, raise evo.TryAgain(seconds=2)"
            )
        return (
            f"the model refused every child of generation {first.generation}: "
            f"{first.evaluation.error}; no child of it was logged, so the run can go on once that "
            "is mended"
        )


def keep_out(
    program: str,
    evaluation: Evaluation,
    filters: Sequence[Filter],
    archive: Sequence[Member],
    header: Header,
) -> Step[str]:
    """Returns which filter keeps an evaluated program out of the archive, and why; "": none."""
    if evaluation.fitness is None:
        return ""
    metrics = public_metrics(header.task, evaluation.metrics)
    seen = msgspec.structs.replace(evaluation, metrics=metrics, value=None, audit=None)
    reason: str | None = yield ScreenItem(program, filters, archive, seen)
    return reason or ""


def fitness_of(child: Outcome) -> float | None:
    """Returns the fitness of a child; None if it was kept out of the archive."""
    return None if child.kept_out else child.evaluation.fitness


@dataclass(frozen=True)
class MadeChild:
    """What came of a child.

    Attributes:
        prompt: What it was asked for.
        call: The call for it.
        program: The program in the reply, if there is one.
        evaluation: How good that is, or why there is none.
        refused: Whether the endpoint refused all calls for it.
        kept_out: Which filter keeps it out of the archive, and why; "": none does.
    """

    prompt: Prompt
    call: Call
    program: str | None
    evaluation: Evaluation
    refused: bool = False
    kept_out: str = ""


def child_line(made: MadeChild, state: State) -> Child:
    """Returns the line of a child; of one better than the best so far with its construction."""
    prompt, call, evaluation = made.prompt, made.call, made.evaluation
    header, (generation, index) = state.header.at_generation(prompt.place[0]), prompt.place
    seed = child_seed(header.seed, header.children, generation, index)
    if prompt.request is not None:  # its place is the order in which it is complete
        generation, index = 1 + state.complete // header.children, state.complete % header.children
    fitness, best = evaluation.fitness, state.best_fitness
    better = fitness is not None and (best is None or fitness > best)
    return Child(
        generation=generation,
        index=index,
        seed=seed,
        prompt_hash=prompt.hash,
        attempts=call.attempts,
        evaluation=plain(evaluation),
        parents=prompt.planned.parents,
        operator=prompt.planned.operator,
        draft=call.draft,
        kept_out=made.kept_out,
        model=prompt.planned.model,
        edits=prompt.planned.edits,
        reply=call.reply,
        reasoning=call.reasoning,
        program=made.program,
        value=evaluation.value if better else None,
        request=prompt.request,
        after=prompt.after,
    )


def generation_line(
    state: State, children: Sequence[Outcome], chosen: Outcome | None, seconds: float
) -> Generation:
    """Returns the line of a complete generation, in which a child was chosen or none."""
    number, best = state.generation + 1, state.best.place
    fitness = state.best_fitness
    if chosen is not None:
        best, fitness = (number, chosen.index), chosen.evaluation.fitness
    if state.confirmation is not None:
        fitness = confirmed_fitness(state.confirmation, chosen is not None, fitness)
    new, repeats = dict[bytes, Place](), list[tuple[int, int, int]]()
    for child in children:
        if (program := program_of(child)) is not None:
            digest, place = program_digest(program), (number, child.index)
            first = state.first.get(digest) or new.setdefault(digest, place)
            if first != place:
                repeats.append((child.index, *first))
    return Generation(
        generation=number,
        best_fitness=fitness,
        best=best,
        improved=chosen is not None,
        seconds=seconds,
        repeats=tuple(repeats),
    )
