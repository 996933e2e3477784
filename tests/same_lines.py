"""Runs whose lines were recorded once: the same headers must give the same lines ever after.

`tests/evo/runs/same_lines.json.gz` holds about 200 configurations, stratified over tasks, searches,
drafts, critics, filters, confirmation, batches, models, inspirations, feedback, edits and forks,
each with its header (its task by name) and what its run logged at `max_concurrent=1`, in order.
Times are left out, and so are the lines of replies, which stand in a line of their own or in that
of their child, depending on the schema; the children's own texts are compared.

    python tests/same_lines.py      records them anew
"""

from __future__ import annotations

import gzip
import hashlib
import json
import random
import shutil
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import msgspec

import evo
from evo.logs.journal import Reader
from evo.logs.log import line_decoder
from evo.logs.records import (
    SCHEMA,
    Child,
    Confirmation,
    Generation,
    Header,
    Initial,
    InstanceCall,
    Plan,
    RunEnd,
)
from evo.runs.configuration import make_header
from evo.runs.session import RunJob
from evo.runs.settings import Goal, Settings
from evo.runs.verbs import prepare_jobs
from evo.tasks.task import SHIPPED, Task, load_task

RECORDED = Path(__file__).parent / "evo" / "runs" / "same_lines.json.gz"
COUNT = 200
TIMES = {"latency", "seconds", "inherited"}

NOISY = """import random


def value():
    a, b = 0.31, 0.52
    return a * b + 0.1 * random.gauss(0, 1)
"""


def tasks(folder: Path) -> dict[str, Task]:
    """The tasks of the configurations by name; those that are not shipped are written here."""
    noisy = folder / "noisy"
    noisy.mkdir()
    (noisy / "initial_program.py").write_text(NOISY)
    (noisy / "evaluator.py").write_text("def score(value):\n    return {'fitness': value}\n")
    (noisy / "task.toml").write_text("entry = ['value']\n")
    rows = (SHIPPED / "word_problems" / "instances.jsonl").read_text().splitlines()
    problems = folder / "problems"
    shutil.copytree(SHIPPED / "word_problems", problems)
    kept = [*rows[:7], *(json.dumps(json.loads(row) | {"check": True}) for row in rows[7:10])]
    (problems / "instances.jsonl").write_text("\n".join(kept) + "\n")
    unscored = folder / "unscored"
    unscored.mkdir()
    shutil.copy(SHIPPED / "word_problems" / "initial_program.txt", unscored)
    bare = [{k: v for k, v in json.loads(row).items() if k != "answer"} for row in rows[:4]]
    (unscored / "instances.jsonl").write_text("\n".join(map(json.dumps, bare)) + "\n")
    (unscored / "task.toml").write_text(
        'evolves = "text"\ninstances = "instances.jsonl"\nscore = "critic"\ncritic = "offline-2"\n'
        'rubric = "Is the last number the right answer?"\n'
    )
    shipped = ("mmd", "heilbronn_triangle", "online_bin_packing")
    made = {path.name: load_task(path) for path in (noisy, problems, unscored)}
    return made | {name: load_task(name) for name in shipped}


def stratified() -> Iterator[tuple[str, dict[str, Any], int, dict[str, Any]]]:
    """Tasks, options, numbers of generations and changes of a fork, empty where there is none."""
    rng = random.Random(37)
    names = ["mmd"] * 9 + ["heilbronn_triangle"] * 5 + ["noisy"] * 3 + ["problems"] * 4
    names += ["unscored", "online_bin_packing"]
    searches = ["greedy", "best_of_n", "population", "islands", "map_elites", "pareto", "tree"]
    filters = [(), (), ("same_program",), ("near_duplicates",), ("protected_regions",)]
    filters += [("same_program", "near_duplicates")]
    for number in range(COUNT):
        name, search = names[number % len(names)], searches[number % len(searches)]
        dear = name in ("problems", "unscored", "online_bin_packing")
        options: dict[str, Any] = {"search": search, "seed": number}
        options["children"] = rng.choice([1, 2, 3] if dear else [1, 2, 4, 5])
        options["filters"] = rng.choice(filters)
        options["feedback"] = rng.random() < 0.5
        options["inspirations"] = rng.choice([0, 0, 1, 2])
        options["edits"] = rng.choice(["rewrite", "rewrite", "diff"])
        if rng.random() < 0.3:
            options["drafts"] = rng.choice([2, 3])
            options["critic"] = "offline-2"
        if rng.random() < 0.2:
            options["models"] = ["offline", "offline-2"]
            options["model_policy"] = rng.choice(["ucb1", "round_robin", "random"])
        if name == "problems" and rng.random() < 0.5:
            options["batches"] = 2
        elif not dear:
            options["draws"] = rng.choice([1, 1, 2, 3])
        if search == "greedy" and not dear and rng.random() < 0.5:
            options["confirm"], options["spending"] = rng.choice([2, 3]), rng.random() < 0.5
        if rng.random() < 0.2:
            options["min_improvement"] = 0.01
        changes: dict[str, Any] = {}
        if number % 8 == 0:
            changes = rng.choice(
                [
                    {"copies": 2},
                    {"search": "population"},
                    {"feedback": True},
                    {"drafts": 2, "critic": "offline-2"},
                ]
            )
        yield name, options, 2 if dear else 3, changes


