"""`evo.sweep` and `evo.start_sweep`: what is asked is checked, and the folder is found or made."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Unpack

import msgspec

from evo.logs.inputs import as_named
from evo.logs.types import JsonObject, as_path
from evo.models.registry import own_models
from evo.plugins import MistakenType
from evo.runs.budget import check_budget
from evo.runs.concurrency import find_preset
from evo.runs.configuration import settings_of
from evo.runs.handle import Control, Handle, Prepared, in_background, in_foreground, verb
from evo.runs.options import SweepOptions, VariedOptions
from evo.runs.places import Resume, check_resume
from evo.runs.settings import Settings
from evo.runs.signatures import check_options, lists_options, options_in
from evo.studies.places import place_of_study
from evo.studies.study import Study
from evo.studies.sweep.design import (
    DESIGN,
    Design,
    is_sweep,
    keep_design,
    make_design,
    read_design,
    read_toml,
)
from evo.studies.sweep.events import (
    EventLog,
    SweepEvent,
)
from evo.studies.sweep.fields import dotted
from evo.studies.sweep.strategies import STRATEGIES
from evo.studies.sweep.summary import Sweep
from evo.studies.sweep.work import Sweeping, configured
from evo.tasks.task import Task


def _holds(folder: Path, design: Design) -> bool:
    """Whether a folder holds this very sweep, whose models are as they were."""
    if not is_sweep(folder):
        return False
    design = keep_design(folder, design, same=True)
    for hash_, values in EventLog(folder).state.configurations.items():
        configured(folder, design, values, hash_)
    return True


def _in_batches(
    strategy: str | Mapping[str, object], preset: str | None, folder: Path | None
) -> str | Mapping[str, object]:
    """Returns a strategy with batches of the preset's size, unless they have one already."""
    if not isinstance(strategy, str | Mapping):
        raise MistakenType(
            f"strategy: expected the name of one, out of {', '.join(STRATEGIES)}, or a dict of "
            f"its name and options, got {strategy!r:.80}"
        )
    options = {"name": strategy} if isinstance(strategy, str) else strategy
    if options.get("name") != "bayesian" or "batch" in options:
        return strategy
    if folder is not None and is_sweep(folder):  # it goes on as it began, whatever the preset
        batch = read_design(folder).options.get("batch")
    else:
        batch = find_preset(preset).configurations_per_batch if preset else None
    return strategy if batch is None else {**options, "batch": batch}


@dataclass(frozen=True, kw_only=True)
class PreparedSweep(Prepared[Sweep]):
    """A sweep that was checked and has not begun.

    Attributes:
        design: What it is going to be; its folder may still hold one of fewer runs.
        limits: What all its runs may cost together, by unit.
    """

    design: Design
    limits: Mapping[str, float]


