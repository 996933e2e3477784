"""How programs of a task are evaluated, wherever its evaluator runs."""

from __future__ import annotations

import functools
import os
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Literal, Unpack

import msgspec

from evo.logs.caps import with_seconds
from evo.logs.inputs import limits_of, one_of
from evo.logs.noise import differ, in_two_draws, way_out
from evo.logs.records import Evaluation, Header, InstanceCall, Limits, Model, TaskRecord
from evo.models.critics import Critic, Known
from evo.plugins import MistakenType
from evo.policies.rewards import has_unit_scale
from evo.runs.configuration import make_header, settings_of
from evo.runs.dataset import InstanceEvaluator
from evo.runs.evaluate import DrawEvaluator, DrawFunction
from evo.runs.here import Here, evaluate_here
from evo.runs.options import EvaluateOptions
from evo.runs.resources import Resources, open_resources
from evo.runs.scoring import alone_task, program_source
from evo.runs.settings import Settings
from evo.runs.signatures import check_options, lists_options
from evo.runs.stages import Staged
from evo.sandbox import EVALUATOR_FAILED
from evo.tasks.several import program_text
from evo.tasks.stages import stage_task
from evo.tasks.task import Task, load_task


def draw_of(
    header: Header,
    resources: Resources,
    on_call: Callable[[InstanceCall], None] = lambda _: None,
    known: Known | None = None,
) -> tuple[DrawFunction, InstanceEvaluator | None]:
    """Returns what evaluates one draw of a program, and the data set's evaluator if there is one.

    Args:
        header: The configuration of the run.
        resources: What the session shares.
        on_call: Called with each call that an evaluation makes.
        known: Calls that were made before.
    """
    task = header.task
    draw: DrawFunction
    instances: InstanceEvaluator | None = None
    if task.stages:
        tasks = [stage_task(task, place) for place in range(len(task.stages))]
        alone = (msgspec.structs.replace(header, task=each) for each in tasks)
        draw = Staged(tasks, [_draw_of(each, resources, on_call, known)[0] for each in alone])
    else:
        draw, instances = _draw_of(header, resources, on_call, known)
    if has_unit_scale(task) and not task.instances_file:  # else the score of each row is checked
        draw = functools.partial(_on_unit_scale, draw)
    return draw, instances


def _draw_of(
    header: Header,
    resources: Resources,
    on_call: Callable[[InstanceCall], None],
    known: Known | None,
) -> tuple[DrawFunction, InstanceEvaluator | None]:
    """Returns what evaluates a task without stages, or one stage alone."""
    task = header.task
    if task.instances_file:
        instances = InstanceEvaluator(header, resources, on_call, known)
        return instances.evaluate, instances
    run: DrawFunction = resources.evaluator.evaluate
    if has_harness(task):
        run = by_harness(run)
    if task.isolation == "here":
        run = functools.partial(evaluate_here, Here(task, resources.settings.workers), run)
    return run, None


def has_harness(task: TaskRecord) -> bool:
    """Whether programs are called by a harness: the task's own, or that of another language."""
    return bool(task.harness_file or task.wrapped)


def by_harness(run: DrawFunction) -> DrawFunction:
    """Returns what evaluates programs without a data set by their harness, in what `run` does."""
    return functools.partial(_by_harness, run)


def _by_harness(
    run: DrawFunction,
    task: TaskRecord,
    program: str,
    limits: Limits,
    *,
    draw: int = 0,
    seed: int = 0,
) -> Evaluation:
    """Evaluates a program whose function a harness calls, or that is in another language."""
    source = program_source(task, program, (), draw=draw, seed=seed)
    return run(alone_task(task), source, limits, draw=draw, seed=seed)


def _on_unit_scale(
    draw: DrawFunction, task: TaskRecord, program: str, limits: Limits, /, **how: object
) -> Evaluation:
    """Evaluates a draw; a fitness outside of 0 to 1 is a mistake of the evaluator."""
    found = draw(task, program, limits, **how)
    if found.fitness is None or 0 <= found.fitness <= 1:
        return found
    words = (
        f"{EVALUATOR_FAILED}: expected 0 to 1, got {found.fitness!r}; return a fitness from 0 to "
        "1, or make the task without scale='unit' (in a folder without scale in task.toml)"
    )
    return Evaluation(status="error", error=words, seconds=found.seconds, stages=found.stages)


