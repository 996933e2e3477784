"""The data set of a task, as the files of a log or a folder hold it."""

from __future__ import annotations

import json

from evo.logs import examples
from evo.logs.caps import cap
from evo.logs.records import TaskRecord
from evo.logs.types import JsonObject
from evo.tasks.folder import TaskError

ELEMENTS = 8
"""Elements of a log's line that are reserved for each instance, which has up to four."""


def read_instances(task: TaskRecord) -> list[JsonObject]:
    """A task's data set: JSON objects, each with an `id` of its own, a text.

    An instance has a `prompt`, what the model is asked, if a text evolves; else an `input`, what
    the program's function is given, or the task says which `column` that is. All else is for the
    evaluator.
    """
    asks = task.asks_model
    plain = "prompt" if asks else "input"
    needed, example = task.column or plain, examples.minimal(examples.INSTANCES[plain])
    free = task.given_text and not task.column
    found: dict[str, JsonObject] = {}
    for number, line in enumerate(task.files[task.instances_file].split("\n"), start=1):
        if not line.strip():
            continue
        where = f"{task.instances_file}:{number}"
        try:
            instance = json.loads(line)
        except (ValueError, RecursionError) as error:
            raise TaskError(f"{where}: not JSON: {error}; {example}") from None
        sound = isinstance(instance, dict) and (free or needed in instance)
        if not sound or (asks and not isinstance(instance[needed], str)):
            what = "a text" if asks else "any value"
            raise TaskError(
                f"{where}: expected an object with a key {needed!r}, {what}, got {line[:80]}; "
                f"{example}"
            )
        if not free:
            instance[plain] = instance[needed]
        name = instance.setdefault("id", str(len(found) + 1))
        if isinstance(name, int):
            name = instance["id"] = str(name)
        if not isinstance(name, str) or name in found:
            raise TaskError(f"{where}: expected an id of its own, a text, got {name!r}")
        found[name] = instance
    if len(found) > (most := cap("EVO_MAX_ELEMENTS") // ELEMENTS):
        raise TaskError(
            f"{task.instances_file}: {len(found):,} instances, expected at most {most:,}, so that "
            "a line of a log holds a score of each; take a part of them, such as "
            f"evo.load_task(TASK, instances={most:_})"
        )
    if not found:
        raise TaskError(
            f"{task.instances_file}: expected at least one instance, a line each; {example}"
        )
    return list(found.values())


def calls_of_evaluation(task: TaskRecord) -> int:
    """Returns the calls of an evaluation: one per instance that is not held out."""
    if not task.asks_model:
        return 0
    return sum(not each.get("check") for each in read_instances(task))


def checks_of(task: TaskRecord) -> int:
    """Returns the number of held-out instances."""
    return len(read_instances(task)) - calls_of_evaluation(task) if task.asks_model else 0
