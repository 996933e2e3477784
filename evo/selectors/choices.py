"""What a selection compares, and what a sample of each choice is."""

from __future__ import annotations

import hashlib
import inspect
import itertools
import json
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

import msgspec
import numpy as np

from evo.configuration import at_least, seeds_of
from evo.log import Log
from evo.records import Header
from evo.selectors.live import Agent, LiveSamples, ProblemSamples, RowSamples, RunSamples, Session
from evo.sweeping.fields import POOL, Configuration, Values, configuration_of, configure
from evo.sweeping.space import check_field, parse_space
from evo.task import Task, hash_of, load_task, read_instances

SEEDS = "40:60"  # where nothing says otherwise

Given = Sequence[Values] | Values
"""Choices, or a space of which the grid is taken."""


@dataclass(frozen=True)
class Choices:
    """What is compared, and what a sample of it is."""

    values: list[dict[str, Any]]  # fields of each choice
    ids: list[str]  # what identifies each
    kind: Literal["seeds", "problems", "rows"]  # what a sample is called in selection.json
    sampled: Sequence[int]  # in order: seeds, or positions of problems or rows
    name: str  # of a folder for it
    samples: Callable[[Session], LiveSamples]  # makes those of a session
    configurations: Sequence[Configuration] = ()  # where calls of a model are made
    more: Mapping[str, Any] = field(default_factory=dict)  # what else identifies the selection

    def __post_init__(self) -> None:
        for k, id_ in enumerate(self.ids):
            if (first := self.ids.index(id_)) < k:
                raise ValueError(f"choices: {first} and {k} are the same, {self.values[k]!r}")

    @property
    def headers(self) -> list[Header]:
        """Of each choice, where calls of a model are made."""
        return [each.header for each in self.configurations]

    @property
    def runs(self) -> list[tuple[Header, int]]:
        """Header and T of each run where every sample is taken; the deepest of a log's."""
        deepest: dict[str, Configuration] = {}
        for each in sorted(self.configurations, key=lambda each: each.generations):
            deepest[each.run] = each
        runs = [(each.header, each.generations) for each in deepest.values()]
        return runs * (len(self.sampled) if self.kind == "seeds" else 1)


def find_choices(
    choices: Given,
    *,
    task: str | os.PathLike[str] | Task | None = None,
    samples: str = "seeds",
    seeds: Iterable[int] | str = SEEDS,
    seed: int = 0,
    generations: int | None = None,
    base: Values | None = None,
    **options: Any,
) -> Choices:
    """Returns choices of which a sample is a run or a problem; see `evo.select_best`."""
    depth = {} if generations is None else {"generations": generations}
    shared = {**depth, **(base or {}), **options}
    if samples == "problems":
        return _problem_choices(choices, shared, task, at_least("seed", seed, 0))
    if samples != "seeds":
        raise ValueError(f"samples: expected 'seeds' or 'problems', got {samples!r}")
    listed = parse_space(choices).grid() if isinstance(choices, Mapping) else choices
    values, known = _configured([{**shared, **each} for each in listed], task)
    ids, name, run = [each.id for each in known], known[0].header.task.name, seeds_of(seeds)
    return Choices(values, ids, "seeds", run, name, lambda s: RunSamples(known, run, s), known)


def _problem_choices(
    choices: Given, shared: Values, task: str | os.PathLike[str] | Task | None, seed: int
) -> Choices:
    """Choices of which a sample is a problem of a data set, texts in their tasks."""
    if isinstance(choices, Mapping):
        space = dict(choices)
        given = space.pop("text", None)
        texts = given if isinstance(given, list) else [given]
        grid = parse_space(space).grid()
        choices = [{**each, "text": text} for text in texts for each in grid]
    told = [{**shared, **each} for each in choices]
    texts = [_text_of(each.pop("text", None)) for each in told]
    for name in ("generations", "children"):
        if any(name in each for each in told):
            raise ValueError(f"{name}: nothing evolves where samples are problems; leave it out")
    values, plain = _configured(told, task)
    known = [_with_text(each.header, text) for each, text in zip(plain, texts, strict=True)]
    first = known[0].header.task
    if len({each.header.task.files[each.header.task.instances_file] for each in known}) > 1:
        raise ValueError("choices: samples can be problems only if all share one data set")
    for each, text in zip(values, texts, strict=True):
        each.update({} if text is None else {"text": text})
    ids, order = [each.id for each in known], _shuffled(len(read_instances(first)), seed)
    return Choices(
        values, ids, "problems", order, first.name, lambda s: ProblemSamples(known, order, s), known
    )


