"""What identifies a run, and how a session works on it."""

from __future__ import annotations

import functools
import itertools
import os
import platform
import re
import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from importlib.metadata import version
from pathlib import Path
from typing import Any, SupportsIndex, Unpack

import msgspec

from evo.filters.registry import filters_of, records_of
from evo.logs.caps import above, cap, with_seconds
from evo.logs.inputs import as_float, at_least, limits_of
from evo.logs.journal import LogError, file_name
from evo.logs.literals import EDITS
from evo.logs.log import read_log
from evo.logs.records import (
    SCHEMA,
    AskedModel,
    CriticRecord,
    Header,
    Limits,
    Model,
    Sampling,
    Session,
    TaskRecord,
)
from evo.logs.types import as_path
from evo.models.critics import critic_record
from evo.plugins import MistakenType
from evo.prompt import EXACT_VERSION, PROMPT_VERSION, TOLD_VERSION, WRITTEN_VERSION
from evo.runs.identity import differences
from evo.runs.mixture import MIXTURE_VERSION, MODEL_POLICIES
from evo.runs.options import ConfigurationOptions, FieldOptions, GoalOptions
from evo.runs.settings import Goal, Settings
from evo.runs.signatures import check_options, completed, entries, lists_options, options_in
from evo.searches.registry import record_of, search_of
from evo.tasks.task import Task, load_task
from evo.warning import warn

MOST_SEEDS = 1_000_000

LOCAL = Path("logs/local")
"""Where logs go unless a path is given."""


@functools.cache
def software_versions() -> dict[str, str]:
    """Returns the versions that a log states."""
    packages = ("evo-replay", "numpy", "scipy", "openai")
    return {"python": platform.python_version(), **{name: version(name) for name in packages}}


@lists_options(ConfigurationOptions)
def make_header(
    task: str | os.PathLike[str] | Task | TaskRecord, **options: Unpack[ConfigurationOptions]
) -> Header:
    """Returns the configuration of a run: everything that its children depend on.

    Args:
        task: Name, alias, folder or Task.
        **options: What identifies the run, listed below.

    Raises:
        ValueError: A value is out of range, or the task or model is unknown.
    """
    from evo.models.registry import find_model, resolve_sampling

    check_options(ConfigurationOptions, options)
    given = completed(ConfigurationOptions, options)
    loaded = load_task(task)
    _check_numbers(given)
    _check_evaluations(given, loaded)
    _check_order(given)
    sampling = functools.partial(
        resolve_sampling,
        temperature=given["temperature"],
        top_p=given["top_p"],
        max_tokens=given["max_tokens"],
    )
    models = _asked_models(given, sampling)
    weights = _model_weights(given, models)
    usual_policy = "random" if weights else "ucb1"
    known = models[0].model if models else find_model(given["model"], given["base_url"])
    search = record_of(given["search"])
    scored, critic = loaded.record.score == "critic", None
    if scored or given["critic"] is not None:
        critic = critic_record(given["critic"], loaded.record)
    _check_replies(given, critic)
    made: dict[str, Any] = {
        "model": known,
        "models": models,
        "diff_share": _diff_share(given),
        "model_policy": (given["model_policy"] or usual_policy) if models else "",
        "model_weights": weights,
        "min_improvement": float(given["min_improvement"]),
        "limits": _checked_limits(given, loaded),
        "search": search,
        "filters": () if given["filters"] == () else records_of(given["filters"]),
        "critic": critic if given["drafts"] > 1 or scored else None,
    }
    held = Header.__struct_fields__
    as_given: dict[str, Any] = {name: value for name, value in given.items() if name in held}
    return Header(
        schema=SCHEMA,
        task=loaded.record,
        sampling=models[0].sampling if models else sampling(known),
        mixture_version=MIXTURE_VERSION if models else 1,
        prompt_version=_prompt_version(given, searched=search is not None),
        asks=_asked_model(loaded, sampling),
        versions=software_versions(),
        **as_given | made,
    )


def _check_numbers(given: ConfigurationOptions) -> None:
    """Raises ValueError where a number or a product of two is out of range."""
    if given["children"] * given["drafts"] > cap("EVO_MAX_CHILDREN"):
        raise ValueError(f"children (N) times drafts: {above('EVO_MAX_CHILDREN')}")
    if given["inspirations"] > cap("EVO_MAX_CHILDREN"):
        raise ValueError(f"inspirations: {above('EVO_MAX_CHILDREN')}")
    least = given["min_improvement"]
    if not 0 <= as_float(least) < float("inf"):
        raise ValueError(f"min_improvement: expected a number >= 0, got {least!r:.60}")


