"""How a selection went, as a table."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from evo.cli.tables import table

if TYPE_CHECKING:
    from evo.studies.selection.race import Selection


def print_selection(found: Selection, samples: str) -> None:
    """Prints how each configuration did, to which one it lost, and which one won.

    Args:
        found: The selection.
        samples: What its samples are, "problems" or "runs".
    """
    rows, calls = [], found.spent.get("calls", [0.0] * len(found.labels))
    for k in found.frame().index:
        left = "yes" if k in found.survivors else "no"
        values = (f"{each[k]:.5f}" for each in (found.mean, found.lower, found.upper))
        taken = (int(found.samples[k]), int(found.failures[k]))
        rows.append((found.labels[k], left, *taken, *values, f"{calls[k]:.0f}", *_loss(found, k)))
    mean = "mean score" if samples == "problems" else "mean fitness"
    heads = ("configuration", "left", samples, "failed", mean, "lower", "upper", "calls")
    print(table(rows, (*heads, "lost to", f"shared {samples}", "p")))
    winner = "none is left"
    if found.winner is not None:
        label = found.labels[found.winner]
        winner = f"winner: {label}" if found.decided else f"{label} leads, not decided"
        if found.by_mean:
            count = len(found.survivors)
            winner += f", by its mean alone, as {count} are left after all {samples}"
    clipped = int(found.clipped.sum())
    above = f"; {clipped} outside the bounds, clipped" if clipped else ""
    cut_short = "" if found.decided or samples != "runs" else _cut_short(found)
    print(
        f"{winner} ({found.end}, delta {found.terms.delta:g}, {found.terms.interval}"
        f"{_decisive(found)}); {int(found.samples.sum())} of "
        f"{found.samples.size * found.terms.size} {samples}{above}{cut_short}; {found.path}"
    )


def _cut_short(found: Selection) -> str:
    """What runs cost that count as no sample, since the selection ended before they did."""
    from evo.logs.log import Log, read_log
    from evo.runs.progress import counted

    assert found.path is not None  # it is live
    taken = {log.path for each in found.logs for log in each if isinstance(log, Log)}
    rest = [path for path in found.path.glob("*.jsonl") if path not in taken]
    calls = [count for path in rest if (count := len(read_log(path).calls))]
    if not calls:
        return ""
    more = f"{counted(sum(calls), 'call')} more"
    return f"; {more} went into {counted(len(calls), 'run')} cut short"


def _decisive(found: Selection) -> str:
    """At which p a configuration is retired, where bets on paired differences decided."""
    if all(math.isnan(p) for p in found.losses.p[0]):
        return ""
    return f"; p at any time, decisive at {found.decisive:.2g}"


def _loss(found: Selection, place: int) -> tuple[str, str, str]:
    """To which configuration one lost, on how many samples and with what p, where bets decided."""
    losses = found.losses
    rival, shared, p = (each[0, place] for each in (losses.rival, losses.shared, losses.p))
    to = "" if rival < 0 else found.labels[int(rival)]
    return to, f"{shared}" if shared else "", "" if math.isnan(p) else f"{p:.2g}"
