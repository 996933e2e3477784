"""Commands that make runs, go on with them, and evaluate programs."""

from __future__ import annotations

import math
import statistics
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from evo.cli.estimates import outlook, too_few
from evo.cli.options import (
    Flag,
    LogPaths,
    Making,
    Output,
    Seed,
    Seeds,
    made_from,
)
from evo.cli.tables import FAILURE, number, print_logs, print_not_begun, read_text, table
from evo.runs.fork import plan_fork
from evo.runs.playback import rescore as rescore_log
from evo.runs.verbs import evaluate as evaluate_program
from evo.runs.verbs import plan_grid, plan_many, plan_run, powers_of_two, resume_many

if TYPE_CHECKING:
    from evo.logs.log import Log


@made_from(plan_many)
def run(
    make: Making,
    task: str | None = None,
    *,
    seeds: Seeds = None,
    seed: Seed = None,
    log: Path | None = None,
    protocol: str | None = None,
) -> int:
    """Runs searches, one per seed, and logs them; or what is missing of a protocol.

    Args:
        task: Name (cp, mmd, ht, ...; see `evo tasks`) or folder.
        seeds: Such as 40:50, which is 40 ... 49.
        seed: One seed; 0 by default.
        log: Path of the log of one run.
        protocol: File, or name of a shipped one, that says what is run; beside it only --log-dir
            and how to work.
    """
    if protocol is not None:
        if not (task is None and seeds is None and seed is None and log is None):
            raise ValueError("--protocol says the task, the seeds and the logs: give none of them")
        return _run_protocol(protocol, make.keywords)
    if task is None:
        raise ValueError("expected a TASK, or --protocol FILE (see `evo run --help`)")
    if seeds is not None and seed is not None:
        raise ValueError("--seed is one seed, --seeds are several: give one of them")
    given = dict(make.keywords)
    several = seeds or given.pop("resume", False) or given.pop("log_dir", None) is not None
    if log is not None and several:
        raise ValueError("--log: goes with one seed; --log-dir takes several, and --resume")
    if log is None:
        plan = make(seeds=seeds or [seed or 0])
        print(outlook(plan.runs, given.get("budget"), in_turn=True), flush=True)
        print_logs(plan.do())
    else:
        alone = plan_run(seed=seed or 0, log=log, **given)
        print(outlook(alone.runs, given.get("budget")), flush=True)
        print_logs([alone.do()])
    return 0


def _run_protocol(name: str, given: Mapping[str, Any]) -> int:
    """Says what a protocol costs, then makes what is missing of it."""
    from evo.runs.configuration import Settings
    from evo.studies.protocol import load_protocol, logs_of, run_protocol, state_cost

    known = load_protocol(name)
    fields = {key: value for key, value in given.items() if key in Settings.__dataclass_fields__}
    folder = given.get("log_dir")
    if other := given.keys() - fields.keys() - {"log_dir"}:
        raise ValueError(f"--{min(other)}: the protocol {known.name!r} says what is run")
    print(state_cost(known, logs_of(known, folder)), flush=True)
    print_logs(run_protocol(known, log_dir=folder, **fields))
    return 0


def protocol(file: str, *, status: Flag = False, log_dir: Path | None = None) -> int:
    """Shows what a protocol costs, and how far it is.

    Args:
        file: File, or name of a shipped protocol.
        status: Show its conditions, and what was made of each.
        log_dir: Folder of its logs; by default logs/local/NAME.
    """
    from evo.studies.protocol import load_protocol, logs_of, state_cost, status_rows

    known = load_protocol(file)
    logs = logs_of(known, log_dir)
    print(state_cost(known, logs))
    if status:
        print(table(status_rows(known, logs), ("condition", "runs", "calls", "ok")))
    return 0


@made_from(resume_many, without=["paths", "search"])
def resume(make: Making, logs: LogPaths) -> int:
    """Goes on with logs: finishes killed runs, or extends finished ones; or with sweeps.

    Args:
        logs: Logs, or folders of sweeps alone.
    """
    from evo.cli.studies import go_on
    from evo.studies.sweep.design import is_sweep

    sweeps = [path for path in logs if is_sweep(path)]
    if not sweeps:
        print_logs(make(logs))
        return 0
    given = {name: value for name, value in make.keywords.items() if value is not None}
    if len(sweeps) < len(logs) or "generations" in given:
        raise ValueError("expected logs, or folders of sweeps alone and without -T")
    return go_on(sweeps, given)


@made_from(plan_fork, without=["log", "task"])
def fork(make: Making, log: str, *, at: int, task: str | None = None) -> int:
    """Goes on from one state of a logged run several times over, as it was made or otherwise.

    Args:
        log: A run's log with its programs.
        at: The last generation that is shared; 0 shares the initial program alone.
        task: Of a log that was imported: name or folder; its programs are evaluated on it.
    """
    plan = make(log, at=at, task=task)
    print(outlook(plan.runs, make.keywords.get("budget"), in_turn=True), flush=True)
    print_logs(plan.do())
    return 0


@made_from(plan_grid)
def grid(make: Making) -> int:
    """Makes the runs behind a full T x N sweep."""
    given = make.keywords
    calls, budget = given.get("calls", 512), given.get("budget")
    seeds, plan = given.get("seeds") or range(40, 50), make()
    print(outlook(plan.runs, budget, in_turn=True))
    if note := too_few(len(seeds), sum(n * (calls // n) for n in powers_of_two(calls)), budget):
        print(note, flush=True)
    by_children: dict[int, list[Log]] = {}
    logs = plan.do()
    for log in logs:
        by_children.setdefault(log.header.children, []).append(log)
    rows = []
    for children, group in sorted(by_children.items()):
        finals = [float(log.trajectory[-1]) for log in group]
        finals = [-math.inf if math.isnan(final) else final for final in finals]
        shown = (f"{each:.4f}" for each in (statistics.median(finals), max(finals)))
        rows.append((len(group[0].generations), children, len(group), *shown))
    print(table(rows, ("T", "N", "runs", "median fitness", "best fitness")))
    print_not_begun(logs)
    return 0


@made_from(evaluate_program, without=["program"])
def evaluate(make: Making, *, program: Path | None = None, prompt: Flag = False) -> int:
    """Shows what a task makes of a program.

    Args:
        program: File with the program; by default the task's initial one.
        prompt: Show the messages that ask for its rewrite, too.
    """
    from evo.prompt import build_messages

    task = make.keywords["task"]
    text = task.initial_program if program is None else read_text(program)
    found = make(program=text)
    print(f"{task.name}: {found.status}, fitness {number(found.fitness, '.10g', 'none')}")
    rows = [(name, f"{value:.10g}") for name, value in found.metrics.items()]
    rows.append(("seconds", number(found.seconds, ".3f", "unknown")))
    print(table(rows, ("metric", "value")))
    if found.error:
        print(found.error)
    if prompt:
        for message in build_messages(task.record, text, found.fitness):
            print(f"\n--- {message['role']}\n{message['content']}")
    return 0 if found.status == "ok" else FAILURE


@made_from(rescore_log, without=["path", "log"])
def rescore(make: Making, logs: LogPaths, *, output: Output = None) -> int:
    """Evaluates logged programs again, jailed, and writes new logs.

    Args:
        logs: Logs with programs.
        output: Path of the new log, of one log.
    """
    if output and len(logs) > 1:
        raise ValueError("--output: goes with one log")
    print_logs([make(path, log=output) for path in logs])
    return 0
