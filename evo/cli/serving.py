"""Commands that serve a model, and that measure an endpoint."""

from __future__ import annotations

import contextlib
import functools
import threading
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter

from evo.cli.gates import NO_GATE, GateOptions
from evo.cli.options import FLAGS, Flag, Port, Positive
from evo.cli.tables import FAILURE
from evo.runs.concurrency import CALL_SECONDS

if TYPE_CHECKING:
    from evo.gate.server import Latency
    from evo.logs.records import Model

COUNTS_ON = (
    "cache: this log goes on, and counts repeated requests on; a client that begins anew is "
    "answered from the cache with a new --log"
)


def serve(
    *,
    model: str = "offline",
    host: str = "127.0.0.1",
    port: Port = 8000,
    options: GateOptions = NO_GATE,
    request_log: Path | None = None,
    latency: str | None = None,
) -> int:
    """Serves a model for other tools, counted and limited; by default the offline one (no LLM).

    Args:
        model: One of `evo models`.
        host: Address to listen at; others than this machine's own are open to the network.
        port: TCP port; 0: a free one.
        options: What is counted, limited and kept.
        request_log: The offline model's file for a JSON line per request.
        latency: The offline model's lognormal seconds, MEDIAN,SIGMA such as 2,1.
    """
    import msgspec

    from evo.gate.gate import Gate
    from evo.gate.server import OfflineServer
    from evo.models.offline import OFFLINE_MODELS
    from evo.models.registry import find_model

    found, simulated = find_model(model), (request_log, latency)
    offline = found.name in OFFLINE_MODELS and found.base_url is None
    if not offline and simulated != (None, None):
        raise ValueError("--request-log and --latency go with the offline model alone")
    uncounted = replace(options, timeout=NO_GATE.timeout) == NO_GATE  # here nothing is forwarded
    plain = offline and model == "offline" and uncounted
    inner = functools.partial(OfflineServer, latency=_latency(latency), request_log=request_log)
    with contextlib.suppress(KeyboardInterrupt), contextlib.ExitStack() as opened:
        server: OfflineServer | Gate
        if plain:
            server = inner(host, port)
        else:
            if simulated != (None, None):
                url = opened.enter_context(inner()).url
                found = msgspec.structs.replace(found, base_url=url)
            server = options.gate(found, host=host, port=port)
        opened.enter_context(server)
        what = "the offline model (not an LLM)" if offline else f"the model {found.name}"
        print(f"{server.url} is {what}; Ctrl-C ends it", flush=True)
        if isinstance(server, Gate) and server.log is not None:
            print(f"log: {server.log}", flush=True)
            if options.cache is not None and server.account.repeats:
                print(COUNTS_ON, flush=True)
        threading.Event().wait()
    return 0


def _latency(text: str | None) -> Latency | None:
    from evo.gate.server import Latency

    if text is None:
        return None
    try:
        median, sigma = (float(part) for part in text.split(","))
    except ValueError:
        raise ValueError(f"--latency: expected MEDIAN,SIGMA such as 2,1, got {text!r}") from None
    return Latency(median, sigma)


def bench(
    *,
    model: str,
    endpoint: str | None = None,
    calls: Positive = 16,
    max_tokens: Positive = 256,
    timeout: Annotated[float, Parameter(name=FLAGS["call_timeout"])] = CALL_SECONDS,
    compare: Flag = False,
    population: Positive = 30,
    problems: Positive = 50,
    max_concurrent: Positive = 10,
    latency: str | None = None,
) -> int:
    """Finds an endpoint's best number of calls in flight, or compares sequential with concurrent.

    Args:
        model: A model of the endpoint, or one of `evo models`.
        endpoint: Base URL of an endpoint to try.
        calls: Number of calls at each concurrency; also the highest concurrency.
        max_tokens: Completion tokens of a reply at most.
        timeout: Seconds for a call.
        compare: Evaluate a population of prompts on a set of problems instead, one call at a time
            and then concurrently, and print times, speed-up, problems per second and cache hits.
        population: Number of prompts; with --compare.
        problems: Number of problems for each prompt, at most 60; with --compare.
        max_concurrent: Calls in flight at most; with --compare.
        latency: The offline model's lognormal seconds, MEDIAN,SIGMA (default: 0.05,0.3); with
            --compare.
    """
    from evo.gate.benchmarking import knee, named_model, probe

    if compare:
        return _compare(named_model(model, endpoint), population, problems, max_concurrent, latency)
    if latency is not None:
        raise ValueError("--latency goes with --compare: without it the endpoint's own is measured")

    tried, steps = named_model(model, endpoint), [1 << k for k in range(calls.bit_length())]
    print(
        f"At most {calls * len(steps)} calls to {tried.name}: {calls} each with "
        f"{', '.join(map(str, steps))} in flight, of at most {max_tokens:,} completion tokens.",
        flush=True,
    )
    levels = []
    for level in probe(tried, calls=calls, max_tokens=max_tokens, timeout=timeout):
        levels.append(level)
        print(
            f"{level.concurrency:3} in flight: {level.rate:.2f} calls/s, {level.tokens:.0f} "
            f"tokens/s, median latency {level.latency:.2f} s, {level.limited} x 429, "
            f"{calls - level.replies - level.limited} failed",
            flush=True,
        )
    if not any(level.replies for level in levels):
        print("no call was answered, so nothing is known of its best concurrency")
        return FAILURE
    print(f"--max-concurrent {knee(levels)}")
    return 0


def _compare(
    model: Model, population: int, problems: int, max_concurrent: int, latency: str | None
) -> int:
    import tempfile

    import msgspec

    from evo.gate.benchmarking import compare
    from evo.gate.server import OfflineServer
    from evo.models.offline import OFFLINE_MODELS

    offline = model.name in OFFLINE_MODELS and model.base_url is None
    if latency is not None and not offline:
        raise ValueError("--latency goes with the offline model alone")
    with contextlib.ExitStack() as opened:
        if offline:
            server = OfflineServer(latency=_latency(latency or "0.05,0.3"))
            model = msgspec.structs.replace(model, base_url=opened.enter_context(server).url)
        folder = Path(opened.enter_context(tempfile.TemporaryDirectory()))
        print(f"{population} prompts x up to {problems} problems, {model.name}", flush=True)
        sizes = {"population": population, "problems": problems, "max_concurrent": max_concurrent}
        done = []
        for each in compare(model, folder / "cache.sqlite", **sizes):
            done.append(each)
            print(
                f"{each.name:14}  {each.max_concurrent:4} in flight  {each.seconds:8.2f} s  "
                f"{done[0].seconds / each.seconds:6.1f} x  {each.rate:8.1f} problems/s  "
                f"{each.cache_hits:6} of {each.problems} from the cache",
                flush=True,
            )
    same = all(each.fitness == done[0].fitness for each in done)
    print("all three gave " + ("the same fitness for every prompt" if same else "other fitness"))
    return 0
