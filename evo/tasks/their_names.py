"""Arguments by the names that other tools have for them, which messages answer with ours."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import ParamSpec, TypeVar

from evo.plugins import MistakenType, meant

P = ParamSpec("P")
R = TypeVar("R")

_IN_TASK = "a task has it, evo.task(name, initial_program=..., evaluate=f)"
_ROWS = "a task has them, evo.task(..., instances=rows, held_out=rows)"
_STEPS = "generations= and children=, whose product is the number of calls"

OF_RUNS = {
    "iterations": _STEPS,
    "max_iterations": _STEPS,
    "num_generations": "generations=",
    "max_generations": "generations=",
    "evaluator": _IN_TASK,
    "evaluate": _IN_TASK,
    "initial_program": _IN_TASK,
    "seed_candidate": _IN_TASK,
    "objective": "statement=",
    "dataset": _ROWS,
    "trainset": _ROWS,
    "valset": _ROWS,
    "instances": _ROWS,
    "target_score": "target=",
    "output_dir": "log=, of several runs log_dir=",
    "run_dir": "log=, of several runs log_dir=",
    "checkpoint_path": "log=: the same call again goes on where its log was",
    "max_metric_calls": 'budget={"calls": ...}',
    "reflection_lm": "model=",
    "llm": "model=",
    "llm_models": "models=",
    "candidate_selection_strategy": 'search="pareto", or another of evo.SEARCHES',
    "population_size": "search=evo.searches.Population(size=...)",
    "num_islands": "search=evo.searches.Islands(...)",
    "async_batch_size": "batches=",
    "max_concurrent_requests": "max_concurrent=",
    "max_concurrent_genomes": "texts_at_once=",
    "rate_limit_per_minute": "requests_per_minute=",
}
"""What arguments of runs are called here."""

OF_TASKS = {
    "objective": "statement=",
    "background": "statement=, in one text with what the program is for",
    "system_message": "statement=",
    "task_sys_msg": "statement=",
    "description": "statement=",
    "evaluator": "evaluate=",
    "evaluation_function": "evaluate=",
    "evaluation_file": "evaluate=Path(...)",
    "metric": "evaluate=",
    "fitness": "evaluate=",
    "seed_candidate": "initial_program=",
    "initial_program_path": "initial_program=Path(...)",
    "program": "initial_program=",
    "dataset": "instances=",
    "data": "instances=",
    "trainset": "instances=",
    "valset": "held_out=, which checks the program that was found and chooses none",
    "testset": "held_out=",
    "model": "asks= for the model that answers the rows; evo.run(task, model=...) has the one that "
    "rewrites the program",
}
"""What arguments of a task are called here."""


def of_runs(name: str) -> str:
    """Returns what an argument of a run is called here, as the end of a message, or nothing."""
    return f"; here: {OF_RUNS[name]}" if name in OF_RUNS else ""


def answers_others_names(function: Callable[P, R]) -> Callable[P, R]:
    """Decorates `evo.task`: an argument that it has not is answered with the one that is meant."""
    known = inspect.signature(function).parameters

    @functools.wraps(function)
    def named(*args: P.args, **options: P.kwargs) -> R:
        for name in options:
            if name not in known:
                hint = f"; here: {OF_TASKS[name]}" if name in OF_TASKS else meant(name, known)
                raise MistakenType(
                    f"{function.__name__}: unknown argument {name!r}{hint} "
                    f"(known: {', '.join(known)})"
                )
        return function(*args, **options)

    return named
