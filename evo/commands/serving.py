"""Commands that serve a model, and that measure an endpoint."""

from __future__ import annotations

import contextlib
from pathlib import Path

from evo.commands.options import Port
from evo.commands.tables import FAILURE


def serve(
    *,
    host: str = "127.0.0.1",
    port: Port = 8000,
    request_log: Path | None = None,
    faults: str | None = None,
    latency: str | None = None,
    rpm: int | None = None,
    tpm: int | None = None,
) -> int:
    """Serves the offline model over HTTP for other tools (it is not an LLM).

    Args:
        host: Address to listen at.
        port: TCP port; 0: a free one.
        request_log: File for a JSON line per request.
        faults: Such as rate_limit:0.1,server_error:0.05.
        latency: Lognormal seconds, MEDIAN,SIGMA such as 2,1.
        rpm: Requests per minute before a 429.
        tpm: Tokens per minute before a 429.
    """
    from evo.llm.offline.latency import Latency
    from evo.llm.server import serve as listen

    simulated = None
    if latency is not None:
        try:
            median, sigma = (float(part) for part in latency.split(","))
        except ValueError:
            raise ValueError(
                f"--latency: expected MEDIAN,SIGMA such as 2,1, got {latency!r}"
            ) from None
        simulated = Latency(median, sigma)
    with contextlib.suppress(KeyboardInterrupt):
        listen(
            host, port, latency=simulated, faults=faults, request_log=request_log, rpm=rpm, tpm=tpm
        )
    return 0


def bench(
    *,
    model: str,
    endpoint: str | None = None,
    calls: int = 16,
    max_tokens: int = 256,
    timeout: float = 600.0,
) -> int:
    """Finds an endpoint's best number of calls in flight.

    Args:
        model: Of the endpoint, or one of `evo models`.
        endpoint: Base URL of an endpoint to try.
        calls: At each concurrency; also the highest one.
        max_tokens: Of a reply.
        timeout: Of a call, seconds.
    """
    from evo.benchmarking import knee, levels_for, named_model, probe, prompt_tokens

    tried, steps = named_model(model, endpoint), levels_for(calls)
    print(
        f"At most {calls * len(steps)} calls to {tried.name}: {calls} each with "
        f"{', '.join(map(str, steps))} in flight, of about {prompt_tokens():,} prompt and at most "
        f"{max_tokens:,} completion tokens.",
        flush=True,
    )
    levels = []
    for level in probe(tried, calls=calls, max_tokens=max_tokens, timeout=timeout):
        levels.append(level)
        print(
            f"{level.concurrency:3} in flight: {level.rate:.2f} calls/s, "
            f"{level.completion_tokens / level.seconds:.0f} tokens/s, "
            f"median latency {level.latency:.2f} s, {level.limited} x 429, "
            f"{level.calls - level.replies - level.limited} failed",
            flush=True,
        )
    if not any(level.replies for level in levels):
        print("no call was answered, so nothing is known of its best concurrency")
        return FAILURE
    print(f"--max-concurrent {knee(levels)}")
    return 0
