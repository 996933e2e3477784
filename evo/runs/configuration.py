"""What identifies a run, and how a session works on it."""

from __future__ import annotations

import functools
import itertools
import operator
import os
import platform
import re
import threading
import warnings
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any, Literal, SupportsIndex

import msgspec

from evo.logs.caps import above, cap, with_seconds
from evo.logs.journal import LogError, file_name
from evo.logs.log import read_log
from evo.logs.records import (
    SCHEMA,
    Child,
    CriticRecord,
    End,
    EndReason,
    Evaluation,
    Generation,
    Header,
    Limits,
    Model,
    TaskRecord,
)
from evo.models.critics import Critic, critic_record
from evo.prompt import PROMPT_VERSION, TOLD_VERSION
from evo.runs.concurrency import find_preset
from evo.searches import Search
from evo.searches.registry import record_of, search_of
from evo.tasks.task import Task, load_task

MOST_SEEDS = 1_000_000
MOST_CONCURRENT, MOST_WORKERS, MOST_RETRIES = 10_000, 1_000, 1_000
MOST_SECONDS = 1_000_000
"""No attempt is waited for longer, seconds: some twelve days."""

LOCAL = Path("logs/local")
"""Where logs go unless a path is given."""


@functools.cache
def software_versions() -> dict[str, str]:
    """Returns the versions that a log states."""
    packages = ("evo-replay", "numpy", "scipy", "openai")
    return {"python": platform.python_version(), **{name: version(name) for name in packages}}


def make_header(
    task: str | os.PathLike[str] | Task | TaskRecord,
    *,
    model: str | Model = "offline",
    children: int = 16,
    seed: int = 0,
    temperature: float | None = None,
    top_p: float | None = None,
    max_tokens: int | None = None,
    limits: Limits | None = None,
    evaluation_timeout: float | None = None,
    min_improvement: float = 1e-9,
    search: str | Mapping[str, Any] | Search = "greedy",
    statement: str | None = None,
    feedback: bool = False,
    inspirations: int = 0,
    batches: int = 0,
    drafts: int = 1,
    critic: str | Model | Critic | CriticRecord | None = None,
    draws: int = 1,
    confirm: int = 0,
    spending: bool = False,
    protocol: str = "",
    condition: str = "",
) -> Header:
    """Returns the configuration of a run: everything that its children depend on.

    Args:
        task: Name, alias, folder or Task.
        model: Name in the registry, or a Model.
        children: N, at least 1.
        seed: Seed of the run, at least 0.
        temperature: Sampling temperature; None: the model's default, as for the next two.
        top_p: Nucleus sampling mass in (0, 1].
        max_tokens: Completion tokens at most.
        limits: Limits of an evaluation; None: the task's.
        evaluation_timeout: Seconds; replaces that limit alone.
        min_improvement: A child replaces its parent only if better by more than this, at least 0.
        search: Which programs the children rewrite: a name of `evo.SEARCHES`, a mapping of it and
            the search's fields, such as {"name": "population", "size": 40}, or the search itself.
        statement: Said in the prompt instead of the task's statement.
        feedback: Say in the prompt what went wrong lately, and the parent's public metrics.
        inspirations: How many of the best other programs the prompt shows, at least 0.
        batches: Texts on a data set: how many of its instances a generation's children are tried on
            first; then on twice as many, and so on, without those that cannot catch up, whose
            status is `partial`. 0: all are tried on all at once.
        drafts: Replies asked for each child, of which the critic has one evaluated, at least 1.
        critic: A critic, or the model of one: it chooses among drafts, and scores replies on
            tasks that say so; it has no part in a run without either.
        draws: Evaluations of a program whose mean is its fitness; more than 1 for noisy ones.
        confirm: Fresh evaluations of a child and the best so far, a greedy run's parent, before the
            child replaces it, by a paired test at 5 %; at least 2, or 0: none.
        spending: All those tests of a run share the 5 %.
        protocol: SHA-256 (hex) of the protocol that the run belongs to; see `evo.studies.protocol`.
        condition: Name of its condition in the protocol.

    Raises:
        ValueError: A value is out of range, or the task or model is unknown.
    """
    from evo.models.registry import find_model, resolve_sampling

    children = at_least("children (N)", children, 1)
    seed = at_least("seed", seed, 0)
    if not 0 <= min_improvement < float("inf"):
        raise ValueError(f"min_improvement: expected a number >= 0, got {min_improvement!r}")
    inspirations = at_least("inspirations", inspirations, 0)
    draws, confirm = at_least("draws", draws, 1), at_least("confirm", confirm, 0)
    drafts, batches = at_least("drafts", drafts, 1), at_least("batches", batches, 0)
    if children * drafts > cap("EVO_MAX_CHILDREN"):
        raise ValueError(f"children (N) times drafts: {above('EVO_MAX_CHILDREN')}")
    if max(draws, confirm) > cap("EVO_MAX_DRAWS"):
        raise ValueError(f"draws, confirm: {above('EVO_MAX_DRAWS')}")
    if confirm == 1:
        raise ValueError("confirm: expected 0 or at least 2 draws, since one has no spread, got 1")
    loaded, known = load_task(task), find_model(model)
    limits = with_seconds(limits or loaded.limits, evaluation_timeout)
    if loaded.record.asks_model and (draws, confirm) != (1, 0):
        raise ValueError("draws, confirm: a text's evaluation makes calls and has one draw")
    if batches and not loaded.record.asks_model:
        raise ValueError(f"batches: texts on a data set have instances, {loaded.name} has none")
    searched = record_of(search)
    scores = critic_record(critic, loaded.record)
    if drafts > 1 and scores is None:
        raise ValueError(
            f'drafts: {drafts} of them need a critic to choose; give critic="NAME" (--critic NAME)'
        )
    sampling = resolve_sampling(known, temperature=temperature, top_p=top_p, max_tokens=max_tokens)
    return Header(
        schema=SCHEMA,
        task=loaded.record,
        model=known,
        sampling=sampling,
        children=children,
        seed=seed,
        min_improvement=float(min_improvement),
        limits=limits,
        prompt_version=TOLD_VERSION if feedback or inspirations or searched else PROMPT_VERSION,
        search=searched,
        statement=statement,
        feedback=bool(feedback),
        inspirations=inspirations,
        batches=batches,
        drafts=drafts,
        critic=scores if drafts > 1 or loaded.record.score == "critic" else None,
        draws=draws,
        confirm=confirm,
        spending=bool(spending),
        protocol=protocol,
        condition=condition,
        versions=software_versions(),
    )