def _checked_limits(given: ConfigurationOptions, task: Task) -> Limits:
    """Returns the limits of an evaluation; raises where the run cannot fix the time limit."""
    limits = task.limits if given["limits"] is None else limits_of(given["limits"], task.limits)
    limits = with_seconds(limits, given["evaluation_timeout"])
    if limits.auto and any(stage.limits is not None for stage in task.record.stages):
        raise ValueError(
            f"limits: 'auto' is for a whole evaluation, and the stages of {task.name} have limits "
            "of their own (stage_limits)"
        )
    return limits


def _check_replies(given: ConfigurationOptions, critic: CriticRecord | None) -> None:
    """Raises ValueError where replies are to be what they cannot be."""
    if (drafts := given["drafts"]) > 1 and critic is None:
        raise ValueError(
            f'drafts: {drafts} of them need a critic to choose; give critic="NAME" (--critic NAME)'
        )


def _diff_share(given: ConfigurationOptions) -> float | None:
    """Returns the probability with which a child is asked for blocks; None: replies are alike."""
    edits, share = given["edits"], given["diff_share"]
    if edits not in EDITS:
        raise ValueError(f"edits: expected one of {', '.join(EDITS)}, got {edits!r}")
    if edits != "mixed":
        if share is not None:
            raise ValueError(f'diff_share: needs edits="mixed" (--edits mixed), not {edits!r}')
        return None
    found = 0.5 if share is None else as_float(share)
    if not 0 < found < 1:
        raise ValueError(f"diff_share: expected a number between 0 and 1, got {share!r:.60}")
    return found


def _prompt_version(given: ConfigurationOptions, *, searched: bool) -> int:
    """Returns the version of the prompt's wording; the plain one is that of the first logs."""
    if given["feedback"] or given["advice"]:
        return WRITTEN_VERSION
    if given["inspirations"] and given["confirm"]:
        return EXACT_VERSION
    plain = given["edits"] == "rewrite" and not (given["feedback"] or given["inspirations"])
    return PROMPT_VERSION if plain and not searched else TOLD_VERSION


def _asked_models(
    given: ConfigurationOptions, sampling: Callable[[Model], Sampling]
) -> tuple[AskedModel, ...]:
    """Returns the models of a run that has several, each with its sampling; else none.

    Raises:
        ValueError: There are not at least two different ones, or they cannot be compared.
    """
    from evo.models.registry import find_model

    listed, policy = given["models"], given["model_policy"]
    if policy is not None and (not isinstance(policy, str) or policy not in MODEL_POLICIES):
        known = ", ".join(MODEL_POLICIES)
        raise ValueError(f"model_policy: expected one of {known}, got {policy!r}")
    if listed is None or (isinstance(listed, Sequence) and not listed):
        if policy is not None:
            raise ValueError(
                f"model_policy: {policy!r} chooses among several models; give them as well, "
                "models=[NAME, NAME] (--models NAME for each)"
            )
        return ()
    if isinstance(listed, str) or not isinstance(listed, Sequence):
        raise MistakenType(f"models: expected a list of names or models, got {listed!r}")
    found = []
    for each in listed:
        if isinstance(each, AskedModel):
            found.append(each)
        else:
            model = find_model(each)
            found.append(AskedModel(model=model, sampling=sampling(model)))
    names = [each.model.name for each in found]
    if len(names) < 2 or len(set(names)) < len(names):
        raise ValueError(f"models: expected at least two, all different, got {names!r}")
    if len({each.model.is_llm for each in found}) > 1:
        raise ValueError("models: expected LLMs or stand-ins, not both")
    if (name := find_model(given["model"]).name) not in (*names, "offline"):
        raise ValueError(f"model: expected none beside models, got {name!r}")
    return tuple(found)


