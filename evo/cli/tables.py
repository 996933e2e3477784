"""What commands print, and how they end."""

from __future__ import annotations

import math
import re
import statistics
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from evo.cli.going_on import MOST_NAMED, resume_command
from evo.warning import and_more

if TYPE_CHECKING:
    from evo.logs.log import Log
    from evo.runs.progress import Tally

MISTAKE = 2  # exit code of a mistake in the arguments or the input
FAILURE = 1  # exit code where the work itself failed
_MAX_LENGTH = 64 << 20  # characters of a program or a table that is given


def table(rows: Sequence[Sequence[object]], heads: Sequence[str]) -> str:
    """Returns a plain table; columns whose cells are all numbers are aligned to the right."""
    texts = [[str(cell) for cell in row] for row in rows]
    widths = [max(len(cell) for cell in column) for column in zip(heads, *texts, strict=True)]
    numeric = [
        all(re.fullmatch(r"[-+\d.,e%]*|nan|none", row[i]) for row in texts)
        for i in range(len(heads))
    ]
    lines = [list(heads), *texts]
    return "\n".join(
        "  ".join(
            cell.rjust(width) if right else cell.ljust(width)
            for cell, width, right in zip(line, widths, numeric, strict=True)
        ).rstrip()
        for line in lines
    )


def number(value: float | None, form: str = "g", unknown: str = "") -> str:
    """Returns a number as text, or what stands for None and NaN."""
    if value is None or math.isnan(value):
        return unknown
    return format(value, f"z{form}" if isinstance(value, float) else form)  # z: -0 is 0


def dollars_of(tally: Tally) -> str:
    """The dollars of some calls; none of a model that is no LLM."""
    return number(tally.dollars, ".4f", "" if tally.stand_ins else "unknown")


def say_who_is_no_llm(tallies: Iterable[Tally]) -> None:
    """Prints why a table states no dollars of some models."""
    names = sorted(set[str]().union(*(each.stand_ins for each in tallies)))
    if names:
        are = "is not an LLM" if len(names) == 1 else "are no LLMs"
        print(f"no dollars: {' and '.join(names)} {are}")


EARLY = {
    "budget": "ended as the budget was used up",
    "interrupted": "stopped or paused before the end",
    "target": "reached the target",
    "patience": "ended by the patience",
}
"""Messages about runs that ended before their last generation, by the reason in the log."""


def print_early_ends(logs: Sequence[Log], budget: Mapping[str, float] | None) -> None:
    """Prints why runs have fewer generations than asked for, and what goes on with them."""
    for reason, words in EARLY.items():
        those = [log for log in logs if log.ends and log.ends[-1].reason == reason]
        if those:
            goes_on = ""
            if reason in ("budget", "interrupted"):
                command = resume_command(those, budget, used_up=reason == "budget")
                goes_on = f"; `{command}` goes on"
                if reason == "budget" and "seconds" in (budget or {}):
                    goes_on += ", in seconds of its own"
            print(f"{len(those)} of {len(logs)} run{'s' * (len(logs) > 1)} {words}{goes_on}")


def print_logs(logs: Sequence[Log], budget: Mapping[str, float] | None = None) -> int:
    """Prints one line per log; returns the exit code.

    It is a failure if a run has no fitness, or if every child of all runs failed.

    Args:
        logs: The logs.
        budget: The limits that their runs had by unit, if any.
    """
    from evo.logs.literals import KEPT_OUT

    rows = []
    for log in logs:
        counts = log.status_counts
        rows.append(
            (
                "unknown" if log.header.seed < 0 else log.header.seed,
                len(log.generations),
                number(log.trajectory[0], ".5f", "none"),
                number(log.trajectory[-1], ".5f", "none"),
                counts.get("ok", 0),
                len(log.outcomes) - counts.get("ok", 0),
                number(log.seconds, ".1f", "unknown"),
                log.path,
            )
        )
    heads = ("seed", "T", "initial", "best fitness", "ok", "failed", "seconds", "log")
    print(table(rows, heads))
    if any(not log.header.model.is_llm for log in logs):
        print("The offline model is a random rewriter, not an LLM.")
    print_early_ends(logs, budget)
    print_not_begun(logs)
    those = [log for log in logs if log.initial is not None and math.isnan(log.best_fitness)]
    what = "program" if those else "child"
    if not those and not any({"ok", *KEPT_OUT} & {*log.status_counts} for log in logs):
        those = [log for log in logs if log.outcomes]
    if not those:
        return 0
    places = and_more([log.path for log in those])
    print(f"no {what} was ok in {places}; `evo show` says what went wrong")
    return FAILURE


def print_grid(logs: Sequence[Log], budget: Mapping[str, float] | None) -> None:
    """Prints the fitness of each split of a grid, over the runs that have got equally far."""
    by_split: dict[tuple[int, int], list[float]] = {}
    for log in logs:
        split = log.header.children, len(log.generations)
        final = float(log.trajectory[-1])
        by_split.setdefault(split, []).append(-math.inf if math.isnan(final) else final)
    rows = []
    for (children, generations), finals in sorted(by_split.items()):
        shown = (f"{each:.4f}" for each in (statistics.median(finals), max(finals)))
        rows.append((generations, children, len(finals), *shown))
    print(table(rows, ("T", "N", "runs", "median fitness", "best fitness")))
    print_early_ends(logs, budget)
    print_not_begun(logs)


def print_not_begun(logs: Sequence[Log]) -> None:
    """Prints which requested runs were not started, if any."""
    from evo.logs.log import Logs

    missing = [path.name for path in logs.not_begun] if isinstance(logs, Logs) else []
    if not missing:
        return
    total = len(missing) + len(logs)
    were = "was" if len(missing) == 1 else "were"
    print(f"{len(missing)} of {total} runs {were} not begun: {and_more(missing, MOST_NAMED)}")


def read_text(path: Path) -> str:
    """Returns a file's text, without a byte order mark."""
    try:
        with path.open(encoding="utf-8-sig") as file:
            text = file.read(_MAX_LENGTH + 1)
        if len(text) > _MAX_LENGTH:
            raise ValueError(f"expected at most {_MAX_LENGTH:,} characters")
        return text
    except (OSError, ValueError) as error:
        raise ValueError(f"{path}: cannot read it: {error}") from None
