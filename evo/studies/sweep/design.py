"""The design of a sweep, sweep.json; only its number of trials may change later."""

from __future__ import annotations

import os
import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

import msgspec

from evo.logs import examples
from evo.logs.inputs import at_least
from evo.logs.journal import LogError, check_folder, open_regular
from evo.logs.records import Limits, Model, Record, TaskRecord
from evo.logs.types import JsonObject
from evo.models.registry import find_model
from evo.plugins import MistakenType
from evo.runs.configuration import seeds_of
from evo.searches.registry import is_search
from evo.studies.folders import keep_identity
from evo.studies.sweep.fields import Configuration, configure, dotted
from evo.studies.sweep.space import Space, SpaceError, check_field, parse_space
from evo.studies.sweep.strategies import RandomTrials, build_strategy
from evo.tasks.task import Task, load_task
from evo.values import fields_of

_EXTENDS = (
    "; a grid takes further values and seeds in its folder if all of its own are given with them"
)
DESIGN = "sweep.json"
RUNS = "runs"


class SweepTask(Record, frozen=True, kw_only=True):
    """A task as a sweep embeds it, so that any machine can go on."""

    record: TaskRecord
    limits: Limits


class Design(Record, frozen=True, kw_only=True, dict=True, gc=True):
    """What identifies a sweep: `tasks` by the name that values of the field `task` have.

    Models that are functions or client objects go along in memory, and are not written.
    """

    schema: int = 1
    tasks: dict[str, SweepTask]
    base: JsonObject
    space: JsonObject
    strategy: str
    options: dict[str, object] = msgspec.field(default_factory=dict)
    trials: int | None = None
    seeds: tuple[int, ...]
    seed: int = 0

    def configure(self, values: Mapping[str, object]) -> Configuration:
        """Returns the configuration of a trial; raises a ValueError where there can be none."""
        tasks = {name: Task(each.record, each.limits) for name, each in self.tasks.items()}
        return configure({**self.base, **values}, tasks, self.here)

    @property
    def here(self) -> Mapping[tuple[str, str | None], Model]:
        """The models of this process, by their name and version."""
        found: Mapping[tuple[str, str | None], Model] = self.__dict__.get("here", {})
        return found

    def with_models(self, here: Mapping[tuple[str, str | None], Model]) -> Design:
        """Returns this design with models of this process."""
        self.__dict__["here"] = here
        return self

    def parsed_space(self) -> Space:
        """Returns the space."""
        return parse_space(self.space)

    def extends(self, other: Design) -> bool:
        """Whether both are grids, and this one has every combination and seed of the other."""
        if {self.strategy, other.strategy} != {"grid"} or not {*other.seeds} <= {*self.seeds}:
            return False
        one, another = (
            {msgspec.json.encode(values) for values in each.parsed_space().grid()}
            for each in (self, other)
        )
        return another <= one

    def build_strategy(self) -> RandomTrials:
        """Returns the strategy before its first trial."""
        return build_strategy(
            self.strategy, self.options, self.parsed_space(), seed=self.seed, trials=self.trials
        )

    def tried_values(self) -> list[Configuration]:
        """Returns a configuration for each value of the space by itself, with a policy if any."""
        dimensions = self.parsed_space().dimensions
        beside = {each.name: each.ends()[0] for each in dimensions if each.name == "policy"}
        made = list[Configuration]()
        for dimension in dimensions:
            for value in dimension.ends():
                try:
                    made.append(self.configure({**beside, dimension.name: value}))
                except (ValueError, MistakenType) as error:
                    if not dimension.when:  # else it may do together with what it depends on
                        raise SpaceError(f"{dimension.name} = {value!r}: {error}") from None
        return [self.configure(beside), *made]


_decoder = msgspec.json.Decoder(Design)


def make_design(
    space: Mapping[str, object],
    *,
    base: Mapping[str, object],
    task: str | os.PathLike[str] | Task | None = None,
    strategy: str | Mapping[str, object] = "grid",
    trials: int | None = None,
    seeds: Iterable[int] | str = "40:45",
    seed: int = 0,
) -> Design:
    """Returns a sweep, once its arguments were checked."""
    for name in base:
        check_field(name)
    given = base if task is None else {**base, "task": task}
    values = _PlainValues()
    try:
        given, named = (msgspec.to_builtins(values.plain(each)) for each in (given, space))
    except MistakenType:
        raise
    except TypeError as error:
        raise MistakenType(
            f"space, base: expected numbers, texts, models, and lists and dicts of them: {error}"
        ) from None
    tasks = values.tasks
    dimensions = {dimension.name: dimension for dimension in parse_space(named).dimensions}
    swept = dimensions["task"].values or () if "task" in dimensions else ()
    known = [*([given["task"]] if "task" in given else []), *swept]
    if not known:
        raise ValueError("task: expected a name or a folder; see `evo tasks`")
    for name in known:
        if not isinstance(name, str):
            raise MistakenType(f"task: expected a name, a folder or a task, got {name!r:.80}")
        if name not in tasks:
            loaded = load_task(name)
            tasks[name] = SweepTask(record=loaded.record, limits=loaded.limits)
    given.setdefault("task", known[0])
    options: JsonObject
    options = dict(strategy) if isinstance(strategy, Mapping) else {"name": strategy}
    design = Design(
        tasks=tasks,
        base=given,
        space=named,
        strategy=str(options.pop("name", "")),
        options=options,
        trials=trials,
        seeds=seeds_of(seeds),
        seed=at_least("seed", seed, 0),
    )
    design.build_strategy()
    return design.with_models(values.models)


