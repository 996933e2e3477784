"""The first prompt of a run, made as the run makes it, before a model is paid for any child."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import msgspec

from evo.logs.records import Header, Initial, InstanceCall
from evo.runs.evaluate import DrawEvaluator, plain
from evo.runs.judge import draw_of, evaluate_alone, needs_no_session
from evo.runs.planning import Planner
from evo.runs.resources import open_resources
from evo.runs.state import State

if TYPE_CHECKING:
    from evo.logs.records import Evaluation
    from evo.prompt import Message
    from evo.runs.settings import Settings


@dataclass(frozen=True)
class First:
    """What a run begins with.

    Attributes:
        evaluation: That of the program that its first child rewrites.
        messages: What the model is sent for that child.
    """

    evaluation: Evaluation
    messages: tuple[Message, ...]


def first_of(header: Header, settings: Settings, program: str | None = None) -> First:
    """Evaluates the initial program as a run does, and returns what its first child is asked.

    Args:
        header: The run's configuration.
        settings: How its session works.
        program: Another program to begin with (default: the task's own).

    Raises:
        EndpointError: The model of an evaluation does not answer, or refuses.
        ValueError: The search asks for what cannot be.
    """
    task = header.task
    text = task.files[task.program_file] if program is None else program
    evaluation, calls = _evaluated(header, settings, text)
    files = {**task.files, task.program_file: text}
    state = State(msgspec.structs.replace(header, task=msgspec.structs.replace(task, files=files)))
    for line in (*calls, Initial(evaluation=plain(evaluation))):
        state.take(line)
    planner = Planner()
    if header.asynchronous:
        prompt = planner.prompt(state, planner.request(state, 0))
    else:
        prompt = planner(state)[0]
    return First(evaluation, tuple(prompt.messages))


def _evaluated(
    header: Header, settings: Settings, program: str
) -> tuple[Evaluation, list[InstanceCall]]:
    """Returns the mean over the run's draws, and the calls that were made for it."""
    calls: list[InstanceCall] = []
    if needs_no_session(header.task) and header.draws == 1:
        return evaluate_alone(header.task, program, header.limits), calls
    with open_resources(replace(settings, progress=False)) as resources:
        draw, _ = draw_of(header, resources, calls.append)
        return DrawEvaluator(header, draw).mean(program), calls
