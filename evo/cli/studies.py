"""Commands that spend a budget by choosing: allocations, sweeps, selections."""

from __future__ import annotations

import math
import statistics
from collections.abc import Mapping, Sequence
from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING, Annotated, Any, Literal

from cyclopts import Parameter

from evo.cli.estimates import outlook, outlook_of_sweep
from evo.cli.options import Arms, Count, Flag, Making, Number, Parameters, Varied, made_from
from evo.cli.tables import FAILURE, read_text, table
from evo.studies.allocation.driver import plan_allocation
from evo.studies.selection.driver import plan_selection
from evo.studies.sweep.design import read_design
from evo.studies.sweep.driver import plan_sweep

if TYPE_CHECKING:
    from evo.logs.stopping import Wish
    from evo.studies.sweep.summary import Sweep


@made_from(plan_allocation, without=["arms"])
def allocate(
    make: Making,
    *,
    policy: str,
    parameters: Parameters = None,
    arms: Count = None,
    own_arms: Arms = None,
) -> int:
    """Lets a policy spend rounds over parallel runs.

    Args:
        policy: ucb1, thompson, exp3p, ...
        parameters: Of the policy, such as c=0.1.
        arms: K, parallel runs; 10 by default.
        own_arms: Instead of --arms, once per arm: what differs for it, such as
            model=gpt-4o,temperature=0.2,children=8; or a log to go on from.
    """
    from evo.policies import find_policy

    if own_arms and arms is not None:
        raise ValueError("--arm says which arms there are, and --arms how many: give one of them")
    plan = make(policy=find_policy(policy, **(parameters or {})), arms=own_arms or arms or 10)
    print(outlook(plan.runs, make.keywords.get("budget")), flush=True)
    allocation = plan.do()
    pulls = allocation.pulls.tolist()
    rows = []
    for k, log in enumerate(allocation.arms):
        arm = (k, log.header.model.name, log.header.children, log.header.seed)
        rows.append((*arm, pulls.count(k), f"{log.trajectory[-1]:.5f}", log.path))
    print(table(rows, ("arm", "model", "N", "seed", "pulls", "best fitness", "log")))
    spent = ", ".join(f"{amount[-1]:.6g} {unit}" for unit, amount in allocation.spent.items())
    print(f"best fitness {allocation.best_fitness[-1]:.6f}; spent {spent}; {allocation.path}")
    return 0


OF_FILE = ("space", "strategy", "base", "task", "generations", "arms", "rounds", "children")


@made_from(plan_sweep, without=OF_FILE)
def sweep(make: Making, file: str) -> int:
    """Tries many configurations on the same seeds.

    Args:
        file: sweep.toml, or the folder of a sweep to go on with.
    """
    given = {name: value for name, value in make.keywords.items() if value is not None}
    return go_on([file], given)


def go_on(sweeps: Sequence[str], options: Mapping[str, Any]) -> int:
    """Begins sweeps, or goes on with them by their folders, and returns the exit code."""
    codes = []
    for each in sweeps:
        plan = plan_sweep(each, **options)
        print(outlook_of_sweep(read_design(plan.paths[0]), options.get("budget")), flush=True)
        codes.append(print_sweep(plan.do()))
    return max(codes)


def print_sweep(done: Sweep) -> int:
    """Prints what each configuration came to, the best first, and how the sweep stands."""
    from evo.studies.sweep.summary import standings

    def shown(value: float) -> str:
        return f"{value:.5f}" if math.isfinite(value) else "none"

    rows = []
    for configuration, values, found in standings(done.folder):
        known = found or [-math.inf]
        figures = (sum(known) / len(known), statistics.median(known), min(known), max(known))
        what = " ".join(f"{name}={value}" for name, value in values.items()) or "base"
        rows.append((configuration, what, len(found), *map(shown, figures)))
    heads = ("configuration", "values", "runs", "mean fitness", "median", "lowest", "highest")
    print(table(rows, heads))
    print(done.summary)
    return FAILURE if done.summary.failed else 0


IN_PYTHON = ("choices", "evaluate", "data", "cost_weight", "samples", "bounds", "orders", "base")


@made_from(plan_selection, without=[*IN_PYTHON, "c"])
def select(
    make: Making,
    *,
    vary: Varied = None,
    problems: Flag = False,
    texts: Annotated[list[Path] | None, Parameter(name="--text")] = None,
    low: Number = None,
    high: Number = None,
) -> int:
    """Finds which configuration is best, in few runs, at a stated confidence.

    Args:
        vary: Values of a field, such as children=4,16; several fields make a grid.
        problems: A sample is a problem of the task's data set, not a run: -T, -N, --seeds are idle.
        texts: With --problems: a text to try, or a log whose best text is taken.
        low: Least fitness there is; with --high, where the task does not say.
        high: Largest, for clipping.
    """
    if (low is None) != (high is None):
        raise ValueError("--low and --high go together: the least and the largest fitness there is")
    bounds = None if low is None or high is None else (low, high)
    varied = dict(vary or {})
    if texts and not problems:
        raise ValueError("--text: what a run evolves is the task's own; texts need --problems")
    if texts:
        varied["text"] = [_text(path) for path in texts]
    if not varied:
        raise ValueError("expected --vary FIELD=VALUE,... or, with --problems, --text FILE")
    if problems:
        for name in ("generations", "children", "seeds"):
            make.keywords.pop(name, None)
    what = "problems" if problems else "runs"
    given = {name: value for name, value in make.keywords.items() if name not in varied}
    samples: Literal["problems", "seeds"] = "problems" if problems else "seeds"
    plan = plan_selection(varied, samples=samples, bounds=bounds, **given)
    print(outlook(plan.runs, given.get("budget")), flush=True)
    found = plan.do()
    rows = []
    for k in found.frame().index:
        left = "yes" if k in found.survivors else "no"
        values = (f"{each[k]:.5f}" for each in (found.mean, found.lower, found.upper))
        taken = (int(found.samples[k]), int(found.failures[k]))
        rows.append((found.labels[k], left, *taken, *values, f"{found.spent['calls'][k]:.0f}"))
    mean = "mean score" if problems else "mean fitness"
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


def _text(path: Path) -> Any:
    """Returns a text, or the log that holds it."""
    from evo.logs.log import read_log

    return read_log(path) if path.name.endswith((".jsonl", ".jsonl.gz")) else read_text(path)


def pause(folders: Annotated[list[Path], Parameter(name="DIR", negative=())]) -> int:
    """Pauses sweeps, on whatever machine: calls in flight finish.

    Args:
        folders: Of sweeps.
    """
    return _ask(folders, "pause")


def stop(paths: Annotated[list[Path], Parameter(name="PATH", negative=())]) -> int:
    """Stops sweeps, allocations, or the sessions that write logs.

    Args:
        paths: Folders of sweeps or allocations, or logs.
    """
    return _ask(paths, "stop")


def _ask(paths: Sequence[Path], wish: Wish) -> int:
    from evo.logs.stopping import stop as stop_log
    from evo.studies.allocation.journal import ALLOCATION
    from evo.studies.sweep.design import is_sweep
    from evo.studies.sweep.events import request

    for path in paths:
        again = f"`evo resume {quote(str(path))}`"
        if wish == "pause" or is_sweep(path):
            request(path, wish)
        elif (journal := path / ALLOCATION).is_file():
            stop_log(journal)
            again = f"the same `evo allocate` with --log-dir {quote(str(path))}"
        else:
            stop_log(path)
        print(f"{path}: asked to {wish}; {again} goes on")
    return 0