@dataclass
class _PlainValues:
    """Writes values as JSON holds them, and keeps the tasks and models that stand for names."""

    tasks: dict[str, SweepTask] = field(default_factory=dict)
    models: dict[tuple[str, str | None], Model] = field(default_factory=dict)

    def plain(self, value: object) -> object:
        """Returns a value as it is kept."""
        if isinstance(value, Model) and value.way == "endpoint":
            return value
        if isinstance(value, Model) or (callable(value) and not is_search(value)):
            model = find_model(value)
            self.models[model.name, model.version] = model
            return msgspec.to_builtins(model)
        if isinstance(value, Task | os.PathLike):
            loaded = load_task(value)
            name = loaded.name if isinstance(value, Task) else os.fspath(value)
            self.tasks.setdefault(name, SweepTask(record=loaded.record, limits=loaded.limits))
            return name
        if is_search(value):
            return {"name": value.name, **fields_of(value)}
        if isinstance(value, Mapping):
            return {key: self.plain(each) for key, each in value.items()}
        if isinstance(value, list | tuple | range):
            return [self.plain(each) for each in value]
        return value.tolist() if hasattr(value, "tolist") else value  # of NumPy


class SweepFile(msgspec.Struct, forbid_unknown_fields=True, omit_defaults=True):
    """A sweep.toml: arguments of `evo.sweep`."""

    task: str | None = None
    space: dict[str, object] = {}
    strategy: str | dict[str, object] | None = None
    trials: int | None = None
    seeds: str | list[int] | None = None
    seed: int | None = None
    base: dict[str, object] = {}
    budget: dict[str, float] | None = None


def read_toml(path: Path) -> dict[str, object]:
    """Reads a sweep.toml; a task that is a folder beside it is found there."""
    try:
        known = msgspec.convert(tomllib.loads(path.read_text(encoding="utf-8")), SweepFile)
    except (ValueError, RecursionError) as error:  # of TOML, its encoding, or what it states
        known_keys = ", ".join(SweepFile.__struct_fields__)
        raise ValueError(
            f"{path}: no sweep: {error} (known: {known_keys}); {examples.minimal(examples.SWEEP)}"
        ) from None
    except OSError as error:
        raise ValueError(f"{path}: cannot read it: {error.strerror}") from None
    given = {
        name: value for name, value in msgspec.structs.asdict(known).items() if value is not None
    }
    if known.task is not None and (path.parent / known.task).is_dir():
        given["task"] = path.parent / known.task
    return given | {"space": dotted(known.space), "base": dotted(known.base)}


def is_sweep(path: str | os.PathLike[str]) -> bool:
    """Whether a path is the folder of a sweep."""
    return (Path(path) / DESIGN).is_file()


def read_design(folder: Path) -> Design:
    """Reads sweep.json."""
    path = folder / DESIGN
    try:
        with open_regular(path) as file:
            return _decoder.decode(file.read())
    except OSError as error:
        if folder.is_file():
            raise LogError(
                f"{folder}: expected the folder of a sweep, or a file that ends in .toml, got "
                "another file"
            ) from None
        reason = f"{error.strerror} ({DESIGN})"
        raise LogError(f"{folder}: not the folder of a sweep: {reason}") from None
    except ValueError as error:
        raise LogError(f"{path}: not the design of a sweep: {error}") from None


def keep_design(folder: Path, design: Design, *, same: bool = False) -> Design:
    """Writes sweep.json, whole or not at all; one that exists must agree.

    The number of trials is a goal and may differ, and a grid may have further combinations and
    seeds, unless it is to be the very same. Returns the design with the number of trials that holds
    now: the given one, else the one in the folder.
    """
    check_folder(folder / RUNS)
    if is_sweep(folder) and read_design(folder).tasks != design.tasks:
        raise ValueError(f"{folder}: holds a sweep of another task, or another version of it")
    identity = msgspec.structs.asdict(design)
    del identity["trials"], identity["tasks"]
    before = read_design(folder) if is_sweep(folder) else design
    if not same and is_sweep(folder) and design.extends(before):
        del identity["space"], identity["seeds"]
    advice = _EXTENDS if before.strategy == design.strategy == "grid" else ""
    encoded = msgspec.json.encode(design)
    keep_identity(
        folder / DESIGN, "a sweep", identity, encoded,
        lambda _: msgspec.structs.asdict(read_design(folder)),
        dict.fromkeys(("space", "seeds"), advice),
    )  # fmt: skip
    trials = read_design(folder).trials if design.trials is None else design.trials
    return msgspec.structs.replace(design, trials=trials).with_models(design.here)


def keep_trials(folder: Path, design: Design) -> None:
    """Writes trials, or what extends a grid, into sweep.json, whole or not at all."""
    if read_design(folder) == design:
        return
    hidden = folder / f".{DESIGN}.new"
    with hidden.open("wb") as file:
        file.write(msgspec.json.encode(design))
        file.flush()
        os.fsync(file.fileno())
    hidden.replace(folder / DESIGN)
