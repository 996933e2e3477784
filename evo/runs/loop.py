"""One generation of a run: plan, ask, parse, filter, evaluate, choose, accept, log.

`advance` is the whole algorithm. Its steps are objects that the run was given, so a capability such
as drafts, draws or confirmation is one file, and a run without it does not pass through it:

    plan      what each child is asked for, from the archive     evo.runs.planning
    ask       a model's reply to that                            evo.runs.ask
    filters   why a program is refused without an evaluation     evo.filters
    evaluate  how good a program is                              evo.runs.evaluate, evo.runs.dataset
    accept    whether a better child replaces the best program   evo.runs.accept

Filters, a race and confirmation are optional. Nothing is remembered here: each line that
is logged is folded into the state, `evo.runs.state`.
"""

from __future__ import annotations

import functools
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Protocol, TypeVar

from evo.filters.base import Filter, refusal
from evo.logs.records import Child, Evaluation, Generation, Line, Outcome, Plan
from evo.models.client import Call, EndpointRefused
from evo.runs.accept import confirmed_fitness
from evo.runs.ask import Asks, child_seed, failure_of, program_in
from evo.runs.evaluate import plain
from evo.runs.planning import Prompt
from evo.runs.state import State, program_digest, program_of
from evo.searches.base import Place, choose

T = TypeVar("T")


class Evaluates(Protocol):
    """Evaluates a program."""

    def __call__(self, program: str, state: State) -> Evaluation:
        """Returns the evaluation."""
        ...


class Each(Protocol):
    """Calls a function with each item, several at a time, and ends all at the first failure."""

    def __call__(self, function: Callable[[T], object], items: Iterable[T]) -> None:
        """Returns once all are done."""
        ...


Screen = Callable[[str], str | None]
"""Returns why the filters refuse a program, or None."""


@dataclass(frozen=True)
class Steps:
    """The steps of a generation.

    Attributes:
        plan: Returns what each child of the next generation is asked for.
        ask: Asks a model for a child.
        evaluate: Evaluates a program.
        filters: Refuse programs without an evaluation.
        race: Evaluates all new texts of a generation together before its children are made; None:
            each is evaluated as soon as its reply is there.
        accept: Returns whether a child that is better replaces the best program so far; None: it
            always does.
    """

    plan: Callable[[State], list[Prompt]]
    ask: Asks
    evaluate: Evaluates
    filters: Sequence[Filter] = ()
    race: Callable[[Sequence[Prompt], State, Each, Screen | None], None] | None = None
    accept: Callable[[Outcome, State], bool] | None = None


def advance(state: State, steps: Steps, log: Callable[[Line], None], each: Each) -> None:
    """Makes the next generation of a run, or what earlier sessions left of it.

    Args:
        state: What the run knows; `log` adds to it.
        steps: What to do at each step.
        log: Appends a line to the log and folds it into the state.
        each: Does the work on several children at a time.

    Raises:
        EndpointRefused: The endpoint refused every child for good; none of them is logged.
    """
    number = state.generation + 1
    began = time.monotonic() - state.seconds  # so that the time of earlier sessions is counted
    header = state.header.under(number)  # of a fork, the original's settings up to the fork
    denied = list[Child]()

    prompts = steps.plan(state)
    # Greedy search, `search` None, always rewrites the best program: there is no plan to log.
    if (header.search is not None or header.models) and state.plan is None:
        log(Plan(generation=number, requests=tuple(prompt.planned for prompt in prompts)))
    screen: Screen | None = None
    if steps.filters:
        screen = functools.partial(refusal, filters=steps.filters, archive=state.programs)

    def make(prompt: Prompt) -> None:
        call = steps.ask(prompt, state)
        program = program_in(call, prompt, header)
        if program is None:
            evaluation = failure_of(call, prompt, header)
        elif screen is not None and (reason := screen(program)) is not None:
            evaluation = Evaluation(status="rejected", error=reason)
        else:
            evaluation = steps.evaluate(program, state)
        child = child_line(prompt, call, program, evaluation, state)
        # The endpoint refused the child's own request for good; or there is a program, but its
        # evaluation asks the model itself and none of those requests got an answer.
        if call.rejected is not None or (program and evaluation.status == "no_reply"):
            denied.append(child)
        else:
            log(child)

    if steps.race is not None:
        steps.race(prompts, state, each, screen)
    each(make, [prompt for prompt in prompts if prompt.place[1] not in state.children])
    log_denied(denied, log, of=len(prompts))

    children = [state.children[index] for index in range(header.children)]
    rival = choose(children, state.best_fitness, header.min_improvement, fitness_of)
    if rival is not None and steps.accept is not None and not steps.accept(rival, state):
        rival = None
    seconds = time.monotonic() - began
    log(generation_line(state, children, rival, seconds))


def log_denied(denied: Sequence[Child], log: Callable[[Line], None], *, of: int) -> None:
    """Logs the children that the endpoint refused for good, unless it refused all of them."""
    if len(denied) == of:
        raise EndpointRefused(
            f"the model refused every child of generation {denied[0].generation}: "
            f"{denied[0].evaluation.error}; no child of it was logged, so the run can go on once "
            "that is mended"
        )
    for child in denied:
        log(child)


def fitness_of(child: Outcome) -> float | None:
    """Returns the fitness of a child."""
    return child.evaluation.fitness


def child_line(
    prompt: Prompt, call: Call, program: str | None, evaluation: Evaluation, state: State
) -> Child:
    """Returns the line of a child; of one better than the best so far with its construction."""
    header, (generation, index) = state.header.under(prompt.place[0]), prompt.place
    fitness, best = evaluation.fitness, state.best_fitness
    better = fitness is not None and (best is None or fitness > best)
    return Child(
        generation=generation,
        index=index,
        seed=child_seed(header.seed, header.children, generation, index),
        prompt_hash=prompt.hash,
        attempts=call.attempts,
        evaluation=plain(evaluation),
        parents=prompt.planned.parents,
        operator=prompt.planned.operator,
        draft=call.draft,
        model=prompt.planned.model,
        reply=call.reply,
        reasoning=call.reasoning,
        program=program,
        value=evaluation.value if better else None,
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
