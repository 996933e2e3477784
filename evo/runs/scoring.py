"""What runs in the sandbox on tasks with a data set: around the program, and the evaluator."""

from __future__ import annotations

import ast
import functools
import json
from collections.abc import Mapping, Sequence

import msgspec

from evo.logs.records import TaskRecord
from evo.logs.several import pack, unpack
from evo.parsing import parsed
from evo.sandbox.compiled import in_python

SCORING = """

def _evo_scores(score={score}):
    import json

    from evo.sandbox.scores import score_instances

    with open({file!r}, encoding="utf-8") as file:
        instances = [json.loads(line) for line in file if line.strip()]

    def scores(outcomes):
        if isinstance(outcomes, str):
            outcomes = json.loads(outcomes)
        return score_instances(score, outcomes, instances, unit={unit!r}, strict={strict!r})

    return scores


{name} = _evo_scores()
"""
"""What the evaluator's source is followed by."""

NOTING = """

def _evo_noted(scores={name}):
    import json

    from {module} import notes

    with open({file!r}, encoding="utf-8") as file:
        instances = [json.loads(line) for line in file if line.strip()]

    def noted(outcomes):
        found = scores(outcomes)
        seen = (
            (found[str(place)], place)
            for place, instance in enumerate(instances)
            if str(place) in found and not instance.get("check")
        )
        number, place = min(seen, default=(None, None))
        if number is None:
            return found
        try:
            words = notes(outcomes[place][1], instances[place])
        except Exception:
            words = ""
        name = instances[place].get("id", str(place + 1))
        return {{**found, "notes": words and f"instance {{name}}: {{words}}"}}

    return noted


{name} = _evo_noted()
"""
"""What that is followed by where the task has notes: they are of the instance that went worst."""

RUNNING = """

def evo_on_instances():
    import json

    function = next((f for f in map(globals().get, {entry!r}) if callable(f)), None)
    if function is None:
        raise NameError("the program defines no function " + " or ".join({entry!r}))
    outcomes, errors = [], []
    for value in json.loads({inputs!r}):
        try:
            outcomes.append(["ok", function(value)])
        except Exception as error:
            errors.append(error)
            outcomes.append(["error", None])
    if len(errors) == len(outcomes):
        raise errors[0]
    return outcomes
"""
"""What a program's source is followed by. It keys the program's randomness, so it stays as it is,
and what came later has texts of its own, the next ones."""

CALLED = """

def evo_called():
    function = next((f for f in map(globals().get, {entry!r}) if callable(f)), None)
    if function is None:
        raise NameError("the program defines no function " + " or ".join({entry!r}))
    harness = {harness!r}
    if not harness:
        return function
    beside = {{"__name__": "harness"}}
    exec(compile(harness, "harness.py", "exec"), beside)
    return lambda *value: beside["harness"](function, *value)
"""
"""The program's function, in the hands of a harness if it has one."""

ON_ALL = """

def evo_on_instances():
    import json

    called, outcomes, errors = evo_called(), [], []
    for place, value in enumerate(json.loads({inputs!r})):
        try:
            outcomes.append(["ok", called(value)])
        except Exception as error:
            if place in {strict!r}:
                error.add_note(f"on the input of instance {{place}}")
                raise
            errors.append(error)
            outcomes.append(["error", None])
    if len(errors) == len(outcomes):
        raise errors[0]
    return outcomes
"""
"""What that is followed by where there are instances."""

ALONE = """

def evo_alone():
    return evo_called()()
"""
"""What that is followed by where there are none, and a harness or a program in another language."""


ON_LUCK = """

def evo_on_luck(names={entry!r}, luck={luck!r}):
    import hashlib
    from evo.sandbox.purity import seed_everything

    def lucky(function):
        tried = []

        def on_instance(*values, **named):
            tried.append(None)
            seed_everything(hashlib.sha256(f"{{luck}}/{{len(tried)}}".encode()).digest())
            return function(*values, **named)

        return on_instance

    for name in names:
        if callable(globals().get(name)):
            globals()[name] = lucky(globals()[name])


evo_on_luck()
"""
"""What comes before that in draws from 1 on: an instance's luck is that of no other."""


def is_strict(task: TaskRecord) -> bool:
    """Whether one instance without a score leaves a program without a fitness."""
    return task.scores == "any" and task.missing is None


def strict_places(task: TaskRecord, instances: Sequence[Mapping[str, object]]) -> list[int]:
    """Returns the positions of instances each of which must have a score."""
    return [i for i, each in enumerate(instances) if is_strict(task) and not each.get("check")]


def scoring_task(task: TaskRecord, instances: Sequence[Mapping[str, object]]) -> TaskRecord:
    """Returns the task whose `score` takes what came of all instances."""
    files, stages = dict(task.files), task.stages
    name = "evo_scores" if stages else "score"  # a stage may call the others
    if task.isolation == "separate":
        source = task.files[task.evaluator_file].rstrip() + "\n"
        source += SCORING.format(
            score=task.judging or "score",
            name=name,
            file=task.instances_file,
            unit=task.scores == "unit",
            strict=strict_places(task, instances),
        )
        if task.notes_file and not task.asks_model:
            module = task.notes_file.removesuffix(".py")
            source += NOTING.format(name=name, file=task.instances_file, module=module)
        files[task.evaluator_file] = source
        stages = tuple(msgspec.structs.replace(each, function=name) for each in stages)
    return msgspec.structs.replace(
        task,
        files=files,
        stages=stages,
        hash=f"{task.hash} on instances",
        entry=("evo_on_instances",),
    )


def program_source(
    task: TaskRecord,
    program: str,
    instances: Sequence[Mapping[str, object]],
    *,
    draw: int,
    seed: int,
) -> str:
    """Returns what runs a program on every instance, on its own luck from draw 1 on."""
    if task.wrapped:
        program = in_python(task.language, program)
    harness = task.files[task.harness_file] if task.harness_file else ""
    luck = ON_LUCK.format(entry=task.entry, luck=f"{task.hash}/{seed}/{draw}") if draw else ""
    inputs = json.dumps([instance["input"] for instance in instances])
    apart, strict = is_apart(harness), strict_places(task, instances)
    if instances and not apart and not strict:
        running = harness + luck + RUNNING.format(entry=task.entry, inputs=inputs)
    else:
        called = CALLED.format(entry=task.entry, harness=harness if apart else "")
        running = ("" if apart else harness) + luck + called
        running += ON_ALL.format(inputs=inputs, strict=strict) if instances else ALONE
    if not task.program_files:
        return f"{program.rstrip()}\n\n{running}"
    files = unpack(program)  # the first is the one that runs
    first = next(iter(files))
    return pack({**files, first: f"{files[first].rstrip()}\n\n{running}"})


@functools.lru_cache(64)
def is_apart(harness: str) -> bool:
    """Whether a harness is a module with a function `harness(function, input)`.

    Another one is run after the program, as if it stood below it, and may define the entry.
    """
    return any(
        isinstance(node, ast.FunctionDef) and node.name == "harness"
        for node in parsed(harness).body
    )


def alone_task(task: TaskRecord) -> TaskRecord:
    """Returns a task without a data set whose programs are called by its harness."""
    return msgspec.structs.replace(task, hash=f"{task.hash} by harness", entry=("evo_alone",))
