"""`evo.sweep` and `evo.start_sweep`: a sweep from Python."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from evo.concurrency import find_preset
from evo.configuration import LOCAL, Settings, split_settings
from evo.handle import GRACE
from evo.sweeping.driver import Driver, Subscriber, Summary, summarise
from evo.sweeping.events import EventLog, budget_of, request
from evo.sweeping.plan import PLAN, keep_plan, make_plan, read_plan, read_toml
from evo.task import Task


class Sweep:
    """A sweep that this process works on in the background; also its path, for `os.fspath`.

    Attributes:
        folder: Where it is: sweep.json, events.jsonl and the logs.
    """

    def __init__(
        self,
        folder: Path,
        *,
        budget: Mapping[str, float] | None = None,
        settings: Settings | None = None,
        on_event: Subscriber | None = None,
    ) -> None:
        self.folder = folder
        self._settings, self._on_event = settings or Settings(), on_event
        self._error: BaseException | None = None
        self._begin(budget)

    def _begin(self, budget: Mapping[str, float] | None) -> None:
        if budget is None:
            events = EventLog(self.folder)
            events.refresh()
            limits = events.state.budget
        else:
            limits = budget_of(budget)
        self._error = None
        self._driver = Driver(self.folder, limits, self._settings, self._on_event)
        self._done = threading.Event()  # joining the thread would lose track of it on Ctrl-C
        threading.Thread(target=self._run, args=(self._done,), daemon=True).start()

    def _run(self, done: threading.Event) -> None:
        try:
            self._driver.work()
        except BaseException as error:  # raised again by wait()
            self._error = error
        finally:
            done.set()

    @property
    def running(self) -> bool:
        """Whether this process is still at it."""
        return not self._done.is_set()

    @property
    def summary(self) -> Summary:
        """How the sweep stands now."""
        return summarise(self.folder)

    def pause(self) -> None:
        """Lets no further call begin, here or elsewhere; calls in flight finish and are logged."""
        request(self.folder, "pause")

    def stop(self) -> None:
        """Likewise, but what is in flight has five seconds; the rest counts as cancelled."""
        request(self.folder, "stop")

    def resume(self, *, budget: Mapping[str, float] | None = None) -> None:
        """Goes on in the background, once what is under way is done.

        Args:
            budget: New limits by unit, what was spent before included; None: those of before.
        """
        self._done.wait()
        self._begin(budget)

    def wait(self, timeout: float | None = None) -> Summary:
        """Waits until this process is done with it, and returns how it stands.

        Raises:
            TimeoutError: Not done within `timeout` seconds.
            EndpointDown: The endpoint does not answer; the sweep can go on later.
            BaseException: Whatever else ended it.
        """
        if not self._done.wait(timeout):
            raise TimeoutError(f"still running after {timeout} s")
        if self._error is not None:
            raise self._error
        return self.summary

    def interrupt(self) -> None:
        """Pauses, and gives what is in flight five seconds: what Ctrl-C does."""
        self._driver.halt("paused")
        if not self._done.wait(GRACE):
            self._driver.kill()
            self._done.wait(GRACE)

    def __fspath__(self) -> str:
        return str(self.folder)

    def __repr__(self) -> str:
        return f"<Sweep {'running, ' if self.running else ''}{self.summary}>"


def start_sweep(
    space: Mapping[str, Any] | str | os.PathLike[str],
    *,
    task: str | os.PathLike[str] | Task | None = None,
    strategy: str | Mapping[str, Any] = "grid",
    trials: int | None = None,
    seeds: Iterable[int] = range(40, 45),
    seed: int = 0,
    budget: Mapping[str, float] | None = None,
    log_dir: str | os.PathLike[str] | None = None,
    on_event: Subscriber | None = None,
    settings: Settings | None = None,
    **base: Any,
) -> Sweep:
    """Starts `sweep` in the background; arguments as there.

    A mistake in the arguments is raised here, before anything starts.
    """
    if not isinstance(space, Mapping):
        place = Path(space)
        if place.suffix == ".toml":
            return _from_file(place, budget, log_dir, on_event, settings, base)
        settings, rest = split_settings(settings, base)
        if rest or task is not None or log_dir is not None:
            raise TypeError(f"{place}: a sweep that exists takes settings and a budget alone")
        read_plan(place)
        return Sweep(place, budget=budget, settings=settings, on_event=on_event)
    given = None if log_dir is None else Path(log_dir)
    fields = {name: value for name, value in base.items() if name in Settings.__dataclass_fields__}
    settings, _ = split_settings(settings, fields)
    plan = make_plan(
        space,
        task=task,
        strategy=_in_batches(strategy, settings.preset, given),
        trials=trials,
        seeds=seeds,
        seed=seed,
        base={name: value for name, value in base.items() if name not in fields},
    )
    limits = None if budget is None else budget_of(budget)
    folder = given or _new_folder(f"sweep-{plan.strategy}")
    keep_plan(folder, plan)
    return Sweep(folder, budget=limits, settings=settings, on_event=on_event)


def _in_batches(
    strategy: str | Mapping[str, Any], preset: str | None, folder: Path | None
) -> str | Mapping[str, Any]:
    """Returns a strategy with batches of the preset's size, unless they have one already."""
    options = {"name": strategy} if isinstance(strategy, str) else strategy
    if options.get("name") != "bayesian" or "batch" in options:
        return strategy
    if folder is not None and is_sweep(folder):  # it goes on as it began, whatever the preset
        batch = read_plan(folder).options.get("batch")
    else:
        batch = find_preset(preset).configurations_per_batch if preset else None
    return strategy if batch is None else {**options, "batch": batch}


