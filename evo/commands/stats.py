"""`evo stats`: what the calls of logs came to."""

from __future__ import annotations

import argparse
import glob
import math
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from evo.commands import table

if TYPE_CHECKING:
    from evo.log import Log
    from evo.runs.progress import Tally

QUANTILES = (0.5, 0.9, 0.99)
HEADS = (
    *("log", "calls", "attempts", "failed attempts", "cached", "tokens", "dollars"),
    *("latency p50", "p90", "p99", "s/generation"),
    *("calls/s", "slots used", "queued s", "limited s"),
)


def show_stats(arguments: argparse.Namespace) -> int:
    """`evo stats`."""
    from evo.log import read_log
    from evo.runs.progress import Tally

    logs = [read_log(path) for path in find_logs(arguments.logs)]
    rows = []
    total, latencies, seconds = Tally(), list[float](), list[float]()
    for log in logs:
        tally, own = Tally(), list[float]()
        for attempts in (call.attempts for call in log.calls):
            for each in (tally, total):
                each.add(attempts, log.header)
            own += [a.latency for a in attempts if a.latency is not None and not a.cached]
        times = [g.seconds for g in log.generations if g.seconds is not None]
        rows.append((log.path, *_figures(tally, own, times), *_session(log)))
        latencies += own
        seconds += times
    if len(logs) > 1:
        rows.append(("total", *_figures(total, latencies, seconds), "", "", "", ""))
    print(table(rows, HEADS))
    print(
        "calls/s, slots used, queued and limited: of the last session, all its runs together; "
        "tokens and dollars: of the attempts that state their usage"
    )
    return 0


def find_logs(paths: Sequence[str]) -> list[str]:
    """Returns the logs that paths mean: logs themselves, and those in folders of allocations.

    Raises:
        ValueError: A folder holds no log.
    """
    from evo.rounds import ALLOCATION

    found: list[str] = []
    for path in paths:
        place = Path(path)
        if place.name == ALLOCATION:
            place = place.parent
        if not place.is_dir():
            found.append(path)
            continue
        pattern = str(Path(glob.escape(str(place))) / "*.jsonl")
        inside = [*glob.glob(pattern), *glob.glob(pattern + ".gz")]
        logs = sorted(each for each in inside if Path(each).name != ALLOCATION)
        if not logs:
            raise ValueError(f"{path}: expected a log or a folder of logs, found no *.jsonl in it")
        found += logs
    return found


def _figures(tally: Tally, latencies: list[float], seconds: list[float]) -> tuple[object, ...]:
    failures = " ".join(f"{n}x{name}" for name, n in sorted(tally.failures.items()))
    return (
        tally.calls,
        tally.attempts,
        failures,
        tally.cached,
        f"{tally.tokens:,.0f}",
        "" if tally.dollars is None else f"{tally.dollars:.4f}",
        *(_quantile(latencies, q) for q in QUANTILES),
        f"{sum(seconds) / len(seconds):.2f}" if seconds else "",
    )


def _session(log: Log) -> tuple[str, ...]:
    """Returns what the closing line says of the session; blanks where there is none."""
    stats = log.ends[-1].stats if log.ends else {}
    rate, share = stats.get("calls_per_second"), stats.get("utilisation")
    queued, limited = stats.get("queued_seconds"), stats.get("limited_seconds")
    return (
        "" if rate is None else f"{rate:.3g}",
        "" if share is None else f"{share:.1%}",
        "" if queued is None else f"{queued:.1f}",
        "" if limited is None else f"{limited:.1f}",
    )


def _quantile(values: list[float], level: float) -> str:
    """Returns the smallest value that at least this share of values does not exceed."""
    if not values:
        return ""
    ordered = sorted(values)
    return f"{ordered[math.ceil(level * len(ordered)) - 1]:.2f}"
