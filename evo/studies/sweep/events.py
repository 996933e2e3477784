"""What happened in a sweep: events.jsonl, one JSON line per change of state.

One process works on a sweep at a time. It is asked to pause or stop by a file beside events.jsonl,
on whatever machine, as sessions of all studies are: see `evo.studies.folders.request`.
"""

from __future__ import annotations

import contextlib
import os
import socket
import threading
import time
from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal, TypedDict, Unpack, get_args

import msgspec

from evo.logs.journal import Reader, Writer
from evo.logs.records import Record
from evo.runs.delivery import Delivery
from evo.studies.folders import EVENTS
from evo.studies.sweep.strategies import Trial

Begin = Literal["started", "resumed"]
"""A process begins to work on it, under the budget in `data`."""

Step = Literal["proposed", "run_started", "run_completed", "run_failed"]
"""A trial, with its values and configuration; and what became of runs."""

Ending = Literal["paused", "stopped", "budget_exhausted", "interrupted", "completed"]
"""A process has ended its work, and why; it is interrupted by an error."""

Earlier = Literal["configuration_started", "pause_requested", "stop_requested"]
"""Kinds of events in folders of earlier versions."""

SweepEventKind = Begin | Step | Ending | Earlier


class SweepEvent(Record, frozen=True, kw_only=True):
    """A change of state."""

    event: SweepEventKind
    time: float  # seconds since 1970, UTC
    elapsed: float | None = None  # seconds of the session so far, whatever the clock shows
    worker: str  # host and process
    trial: int | None = None  # its number, from 0; `values` are its own, by field of the space
    configuration: str | None = None  # its hash
    values: dict[str, object] = msgspec.field(default_factory=dict)
    seed: int | None = None
    log: str | None = None  # of a run, relative to the folder of the sweep
    message: str | None = None
    data: dict[str, float | None] = msgspec.field(default_factory=dict)  # `measure`, or the budget
    completed: int | None = None  # runs completed so far, this one included
    total: int | None = None  # runs in all, as many as are planned now


class EventFields(TypedDict, total=False):
    """Further fields of a `SweepEvent`."""

    trial: int
    configuration: str
    values: dict[str, object]
    seed: int
    log: str
    message: str | None
    data: dict[str, float | None]
    completed: int
    total: int


_decoder = msgspec.json.Decoder(SweepEvent)

RunKey = tuple[str, int]
"""A configuration's hash and a seed."""


@dataclass
class SweepState:
    """The state of a sweep, as its events so far tell it."""

    trials: list[tuple[dict[str, object], str]] = field(default_factory=list)  # and configurations
    completed: dict[RunKey, SweepEvent] = field(default_factory=dict)  # with their figures
    failed: dict[RunKey, str] = field(default_factory=dict)  # why; until a session tries them again
    logs: dict[RunKey, str] = field(default_factory=dict)  # relative to the sweep's folder
    budget: dict[str, float] = field(default_factory=dict)  # of the session that began last
    ended: str | None = "not begun"  # why the last session did; None while one goes on
    seconds: float = 0.0  # of wall time of all sessions
    _latest: dict[str, float] = field(default_factory=dict)  # last event of each open session

    @property
    def configurations(self) -> dict[str, dict[str, object]]:
        """Values of each configuration, by hash, in the order of their first trials."""
        found: dict[str, dict[str, object]] = {}
        for values, configuration in self.trials:
            found.setdefault(configuration, values)
        return found

    def history(self, seeds: Sequence[int]) -> list[Trial]:
        """Returns every trial with its mean fitness over the seeds."""
        made = []
        for values, configuration in self.trials:
            runs = [self.completed.get((configuration, seed)) for seed in seeds]
            known = [f for run in runs if run and (f := run.data.get("fitness")) is not None]
            made.append(
                Trial(values, sum(known) / len(known) if len(known) == len(seeds) else None)
            )
        return made

    def take(self, event: SweepEvent) -> None:
        """Takes the next event into account."""
        begins, ends = event.event in get_args(Begin), event.event in get_args(Ending)
        # Of each process at work, from event to event, by a clock that nobody sets.
        now = event.time if event.elapsed is None else event.elapsed
        since = now if begins else self._latest.pop(event.worker, None)
        if since is not None:
            self.seconds += max(0.0, now - since)
            self._latest |= {} if ends else {event.worker: now}
        run = (event.configuration or "", event.seed or 0)
        if event.log is not None:
            self.logs[run] = event.log
        match event.event:
            case "started" | "resumed":
                self.budget = {k: v for k, v in event.data.items() if v is not None}
                self.failed = {}
                self.ended = None
            case "proposed":
                self.trials.append((event.values, run[0]))
            case "run_completed":
                self.completed[run] = event
                self.failed.pop(run, None)
            case "run_failed":
                self.failed[run] = event.message or ""
            case kind if ends:
                self.ended = "budget" if kind == "budget_exhausted" else kind


class EventLog:
    """The events of a sweep that were read or written so far, and their state; thread-safe.

    A listener is called with each event that is written here, one at a time.
    """

    def __init__(
        self,
        folder: Path,
        on_event: Callable[[SweepEvent], object] | None = None,
        listeners: Sequence[Callable[[SweepEvent], object]] = (),
    ) -> None:
        self.path = folder / EVENTS
        self.events: list[SweepEvent] = []
        self.state = SweepState()
        self._began = time.monotonic()
        self._delivery = Delivery([*listeners, *([] if on_event is None else [on_event])])
        self._reader = Reader(self.path, _decoder, what="journal of a sweep")
        self.lock = threading.RLock()  # held while an event is made of those before, and written
        self.refresh()

    def refresh(self) -> list[SweepEvent]:
        """Reads what was added, by whom ever, and returns it."""
        with self.lock:
            new = list(self._reader.follow()) if self.path.exists() else []
            for event in new:
                self.events.append(event)
                self.state.take(event)
            return new

    @contextlib.contextmanager
    def claimed(self) -> Generator[None]:
        """Lets this process alone write; LogBusyError where another one does.

        At the end events are delivered, or go on to be in the background.
        """
        self.path.touch()
        with contextlib.closing(self._delivery), Writer.claim(self.path) as self._writer:
            self.refresh()
            self._writer.cut(self._reader.length)
            yield

    def append(self, event: SweepEventKind, **fields: Unpack[EventFields]) -> None:
        """Writes an event; it has left this process when this returns."""
        worker = f"{socket.gethostname()}:{os.getpid()}"
        with self.lock:
            self._writer.check_in_place()
            self._writer.append(
                SweepEvent(
                    event=event,
                    time=time.time(),
                    elapsed=round(time.monotonic() - self._began, 3),
                    worker=worker,
                    **fields,
                )
            )
            for each in self.refresh():
                self._delivery.put(each)
