"""Live selection: configurations are tried on paired samples until the best of them is known.

Going on after a kill needs no state of its own: the selection is played again from its first
round, and samples are taken from their logs as far as these reach, then from the model.
"""

from __future__ import annotations

import contextlib
import functools
import json
import os
import textwrap
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

import msgspec
import numpy as np

from evo.concurrency import find_preset
from evo.configuration import LOCAL, Settings, at_least, split_settings
from evo.journal import write_new
from evo.log import Log
from evo.policies import Draws
from evo.policies.base import Floats
from evo.records import Evaluation
from evo.samples import UNITS, LiveSamples, ProblemSamples, SeedSamples, with_text
from evo.selectors import Kind, SelectorClass, Terms, find_selector, neighbours, selector_name
from evo.selectors.race import Selection, Standing, race, rewards_of, selection_of
from evo.sweeping.fields import Configuration, Values, configure
from evo.sweeping.space import check_field, parse_space
from evo.task import Task, load_task, read_instances

SELECTION = "selection.json"
LABEL = 60  # characters of a value, which may be a whole text


def select_best(
    configurations: Sequence[Values] | Values,
    *,
    task: str | os.PathLike[str] | Task | None = None,
    selector: str | SelectorClass = "arm_elimination",
    parameters: Mapping[str, Any] | None = None,
    samples: Literal["seeds", "problems"] = "seeds",
    seeds: Iterable[int] = range(40, 60),
    delta: float = 0.05,
    batch: int | None = None,
    bounds: tuple[float, float] = (0.0, 1.0),
    failure_value: float | None = None,
    interval: Kind = "anytime",
    c: float = 1.0,
    orders: Mapping[str, Sequence[Any]] | None = None,
    budget: Mapping[str, float] | None = None,
    seed: int = 0,
    log_dir: str | os.PathLike[str] | None = None,
    settings: Settings | None = None,
    **common: Any,
) -> Selection:
    """Finds which configuration does best on average, in few samples.

    A sample is one run: the best fitness after its last generation. Sample i of every
    configuration has the same seed. Configurations that differ in `generations` alone share their
    logs. Where a text is told to a model that is asked a data set, a sample may instead be one
    problem, and its outcome the score of the reply: a text is known in far fewer calls than its
    fitness would take.

    All samples of a round fly at once; `max_concurrent` says how many of their calls. Called again
    with the same arguments and folder, a selection goes on where it was killed: no logged call is
    made twice.

    Args:
        configurations: Fields of each, such as {"children": 4, "temperature": 0.6}; or a space as
            for `evo.sweep`, whose grid is taken. For problems, `text` is one: what the model is
            told, or a Log whose best text is taken; without it, the task's initial text.
        task: Name, alias, folder or Task, where the configurations do not say.
        selector: Name, or a callable (shape, terms, *, rng) -> selector.
        parameters: Of the selector, such as {"threshold": 0.9} or {"epsilon": 0.01}.
        samples: `seeds`: runs; `problems`: those of the task's data set, in an order that `seed`
            shuffles.
        seeds: In the order in which they are run; as many as brute force would run.
        delta: Probability with which the winner may be wrong.
        batch: Samples of a configuration in a round, at least; None: 1 run, or as many problems as
            the preset says, else 10.
        bounds: Least and largest fitness there is; the closer, the fewer runs. Fitness above, as
            1.0 is but the best published, is clipped and counted in `clipped`.
        failure_value: What a run counts in which nothing is ok, or a problem without a score;
            None: the lower bound.
        interval: `anytime`, or `compat` for mean +- c * SE, which is wrong far more often.
        c: Standard errors, for `compat`.
        orders: Of the values of a field, for `hill_climbing`; otherwise numbers go by size.
        budget: Limits by unit: samples, calls, tokens, flops, dollars, seconds. But for samples,
            it is overrun by one round at most.
        seed: Of the selector; apart from those of the runs.
        log_dir: Folder of the logs and selection.json; None: a new one in logs/local.
        settings: A whole Settings value instead of its fields as keywords.
        **common: Fields that all configurations share, and fields of `Settings`.

    Raises:
        ValueError: A mistake in the arguments, or the folder holds another selection.
        LogError: A log is damaged or busy.
        EndpointDown: The endpoint does not answer; the selection can go on later.
    """
    names = Settings.__dataclass_fields__
    settings, _ = split_settings(settings, {n: v for n, v in common.items() if n in names})
    fields = {n: v for n, v in common.items() if n not in names}
    if samples not in ("seeds", "problems"):
        raise ValueError(f"samples: expected 'seeds' or 'problems', got {samples!r}")
    sampled: list[int]
    sampler: Callable[..., LiveSamples]
    if samples == "problems":
        values, known = _texts(configurations, fields, task)
        sampled = _shuffled(known, seed)
        sampler = functools.partial(ProblemSamples, sampled)
        batch = _problems_per_batch(settings.preset, log_dir) if batch is None else batch
    else:
        values, known = _configurations(configurations, fields, task)
        sampled = [at_least("seeds", each, 0) for each in seeds]
        if not sampled or len(set(sampled)) < len(sampled):
            raise ValueError(f"seeds: expected at least one and all different, got {sampled!r}")
        sampler = functools.partial(SeedSamples, sampled)
    _check_different(values, known)
    if unknown := [unit for unit in budget or {} if unit not in UNITS]:
        raise ValueError(f"budget: expected a unit out of {', '.join(UNITS)}, got {unknown[0]!r}")
    varied = [_varied(each, values) for each in values]
    terms = Terms(
        size=len(sampled),
        batch=1 if batch is None else at_least("batch", batch, 1),
        delta=delta,
        low=float(bounds[0]),
        high=float(bounds[1]),
        interval=interval,
        c=c,
        neighbours=neighbours(varied, orders),
    )
    build = find_selector(selector, **(parameters or {}))
    chooser = build((1, len(known)), terms, rng=Draws(at_least("seed", seed, 0), 1))
    name = selector_name(build)
    folder = Path(log_dir) if log_dir is not None else _new_folder(known[0], name)
    identity = {
        "selector": name,
        "parameters": dict(getattr(build, "keywords", {})),
        "seed": seed,
        samples: sampled,
        "failure_value": failure_value,
        "budget": dict(budget or {}),
        **{key: value for key, value in vars(terms).items() if key != "neighbours"},
        "orders": {key: list(order) for key, order in (orders or {}).items()},
        "configurations": [
            {"id": each.id, **{k: _plain(v) for k, v in mine.items()}}
            for each, mine in zip(known, varied, strict=True)
        ],
    }
    rounds: list[Standing] = []
    rewards_of(np.zeros(1), terms, failure_value)  # a mistake in it leaves no folder behind
    _keep(folder / SELECTION, identity)
    with contextlib.ExitStack() as stack:
        live = sampler(known, folder, settings, stack, terms, failure_value, budget or {})
        races = race(chooser, live, watcher=rounds.append)
        logs = live.logs(races.standing.count[0])
    return selection_of(
        races,
        rounds,
        live.outcomes,
        live.rewards,
        labels=tuple(labelled(mine) for mine in varied),
        selector=name,
        terms=terms,
        configurations=tuple(values),
        logs=logs,
        path=folder,
    )