def _model_weights(given: ConfigurationOptions, models: Sequence[AskedModel]) -> tuple[float, ...]:
    """Returns how likely each of several models is drawn, in proportion; empty: all alike.

    Raises:
        ValueError: There is not one positive number for each, or another policy is to choose.
    """
    weights, policy = given["model_weights"], given["model_policy"]
    if weights is None or (isinstance(weights, Sequence) and not weights):
        return ()
    what = f"one number > 0 for each of models ({len(models)})"
    if isinstance(weights, str) or not isinstance(weights, Sequence):
        raise MistakenType(f"model_weights: expected {what}, got {weights!r:.80}")
    found = tuple(as_float(each) for each in weights)
    if len(found) != len(models) or not all(0 < each < float("inf") for each in found):
        raise ValueError(f"model_weights: expected {what}, got {weights!r:.80}")
    if policy not in (None, "random"):
        raise ValueError(
            f"model_weights: models are drawn by them at random, but model_policy is {policy!r}; "
            "leave one of the two out"
        )
    return found


def _asked_model(task: Task, sampling: Callable[[Model], Sampling]) -> AskedModel | None:
    """Returns the model that a task has asked instances, if it is not the run's own."""
    from evo.models.registry import find_model

    if task.asks is None:
        return None
    model = find_model(task.asks)  # type: ignore[arg-type]  # it says what it expects
    return AskedModel(model=model, sampling=sampling(model))


def _check_evaluations(given: ConfigurationOptions, task: Task) -> None:
    """Raises ValueError where draws, confirm, batches or audit do not apply to a task."""
    draws, confirm, batches = given["draws"], given["confirm"], given["batches"]
    if max(draws, confirm) > cap("EVO_MAX_DRAWS"):
        raise ValueError(f"draws, confirm: {above('EVO_MAX_DRAWS')}")
    if confirm == 1:
        raise ValueError("confirm: expected 0 or at least 2 draws, since one has no spread, got 1")
    if task.record.asks_model and (draws, confirm) != (1, 0):
        raise ValueError("draws, confirm: a text's evaluation makes calls and has one draw")
    if confirm and task.record.isolation == "here":
        raise ValueError(
            "confirm: an evaluator in this process is not played again, so its tests cannot be; "
            "give draws="
        )
    if batches:
        _check_batches(task)
    if given["audit"] and not task.record.stages:
        raise ValueError(
            f"audit: {task.name} has no stages that could refuse a child; evo.task has "
            "evaluate=[cheap, thorough], thresholds=[...], a folder functions evaluate_stage1, "
            "evaluate_stage2"
        )


def _check_batches(task: Task) -> None:
    """Raises ValueError where the children of a task cannot race on growing batches of rows."""
    record = task.record
    if not record.asks_model:
        what = "a program" if record.evolves == "python" else "a text that no model is given"
        why = f"evolves {what}" if record.instances_file else "has no data set"
        raise ValueError(
            "batches: only texts under which a model is asked the rows of a data set are tried on "
            f"growing batches of them, and {task.name} {why}; leave batches out"
        )
    if record.scores == "any":
        raise ValueError(
            "batches: these need scores between 0 and 1, and those of this task may be any "
            "numbers; if they are, say so: evo.task(..., scale='unit'), in a folder with "
            "scores = 'unit' in task.toml"
        )


def _check_order(given: ConfigurationOptions) -> None:
    """Raises ValueError where a run without a barrier needs one."""
    for name in ("confirm", "batches", "advice"):
        if given["asynchronous"] and given[name]:
            raise ValueError(
                f"{name}: needs whole generations, which asynchronous=True (--asynchronous) does "
                "without; leave one of them out"
            )


def make_header_again(header: Header, **changes: Unpack[ConfigurationOptions]) -> Header:
    """Returns a run's configuration with some options of `make_header` changed."""
    known = {
        entry.name: getattr(header, entry.name, None) for entry in entries(ConfigurationOptions)
    }
    known |= msgspec.structs.asdict(header.sampling)
    known["evaluation_timeout"] = None
    if changes.get("search") is None:  # the logged one may be unknown here
        known["search"] = search_of(header.search)
    if changes.get("filters") is None:
        known["filters"] = filters_of(header)
    if not header.models or changes.get("model") is not None:
        known |= {"models": None, "model_policy": None, "model_weights": None}
    stated = {name for name, value in changes.items() if value is not None}
    if stated & {"models", "model_policy"}:
        known["model_weights"] = None
    if "model_weights" in stated:
        known["model_policy"] = None
    if "edits" in stated:
        known["diff_share"] = None
    made = make_header(header.task, **options_in(ConfigurationOptions, known | dict(changes)))
    made = msgspec.structs.replace(made, asks=header.asks)
    told = header.feedback and made.feedback
    ranked = header.inspirations and header.confirm and made.inspirations and made.confirm
    if told or ranked:  # prompts of an older log stay as they were
        version = min(made.prompt_version, header.prompt_version)
        made = msgspec.structs.replace(made, prompt_version=version)
    if header.models and made.models:
        made = msgspec.structs.replace(made, mixture_version=header.mixture_version)
    return made


