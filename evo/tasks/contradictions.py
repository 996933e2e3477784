"""Keys of a task that cannot stand together."""

from __future__ import annotations

import math

from evo.logs.languages import LANGUAGES
from evo.logs.records import TaskRecord
from evo.tasks.folder import TaskError
from evo.tasks.instances import read_instances


def check_record(record: TaskRecord, where: str) -> None:
    """Raises TaskError where the keys of a task contradict each other."""

    def refuse(when: object, words: str) -> None:
        if when:
            raise TaskError(f"{where}: {words}")

    name = record.name
    refuse(
        not name or "/" in name or "\\" in name or name.startswith(".") or not name.isprintable(),
        "key 'name': expected a plain name, since it begins the names of logs, got "
        f"{record.name!r}",
    )
    refuse(
        record.language and record.language not in LANGUAGES,
        f"key 'language': expected one of {', '.join(LANGUAGES)}, or none for Python, got "
        f"{record.language!r}",
    )
    refuse(
        record.language and (record.evolves == "text" or record.program_files),
        "key 'language': this is for a program of one file; a text has none",
    )
    critic, shared = record.score == "critic", record.isolation == "shared"
    refuse(
        record.isolation == "separate" and record.evolves == "python" and not record.entry,
        "expected a key `entry` that names the function of the program to call, for instance "
        "entry = ['solve']; the evaluator's score(value) is given what it returns",
    )
    by_path = "fitness_key: this is for an evaluator that is given a path, evaluate(program_path)"
    refuse(record.fitness_key and not shared, by_path)
    scored = record.critic or record.rubric
    refuse(scored and not critic, 'critic, rubric: these need score = "critic"')
    refuse(
        critic and (not record.asks_model or record.evaluator_file),
        'score = "critic" is for a text that evolves on a data set, instances = "FILE", without '
        "an evaluator",
    )
    refuse(
        record.instances_file and shared,
        "instances need a function score(value, instance), and no isolation 'shared'",
    )
    batches = "stages: a text on a data set is tried in growing batches of it, batches=, instead"
    refuse(record.stages and record.asks_model, batches)
    refuse(
        record.program_files and record.asks_model,
        "program: a model is asked instances under one text; a function here may ask under each",
    )
    refuse(record.harness_file and record.asks_model, "a harness is for programs, a text evolves")
    harness = record.files.get(record.harness_file, "")
    refuse(
        harness and not record.instances_file and "def harness(" not in harness,
        "a harness without a key 'instances' is a module with a function harness(function)",
    )
    refuse(
        record.missing is not None and (record.scores == "unit" or not record.instances_file),
        'missing: this is for a data set whose scores are any numbers, scores = "any"',
    )
    refuse(
        record.missing is not None and not math.isfinite(record.missing),
        f"missing: expected a finite number, got {record.missing!r}",
    )
    if record.instances_file and all(each.get("check") for each in read_instances(record)):
        raise TaskError(f"{record.instances_file}: all instances are for checking, none to try")
