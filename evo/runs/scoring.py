"""What runs in the sandbox on tasks with a data set: around the program, and the evaluator."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence

import msgspec

from evo.logs.records import TaskRecord

INVALID, FAILED = -1.0, -2.0  # how the evaluator's process marks an instance without a score

SCORING = """

def _evo_scores(score=score):
    import json

    with open({file!r}, encoding="utf-8") as file:
        instances = [json.loads(line) for line in file if line.strip()]

    def one(value, instance, found):
        try:
            number = float(score(value, instance))
        except ValueError:
            return {invalid}
        except Exception as error:
            found.append(error)
            return {failed}
        if not 0 <= number <= 1:
            found.append(TypeError(f"score(value, instance): expected 0 to 1, got {{number!r}}"))
            return {failed}
        return number

    def scores(outcomes):
        if isinstance(outcomes, str):
            outcomes = json.loads(outcomes)
        found = []
        numbers = {{
            str(place): one(outcome[1], instance, found)
            for place, (outcome, instance) in enumerate(zip(outcomes, instances, strict=True))
            if outcome[0] == "ok"
        }}
        if found and len(found) == len(numbers):
            raise found[0]
        return {{"fitness": 0.0, **numbers}}

    return scores


score = _evo_scores()
"""
"""What the evaluator's source is followed by."""

NOTING = """

def _evo_noted(scores=score):
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


score = _evo_noted()
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
"""What a program's source is followed by."""


ON_LUCK = """

def evo_on_luck(names={entry!r}, luck={luck!r}):
    import hashlib
    from evo.sandbox.purity import seed_everything

    def lucky(function):
        tried = []

        def on_instance(value):
            tried.append(None)
            seed_everything(hashlib.sha256(f"{{luck}}/{{len(tried)}}".encode()).digest())
            return function(value)

        return on_instance

    for name in names:
        if callable(globals().get(name)):
            globals()[name] = lucky(globals()[name])


evo_on_luck()
"""
"""What comes before that in draws from 1 on: an instance's luck is that of no other."""


def scoring_task(task: TaskRecord) -> TaskRecord:
    """Returns the task whose `score` takes what came of all instances."""
    source = task.files[task.evaluator_file].rstrip() + "\n"
    source += SCORING.format(file=task.instances_file, invalid=INVALID, failed=FAILED)
    if task.notes_file and not task.asks_model:
        module = task.notes_file.removesuffix(".py")
        source += NOTING.format(file=task.instances_file, module=module)
    return msgspec.structs.replace(
        task,
        files={**task.files, task.evaluator_file: source},
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
    inputs = json.dumps([instance["input"] for instance in instances])
    harness = task.files[task.harness_file] if task.harness_file else ""
    luck = ON_LUCK.format(entry=task.entry, luck=f"{task.hash}/{seed}/{draw}") if draw else ""
    running = RUNNING.format(entry=task.entry, inputs=inputs)
    return f"{program.rstrip()}\n\n{harness}{luck}{running}"
