"""How well calls run in parallel: on the offline model, and at an endpoint whose best is sought."""

from __future__ import annotations

import heapq
import math
import statistics
import time
from collections.abc import Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import msgspec

from evo import parallel
from evo.llm.client import Call, ModelClient
from evo.llm.limits import Slots
from evo.llm.offline.latency import Latency
from evo.llm.registry import ModelError, find_model, resolve_sampling
from evo.prompt import Message, build_messages
from evo.records import Model
from evo.task import load_task

if TYPE_CHECKING:
    import httpx2

SHAPES = ((30, 50), (50, 100), (100, 100))
"""Loads: genomes x problems, a call for each pair."""

SHRINK = 25  # of a load, only one call in so many is made, so that all takes a minute
MAX_THREADS = 512
_IN_ORDER = 10  # calls made one after the other
_OVERHEAD_CALLS = 400
_GAIN = 1.05  # calls/s by which a level must beat all before, for the next to be tried
_KNEE = 0.9  # of the best calls/s is enough


@dataclass(frozen=True)
class LoadResult:
    """A load made with so many slots.

    Attributes:
        genomes: Of the load.
        problems: Of the load.
        calls: Calls that were made, genomes x problems / SHRINK.
        sequential: Seconds that they take one after the other.
        ideal: Seconds of the list schedule: each call in the first slot to be free, no overhead.
        parallel: Seconds that they took.
        utilisation: Share of slots in use, in [0, 1].
        ideal_utilisation: The same of the list schedule.
    """

    genomes: int
    problems: int
    calls: int
    sequential: float
    ideal: float
    parallel: float
    utilisation: float
    ideal_utilisation: float


@dataclass(frozen=True)
class _Noted(Latency):
    """Simulated latency that remembers what it drew, in the order in which requests began."""

    drawn: list[float] = field(default_factory=list)

    def seconds(self, body: bytes) -> float:
        value = super().seconds(body)
        self.drawn.append(value)
        return value


def list_schedule(seconds: Sequence[float], slots: int) -> float:
    """Returns the length of a schedule that gives each piece of work to the first free slot.

    Args:
        seconds: Of each piece of work, in order.
        slots: At least 1.
    """
    free = [0.0] * slots
    for each in seconds:
        heapq.heapreplace(free, free[0] + each)
    return max(free)


def measure_loads(latency: Latency, slots: int) -> Iterator[LoadResult]:
    """Yields how each load ran on the offline model with simulated latency.

    The sequential time is the sum of the latencies and, per call, the overhead that some calls in
    order were measured to have.

    Args:
        latency: Of a call.
        slots: Calls in flight at most.
    """
    in_order = _Noted(latency.median, latency.sigma)
    seconds = _make_calls(in_order, 1, _IN_ORDER)
    overhead = (seconds - sum(in_order.drawn)) / _IN_ORDER
    for genomes, problems in SHAPES:
        calls = genomes * problems // SHRINK
        noted = _Noted(latency.median, latency.sigma)
        seconds = _make_calls(noted, slots, calls)
        work, ideal = sum(noted.drawn), list_schedule(noted.drawn, slots)
        yield LoadResult(
            genomes=genomes,
            problems=problems,
            calls=calls,
            sequential=work + calls * overhead,
            ideal=ideal,
            parallel=seconds,
            utilisation=work / slots / seconds,
            ideal_utilisation=work / slots / ideal if ideal else 1.0,
        )


def measure_overhead(slots: int) -> tuple[float, float]:
    """Returns the CPU seconds of a call without a network or a model, and calls per second."""
    import httpx2

    from evo.llm.transport import OfflineTransport

    known: list[httpx2.Response] = []

    def answer(request: httpx2.Request) -> httpx2.Response:
        if not known:
            known.append(OfflineTransport().handle_request(request))
        return httpx2.Response(200, headers=known[0].headers, content=known[0].content)

    transport = httpx2.MockTransport(answer)
    _make_calls(transport, slots, slots)
    cpu = time.process_time()
    seconds = _make_calls(transport, slots, _OVERHEAD_CALLS)
    return (time.process_time() - cpu) / _OVERHEAD_CALLS, _OVERHEAD_CALLS / seconds


def _make_calls(answers: Latency | httpx2.BaseTransport, slots: int, calls: int) -> float:
    """Makes calls to the offline model, or to a transport; returns the seconds they took."""
    from evo.llm.transport import OfflineTransport

    model = find_model("offline")
    transport = OfflineTransport(latency=answers) if isinstance(answers, Latency) else answers
    client = ModelClient(model, resolve_sampling(model), slots=Slots(slots), transport=transport)
    messages = _messages()
    with closing(client):
        _call_all(client, messages, [0, 0], threads=2)  # loads libraries
        if isinstance(answers, _Noted):
            answers.drawn.clear()
        started = time.perf_counter()
        _call_all(client, messages, range(1, calls + 1), threads=1 if slots == 1 else calls)
        return time.perf_counter() - started


def _call_all(
    client: ModelClient, messages: list[Message], seeds: Sequence[int], *, threads: int
) -> list[Call]:
    """Makes calls on threads, as a search does: all ask for a slot at once."""
    made: list[Call] = parallel.map(
        lambda seed: client.call(messages, seed=seed, index=seed),
        seeds,
        max_workers=min(threads, MAX_THREADS),
    )
    return made


def _messages() -> list[Message]:
    """A prompt as a search sends it."""
    task = load_task("mmd")
    return build_messages(task.record, task.initial_program, 0.5)


@dataclass(frozen=True)
class Level:
    """What an endpoint gave at one concurrency.

    Attributes:
        concurrency: Calls in flight.
        calls: Calls made.
        seconds: They took.
        replies: Calls that were answered.
        limited: Calls that met a 429.
        completion_tokens: Of all replies, as far as reported.
        latency: Median of the answered calls, seconds; NaN without any.
    """

    concurrency: int
    calls: int
    seconds: float
    replies: int
    limited: int
    completion_tokens: int
    latency: float

    @property
    def rate(self) -> float:
        """Answered calls per second."""
        return self.replies / self.seconds


def named_model(name: str, endpoint: str | None) -> Model:
    """Returns a model of the registry, or any other at a given endpoint.

    Args:
        name: In the registry, or the endpoint's own.
        endpoint: Base URL; None: the registry's or the environment's.

    Raises:
        ValueError: The name is unknown and there is no endpoint.
    """
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

    Args:
        model: Whose endpoint is asked.
        calls: Made at each level, at least 1; also the highest concurrency.
        max_tokens: Of a reply.
        timeout: Of a call, seconds.

    Raises:
        EndpointError: The endpoint does not answer, or refuses.
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
            made = _call_all(client, messages, seeds, threads=concurrency)
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