def seeds_of(seeds: Iterable[SupportsIndex] | str) -> tuple[int, ...]:
    """Returns seeds, all different and at most a million; "1,5,40:50" is 1, 5 and 40 ... 49."""
    given = seeds
    if not isinstance(seeds, Iterable) or isinstance(seeds, bytes | bytearray):
        raise MistakenType(f"seeds: expected several numbers such as [40, 41], got {seeds!r:.60}")
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


def goal_of(options: GoalOptions, before: Goal | None = None) -> Goal:
    """Returns the goal that options state; what they do not state stays as it was before."""
    stated = options_in(GoalOptions, options)
    given = {name: value for name, value in stated.items() if value is not None}
    if stated.get("generations") is not None:
        given["generations"] = at_least("generations (T)", stated["generations"], 1)
    return replace(before or Goal(), **given)  # type: ignore[arg-type]  # by name, as stated


_promised: set[Path] = set()  # paths that runs of this process are about to begin
_promising = threading.Lock()


def run_stem(header: Header) -> str:
    """Returns how the name of a run's log begins, after what identifies it."""
    task, model = file_name(header.task.name), file_name(header.model_name)
    fork = f"-at{header.fork.at}-copy{header.fork.copy}" if header.fork else ""
    return f"{task}-{model}-N{header.children}-s{header.seed}{fork}"


def default_path(header: Header, folder: str | os.PathLike[str] | None) -> Path:
    """Returns a path for a run's log that is unused, and promised to no other run."""
    folder, stem = as_path("log_dir", LOCAL if folder is None else folder), run_stem(header)
    with _promising:
        for count in itertools.count(1):
            path = folder / (f"{stem}.jsonl" if count == 1 else f"{stem}-{count}.jsonl")
            used = path.exists() or path.with_name(f"{path.name}.gz").exists()
            if not used and path.absolute() not in _promised:
                _promised.add(path.absolute())
                return path
    raise AssertionError("there is no end of names")


def release_paths(paths: Iterable[Path]) -> None:
    """Releases reserved paths, whose runs have begun or were given up."""
    with _promising:
        _promised.difference_update(path.absolute() for path in paths)


def logs_of_name(header: Header, folder: Path) -> list[Path]:
    """Returns the logs of a folder that are named as those of a run are, the newest first."""
    named = re.compile(re.escape(run_stem(header)) + r"(-\d+)?\.jsonl(\.gz)?")
    names = sorted(os.listdir(folder), key=lambda n: (len(n), n)) if folder.is_dir() else []
    names.reverse()  # the one with the highest number was begun last
    return [folder / name for name in names if named.fullmatch(name)]


def find_run(header: Header, folder: str | os.PathLike[str] | None) -> Path | None:
    """Returns the newest log in a folder that holds this very run; None: there is none.

    Only logs of its own name are looked at, and of these one that cannot be read is passed over.
    """
    for path in logs_of_name(header, as_path("log_dir", LOCAL if folder is None else folder)):
        try:
            if not differences(read_log(path).header, header):
                return path
        except LogError as error:
            if path.stat().st_size:
                warn(f"{error}; this log is passed over")
    return None


def settings_of(options: Mapping[str, object], before: Iterable[Session] = ()) -> Settings:
    """Returns the settings among some options, given one by one or as `settings`.

    Calls in flight and rates that are not given stay as before; of several logs the smallest.
    """
    given = options_in(FieldOptions, options)
    settings = options.get("settings")
    if settings is None:
        sessions = [] if given.get("preset") is not None else list(before)
        for name in ("max_concurrent", "requests_per_minute", "tokens_per_minute", "preset"):
            stated = [value for each in sessions if (value := getattr(each, name)) is not None]
            if stated and given.get(name) is None:
                given[name] = min(stated)
        return Settings(**given)  # type: ignore[arg-type]  # None is replaced
    if not isinstance(settings, Settings):
        raise MistakenType(f"settings: expected evo.Settings, got {settings!r}")
    if given:
        raise MistakenType(f"{', '.join(given)}: give it within settings, not beside it")
    return settings