def make_header_again(header: Header, **changes: Any) -> Header:
    """Returns a run's configuration with some options of `make_header` changed, others as told."""
    known: dict[str, Any]
    known = {name: getattr(header, name, None) for name in make_header.__kwdefaults__ or {}}
    known |= msgspec.structs.asdict(header.sampling) | {"evaluation_timeout": None, **changes}
    if "search" not in changes:
        known["search"] = search_of(header.search)
    return make_header(header.task, **known)


def at_least(name: str, value: SupportsIndex, low: int, *, most: int | None = None) -> int:
    """Returns a whole number, NumPy's included, as an int; raises if it is out of range."""
    if isinstance(value, bool) or not isinstance(value, SupportsIndex):
        raise TypeError(f"{name}: expected a whole number, got {value!r}")
    if (number := operator.index(value)) < low:
        raise ValueError(f"{name}: expected at least {low}, got {number}")
    if most is not None and number > most:
        raise ValueError(f"{name}: expected at most {most:,}, got {number}")
    return number


def seeds_of(seeds: Iterable[SupportsIndex] | str) -> tuple[int, ...]:
    """Returns seeds, all different and at most a million; "1,5,40:50" is 1, 5 and 40 ... 49."""
    given = seeds
    if isinstance(seeds, str):
        form = re.compile(r"\s*(\d{1,18})(?::(\d{1,18}))?\s*")
        parts = [form.fullmatch(part) for part in seeds.split(",")]
        if any(part is None for part in parts):
            raise ValueError(f"seeds: expected such as 7, 40:50 or 1,5,40:50, got {seeds!r}")
        ends = [(int(part[1]), int(part[2] or int(part[1]) + 1)) for part in parts if part]
        seeds = itertools.chain.from_iterable(itertools.starmap(range, ends))
    found = tuple(at_least("seeds", each, 0) for each in itertools.islice(seeds, MOST_SEEDS + 1))
    if len(found) > MOST_SEEDS:
        raise ValueError(f"seeds: expected at most {MOST_SEEDS:,}, got {given!r}")
    if not found or len(set(found)) < len(found):
        raise ValueError(f"seeds: expected at least one and all different, got {given!r}")
    return found


EventKind = Literal["start", "child", "generation", "end"]


