"""How a session works on a run, how far the run goes, and the events it reports."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from numbers import Real
from pathlib import Path
from typing import TYPE_CHECKING, Literal, Protocol

import numpy as np

from evo.logs.inputs import MOST_INT, as_float, at_least, one_of
from evo.logs.records import Child, EndReason, Evaluation, Generation, Header, RunEnd
from evo.logs.servers import is_shared
from evo.logs.types import as_absolute, as_path
from evo.plugins import MistakenType
from evo.runs.concurrency import CALL_SECONDS, find_preset

if TYPE_CHECKING:
    from evo.logs.log import Log
    from evo.runs.state import State

MOST_CONCURRENT, MOST_WORKERS, MOST_RETRIES = 10_000, 1_000, 1_000
MOST_SECONDS = 1_000_000
"""No attempt is waited for longer, seconds: some twelve days."""


EventKind = Literal["start", "child", "generation", "end"]


@dataclass(frozen=True)
class Event:
    """What `on_event` receives, once it is in the log.

        def on_event(event):
            if event.kind == "generation":
                wandb.log({f"{event.path.stem}/best": event.best_fitness}, step=event.generation)

    Attributes:
        kind: A run began or goes on, a child or a generation is complete, or its session ended.
        path: The run's log.
        header: Its configuration.
        generation: Complete generations.
        best_fitness: Best so far; None while nothing is ok.
        record: The initial program's evaluation, or the `Child`, `Generation` or `RunEnd` logged.
        cost: What the complete generations cost, by unit, as a budget counts it; NaN where unknown.

    Example:
        >>> kinds = []
        >>> settings = {"generations": 1, "children": 1, "log": new(), "progress": False}
        >>> made = evo.run("mmd", on_event=lambda event: kinds.append(event.kind), **settings)
        >>> kinds
        ['start', 'child', 'generation', 'end']
    """

    kind: EventKind
    path: Path
    header: Header
    generation: int
    best_fitness: float | None
    record: Evaluation | Child | Generation | RunEnd
    cost: Mapping[str, float] = field(default_factory=dict)

    def __repr__(self) -> str:
        best = "none" if self.best_fitness is None else f"{self.best_fitness:z.6g}"
        where = f"generation {self.generation}, best fitness {best}"
        return f"<Event {self.kind}: {self.path.name}, {where}>"


@dataclass(frozen=True, kw_only=True)
class Settings:
    """How a session works; unlike the header, nothing that a child depends on.

    Attributes:
        max_concurrent: Calls in flight at most, 1 works in order; None: the preset's, else 20.
        texts_at_once: On tasks that evolve a text on a data set: texts that are evaluated at a
            time; None: as many as keep `max_concurrent` calls in flight, at least 2.
        call_timeout: Seconds that one attempt of a call may take; None: 600.
        timeout: Another name of `call_timeout`, and equal to it once the value is made.
        retries: Attempts beyond the first.
        workers: Evaluations at a time; None: one per core, or on a cluster one per thread of its
            workers.
        scheduler: Address of a Dask scheduler whose workers evaluate, such as `tcp://host:8786`;
            None: this machine, or the cluster of `joblib.parallel_config(backend="dask")`.
        cache: File of replies shared by runs, or redis://host for those of several machines; see
            `evo.models.cache`. None: every call is made.
        control: Address of a Redis server, redis://host, whose requests to pause, to stop and to go
            on are heeded too, see `evo.stop`. None: only files beside logs ask.
        progress: Show a progress bar.
        preset: Name out of `evo.runs.concurrency.PRESETS`: stands in for what is None here.
        requests_per_minute: Of each endpoint, in any sliding minute; None: the preset's, else no
            limit.
        tokens_per_minute: Of prompts and replies, likewise; None: no limit.
        on_event: Called with every `Event`, one at a time and in order, on a thread of its own: it
            neither slows nor ends the run. What it raises is a warning, the first time. It may be
            `async`, and then runs to its end in a loop of its own.
        listeners: Further functions that are called so, each on a thread of its own.

    Example:
        >>> evo.Settings(preset="conservative", max_concurrent=4).requests_per_minute
        2000
    """

    max_concurrent: int = None  # type: ignore[assignment]  # a number once it is made
    call_timeout: float = None  # type: ignore[assignment]  # likewise
    timeout: float = None  # type: ignore[assignment]  # likewise
    retries: int = 5
    workers: int | None = None
    scheduler: str | None = None
    cache: Path | str | None = None
    control: str | None = None
    progress: bool = True
    preset: str | None = None
    requests_per_minute: int | None = None
    tokens_per_minute: int | None = None
    texts_at_once: int | None = None
    on_event: Callable[[Event], object] | None = None
    listeners: Sequence[Callable[[Event], object]] = ()

    @property
    def all_listeners(self) -> tuple[Callable[[Event], object], ...]:
        """The listeners, and `on_event` if there is one."""
        return (*self.listeners, *([] if self.on_event is None else [self.on_event]))

    def __post_init__(self) -> None:
        several = isinstance(self.listeners, Iterable) and not callable(self.listeners)
        if not several or not all(map(callable, self.listeners)):
            raise MistakenType(
                "listeners: expected a list of functions of one event, such as "
                f"[evo.listeners.WandB()], got {self.listeners!r:.80}"
            )
        if self.cache is not None and not is_shared(
            self.cache
        ):  # it may be opened when the process works in another folder
            object.__setattr__(self, "cache", as_absolute("cache", as_path("cache", self.cache)))
        if self.control is not None and not is_shared(self.control):
            raise ValueError(
                "control: expected the address of a Redis server, such as redis://host:6379/0, "
                f"got {self.control!r:.80}; without one a file beside a log asks"
            )
        preset = None if self.preset is None else find_preset(self.preset)
        if self.max_concurrent is None:
            object.__setattr__(self, "max_concurrent", preset.max_concurrent if preset else 20)
        if self.requests_per_minute is None and preset:
            object.__setattr__(self, "requests_per_minute", preset.requests_per_minute)
        limits = {"max_concurrent": MOST_CONCURRENT, "retries": MOST_RETRIES}
        limits |= {"workers": MOST_WORKERS, "texts_at_once": MOST_CONCURRENT}
        for name in ("requests_per_minute", "tokens_per_minute", *limits):
            value, least = getattr(self, name), int(name != "retries")
            if value is not None or not least:  # a log takes plain numbers, and none of NumPy's
                number = at_least(name, value, least, most=limits.get(name, MOST_INT))
                object.__setattr__(self, name, number)
        if self.on_event is not None and not callable(self.on_event):
            raise MistakenType(
                f"on_event: expected a function of an event, got {self.on_event!r:.60}"
            )
        named = one_of("call_timeout", self.call_timeout, "timeout", self.timeout)
        seconds = CALL_SECONDS if named is None else named
        if not 0 < as_float(seconds) <= MOST_SECONDS:
            raise ValueError(
                f"call_timeout: expected seconds above 0, at most {MOST_SECONDS:,}, got {seconds!r}"
            )
        object.__setattr__(self, "call_timeout", seconds)
        object.__setattr__(self, "timeout", seconds)


class StopRule(Protocol):
    """A rule that ends a run; any value with these two will do."""

    @property
    def name(self) -> str:
        """What the log says of a run that it ended."""
        ...

    def reached(self, state: State) -> bool:
        """Returns whether a run ends here; its answer depends on what the run knows alone."""
        ...


@dataclass(frozen=True)
class Goal:
    """When a run ends; goals are not part of its identity.

    Attributes:
        generations: T, at least 1.
        target: Fitness at which it ends; None: none.
        patience: Generations in a row without an improvement after which it ends; None: never.
        stops: Further rules; it ends as soon as one of them is reached.
    """

    generations: int = 8
    target: float | None = None
    patience: int | None = None
    stops: Sequence[StopRule] = ()

    def __post_init__(self) -> None:
        object.__setattr__(self, "generations", at_least("generations (T)", self.generations, 0))
        if self.patience is not None:
            object.__setattr__(self, "patience", at_least("patience", self.patience, 1))
        number = self.target is None or isinstance(self.target, Real)
        if not number or (self.target is not None and not math.isfinite(as_float(self.target))):
            raise ValueError(f"target: expected a finite fitness, got {self.target!r:.60}")
        if type(self.target) not in (int, float, type(None)):  # such as NumPy's
            object.__setattr__(self, "target", as_float(self.target))
        if not isinstance(self.stops, Sequence) or not all(map(_is_rule, self.stops)):
            raise MistakenType(
                "stops: expected a list of values with a name and a method reached(state), got "
                f"{self.stops!r:.80}"
            )

    def reached(self, state: State) -> EndReason | None:
        """Returns why a run ends where it is; None: it goes on."""
        best = math.nan if state.best_fitness is None else state.best_fitness
        why = self._why(state.generation, best, state.barren)
        return "rule" if why in (None, "patience") and self.rule(state) is not None else why

    def end_of(
        self, trajectory: Iterable[float], improved: Collection[int]
    ) -> tuple[int, EndReason] | None:
        """Returns where a run first reaches it, and why; None: it has not yet.

        A log may go on from there, for another goal. Rules of one's own are not asked.

        Args:
            trajectory: Best fitness by generation, NaN while there is none.
            improved: The generations that replaced the best program.
        """
        last = 0
        for generation, best in enumerate(trajectory):
            last = generation if generation in improved else last
            if (why := self._why(generation, best, generation - last)) is not None:
                return generation, why
        return None

    def end_in(self, log: Log) -> int | None:
        """Returns the generation in which a log first reaches it; None: it has not yet."""
        end = self.end_of(log.trajectory, {g.generation for g in log.generations if g.improved})
        return None if end is None else end[0]

    def _why(self, generation: int, best: float, barren: int) -> EndReason | None:
        if self.target is not None and best >= self.target:
            return "target"
        if generation >= self.generations:
            return "completed"
        return "patience" if self.patience is not None and barren >= self.patience else None

    def rule(self, state: State) -> str | None:
        """Returns the name of the first rule of one's own that is reached; None: none is."""
        return next((each.name for each in self.stops if _reached(each, state)), None)