@lists_options(SweepOptions)
def prepare_sweep(
    space: Mapping[str, object] | str | os.PathLike[str],
    *,
    task: str | os.PathLike[str] | Task | None = None,
    strategy: str | Mapping[str, object] | None = None,
    trials: int | None = None,
    seeds: Iterable[int] | str | None = None,
    seed: int | None = None,
    budget: Mapping[str, float] | None = None,
    log_dir: str | os.PathLike[str] | None = None,
    resume: Resume = True,
    on_event: Callable[[SweepEvent], object] | None = None,
    base: Mapping[str, object] | None = None,
    generations: int | None = None,
    arms: int | None = None,
    rounds: int | None = None,
    **options: Unpack[SweepOptions],
) -> PreparedSweep:
    """Runs many configurations, each on the same seeds, and logs all.

    Called again with the same arguments, it continues, and no logged call is made twice.
    Arguments replace the values of a sweep.toml. If a configuration has a `policy`, a run of it is
    an allocation, as by `evo.allocate_live`; its k-th arm has the seed K times the run's plus k, so
    that policies are compared over the same arms.

    `.summary` of the sweep shows its progress; `replay.load_sweep(...)` makes a table of it.

    Args:
        space: Fields and their values, see `evo.studies.sweep.space`; or a sweep.toml; or the
            folder of a sweep to continue, which takes only a budget and settings.
        task: Name, alias, folder or Task; the space may name several in the field `task`.
        strategy: A name of `strategies.STRATEGIES`, or {"name": ...} with its options (default: the
            file's, else grid).
        trials: Number of trials (default: as before, or 100). An existing sweep can be given more.
            A grid has as many as there are combinations; in the folder that `log_dir` names it can
            be given further values and seeds, all earlier ones among them.
        seeds: Seeds of the runs of each configuration (default: 40 ... 44).
        seed: Key of the strategy's draws (default: 0).
        budget: Limits by unit of all runs together: calls, tokens, flops, dollars, seconds (wall
            time); what earlier sessions spent counts. All runs of a proposal get equally far
            (default: as before, or no limit).
        log_dir: Folder of the sweep (default: that of the same sweep in logs/local, else a new one
            there).
        resume: Whether the same sweep goes on; False: begin a new one, in a folder that holds none.
        on_event: Called with every event, see `evo.studies.sweep.events`, as `evo.run` calls it.
        base: Further fields of all configurations, such as {"limits": {"seconds": 5}}.
        generations: T, unless the space has it (default: 8).
        arms: K of allocations, unless the space has it (default: 10).
        rounds: Pulls of allocations, unless the space has them (default: 64).
        **options: Listed below.

    Raises:
        ValueError: A mistake in the arguments, or the folder holds another sweep.
        LogError: A log is damaged or busy, or the folder holds a sweep and none shall go on.
        EndpointDown: The endpoint does not answer; the sweep can go on later.

    Example:
        >>> settings = {"base": {"generations": 1}, "log_dir": new(""), "progress": False}
        >>> made = evo.sweep({"children": [1, 2]}, task="mmd", seeds=[1], **settings)
        >>> len(replay.load_sweep(made))
        2

    Example:
        >>> settings = {"base": {"generations": 1}, "log_dir": new(""), "progress": False}
        >>> handle = evo.start_sweep({"children": [1, 2]}, task="mmd", seeds=[1], **settings)
        >>> len(replay.load_sweep(handle.wait()))
        2
    """
    check_options(SweepOptions, options, verb=sweep)
    settings = settings_of(options)
    sizes = {"generations": generations, "arms": arms, "rounds": rounds}
    fields = {**dotted(as_named("base", base)), **dotted(options_in(VariedOptions, options))}
    fields |= {name: value for name, value in sizes.items() if value is not None}
    parts = {"task": task, "strategy": strategy, "trials": trials, "seeds": seeds, "seed": seed}
    given = {name: value for name, value in parts.items() if value is not None}
    known: JsonObject = {"space": dotted(space) if isinstance(space, Mapping) else space}
    if isinstance(space, str | os.PathLike):
        place = as_path("space", space)
        if place.suffix != ".toml":
            own = {"log_dir": log_dir is None, "resume": check_resume(resume)}
            extra = [*(given.keys() - {"trials"}), *fields, *(n for n in own if not own[n])]
            if extra:
                advice = {
                    "resume": "=False, which begins another: give a space or a sweep.toml in its "
                    "place",
                    "seeds": "; a grid is given further ones with its whole space, or its "
                    f"sweep.toml, and log_dir={str(place)!r}",
                }
                raise MistakenType(
                    f"{place}: a sweep that exists takes settings, a budget and trials alone, "
                    f"got {extra[0]}{advice.get(extra[0], '')}"
                )
            design = msgspec.structs.replace(read_design(place), trials=trials)
            return _plan(place, design, budget, settings, on_event, own=False)
        known = read_toml(place)
    limits = known.pop("budget", None)
    known |= {**given, "base": {**known.get("base", {}), **fields}}
    stated = known.pop("strategy", "grid")

    def designed(folder: Path | None) -> Design:
        return make_design(strategy=_in_batches(stated, settings.preset, folder), **known)

    name = place.stem if isinstance(space, str | os.PathLike) else designed(None).strategy
    folder = place_of_study(
        f"sweep-{name}", log_dir, DESIGN, lambda each: _holds(each, designed(each)),
        resume=resume, progress=settings.progress,
    )  # fmt: skip
    limits = limits if budget is None else budget
    return _plan(folder, designed(folder), limits, settings, on_event)


def _plan(
    folder: Path,
    design: Design,
    budget: Mapping[str, float] | None,
    settings: Settings,
    on_event: Callable[[SweepEvent], object] | None,
    *,
    own: bool = True,
) -> PreparedSweep:
    """Checks that the sweep can be made or continued, and writes sweep.json.

    If the design is not the caller's own but a folder's, calls go to the caller's own models.
    """
    if is_sweep(folder):
        design = keep_design(folder, design)  # reports a difference first
    events = EventLog(folder, on_event, settings.listeners)  # type: ignore[arg-type]  # they take both
    planned, count = design.build_strategy().planned, len(events.state.trials)
    if planned < count:
        raise ValueError(f"trials: {folder} has tried {count} already, expected at least as many")
    proposed = events.state.configurations.items()
    made = [configured(folder, design, values, hash_) for hash_, values in proposed]
    known = [*design.tried_values(), *(each for each in made if not isinstance(each, str))]
    if not own:
        for each in known:
            own_models(each.header, folder)
    headers = [each.header for each in known]
    limits = check_budget(events.state.budget if budget is None else budget, headers)
    keep_design(folder, design)

    def work(control: Control) -> Sweep:
        with Study(events.path, settings, control, limits) as study:
            return Sweeping(study, design, events).work()

    return PreparedSweep([folder], work, many=True, design=design, limits=limits)


sweep = verb("sweep", prepare_sweep, in_foreground, Sweep)
start_sweep = verb("start_sweep", prepare_sweep, in_background, Handle[Sweep])