def canonical(log: evo.Log) -> list[str]:
    """What a log says, line by line in the order of the file: its kind, its place and a hash."""
    lines = []
    reader = Reader(log.path, line_decoder, first=Header)
    for line in reader.follow():
        record: Any = line
        match line:
            case Child(generation=generation, index=index):
                child = log.child(generation, index)
                record = msgspec.structs.replace(child, draft=max(0, child.draft))
                name = f"child {generation} {index} {child.evaluation.status}"
                name += f" {child.evaluation.fitness!r:.8}"
            case Initial():
                name = "initial"
            case Plan(generation=generation):
                name = f"plan {generation}"
            case InstanceCall(generation=generation, program=program, index=index):
                name = f"{type(line).__name__} {generation} {program[:4]} {index}"
            case Confirmation(generation=generation) | Generation(generation=generation):
                name = f"{type(line).__name__} {generation}"
            case RunEnd(reason=reason, stats=stats):
                kept = ("check_", "final_", "initial_", "generations")
                found = {k: v for k, v in sorted(stats.items()) if k.startswith(kept)}
                lines.append(f"end {reason} {digest(found)}")
                continue
            case _:
                continue
        lines.append(f"{name} {digest(without_times(msgspec.to_builtins(record)))}")
    drafts = [
        (key, reply.reply, [attempt.usage for attempt in reply.attempts])
        for key, reply in sorted(log.replies.items())
        if key[2] >= 0
    ]
    return in_words_of_any_python([*lines, f"drafts {digest(drafts)}"])


def in_words_of_any_python(lines: list[str]) -> list[str]:
    """Lines without the hash of failures from 3.13 on, whose words for an error are others."""
    if sys.version_info < (3, 13):
        return lines
    return [line.rsplit(" ", 1)[0] if " error " in line else line for line in lines]


def without_times(value: Any) -> Any:
    """A value as it is but for times, wherever they stand."""
    if isinstance(value, dict):
        return {k: without_times(v) for k, v in value.items() if k not in TIMES}
    return [without_times(each) for each in value] if isinstance(value, list | tuple) else value


def digest(value: object) -> str:
    """A few digits of a hash of a value."""
    text = json.dumps(value, sort_keys=True, default=str)
    return hashlib.sha256(text.encode()).hexdigest()[:8]


def run(header: Header, generations: int, path: Path, **settings: Any) -> evo.Log:
    """The run of a header, made in order unless the settings say otherwise."""
    how = Settings(**({"max_concurrent": 1, "progress": False} | settings))
    return prepare_jobs([RunJob(path, header, Goal(generations))], how, None, "same lines").do()[0]


def forks(log: evo.Log, changes: dict[str, Any], folder: Path) -> list[evo.Log]:
    """The forks of a run that a configuration asks for."""
    if not changes:
        return []
    return evo.fork(log, at=1, log_dir=folder, max_concurrent=1, progress=False, **changes)


def header_of(recorded: dict[str, Any], known: dict[str, Task], *, schema: int = SCHEMA) -> Header:
    """The header that was recorded, with its task, for a log of this schema."""
    task = msgspec.to_builtins(known[recorded["task"]].record)
    return msgspec.convert({**recorded["header"], "task": task, "schema": schema}, Header)


def recorded() -> list[dict[str, Any]]:
    """The configurations and what was recorded of them."""
    found: list[dict[str, Any]] = json.loads(gzip.decompress(RECORDED.read_bytes()))
    for one in found:
        one["lines"] = in_words_of_any_python(one["lines"])
        one["forks"] = [*map(in_words_of_any_python, one["forks"])]
    return found


def record(progress: Callable[[object], object] = print) -> None:
    """Runs every configuration and keeps what it logs."""
    made: list[dict[str, Any]] = []
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        known = tasks(folder)
        for number, (task, options, generations, changes) in enumerate(stratified()):
            header = make_header(known[task], **options)
            log = run(header, generations, folder / f"{number}.jsonl")
            plain = msgspec.to_builtins(header)
            del plain["task"], plain["versions"]
            one = {"task": task, "header": plain, "generations": generations, "changes": changes}
            one["lines"] = canonical(log)
            one["forks"] = [
                canonical(fork) for fork in forks(log, changes, folder / f"forks-{number}")
            ]
            made.append(one)
            progress(f"{number} {task} {options}")
    data = json.dumps(made, separators=(",", ":")).encode()
    RECORDED.write_bytes(gzip.compress(data, 9, mtime=0))


if __name__ == "__main__":
    sys.exit(record())