def _configurations(
    configurations: Sequence[Values] | Values,
    common: Values,
    task: str | os.PathLike[str] | Task | None,
) -> tuple[list[dict[str, Any]], list[Configuration]]:
    """Returns the fields of each configuration, and what they come to."""
    if isinstance(configurations, Mapping):
        configurations = parse_space(configurations).grid()
    values = [{**common, **each} for each in configurations]
    if not values:
        raise ValueError("configurations: expected at least one")
    tasks: dict[str, Task] = {}
    for each in values:
        for name in each:
            check_field(name)
        if "task" not in each:
            if task is None:
                raise ValueError("task: expected one, as argument or in each configuration")
            each["task"] = task
        loaded = load_task(each["task"])
        named = tasks.setdefault(loaded.name, loaded)
        same = named.record.hash == loaded.record.hash
        each["task"] = loaded.name if same else f"{loaded.name}-{loaded.record.hash[:12]}"
        tasks[each["task"]] = loaded
    return values, [configure(each, tasks) for each in values]


def _texts(
    configurations: Sequence[Values] | Values,
    common: Values,
    task: str | os.PathLike[str] | Task | None,
) -> tuple[list[dict[str, Any]], list[Configuration]]:
    """Returns the fields of each configuration, and what they come to, texts in their tasks."""
    if isinstance(configurations, Mapping):
        space = dict(configurations)
        given = space.pop("text", None)
        choices = [{"text": text} for text in (given if isinstance(given, list) else [given])]
        grid = parse_space(space).grid()
        configurations = [{**each, **text} for text in choices for each in grid]
    told = [{**common, **each} for each in configurations]
    texts = [each.pop("text", None) for each in told]
    for each in told:
        if found := [name for name in ("generations", "children") if name in each]:
            raise ValueError(
                f"{found[0]}: nothing evolves where samples are problems; leave it out"
            )
    values, known = _configurations(told, {}, task)
    texts = [_best_text(each) if isinstance(each, Log) else each for each in texts]
    known = [with_text(each, text) for each, text in zip(known, texts, strict=True)]
    if len({each.header.task.files[each.header.task.instances_file] for each in known}) > 1:
        raise ValueError("configurations: samples can be problems only if all share one data set")
    for each, text in zip(values, texts, strict=True):
        each.update({} if text is None else {"text": text})
    return values, known