@dataclass(frozen=True)
class EveryGoal(Goal):
    """Ends a run once it has reached each of several goals, be it in different generations.

    Attributes:
        every: The goals, without rules of one's own.
    """

    every: Sequence[Goal] = ()

    def reached(self, state: State) -> EndReason | None:
        """Returns why the last goal to be reached was; None: one is left."""
        ends = [goal.end_of(state.trajectory, state.improved) for goal in self.every]
        known = [end for end in ends if end is not None]
        return max(known)[1] if len(known) == len(ends) else None


def every_goal(goals: Sequence[Goal]) -> EveryGoal:
    """Returns the goal of a run that serves several; a log states what they have in common."""
    targets, patiences = {each.target for each in goals}, {each.patience for each in goals}
    return EveryGoal(
        max(each.generations for each in goals),
        targets.pop() if len(targets) == 1 else None,
        patiences.pop() if len(patiences) == 1 else None,
        every=tuple(goals),
    )


def _reached(rule: StopRule, state: State) -> bool:
    """Returns whether a rule is reached; its failure names the rule."""
    mend = "correct it, and the same call goes on with the run"
    try:
        answer: object = rule.reached(state)
    except Exception as error:
        raise ValueError(
            f"stops: the rule {rule.name!r}: `reached` raised {type(error).__name__}: {error}; "
            f"{mend}"
        ) from error
    if not isinstance(answer, bool | np.bool_):
        raise MistakenType(
            f"stops: the rule {rule.name!r}: expected `reached` to return True or False, got "
            f"{answer!r:.80}; {mend}"
        )
    return bool(answer)


def _is_rule(value: object) -> bool:
    """Whether a value, and not its class, is a rule that ends a run."""
    named = isinstance(getattr(value, "name", None), str) and not isinstance(value, type)
    return named and callable(getattr(value, "reached", None))
