"""`evo select`."""

from __future__ import annotations

import argparse
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from evo.commands import configuration_of, numbers, settings_of, table, task_of


def select(arguments: argparse.Namespace) -> int:
    """`evo select`."""
    from evo.selection import select_best

    varied = fields_of(arguments.vary)
    fixed = {k: value for k, value in configuration_of(arguments).items() if value is not None}
    if arguments.problems:
        if arguments.texts:
            varied["text"] = [_text(path) for path in arguments.texts]
    elif arguments.texts:
        raise ValueError("--text: what a run evolves is the task's own; texts need --problems")
    else:
        fixed |= {"generations": arguments.generations, "children": arguments.children}
    if not varied:
        raise ValueError("expected --vary FIELD=VALUE,... or, with --problems, --text FILE")
    found = select_best(
        varied,
        task=task_of(arguments),
        selector=arguments.selector,
        parameters=numbers("--set", arguments.parameters),
        samples="problems" if arguments.problems else "seeds",
        seeds=arguments.seeds,
        delta=arguments.delta,
        batch=arguments.batch,
        bounds=(arguments.low, arguments.high),
        failure_value=arguments.failure_value,
        interval=arguments.interval,
        budget=numbers("--budget", arguments.budgets),
        seed=arguments.seed,
        log_dir=arguments.log_dir,
        settings=settings_of(arguments),
        **{name: value for name, value in fixed.items() if name not in varied},
    )
    rows = [
        (
            found.labels[k],
            "yes" if k in found.survivors else "no",
            int(found.samples[k]),
            int(found.failures[k]),
            f"{found.mean[k]:.5f}",
            f"{found.lower[k]:.5f}",
            f"{found.upper[k]:.5f}",
            f"{found.spent['calls'][k]:.0f}",
        )
        for k in found.frame().index
    ]
    what = "problems" if arguments.problems else "runs"
    mean = "mean score" if arguments.problems else "mean fitness"
    heads = ("configuration", "left", what, "failed", mean, "lower", "upper", "calls")
    print(table(rows, heads))
    winner = "none is left" if found.winner is None else f"winner: {found.labels[found.winner]}"
    clipped = int(found.clipped.sum())
    above = f"; {clipped} outside the bounds, clipped" if clipped else ""
    print(
        f"{winner} ({found.end}, delta {found.terms.delta:g}, {found.terms.interval}); "
        f"{int(found.samples.sum())} of {found.samples.size * found.terms.size} {what}{above}; "
        f"{found.path}"
    )
    return 0


def fields_of(texts: Sequence[str]) -> dict[str, list[Any]]:
    """Parses `children=4,16`: numbers are numbers, anything else is text."""
    found: dict[str, list[Any]] = {}
    for text in texts:
        name, sign, values = text.partition("=")
        if not sign or not values or name in found:
            raise ValueError(
                f"--vary: expected each field once, NAME=VALUE,VALUE,..., got {text!r}"
            )
        found[name] = [_value(value) for value in values.split(",")]
    return found


def _text(path: Path) -> Any:
    """Returns a text, or the log that holds it."""
    from evo.log import read_log

    if path.name.endswith((".jsonl", ".jsonl.gz")):
        return read_log(path)
    try:
        return path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise ValueError(f"--text {path}: cannot read it: {error}") from None


def _value(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError:
        return text