@dataclass(frozen=True)
class Event:
    """What `on_event` is told, once it is in the log.

        def on_event(event):
            if event.kind == "generation":
                wandb.log({f"{event.path.stem}/best": event.best_fitness}, step=event.generation)

    Attributes:
        kind: A run began or goes on, a child or a generation is complete, or its session ended.
        path: The run's log.
        header: Its configuration.
        generation: Complete generations.
        best_fitness: Best so far; None while nothing is ok.
        record: The initial program's evaluation, or the `Child`, `Generation` or `End` logged.
    """

    kind: EventKind
    path: Path
    header: Header
    generation: int
    best_fitness: float | None
    record: Evaluation | Child | Generation | End


@dataclass(frozen=True, kw_only=True)
class Settings:
    """How a session works; unlike the header, nothing that a child depends on.

    Attributes:
        max_concurrent: Calls in flight at most, 1 works in order; None: the preset's, else 20.
        timeout: Seconds that one attempt may take.
        retries: Attempts beyond the first.
        workers: Evaluations at a time; None: one per core, or on a cluster one per thread of its
            workers.
        scheduler: Address of a Dask scheduler whose workers evaluate, such as `tcp://host:8786`;
            None: this machine, or the cluster of `joblib.parallel_config(backend="dask")`.
        cache: File of replies shared by runs, see `evo.models.cache`; None: every call is made.
        progress: Show a progress bar.
        preset: Name out of `evo.runs.concurrency.PRESETS`: stands in for what is None here.
        requests_per_minute: Of each endpoint, in any sliding minute; None: the preset's, else no
            limit.
        tokens_per_minute: Of prompts and replies, likewise; None: no limit.
        on_event: Told of every `Event`, one at a time, from the thread that made it; what it raises
            ends the session, resumably.
    """

    max_concurrent: int = None  # type: ignore[assignment]  # a number once it is made
    timeout: float = 600.0
    retries: int = 5
    workers: int | None = None
    scheduler: str | None = None
    cache: Path | None = None
    progress: bool = True
    preset: str | None = None
    requests_per_minute: int | None = None
    tokens_per_minute: int | None = None
    on_event: Callable[[Event], object] | None = None

    def __post_init__(self) -> None:
        preset = None if self.preset is None else find_preset(self.preset)
        if self.max_concurrent is None:
            object.__setattr__(self, "max_concurrent", preset.max_concurrent if preset else 20)
        if self.requests_per_minute is None and preset:
            object.__setattr__(self, "requests_per_minute", preset.requests_per_minute)
        limits = {"max_concurrent": MOST_CONCURRENT, "retries": MOST_RETRIES}
        limits |= {"workers": MOST_WORKERS}
        for name in ("requests_per_minute", "tokens_per_minute", *limits):
            if (value := getattr(self, name)) is not None:
                at_least(name, value, int(name != "retries"), most=limits.get(name))
        if not 0 < self.timeout <= MOST_SECONDS:
            raise ValueError(
                f"timeout: expected seconds above 0, at most {MOST_SECONDS:,}, got {self.timeout!r}"
            )


@dataclass(frozen=True)
class Goal:
    """Where a run ends, none of which identifies it.

    Attributes:
        generations: T, at least 1.
        target: Fitness at which it ends; None: none.
        patience: Generations in a row without an improvement after which it ends; None: never.
    """

    generations: int = 8
    target: float | None = None
    patience: int | None = None

    def __post_init__(self) -> None:
        at_least("generations (T)", self.generations, 0)
        if self.patience is not None:
            at_least("patience", self.patience, 1)
        if self.target is not None and not -float("inf") < self.target < float("inf"):
            raise ValueError(f"target: expected a finite fitness, got {self.target!r}")

    def reached(self, done: int, best: float | None, barren: int) -> EndReason | None:
        """Returns why a run ends after so many generations, so many barren; None: it goes on."""
        if self.target is not None and best is not None and best >= self.target:
            return "target"
        if done >= self.generations:
            return "completed"
        return "patience" if self.patience is not None and barren >= self.patience else None


def split_goal(
    options: Mapping[str, Any], before: Goal | None = None
) -> tuple[Goal, dict[str, Any]]:
    """Returns the goal that some options state, else what it was before, and the other options."""
    names = Goal.__dataclass_fields__
    given = {n: value for n in names if (value := options.get(n)) is not None}
    rest = {name: value for name, value in options.items() if name not in names}
    if not given and before is not None:
        return before, rest
    T = given.pop("generations", before.generations if before else Goal.generations)
    return Goal(at_least("generations (T)", T, 1), **given), rest