def _problems_per_batch(preset: str | None, folder: str | os.PathLike[str] | None) -> int:
    """Returns the batch with which a folder's selection began, else the preset's."""
    path = None if folder is None else Path(folder) / SELECTION
    if path is not None and path.exists():
        return int(json.loads(path.read_text(encoding="utf-8"))["batch"])
    return find_preset(preset or "conservative").problems_per_batch


def _best_text(log: Log) -> str:
    if (text := log.best.program) is None:
        raise ValueError(f"{log.path}: a compact log holds no texts, so its best cannot be tried")
    return text


def _shuffled(configurations: Sequence[Configuration], seed: int) -> list[int]:
    """Returns the positions of the problems, in an order of their own for each seed."""
    count = len(read_instances(configurations[0].header.task))
    order: list[int] = np.random.default_rng([seed, count]).permutation(count).tolist()
    return order


def _check_different(values: Sequence[Values], known: Sequence[Configuration]) -> None:
    ids = [each.id for each in known]
    for k, id_ in enumerate(ids):
        if (first := ids.index(id_)) < k:
            raise ValueError(f"configurations: {first} and {k} are the same, {values[k]!r}")


def _varied(values: Values, among: Sequence[Values]) -> dict[str, Any]:
    """Returns the fields in which configurations differ; all of a lone one."""
    names = dict.fromkeys(name for each in among for name in each)
    differing = [n for n in names if any(each.get(n) != among[0].get(n) for each in among)]
    return {n: values.get(n) for n in differing} or dict(values)


def labelled(values: Values) -> str:
    """Returns the name of a configuration, such as `children=4, temperature=0.6`."""
    shown = {k: textwrap.shorten(str(_plain(v)), LABEL) for k, v in values.items() if v is not None}
    return ", ".join(f"{name}={value}" for name, value in shown.items()) or "default"


def _plain(value: Any) -> Any:
    """Returns a value as JSON and labels hold it."""
    if isinstance(value, msgspec.Struct):
        return getattr(value, "name", str(value))
    return value.item() if hasattr(value, "item") else value


def _new_folder(configuration: Configuration, selector: str) -> Path:
    stem = f"{configuration.header.task.name}-select-{selector}"
    names = (stem, *(f"{stem}-{count}" for count in range(2, 100_000)))
    return next(LOCAL / n for n in names if not (LOCAL / n).exists())


def _keep(path: Path, identity: dict[str, Any]) -> None:
    """Writes what identifies a selection, or checks it against what stands there."""
    text = json.dumps(identity, indent=1, default=str)
    if not path.exists():
        path.parent.mkdir(parents=True, exist_ok=True)
        write_new(path, text.encode() + b"\n")
        return
    was, now = json.loads(path.read_text(encoding="utf-8")), json.loads(text)
    if wrong := [key for key in now if was.get(key) != now[key]]:
        raise ValueError(
            f"{path}: holds a selection with {wrong[0]} {was.get(wrong[0])!r}, not "
            f"{now[wrong[0]]!r}; give its own arguments to go on with it, or another folder"
        )


def instance_matrix(sources: Sequence[Evaluation | Log]) -> Floats:
    """Scores on the instances of a data set, as `replay.select` takes them: a sample per problem.

    Args:
        sources: Evaluations of programs or texts on the same data set, or logs, of which the best
            program counts.

    Returns:
        (sources, instances), in the order of the first source's instances; NaN where an instance
        has no score.

    Raises:
        ValueError: A source has no instances, or others than the first.
    """
    found = [each.best.evaluation if isinstance(each, Log) else each for each in sources]
    ids = [instance.id for instance in found[0].instances] if found else []
    rows = []
    for place, evaluation in enumerate(found):
        scores = {each.id: each.score for each in evaluation.instances}
        if not scores or scores.keys() != set(ids):
            raise ValueError(
                f"source {place}: expected scores on the {len(ids)} instances of the first, got "
                f"{len(scores)}"
            )
        rows.append([np.nan if scores[id_] is None else scores[id_] for id_ in ids])
    return np.array(rows, dtype=np.float64).reshape(len(rows), len(ids))