def evaluate_alone(record: TaskRecord, program: str, limits: Limits) -> Evaluation:
    """Evaluates a program of a task that needs no session in this process's own sandbox."""
    from evo import sandbox

    draw = functools.partial(_on_unit_scale, sandbox.evaluate)
    return (draw if has_unit_scale(record) else sandbox.evaluate)(record, program, limits)


def needs_no_session(record: TaskRecord) -> bool:
    """Whether the evaluator alone says how good a program is: one call of it in the sandbox."""
    here = record.isolation == "here"
    return not (record.instances_file or has_harness(record) or here or record.stages)


QUICK_SECONDS = 10.0
"""Evaluations that take no longer are made a second time to find out whether they are noisy."""

FIXED = (
    "the random numbers of an evaluation are fixed by task and program, so that evaluating it "
    "again shows no noise"
)


def noise_words(header: Header, settings: Settings, program: str, found: Evaluation) -> str:
    """Says whether a program has another fitness in another draw; empty where it has not.

    Args:
        header: Configuration of a run; one with `draws` or `confirm` allows for noise, and nothing
            is said where a model is asked, which costs calls.
        settings: How its session works.
        program: What was evaluated.
        found: Its evaluation.
    """
    allowed_for = header.draws > 1 or header.confirm or header.task.asks_model
    if found.status != "ok" or allowed_for:
        return ""
    if found.seconds is None or found.seconds > QUICK_SECONDS:
        return f"evaluated once: {FIXED}"
    with open_resources(replace(settings, progress=False)) as resources:
        draws = DrawEvaluator(header, draw_of(header, resources)[0])
        other = draws.one(program, 1, () if header.task.stages else None)
    if not differ(found, other):
        return ""
    return (
        f"evaluations are noisy: this program has {in_two_draws(found, other)} ({FIXED}); for a "
        f"run {way_out(header)}"
    )


@lists_options(EvaluateOptions)
def evaluate(
    task: str | os.PathLike[str] | Task,
    program: str | Mapping[str, str] | Path,
    *,
    evaluation_timeout: float | Literal["auto"] | None = None,
    timeout: float | Literal["auto"] | None = None,
    limits: Limits | Mapping[str, object] | None = None,
    model: str | Model = "offline",
    critic: str | Model | Critic | None = None,
    **options: Unpack[EvaluateOptions],
) -> Evaluation:
    """Evaluates one program in the sandbox.

    Args:
        task: Name, alias, folder or Task.
        program: Source text, or the text that evolves; of a task with several files also a dict of
            files, where those left out are the initial program's, or the Path of a folder.
        evaluation_timeout: Seconds that the evaluation may take (default: the task's limit).
        timeout: Another name of `evaluation_timeout`.
        limits: All limits, or a dict of those that differ from the task's, as for `evo.run`.
        model: Name in the registry, or a Model; it answers if a text is evaluated on a data set.
        critic: What scores the replies of tasks that ask for a critic (default: the task's own).
        **options: Listed below.

    Raises:
        EndpointError: The model does not answer, or refuses.

    Example:
        >>> task = evo.load_task("mmd")
        >>> evo.evaluate(task, task.initial_program).status
        'ok'
    """
    if not isinstance(program, str | Mapping | Path):
        raise MistakenType(f"program: expected source text, got {program!r}")
    check_options(EvaluateOptions, options, verb=evaluate)
    settings = settings_of(options)
    loaded = load_task(task)
    evaluation_timeout = one_of("evaluation_timeout", evaluation_timeout, "timeout", timeout)
    limits = loaded.limits if limits is None else limits_of(limits, loaded.limits)
    limits = with_seconds(limits, evaluation_timeout)
    record, program = loaded.record, program_text(loaded.record, program)
    if needs_no_session(record):
        return evaluate_alone(record, program, limits)
    header = make_header(loaded, model=model, critic=critic, limits=limits)
    with open_resources(settings) as resources:
        draw, _ = draw_of(header, resources)
        bars = {"bars": ()} if record.stages else {}
        return draw(loaded.record, program, limits, **bars)
