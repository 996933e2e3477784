"""Measures an endpoint: its best number of calls in flight, and what concurrency gains."""

from __future__ import annotations

import math
import statistics
import time
from collections.abc import Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

import msgspec

from evo import parallel
from evo.logs.records import InstanceCall, Model
from evo.models.client import Call, ModelClient
from evo.models.limits import Slots
from evo.models.registry import ModelError, find_model, resolve_sampling
from evo.prompt import build_messages
from evo.runs.configuration import make_header
from evo.runs.dataset import InstanceEvaluator
from evo.runs.resources import open_resources
from evo.runs.settings import Settings
from evo.tasks.task import load_task

_GAIN = 1.05  # calls/s by which a level must beat all before, for the next to be tried
_KNEE = 0.9  # of the best calls/s is enough


@dataclass(frozen=True)
class Level:
    """Throughput and latency of an endpoint at one level of concurrency."""

    concurrency: int
    rate: float  # answered calls per second
    replies: int  # calls that were answered
    limited: int  # calls that met a 429
    tokens: float  # completion tokens per second, as far as reported
    latency: float  # median of the answered calls, seconds; NaN without any


def named_model(name: str, endpoint: str | None) -> Model:
    """Returns a model of the registry, or any other at a given endpoint."""
    try:
        model = find_model(name)
    except ModelError:
        if endpoint is None:
            raise
        model = Model(name=name)
    return msgspec.structs.replace(model, base_url=endpoint or model.base_url)


def probe(model: Model, *, calls: int, max_tokens: int, timeout: float = 600.0) -> Iterator[Level]:
    """Yields what an endpoint gives at 1, 2, 4, ... calls in flight, while more gives more.

    It ends after a level that met a 429 or was hardly faster than one before.
    """
    task, best = load_task("mmd"), 0.0
    sampling = resolve_sampling(model, max_tokens=max_tokens)
    messages = build_messages(task.record, task.initial_program, 0.5)
    for number in range(calls.bit_length()):
        slots = Slots(1 << number)
        with closing(
            ModelClient(model, sampling, slots=slots, retries=0, timeout=timeout)
        ) as client:

            def ask(seed: int, client: ModelClient = client) -> Call:
                return client.call(messages, seed=seed, index=seed)

            started = time.perf_counter()
            seeds = range(number * calls, (number + 1) * calls)
            made: list[Call] = parallel.map(ask, seeds, max_workers=1 << number)
            seconds = time.perf_counter() - started
        attempts = [call.attempts[-1] for call in made]  # no retries: a 429 is a finding
        answered = [attempt for attempt in attempts if attempt.status == "ok"]
        used = [(attempt.usage or {}).get("completion_tokens") or 0 for attempt in answered]
        level = Level(
            concurrency=1 << number,
            rate=len(answered) / seconds,
            replies=len(answered),
            limited=sum(attempt.http_status == 429 for attempt in attempts),
            tokens=sum(used) / seconds,
            latency=statistics.median([a.latency or 0.0 for a in answered] or [math.nan]),
        )
        yield level
        if level.limited or level.rate < _GAIN * best:
            return
        best = level.rate


def knee(levels: Sequence[Level]) -> int:
    """Returns the least concurrency that gives nearly the most answers per second without a 429."""
    fair = [level for level in levels if not level.limited] or list(levels[:1])
    enough = _KNEE * max(level.rate for level in fair)
    return next(level.concurrency for level in fair if level.rate >= enough)


@dataclass(frozen=True)
class Pass:
    """One evaluation of a whole population of prompts on a set of problems."""

    name: str
    max_concurrent: int
    problems: int  # prompts times problems
    seconds: float
    cache_hits: int
    fitness: tuple[float | None, ...]  # by prompt

    @property
    def rate(self) -> float:
        """Problems per second."""
        return self.problems / self.seconds


def compare(
    model: Model, cache: Path, *, population: int, problems: int, max_concurrent: int
) -> Iterator[Pass]:
    """Yields how long a population of prompts takes on a set of problems, in three ways.

    The ways are: one call at a time; up to `max_concurrent` calls at a time, which fills the cache;
    and the same again, answered from the cache.
    """
    task = load_task("word_problems", instances=problems)
    texts = [f"{task.initial_program.strip()} (prompt {k})" for k in range(population)]
    header = make_header(task, model=model)
    ways = {"sequential": (1, None), "concurrent": (max_concurrent, cache)}
    for name, (slots, file) in {**ways, "from the cache": ways["concurrent"]}.items():
        calls: list[InstanceCall] = []
        with open_resources(Settings(max_concurrent=slots, cache=file)) as resources:
            evaluator = InstanceEvaluator(header, resources, calls.append)

            def fitness(text: str, evaluator: InstanceEvaluator = evaluator) -> float | None:
                return evaluator.evaluate(task.record, text, header.limits).fitness

            started = time.perf_counter()
            found = parallel.map(fitness, texts, max_workers=min(slots, population))
            seconds = time.perf_counter() - started
        hits = sum(call.attempts[-1].cached for call in calls if call.attempts)
        yield Pass(name, slots, len(calls), seconds, hits, tuple(found))