def _from_file(
    path: Path,
    budget: Mapping[str, float] | None,
    log_dir: str | os.PathLike[str] | None,
    on_event: Subscriber | None,
    settings: Settings | None,
    rest: dict[str, Any],
) -> Sweep:
    """Starts, or goes on with, the sweep that a file describes; its folder is named after it."""
    given = read_toml(path)
    if budget is not None:
        given["budget"] = budget
    folder = LOCAL / f"sweep-{path.stem}" if log_dir is None else Path(log_dir)
    return start_sweep(**given, **rest, log_dir=folder, on_event=on_event, settings=settings)


def sweep(
    space: Mapping[str, Any] | str | os.PathLike[str],
    *,
    task: str | os.PathLike[str] | Task | None = None,
    strategy: str | Mapping[str, Any] = "grid",
    trials: int | None = None,
    seeds: Iterable[int] = range(40, 45),
    seed: int = 0,
    budget: Mapping[str, float] | None = None,
    log_dir: str | os.PathLike[str] | None = None,
    on_event: Subscriber | None = None,
    settings: Settings | None = None,
    **base: Any,
) -> Sweep:
    """Runs many configurations, each on the same seeds, and logs all.

    Called again with the same arguments and folder, it goes on: no logged call is made twice.
    Without a budget other processes and machines may work on the same folder at once.

    Args:
        space: Fields and values, see `evo.sweeping.space`; or a sweep.toml; or a sweep's folder.
        task: Name, alias, folder or Task; the space may name several in the field `task`.
        strategy: Out of `evo.sweeping.strategies.STRATEGIES`; or {"name": ..., and its options}.
        trials: How many; None: 100, and of a grid all.
        seeds: Of the runs of each configuration.
        seed: Key of the strategy's draws.
        budget: Limits by unit: calls, tokens, dollars, seconds (wall time); what earlier sessions
            spent counts. None: as before, or none.
        log_dir: Folder; None: a new one in logs/local.
        on_event: Told of every event, see `evo.sweeping.events`.
        settings: A whole Settings value instead of its fields as keywords.
        **base: Fields beside those of the space, such as `model`; and fields of `Settings`.

    Returns:
        The sweep, at its end: `.summary`; `replay.load_sweep(...)` makes a frame of it.

    Raises:
        ValueError: A mistake in the arguments, or the folder holds another sweep.
        EndpointDown: The endpoint does not answer; the sweep can go on later.
        KeyboardInterrupt: Ctrl-C; it is paused.
    """
    running = start_sweep(
        space,
        task=task,
        strategy=strategy,
        trials=trials,
        seeds=seeds,
        seed=seed,
        budget=budget,
        log_dir=log_dir,
        on_event=on_event,
        settings=settings,
        **base,
    )
    try:
        running.wait()
    except KeyboardInterrupt:
        running.interrupt()
        raise
    return running


def is_sweep(path: str | os.PathLike[str]) -> bool:
    """Whether a path is the folder of a sweep."""
    return (Path(path) / PLAN).is_file()


def _new_folder(name: str) -> Path:
    names = (name, *(f"{name}-{count}" for count in range(2, 100_000)))
    return next(LOCAL / n for n in names if not (LOCAL / n).exists())
