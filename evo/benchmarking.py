"""How many calls at once an endpoint answers best."""

from __future__ import annotations

import functools
import math
import statistics
import time
from collections.abc import Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass

import msgspec

from evo import parallel
from evo.llm.client import Call, ModelClient
from evo.llm.limits import Slots
from evo.llm.registry import ModelError, find_model, resolve_sampling
from evo.prompt import Message, build_messages
from evo.records import Model
from evo.task import load_task

_GAIN = 1.05  # calls/s by which a level must beat all before, for the next to be tried
_KNEE = 0.9  # of the best calls/s is enough


def _ask(client: ModelClient, messages: list[Message], seed: int) -> Call:
    return client.call(messages, seed=seed, index=seed)


def _messages() -> list[Message]:
    """A prompt as a search sends it."""
    task = load_task("mmd")
    return build_messages(task.record, task.initial_program, 0.5)


@dataclass(frozen=True)
class Level:
    """What an endpoint gave at one concurrency."""

    concurrency: int
    calls: int
    seconds: float
    replies: int  # calls that were answered
    limited: int  # calls that met a 429
    completion_tokens: int  # as far as reported
    latency: float  # median of the answered calls, seconds; NaN without any

    @property
    def rate(self) -> float:
        """Answered calls per second."""
        return self.replies / self.seconds


def named_model(name: str, endpoint: str | None) -> Model:
    """Returns a model of the registry, or any other at a given endpoint."""
    try:
        model = find_model(name)
    except ModelError:
        if endpoint is None:
            raise
        return Model(name=name, base_url=endpoint)
    return model if endpoint is None else msgspec.structs.replace(model, base_url=endpoint)


def levels_for(calls: int) -> list[int]:
    """Returns 1, 2, 4, ... up to the calls that each level makes."""
    return [1 << k for k in range(calls.bit_length())]


def prompt_tokens() -> int:
    """Returns roughly how many tokens the prompt of a probe has."""
    return sum(len(str(message["content"])) for message in _messages()) // 4


def probe(model: Model, *, calls: int, max_tokens: int, timeout: float = 600.0) -> Iterator[Level]:
    """Yields what an endpoint gives at 1, 2, 4, ... calls in flight, while more gives more.

    It ends after a level that met a 429 or was hardly faster than one before.
    """
    sampling = resolve_sampling(model, max_tokens=max_tokens)
    messages, best = _messages(), 0.0
    for number, concurrency in enumerate(levels_for(calls)):
        client = ModelClient(
            model, sampling, slots=Slots(concurrency), retries=0, timeout=timeout
        )  # no retries: a 429 is a finding
        seeds = range(number * calls, (number + 1) * calls)
        with closing(client):
            started = time.perf_counter()
            ask = functools.partial(_ask, client, messages)
            made: list[Call] = parallel.map(ask, seeds, max_workers=concurrency)
            seconds = time.perf_counter() - started
        attempts = [call.attempts[-1] for call in made]
        answered = [attempt for attempt in attempts if attempt.status == "ok"]
        used = [(attempt.usage or {}).get("completion_tokens") or 0 for attempt in answered]
        level = Level(
            concurrency=concurrency,
            calls=calls,
            seconds=seconds,
            replies=len(answered),
            limited=sum(attempt.http_status == 429 for attempt in attempts),
            completion_tokens=sum(used),
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
