"""Live selection: configurations are run on paired seeds until the best of them is known.

Going on after a kill needs no state of its own: the selection is played again from its first
round, and samples are taken from their logs as far as these reach, then from the model.
"""

from __future__ import annotations

import contextlib
import dataclasses
import json
import math
import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from evo.arm import Resources
from evo.configuration import LOCAL, Settings, at_least, differences, split_settings
from evo.cost import cost_of_children
from evo.log import Log, LogError, read_log, write_new
from evo.policies import Draws
from evo.race import Standing, Taken, race
from evo.records import Header
from evo.selected import Selection, rewards_of, selection_of
from evo.selectors import Kind, SelectorClass, Terms, find_selector, selector_name
from evo.selectors.neighbours import neighbours
from evo.session import Job, open_resources, run_jobs, with_model
from evo.sweeping.fields import Configuration, Values, configure
from evo.sweeping.space import check_field, parse_space
from evo.task import Task, load_task

if TYPE_CHECKING:
    from evo.policies.base import Floats, Ints

SELECTION = "selection.json"
UNITS = ("samples", "calls", "tokens", "flops", "dollars", "seconds")


@dataclass(frozen=True, kw_only=True, repr=False)
class LiveSelection(Selection):
    """What a live selection found; see `Selection`.

    Attributes:
        configurations: The fields of each configuration.
        logs: Of each configuration, its logs by seed.
        path: Folder of the logs.
    """

    configurations: tuple[Values, ...]
    logs: tuple[tuple[Log, ...], ...]
    path: Path


