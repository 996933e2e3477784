"""What a sweep is: sweep.json, written once and never changed."""

from __future__ import annotations

import contextlib
import fcntl
import os
import tomllib
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import msgspec

from evo.configuration import at_least, seeds_of
from evo.journal import LogBusyError, LogError, check_folder, write_new
from evo.records import Limits, Record, TaskRecord
from evo.sweeping.fields import Configuration, configure
from evo.sweeping.space import Space, SpaceError, check_field, parse_space
from evo.sweeping.strategies import Strategy, build_strategy
from evo.task import Task, load_task

DESIGN = "sweep.json"
RUNS = "runs"
TOML_KEYS = ("task", "space", "strategy", "trials", "seeds", "seed", "base", "budget")


class SweepTask(Record, frozen=True, kw_only=True):
    """A task as a sweep embeds it, so that any machine can go on."""

    record: TaskRecord
    limits: Limits


class Design(Record, frozen=True, kw_only=True):
    """What identifies a sweep.

    Attributes:
        schema: Of this file.
        tasks: By the name that values of the field `task` have.
        base: Values that hold where the space has none.
        space: As given.
        strategy: Name.
        options: Of the strategy.
        trials: Number; None: the strategy's own.
        seeds: Of the runs of each configuration.
        seed: Key of the strategy's draws.
    """

    schema: int = 1
    tasks: dict[str, SweepTask]
    base: dict[str, Any]
    space: dict[str, Any]
    strategy: str
    options: dict[str, Any] = msgspec.field(default_factory=dict)
    trials: int | None = None
    seeds: tuple[int, ...]
    seed: int = 0

    def configure(self, values: Mapping[str, Any]) -> Configuration:
        """Returns the configuration of a trial; raises a ValueError where there can be none."""
        tasks = {name: Task(each.record, each.limits) for name, each in self.tasks.items()}
        return configure({**self.base, **values}, tasks)

    def parsed_space(self) -> Space:
        """Returns the space."""
        return parse_space(self.space)

    def build_strategy(self) -> Strategy:
        """Returns the strategy, with nothing told."""
        return build_strategy(
            self.strategy, self.options, self.parsed_space(), seed=self.seed, trials=self.trials
        )

    def tried_values(self) -> list[Configuration]:
        """Returns a configuration for each value of the space by itself.

        Raises:
            ValueError: One will not do; the message names the field.
        """
        made = [self.configure({})]
        for dimension in self.parsed_space().dimensions:
            for value in dimension.ends():
                try:
                    made.append(self.configure({dimension.name: value}))
                except (ValueError, TypeError) as error:
                    if not dimension.when:  # else it may do together with what it depends on
                        raise SpaceError(f"{dimension.name} = {value!r}: {error}") from None
        return made


_decoder = msgspec.json.Decoder(Design)


def make_design(
    space: Mapping[str, Any],
    *,
    task: str | os.PathLike[str] | Task | None,
    strategy: str | Mapping[str, Any],
    trials: int | None,
    seeds: Iterable[int] | str,
    seed: int,
    base: Mapping[str, Any],
) -> Design:
    """Checks what is to be swept, each value of the space by itself included.

    Raises:
        ValueError: A mistake; the message names the field and lists what exists.
    """
    tasks: dict[str, SweepTask] = {}

    def known(value: str | os.PathLike[str] | Task) -> str:
        loaded = load_task(value)
        name = loaded.name if isinstance(value, Task) else os.fspath(value)
        tasks.setdefault(name, SweepTask(record=loaded.record, limits=loaded.limits))
        return name

    def plain(value: Any) -> Any:
        if isinstance(value, Task | os.PathLike):
            return known(value)
        if isinstance(value, Mapping):
            return {key: plain(each) for key, each in value.items()}
        if isinstance(value, list | tuple | range):
            return [plain(each) for each in value]
        return value.tolist() if hasattr(value, "tolist") else value  # of NumPy

    given = {**base, **({"task": task} if task is not None else {})}
    for name in given:
        check_field(name)
    given, named = (msgspec.to_builtins(plain(each)) for each in (given, space))
    parsed = parse_space(named)
    if "task" not in given and "task" not in named:
        raise ValueError("task: expected a name or a folder; see `evo tasks`")
    names = [d.values or () for d in parsed.dimensions if d.name == "task"]
    for name in [given.get("task"), *(names[0] if names else ())]:
        if name is not None and name not in tasks:
            known(name)
    given.setdefault("task", next(iter(tasks)))
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
    return design


