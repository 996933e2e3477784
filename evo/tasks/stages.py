"""Stages of an evaluator, from cheap to thorough: where they are found, and what each is."""

from __future__ import annotations

import ast
import math
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import msgspec

from evo.logs.records import Bar, Isolation, Limits, StageRecord, TaskRecord
from evo.logs.types import JsonObject
from evo.parsing import parsed
from evo.tasks.folder import TaskConfig, TaskError

CASCADE = tuple(f"evaluate_stage{number}" for number in (1, 2, 3))
"""The functions of OpenEvolve's cascades."""

CASCADE_THRESHOLDS = (0.5, 0.75, 0.9)
"""Its thresholds, where a config.yaml states no others."""


class FoundStages(NamedTuple):
    """The stages in an evaluator's source: an expression for each, and their isolation."""

    functions: tuple[str, ...]
    isolation: Isolation


def stages_in(where: str, source: str) -> FoundStages | None:
    """Returns the stages that an evaluator states, `stages = [...]` or OpenEvolve's, or None.

    Raises:
        TaskError: `stages` is no list of at least two names of functions.
    """
    try:
        body = parsed(source).body
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None  # which is said elsewhere
    functions = {
        node.name: node for node in body if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
    }
    for node in body:
        if isinstance(node, ast.Assign) and [ast.unparse(each) for each in node.targets] == [
            "stages"
        ]:
            listed = node.value.elts if isinstance(node.value, ast.List | ast.Tuple) else []
            names = [each.id for each in listed if isinstance(each, ast.Name)]
            if len(names) < 2 or len(names) < len(listed):
                raise TaskError(
                    f"{where}: stages: expected a list of two or more functions by name, such as "
                    f"stages = [cheap, thorough], got {ast.unparse(node.value):.80}"
                )
            first = functions.get(names[0])
            by_path = first is not None and [a.arg for a in first.args.args][:1] == ["program_path"]
            return FoundStages(tuple(names), "shared" if by_path else "separate")
    if CASCADE[0] not in functions:
        return None
    count = next((k for k, name in enumerate(CASCADE) if name not in functions), len(CASCADE))
    return FoundStages(CASCADE[:count], "shared")


def cascade_of(config: Mapping[str, object]) -> tuple[float, ...] | None:
    """Returns the thresholds of an OpenEvolve configuration; None: its cascade is off."""
    evaluator = config.get("evaluator")
    evaluator = evaluator if isinstance(evaluator, Mapping) else {}
    if not evaluator.get("cascade_evaluation", True):
        return None
    given = evaluator.get("cascade_thresholds", CASCADE_THRESHOLDS)
    if not isinstance(given, Sequence) or not given:
        return CASCADE_THRESHOLDS
    return tuple(float(each) for each in given if isinstance(each, int | float))


def stages_of(
    where: str, source: str, config: TaskConfig, cascade: JsonObject
) -> tuple[tuple[StageRecord, ...], Isolation] | None:
    """Returns the stages of a folder's evaluator and their isolation; None: it has none.

    Args:
        where: What error messages begin with.
        source: The evaluator.
        config: The task.toml.
        cascade: OpenEvolve's config.yaml, empty if there is none.

    Raises:
        TaskError: They do not fit the thresholds.
    """
    found = stages_in(where, source)
    thresholds: Sequence[Bar] | None = config.thresholds
    if found is not None and not thresholds and found.functions[0] == CASCADE[0]:
        thresholds = cascade_of(cascade)
    if found is None or thresholds is None:
        if config.thresholds or config.stage_limits:
            raise TaskError(
                f"{where}: thresholds and stage_limits need stages, such as "
                "stages = [cheap, thorough]"
            )
        return None
    return stage_records(where, found.functions, thresholds, config.stage_limits), found.isolation


def stage_records(
    where: str,
    functions: Sequence[str],
    thresholds: Sequence[Bar],
    limits: Sequence[Limits],
) -> tuple[StageRecord, ...]:
    """Returns the stages of a task.

    Args:
        where: What error messages begin with.
        functions: The functions, from cheap to thorough.
        thresholds: What admits to the next one, for each but the last.
        limits: The limits of each; none: those of the task.

    Raises:
        TaskError: The numbers do not fit.
    """
    if isinstance(thresholds, str) or not isinstance(thresholds, Sequence):
        raise TaskError(
            f"{where}: thresholds: expected a list, such as [0.5], got {thresholds!r:.80}"
        )
    if functions[0] == CASCADE[0]:  # as there, stages beyond the last threshold are not reached
        functions = functions[: len(thresholds) + 1]
        thresholds = thresholds[: len(functions) - 1]
    if len(thresholds) != len(functions) - 1:
        raise TaskError(
            f"{where}: thresholds: expected {len(functions) - 1}, one for each of the "
            f"{len(functions)} stages but the last, got {list(thresholds)!r}"
        )
    for each in thresholds:
        number = isinstance(each, int | float) and each is not True
        if each != "parent" and not (number and math.isfinite(each)):
            raise TaskError(
                f'{where}: thresholds: expected finite numbers or "parent", got {each!r}'
            )
    if any(each.auto for each in limits):
        raise TaskError(f"{where}: stage_limits: 'auto' is for the limits of a whole evaluation")
    if limits and len(limits) != len(functions):
        raise TaskError(
            f"{where}: stage_limits: expected one for each of the {len(functions)} stages, got "
            f"{len(limits)}"
        )
    return tuple(
        StageRecord(
            function=name,
            threshold=thresholds[place] if place < len(thresholds) else None,
            limits=limits[place] if limits else None,
        )
        for place, name in enumerate(functions)
    )


def stage_task(task: TaskRecord, place: int) -> TaskRecord:
    """Returns the task of which one stage is the whole evaluation."""
    alone, functions = (task.stages[place],), task.functions
    found = msgspec.structs.replace(task, stages=alone, hash=f"{task.hash} stage {place + 1}")
    return found.evaluated_by(functions[place]) if functions else found