def select_best(
    configurations: Sequence[Values] | Values,
    *,
    task: str | os.PathLike[str] | Task | None = None,
    selector: str | SelectorClass = "arm_elimination",
    parameters: Mapping[str, Any] | None = None,
    seeds: Iterable[int] = range(40, 60),
    delta: float = 0.05,
    batch: int = 1,
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
) -> LiveSelection:
    """Finds which configuration reaches the best fitness on average over seeds, in few runs.

    A sample is one run: the best fitness after its last generation. Sample i of every
    configuration has the same seed. All runs of a round fly at once; `max_concurrent` says how
    many of their calls. Called again with the same arguments and folder, it goes on where it was
    killed: no logged call is made twice. Configurations that differ in `generations` alone share
    their logs.

    Args:
        configurations: Fields of each, such as {"children": 4, "temperature": 0.6}; or a space as
            for `evo.sweep`, whose grid is taken.
        task: Name, alias, folder or Task, where the configurations do not say.
        selector: Name, or a callable (shape, terms, *, rng) -> selector.
        parameters: Of the selector, such as {"threshold": 0.9} or {"epsilon": 0.01}.
        seeds: In the order in which they are run; as many as brute force would run.
        delta: Probability with which the winner may be wrong.
        batch: Runs of a configuration in a round, at least.
        bounds: Least and largest fitness there is; the closer, the fewer runs. Fitness above, as
            1.0 is but the best published, is clipped and counted in `clipped`.
        failure_value: What a run counts in which nothing is ok; None: the lower bound.
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
    values, known = _configurations(configurations, fields, task)
    runs = [at_least("seeds", each, 0) for each in seeds]
    if not runs or len(set(runs)) < len(runs):
        raise ValueError(f"seeds: expected at least one and all different, got {runs!r}")
    if unknown := [unit for unit in budget or {} if unit not in UNITS]:
        raise ValueError(f"budget: expected a unit out of {', '.join(UNITS)}, got {unknown[0]!r}")
    varied = [_varied(each, values) for each in values]
    terms = Terms(
        size=len(runs),
        batch=at_least("batch", batch, 1),
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
        "seeds": runs,
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
    with contextlib.ExitStack() as stack:
        live = LiveSamples(known, runs, folder, settings, stack, terms, failure_value)
        _keep(folder / SELECTION, identity)
        races = race(chooser, live, budget=budget, watcher=rounds.append)
    found = selection_of(
        races,
        rounds,
        live.outcomes,
        live.rewards,
        labels=tuple(labelled(mine) for mine in varied),
        selector=name,
        terms=terms,
    )
    return LiveSelection(
        **{field.name: getattr(found, field.name) for field in dataclasses.fields(found)},
        configurations=tuple(values),
        logs=tuple(tuple(logs[: found.samples[k]]) for k, logs in enumerate(live.logs)),
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
        tasks[loaded.name] = loaded
        each["task"] = loaded.name
    known = [configure(each, tasks) for each in values]
    ids = [each.id for each in known]
    for k, id_ in enumerate(ids):
        if (first := ids.index(id_)) < k:
            raise ValueError(f"configurations: {first} and {k} are the same, {values[k]!r}")
    return values, known


def _varied(values: Values, among: Sequence[Values]) -> dict[str, Any]:
    """Returns the fields in which configurations differ; all of a lone one."""
    names = dict.fromkeys(name for each in among for name in each)
    differing = [n for n in names if any(each.get(n) != among[0].get(n) for each in among)]
    return {n: values.get(n) for n in differing} or dict(values)


def labelled(values: Values) -> str:
    """Returns the name of a configuration, such as `children=4, temperature=0.6`."""
    return ", ".join(f"{k}={_plain(v)}" for k, v in values.items() if v is not None) or "default"


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


class LiveSamples:
    """Searches as the samples of one replicate; see `evo.race.Samples`.

    Attributes:
        outcomes: (configurations, seeds), best fitness; NaN where nothing is ok, or not run yet.
        rewards: The same as the selector is told them.
        logs: Of each configuration, its logs by seed.
    """

    def __init__(
        self,
        configurations: Sequence[Configuration],
        seeds: Sequence[int],
        folder: Path,
        settings: Settings,
        stack: contextlib.ExitStack,
        terms: Terms,
        failure_value: float | None,
    ) -> None:
        import numpy as np
        from tqdm.auto import tqdm

        self.shape = (1, len(configurations))
        self.sizes = np.full(len(configurations), len(seeds))
        self.outcomes: Floats = np.full((len(configurations), len(seeds)), np.nan)
        self.rewards = rewards_of(self.outcomes, terms, failure_value)
        self.logs: list[list[Log]] = [[] for _ in configurations]
        self._configurations, self._seeds, self._folder = configurations, seeds, folder
        self._quiet = dataclasses.replace(settings, progress=False)
        self._terms, self._failure_value = terms, failure_value
        self._bar = stack.enter_context(
            tqdm(total=self.outcomes.size, unit="run", desc="select", disable=not settings.progress)
        )
        first = stack.enter_context(open_resources(configurations[0].header, settings))
        self._resources = {
            each.run: with_model(first, each.header, settings, stack) for each in configurations
        }

    def take(self, first: Ints, number: Ints) -> Taken:
        """Runs the next seeds of each configuration, all at once, or reads their logs."""
        import numpy as np

        wanted = [
            (k, int(first[0, k]) + step)
            for k in range(self.shape[1])
            for step in range(int(number[0, k]))
        ]
        made = self._run(wanted)
        values = np.zeros((*self.shape, int(number.max())))
        costs = {unit: np.zeros(self.shape) for unit in UNITS[1:]}
        for k, i in wanted:
            configuration = self._configurations[k]
            path = self._path(k, i)
            log = made.get(path)
            if log is None or len(log.generations) < configuration.generations:
                raise LogError(
                    f"{path}: stopped before its goal; the same arguments and folder go on"
                )
            self.logs[k].append(log)
            self.outcomes[k, i] = log.trajectory[configuration.generations]
            for unit, cost in _costs(log, configuration.generations).items():
                costs[unit][0, k] += cost
        self.rewards = rewards_of(self.outcomes, self._terms, self._failure_value)
        for k, i in wanted:
            values[0, k, i - int(first[0, k])] = self.rewards.values[k, i]
        self._bar.update(len(wanted))
        return Taken(values, costs)

    def _path(self, k: int, i: int) -> Path:
        """Returns where a run's log lies; configurations that differ in T alone share it."""
        run = self._configurations[k].run
        owner = [each.run for each in self._configurations].index(run)
        return self._folder / f"{owner:03}-{run}-s{self._seeds[i]}.jsonl"

    def _run(self, wanted: Sequence[tuple[int, int]]) -> dict[Path, Log]:
        """Brings the logs of these samples to their goals and returns them."""
        from joblib import Parallel, delayed

        jobs: dict[Path, tuple[Resources, Job]] = {}
        for k, i in sorted(wanted, key=lambda each: self._configurations[each[0]].generations):
            configuration, path = self._configurations[k], self._path(k, i)
            header = msgspec.structs.replace(configuration.header, seed=self._seeds[i])
            job = _job(path, header, configuration.generations)
            jobs[path] = (self._resources[configuration.run], job)
        groups: dict[int, tuple[Resources, list[Job]]] = {}
        for resources, job in jobs.values():
            groups.setdefault(id(resources.caller), (resources, []))[1].append(job)

        def work(resources: Resources, group: list[Job]) -> list[Log]:
            return run_jobs(group, self._quiet, resources=resources)

        try:
            done = Parallel(n_jobs=len(groups), backend="threading")(
                delayed(work)(*group) for group in groups.values()
            )
        except BaseException:
            for resources, _ in groups.values():
                resources.stopping.set()
            raise
        return {log.path: log for group in done for log in group}


def _job(path: Path, header: Header, goal: int) -> Job:
    """Returns what is left to do for a run."""
    if not path.exists():
        return Job(path, header, goal, header.children)
    if other := differences(read_log(path).header, header):
        raise LogError(f"{path}: holds another run than this one: {', '.join(other)} differ")
    return Job(path, None, goal, header.children)


def _costs(log: Log, generations: int) -> dict[str, float]:
    """Returns what a run of so many generations cost by unit; NaN where unknown."""
    cost = cost_of_children(
        (each for each in log.calls if each.generation <= generations),
        log.header.model,
        log.header.sampling,
    )
    walls = [each.seconds for each in log.generations[:generations]]
    known = {
        "calls": float(cost.calls),
        "tokens": cost.tokens,
        "flops": cost.flops,
        "dollars": cost.dollars,
        "seconds": math.fsum(math.nan if wall is None else wall for wall in walls),
    }
    return {unit: math.nan if value is None else value for unit, value in known.items()}