def read_toml(path: Path) -> dict[str, Any]:
    """Reads a sweep.toml: the arguments of `evo.sweep`, with those of the base in [base].

    A task that is a folder beside the file is found there.

    Raises:
        ValueError: No TOML, or an unknown key.
    """
    try:
        given = tomllib.loads(path.read_text(encoding="utf-8"))
    except (ValueError, RecursionError) as error:
        raise ValueError(f"{path}: not TOML: {error}") from None
    except OSError as error:
        raise ValueError(f"{path}: cannot read it: {error.strerror}") from None
    if unknown := [key for key in given if key not in TOML_KEYS]:
        raise ValueError(f"{path}: unknown key {unknown[0]!r} (known: {', '.join(TOML_KEYS)})")
    task = given.get("task")
    if isinstance(task, str) and (path.parent / task).is_dir():
        given["task"] = path.parent / task
    for name in ("space", "base"):
        given[name] = _dotted(f"{path}: {name}", given.get(name, {}))
    return given


def _dotted(name: str, table: Any) -> dict[str, Any]:
    """Gives `sampling.temperature` that name, which TOML reads as a table in a table."""
    if not isinstance(table, dict):
        raise SpaceError(f"{name}: expected a table of fields and their values, got {table!r}")
    found: dict[str, Any] = {}
    for key, value in table.items():
        if key in ("sampling", "limits") and isinstance(value, dict):
            found |= {f"{key}.{inner}": each for inner, each in value.items()}
        elif key == "model" and isinstance(value, dict) and set(value) == {"extra_body"}:
            found["model.extra_body"] = value["extra_body"]
        else:
            found[key] = value
    return found


def is_sweep(path: str | os.PathLike[str]) -> bool:
    """Whether a path is the folder of a sweep."""
    return (Path(path) / DESIGN).is_file()


def read_design(folder: Path) -> Design:
    """Reads sweep.json.

    Raises:
        LogError: The folder holds none, or it is damaged.
    """
    path = folder / DESIGN
    try:
        return _decoder.decode(path.read_bytes())
    except OSError as error:
        reason = f"{error.strerror} ({DESIGN})"
        raise LogError(f"{folder}: not the folder of a sweep: {reason}") from None
    except (msgspec.DecodeError, ValueError) as error:
        raise LogError(f"{path}: not the design of a sweep: {error}") from None


def keep_design(folder: Path, design: Design) -> None:
    """Writes sweep.json, whole or not at all; one that is there must say the same.

    Raises:
        ValueError: The folder holds another sweep; the message names what differs.
        LogError: It cannot be written.
    """
    check_folder(folder / RUNS)
    if not is_sweep(folder):
        with contextlib.suppress(FileExistsError):
            write_new(folder / DESIGN, msgspec.json.encode(design))
    there = read_design(folder)
    for field in design.__struct_fields__:
        was, now = getattr(there, field), getattr(design, field)
        if was != now and field == "tasks":
            raise ValueError(
                f"{folder}: holds a sweep of another task, or of another version of it"
            )
        if was != now:
            raise ValueError(
                f"{folder}: holds a sweep with {field} {was!r}, not {now!r}; give its own "
                "arguments to go on with it, or another folder"
            )


@contextlib.contextmanager
def claim(folder: Path, *, alone: bool) -> Iterator[None]:
    """Says that this process works on a sweep, for the length of the `with` block.

    Several may, unless there is a budget: then one has to see all that is spent.

    Raises:
        LogBusyError: Others are at it.
    """
    with (folder / DESIGN).open("rb") as file:
        try:
            fcntl.flock(file, (fcntl.LOCK_EX if alone else fcntl.LOCK_SH) | fcntl.LOCK_NB)
        except OSError:
            raise LogBusyError(
                f"{folder}: another process works on this sweep, and under a budget only one may; "
                f"wait for it, or `evo pause {folder}`"
            ) from None
        yield
