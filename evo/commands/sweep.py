"""`evo sweep`, `evo pause` and `evo stop`."""

from __future__ import annotations

import argparse
import math
import statistics
from collections.abc import Sequence
from typing import TYPE_CHECKING

from evo.commands import FAILURE, numbers, settings_of, table

if TYPE_CHECKING:
    from evo.configuration import Settings
    from evo.sweeping.summary import Sweep


def sweep(arguments: argparse.Namespace) -> int:
    """`evo sweep`."""
    from evo.sweeping.driver import sweep as run_sweep

    budget = numbers("--budget", arguments.budgets) or None
    done = run_sweep(
        arguments.file,
        budget=budget,
        log_dir=arguments.log_dir,
        settings=settings_of(arguments),
    )
    return print_sweep(done)


def go_on(folders: Sequence[str], settings: Settings) -> int:
    """`evo resume` with folders of sweeps."""
    from evo.sweeping.driver import sweep as run_sweep

    return max(print_sweep(run_sweep(folder, settings=settings)) for folder in folders)


def print_sweep(sweep: Sweep) -> int:
    """Prints what each configuration came to, the best first, and how the sweep stands."""
    from evo.sweeping.summary import standings

    def shown(value: float) -> str:
        return f"{value:.5f}" if math.isfinite(value) else "none"

    rows = []
    for configuration, values, found in standings(sweep.folder):
        known = found or [-math.inf]
        figures = (sum(known) / len(known), statistics.median(known), min(known), max(known))
        what = " ".join(f"{name}={value}" for name, value in values.items()) or "base"
        rows.append((configuration, what, len(found), *map(shown, figures)))
    heads = ("configuration", "values", "runs", "mean fitness", "median", "lowest", "highest")
    print(table(rows, heads))
    summary = sweep.summary
    print(summary)
    return FAILURE if summary.failed else 0


def pause(arguments: argparse.Namespace) -> int:
    """`evo pause`."""
    from pathlib import Path

    from evo.sweeping.events import request

    for folder in arguments.folders:
        request(Path(folder), "pause")
        print(f"{folder}: asked to pause; `evo resume {folder}` goes on")
    return 0


def stop(arguments: argparse.Namespace) -> int:
    """`evo stop`: of sweeps, of allocations, and of the sessions that write logs."""
    from pathlib import Path

    from evo.rounds import ALLOCATION
    from evo.sweeping.design import is_sweep
    from evo.sweeping.events import request
    from evo.upkeep import stop as stop_log

    for path in arguments.paths:
        again = f"`evo resume {path}`"
        if is_sweep(path):
            request(Path(path), "stop")
        elif (journal := Path(path) / ALLOCATION).is_file():
            stop_log(journal)
            again = f"the same `evo allocate` with --log-dir {path}"
        else:
            stop_log(path)
        print(f"{path}: asked to stop; {again} goes on")
    return 0
