"""What trackers of experiments are told of a run or a sweep, whichever tracker it is."""

from __future__ import annotations

import math
import threading
from abc import ABC, abstractmethod
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Generic, TypeVar

import msgspec

from evo.logs.log import Log, read_log
from evo.logs.records import Header

Tracked = TypeVar("Tracked")


class Tracker(ABC, Generic[Tracked]):
    """Tells a tracker of experiments of runs: each log is one of its runs.

    A sweep is one run, whose steps are its completed runs.
    """

    def __init__(self) -> None:
        self._runs: dict[Path, Tracked] = {}
        self._lock = threading.Lock()

    @abstractmethod
    def begin(self, name: str, group: str, parameters: Mapping[str, object]) -> Tracked:
        """Begins a run."""

    @abstractmethod
    def measure(self, run: Tracked, numbers: Mapping[str, float], step: int) -> None:
        """Takes numbers at a step."""

    @abstractmethod
    def finish(
        self, run: Tracked, numbers: Mapping[str, float], program: Path | str | None, failed: bool
    ) -> None:
        """Takes what a run ended with: figures, and the text of its best program."""

    def __call__(self, event: Any) -> None:
        """Takes an event of a run, `evo.Event`, or of a sweep."""
        with self._lock:
            if hasattr(event, "kind"):
                self._take(event)
            else:
                self._take_of_sweep(event)

    def _take(self, event: Any) -> None:
        path: Path = event.path
        header: Header = event.header
        if path not in self._runs:
            parameters = {**parameters_of(header), "log": str(path.absolute())}
            self._runs[path] = self.begin(path.stem, header.task.name, parameters)
        run, kind = self._runs[path], event.kind
        numbers = {f"cost/{unit}": cost for unit, cost in event.cost.items()}
        if event.best_fitness is not None:
            numbers["best_fitness"] = event.best_fitness
        if kind in ("start", "generation"):
            self.measure(run, finite(numbers), event.generation)
        elif kind == "end":
            del self._runs[path]
            log = read_log(path)
            best = log.best.program if log.initial is not None else None
            reason = event.record.reason
            self.finish(run, finite(numbers | shares_of(log)), best, reason in FAILED)

    def _take_of_sweep(self, event: Any) -> None:
        place = Path("sweep")
        if place not in self._runs:
            self._runs[place] = self.begin("sweep", "sweep", {"worker": event.worker})
        run, kind = self._runs[place], event.event
        numbers = {k: v for k, v in event.data.items() if v is not None}
        if kind == "run_completed":
            self.measure(run, finite(numbers), event.completed or 0)
        elif kind in ("paused", "stopped", "budget_exhausted", "interrupted", "completed"):
            del self._runs[place]
            self.finish(run, finite(numbers), None, kind == "interrupted")


FAILED = ("endpoint", "refused")
"""Reasons of an end that is a failure."""


def parameters_of(header: Header) -> dict[str, object]:
    """Returns what identifies a run, as plain numbers and texts by name."""
    found: dict[str, object] = {
        "task": header.task.name,
        "task_hash": header.task.hash,
        "model": header.model_name,
        "children": header.children,
        "seed": header.seed,
        "search": header.search.name if header.search else "greedy",
        "edits": header.edits,
        "feedback": header.feedback,
        "drafts": header.drafts,
        "draws": header.draws,
        "confirm": header.confirm,
        "inspirations": header.inspirations,
        "advice": header.advice,
        "filters": ", ".join(each.name for each in header.filters),
        "condition": header.condition,
    }
    found |= msgspec.structs.asdict(header.sampling)
    limits = msgspec.structs.asdict(header.limits)
    found |= {f"limits.{k}": v for k, v in limits.items() if k != "auto" or v}
    return {name: value for name, value in found.items() if value not in (None, "")}


def shares_of(log: Log) -> dict[str, float]:
    """Returns which share of a log's children has each status."""
    statuses = [each.evaluation.status for each in log.children]
    found = {str(status): float(statuses.count(status)) for status in dict.fromkeys(statuses)}
    return {f"share/{status}": count / len(statuses) for status, count in found.items()}


def finite(numbers: Mapping[str, float]) -> dict[str, float]:
    """Returns the numbers that are known: a cost whose price nobody knows is NaN."""
    return {name: value for name, value in numbers.items() if math.isfinite(value)}