def row_choices(
    choices: Given, agent: Agent | None, rows: Sequence[Any] | None, cost_weight: float, seed: int
) -> Choices:
    """Choices of which a sample is a row of data, tried by an agent."""
    if not callable(agent) or not rows or isinstance(rows, str | bytes | Mapping):
        raise ValueError(
            f"evaluate and data: expected agent(row, **choice) and rows, got {agent!r} and {rows!r}"
        )
    if not 0.0 <= cost_weight < float("inf"):
        raise ValueError(f"cost_weight: expected a number of at least 0, got {cost_weight!r}")
    if isinstance(choices, Mapping):
        names = list(choices)
        listed = [v if isinstance(v, list | tuple) else [v] for v in choices.values()]
        choices = [dict(zip(names, each, strict=True)) for each in itertools.product(*listed)]
    values, kept = [dict(each) for each in choices], list(rows)
    if not values:
        raise ValueError("choices: expected at least one")
    order = _shuffled(len(kept), seed)
    name = str(getattr(agent, "__name__", type(agent).__name__))
    try:
        source = inspect.getsource(agent)
    except (OSError, TypeError):
        source = name
    said = {"source": _digest(source), "data": _digest(kept), "cost_weight": cost_weight}
    return Choices(
        values,
        [_digest(each) for each in values],
        "rows",
        order,
        name,
        lambda session: RowSamples(agent, values, kept, order, cost_weight, session),
        more={"evaluate": name, **said},
    )


def _configured(
    values: list[dict[str, Any]], task: str | os.PathLike[str] | Task | None
) -> tuple[list[dict[str, Any]], list[Configuration]]:
    """Returns the fields of each configuration, its task named, and what they come to."""
    if not values:
        raise ValueError("choices: expected at least one")
    tasks: dict[str, Task] = {}
    for each in values:
        for name in each:
            check_field(name)
            if name in POOL:
                raise ValueError(f"{name}: a field of sweeps alone, whose runs may be allocations")
        if each.setdefault("task", task) is None:
            raise ValueError("task: expected one, as argument or in each configuration")
        loaded = load_task(each["task"])
        same = tasks.setdefault(loaded.name, loaded).record.hash == loaded.record.hash
        each["task"] = loaded.name if same else f"{loaded.name}-{loaded.record.hash[:12]}"
        tasks[each["task"]] = loaded
    return values, [configure(each, tasks) for each in values]


def _with_text(header: Header, text: str | None) -> Configuration:
    """Returns a configuration of which a sample is a problem: its text, and no generations."""
    task = header.task
    if not (task.asks_model and task.instances_file):
        raise ValueError(
            f"task {task.name}: a sample is a problem only where a model is asked a data set; "
            "programs are scored on all problems at once, see replay.instances"
        )
    if text is not None and (not isinstance(text, str) or not text.strip()):
        raise ValueError(f"text: expected what the model shall be told, got {text!r}")
    if text is not None and text.strip() != task.files[task.program_file].strip():
        task = msgspec.structs.replace(task, files={**task.files, task.program_file: text})
        task = msgspec.structs.replace(task, hash=hash_of(task))
    return configuration_of(msgspec.structs.replace(header, task=task, children=1), 0)


def _text_of(text: Any) -> Any:
    if not isinstance(text, Log):
        return text
    if (best := text.best.program) is None:
        raise ValueError(f"{text.path}: a compact log holds no texts, so its best cannot be tried")
    return best


def _shuffled(count: int, seed: int) -> list[int]:
    """Returns positions in an order of their own for each seed."""
    order: list[int] = np.random.default_rng([seed, count]).permutation(count).tolist()
    return order


def _digest(value: Any) -> str:
    text = json.dumps(value, sort_keys=True, default=repr)
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:12]
