"""The log of a gate as a table: what other tools asked an endpoint for, call by call."""

from __future__ import annotations

import math
import operator
import os
from collections.abc import Iterable

import pandas as pd

from evo.gate.log import GateLog, Passed, read_gate_log
from evo.logs.cost import cost_of_attempts
from evo.logs.records import Model, Sampling
from evo.logs.types import as_path

_SAMPLING = Sampling(temperature=None, top_p=None, max_tokens=None)  # each client has its own


def gate_calls(*paths: str | os.PathLike[str]) -> pd.DataFrame:
    """Reads the logs of gates into one row per request, in the order in which they came.

    Args:
        *paths: What `evo serve --log FILE` wrote.

    Returns:
        Columns client, number (of the request at its gate; -1 where the cache answered), at (Unix
        time), seconds, status (`ok`, `timeout` or `error`, `cached`, or `not settled` where the
        gate was killed before the answer), http_status, prompt_tokens, cached_tokens,
        completion_tokens, flops, dollars (NaN where unknown, 0 for what the cache answered), error,
        model; source.

    Raises:
        LogError: A file is damaged, or is not the log of a gate.

    Example:
        >>> folder = new("")
        >>> logs = evo.drive("openevolve", "mmd", calls=2, log_dir=folder, progress=False)
        >>> replay.gate_calls(*folder.rglob("gate.jsonl"))["status"].tolist()
        ['ok', 'ok']
    """
    return calls_of(read_gate_log(as_path("path", path)) for path in paths)


def calls_of(logs: Iterable[GateLog]) -> pd.DataFrame:
    """The table of `gate_calls` of logs that were read."""
    rows = []
    for log in logs:
        also = {"model": log.model.name, "source": os.fspath(log.path)}
        found = [(passed.sent.at, _row(passed, log.model)) for passed in log.passed]
        for kept in log.kept:
            row = {"client": kept.client, "number": -1, "at": kept.at, "status": "cached"}
            found.append((kept.at, {**row, **_FREE}))
        rows += [{**row, **also} for _, row in sorted(found, key=operator.itemgetter(0))]
    return pd.DataFrame(rows, columns=list(_COLUMNS))


_COUNTS = ("prompt_tokens", "cached_tokens", "completion_tokens", "flops", "dollars")
_FREE: dict[str, object] = {"seconds": 0.0, **dict.fromkeys(_COUNTS, 0.0)}
_COLUMNS = (
    *("client", "number", "at", "seconds", "status", "http_status", *_COUNTS),
    *("error", "model", "source"),
)


def _row(passed: Passed, model: Model) -> dict[str, object]:
    """What is known of a request that was sent."""
    sent, attempt = passed.sent, passed.attempt
    row: dict[str, object] = {"client": sent.client, "number": sent.number, "at": sent.at}
    if attempt is None:
        unknown = dict.fromkeys(("seconds", *_COUNTS), math.nan)
        return {**row, **unknown, "status": "not settled"}
    cost = cost_of_attempts([attempt], model, _SAMPLING, rule="exclude")
    counts = {name: getattr(cost, name) for name in _COUNTS}
    return {
        **row,
        "seconds": math.nan if attempt.latency is None else attempt.latency,
        "status": attempt.status,
        "http_status": attempt.http_status,
        **{name: math.nan if count is None else count for name, count in counts.items()},
        "error": attempt.error,
    }