_promised: set[Path] = set()  # paths that runs of this process are about to begin
_promising = threading.Lock()


def run_stem(header: Header) -> str:
    """Returns how the name of a run's log begins, after what identifies it."""
    task, model = file_name(header.task.name), file_name(header.model.name)
    fork = f"-at{header.fork.at}-copy{header.fork.copy}" if header.fork else ""
    return f"{task}-{model}-N{header.children}-s{header.seed}{fork}"


def default_path(header: Header, folder: str | os.PathLike[str] | None = None) -> Path:
    """Returns a path for a run's log that is unused, and promised to no other run."""
    folder, stem = LOCAL if folder is None else Path(folder), run_stem(header)
    with _promising:
        for count in itertools.count(1):
            path = folder / (f"{stem}.jsonl" if count == 1 else f"{stem}-{count}.jsonl")
            used = path.exists() or path.with_name(f"{path.name}.gz").exists()
            if not used and path.absolute() not in _promised:
                _promised.add(path.absolute())
                return path
    raise AssertionError("there is no end of names")


def keep_promises(paths: Iterable[Path]) -> None:
    """Promises these paths no longer: their runs have begun, or never will."""
    with _promising:
        _promised.difference_update(path.absolute() for path in paths)


def find_run(header: Header, folder: str | os.PathLike[str] | None = None) -> Path | None:
    """Returns the log in a folder that holds this very run; None: there is none.

    Only logs of its own name are looked at, and of these one that cannot be read is passed over.
    """
    folder, stem = LOCAL if folder is None else Path(folder), run_stem(header)
    named = re.compile(re.escape(stem) + r"(-\d+)?\.jsonl(\.gz)?")
    names = sorted(os.listdir(folder), key=lambda n: (len(n), n)) if folder.is_dir() else []
    for path in (folder / name for name in names if named.fullmatch(name)):
        try:
            if not differences(read_log(path).header, header):
                return path
        except LogError as error:
            if path.stat().st_size:
                warnings.warn(f"{error}; this log is passed over", stacklevel=2)
    return None


def identity(header: Header) -> Header:
    """Returns a header without what does not identify its run.

    The software's versions, the number of the schema, and where the model is served and at what
    price, may differ.
    """
    elsewhere = ("base_url", "key_variable", "input_price", "cached_price", "output_price")

    def bare(model: Model) -> Model:
        return msgspec.structs.replace(model, **dict.fromkeys(elsewhere))

    return _with_models(msgspec.structs.replace(header, schema=SCHEMA, versions={}), bare)


def _with_models(header: Header, change: Callable[[Model], Model]) -> Header:
    """Returns a header with its model changed, and that of its critic alike."""
    critic = header.critic
    if critic is not None:
        critic = msgspec.structs.replace(critic, model=change(critic.model))
    return msgspec.structs.replace(header, model=change(header.model), critic=critic)


def differences(one: Header, other: Header) -> list[str]:
    """Returns the fields in which two headers describe different runs.

    Of their models only what is asked counts: name, id, extra fields and version.
    """

    def named(was: Model) -> Model:
        return Model(
            name=was.name, id=was.id or was.name, extra_body=was.extra_body, version=was.version
        )

    one, other = (_with_models(identity(each), named) for each in (one, other))
    return [f for f in one.__struct_fields__ if getattr(one, f) != getattr(other, f)]


def split_settings(options: Mapping[str, Any]) -> tuple[Settings, dict[str, Any]]:
    """Returns how to work, of `settings` or its fields among some options, and the others.

    TypeError: none of them, nor of `make_header`, has such a name.
    """
    fields = Settings.__dataclass_fields__
    given = {name: value for name, value in options.items() if name in fields}
    rest = {name: value for name, value in options.items() if name not in given}
    settings = rest.pop("settings", None)
    known = {*(make_header.__kwdefaults__ or {}), *fields}
    if unknown := [name for name in rest if name not in known]:
        raise TypeError(f"unknown argument {unknown[0]!r} (known: {', '.join(sorted(known))})")
    if settings is None:
        return Settings(**given), rest
    if given:
        raise TypeError(f"{', '.join(given)}: give it within settings, not beside it")
    return settings, rest


def only_settings(options: Mapping[str, Any]) -> Settings:
    """Returns how to work; what identifies a run cannot be changed with it."""
    settings, rest = split_settings(options)
    if rest:
        raise TypeError(f"{next(iter(rest))!r} is part of the run's identity and cannot change")
    return settings
