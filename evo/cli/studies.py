"""Commands that spend a budget by choosing: allocations, sweeps, selections."""

from __future__ import annotations

import math
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING, Annotated, Any, Literal, Unpack

from cyclopts import Parameter

from evo.cli.options import (
    FLAGS,
    Arms,
    Assignments,
    Budget,
    Count,
    Flag,
    Needed,
    Number,
    Parameters,
    Pythons,
    Resume,
    Seed,
    Seeds,
    ShellOptions,
    TaskOptions,
    Timeout,
    ValueOptions,
    Varied,
    takes,
)
from evo.cli.own import known_name
from evo.cli.selections import print_selection
from evo.cli.sweeps import cost_of_sweep, print_outlook, print_sweep
from evo.cli.tables import read_text, table
from evo.logs.types import JsonObject
from evo.runs.options import AllocationOptions, SizeOptions, StudyOptions, SweepOptions

if TYPE_CHECKING:
    from evo.logs.log import Log


ENDS: dict[str, str] = {
    "target": "; the target is reached",
    "patience": "; the patience has closed every run",
    "stopped": "; stopped",
    "over": "; no run has a next generation",
    "budget": "; the budget is used up",
}
"""What is said of an allocation that ended before its last round, by the reason."""


@takes(
    *(TaskOptions, SizeOptions, AllocationOptions, ValueOptions, ShellOptions),
    shown=("model", "search", "quiet"),
)
def allocate(
    task: str,
    *,
    policy: str,
    parameters: Parameters = None,
    arms: Count = None,
    own_arms: Arms = None,
    rounds: Count = 64,
    children: Annotated[Count, Parameter(name=FLAGS["children"])] = 16,
    seed: Seed = 0,
    arm_seed: Seed = 40,
    cap: Annotated[Count, Parameter(name=FLAGS["cap"])] = None,
    reward: str | None = None,
    budget: Budget = None,
    in_flight: Count = 1,
    log_dir: str | None = None,
    resume: Resume = True,
    **options: Unpack[AllocationOptions],
) -> int:
    """Lets a policy choose, round by round, which of several runs advances.

    Args:
        task: Name (cp, mmd, ht, ...; see `evo tasks`) or folder of the task.
        policy: ucb1, thompson, exp3p, ..., or one of your own, FILE.py:CLASS.
        parameters: A parameter of the policy, such as c=0.1; may be given several times.
        arms: K, number of runs (default: 10).
        own_arms: What differs for an arm, such as model=gpt-4o,temperature=0.2,children=8 or
            search=FILE.py:CLASS, a log to continue from, or another tool, engine=NAME,python=PATH;
            once per arm, in place of --arms.
        rounds: Number of rounds at most; each advances one run by one generation.
        children: Number of children per generation N.
        seed: Seed of the policy.
        arm_seed: Seed of the first run; the next ones follow.
        cap: Generations of one run at most.
        reward: What the policy is rewarded for: best_fitness, improvement, improved, rank
            (default: best_fitness where the task's fitness lies in [0, 1], else rank).
        budget: Limit of all runs together, such as calls=512.
        in_flight: Rounds at a time.
        log_dir: Folder for the logs (default: that of an equal allocation in logs/local, else a new
            one there).
        resume: Continue an equal allocation; --no-resume begins a new one.
    """
    from evo.cli.estimates import outlook
    from evo.policies import find_policy
    from evo.studies.allocation.driver import prepare_allocation

    if own_arms and arms is not None:
        raise ValueError("--arm names the arms and --arms counts them: give one of the two")
    for each in own_arms or ():
        if isinstance(each, dict) and isinstance(search := each.get("search"), str):
            each["search"] = known_name("search", search, "--arm search=")
    prepared = prepare_allocation(
        task,
        find_policy(known_name("policy", policy), **(parameters or {})),
        arms=own_arms or arms or 10,
        rounds=rounds or 0,
        children=children or 0,
        seed=seed or 0,
        arm_seed=arm_seed or 0,
        cap=cap,
        reward=reward,
        budget=budget,
        in_flight=in_flight or 0,
        log_dir=log_dir,
        resume=resume,
        **options,
    )
    print(outlook(prepared.runs, budget), flush=True)
    allocation = prepared.do()
    pulls = allocation.pulls.tolist()
    rows = []
    for k, log in enumerate(allocation.arms):
        header = log.header
        search = header.search.name if header.search is not None else "greedy"
        made_by = search if header.source == "evo" else header.source
        arm = (k, header.model_name, made_by, header.children, header.seed)
        rows.append((*arm, pulls.count(k), f"{log.trajectory[-1]:.5f}", log.path))
    print(table(rows, ("arm", "model", "search", "N", "seed", "pulls", "best fitness", "log")))
    known = {unit: a[-1] for unit, a in allocation.spent.items() if not math.isnan(a[-1])}
    spent = ", ".join(f"{amount:.6g} {unit}" for unit, amount in known.items())
    end, made = ENDS.get(allocation.end, ""), sum(map(pulls.count, range(len(allocation.arms))))
    end += f" after {made} of {len(pulls)} rounds" if end else ""
    print(f"best fitness {allocation.best_fitness[-1]:z.6f}; spent {spent}{end}; {allocation.path}")
    return 0


@takes(
    *(SweepOptions, ValueOptions, ShellOptions),
    shown=("model", "search", "quiet"),
)
def sweep(
    file: str,
    *,
    trials: Count = None,
    seeds: Seeds = None,
    seed: Seed = None,
    budget: Budget = None,
    log_dir: str | None = None,
    resume: Resume = True,
    dry_run: Flag = False,
    **options: Unpack[SweepOptions],
) -> int:
    """Tries many configurations on the same seeds, as a file describes.

    Args:
        file: File such as sweep.toml, or the folder of a sweep to continue.
        trials: Number of configurations (default: that of the file).
        seeds: Seeds of the runs of each configuration (default: those of the file).
        seed: Seed of the strategy (default: that of the file).
        budget: Limit of all runs together, such as calls=512 (default: that of the file).
        log_dir: Folder for the logs (default: that of an equal sweep in logs/local, else a new one
            there, logs/local/sweep-NAME).
        resume: Continue an equal sweep; --no-resume begins a new one.
        dry_run: Call and write nothing; show what the runs may cost at most.
    """
    own = {"trials": trials, "seeds": seeds, "seed": seed, "log_dir": log_dir}
    given = {name: value for name, value in own.items() if value is not None}
    if dry_run:
        return print_outlook(file, budget, options, **given)
    return go_on([file], budget, options, resume=resume, **given)


def go_on(
    sweeps: Sequence[str],
    budget: Mapping[str, float] | None,
    options: SweepOptions,
    **given: Any,
) -> int:
    """Starts sweeps, or continues them by their folders, and returns the exit code."""
    from evo.studies.sweep.driver import prepare_sweep

    codes = []
    for each in sweeps:
        prepared = prepare_sweep(each, budget=budget, **given, **options)
        folder = prepared.paths[0]
        print(cost_of_sweep(prepared.design, folder, prepared.limits), flush=True)
        codes.append(print_sweep(prepared.do()))
    return max(codes)


@takes(
    *(TaskOptions, StudyOptions, ValueOptions, ShellOptions),
    shown=("children", "model", "search", "quiet"),
)
def select(
    task: str | None = None,
    *,
    vary: Varied = None,
    problems: Flag = False,
    texts: Annotated[list[Path] | None, Parameter(name="--text")] = None,
    selector: str = "arm_elimination",
    parameters: Annotated[Assignments, Parameter(name="--set")] = None,
    seeds: Seeds = None,
    delta: Needed = 0.05,
    batch: Count = None,
    low: Number = None,
    high: Number = None,
    failure_value: Number = None,
    interval: Literal["anytime", "compat"] = "anytime",
    budget: Budget = None,
    seed: Seed = 0,
    log_dir: str | None = None,
    resume: Resume = True,
    generations: Annotated[Count, Parameter(name=FLAGS["generations"])] = None,
    **options: Unpack[StudyOptions],
) -> int:
    """Finds which configuration is best, in few runs, at a stated confidence.

    Args:
        task: Name (cp, mmd, ht, ...; see `evo tasks`) or folder of the task.
        vary: Values of a field, such as children=4,16 or search=greedy,FILE.py:CLASS; several
            fields make a grid.
        problems: Sample problems of the task's data set in place of runs; -T, -N and --seeds have
            no effect then.
        texts: A text to try, or a log whose best text is taken; with --problems.
        selector: Rule that drops configurations.
        parameters: A parameter of the selector, such as threshold=0.9.
        seeds: Seeds of the runs of each configuration (default: 40:60, which is 40 ... 59).
        delta: Probability with which the winner may be wrong.
        batch: Samples of a configuration per round at least (default: 1 run, or 10 problems).
        low: Least possible fitness; with --high, where the task does not state its range.
        high: Largest possible fitness; fitness outside the range is clipped.
        failure_value: What a sample without a fitness counts (default: the least fitness).
        interval: anytime, or compat, whose errors are far more frequent.
        budget: Limit of all runs together, such as calls=512 or samples=100.
        seed: Seed of the selector.
        log_dir: Folder for the logs (default: that of an equal selection in logs/local, else a new
            one there).
        resume: Continue an equal selection; --no-resume begins a new one.
        generations: Number of generations T (default: 8).
    """
    from evo.cli.estimates import outlook
    from evo.studies.selection.driver import prepare_selection

    if (low is None) != (high is None):
        raise ValueError("--low and --high go together: the least and the largest fitness there is")
    bounds = None if low is None or high is None else (low, high)
    varied: dict[str, object] = dict(vary or {})
    if vary and "search" in vary:
        flag = "--vary search="
        varied["search"] = [known_name("search", str(each), flag) for each in vary["search"]]
    if texts and not problems:
        raise ValueError("--text: what a run evolves is the task's own; texts need --problems")
    if texts:
        varied["text"] = [_text(path) for path in texts]
    if not varied:
        raise ValueError("expected --vary FIELD=VALUE,... or, with --problems, --text FILE")
    what = "problems" if problems else "runs"
    own: dict[str, object]
    own = {"parameters": parameters, "batch": batch, "failure_value": failure_value}
    if problems:
        options.pop("children", None)
    else:
        own |= {"generations": generations, "seeds": seeds}
    given: JsonObject = {name: value for name, value in own.items() if value is not None}
    given = {n: value for n, value in {**given, **options}.items() if n not in varied}
    prepared = prepare_selection(
        varied,
        task=task,
        samples="problems" if problems else "seeds",
        selector=selector,
        delta=delta,
        bounds=bounds,
        interval=interval,
        budget=budget,
        seed=seed or 0,
        log_dir=log_dir,
        resume=resume,
        **given,
    )
    print(outlook(prepared.runs, budget), flush=True)
    found = prepared.do()
    print_selection(found, what)
    return 0


def _text(path: Path) -> str | Log:
    """Returns a text, or the log that holds it."""
    from evo.logs.log import read_log

    return read_log(path) if path.name.endswith((".jsonl", ".jsonl.gz")) else read_text(path)


def drive(
    engine: str,
    task: str,
    *,
    calls: Annotated[Count, Parameter(required=True)] = None,
    seeds: Seeds = None,
    python: Path = Path(sys.executable),
    model: str = "offline",
    log_dir: Path = Path("logs/local"),
    quiet: Annotated[Flag, Parameter(name=("-q", "--quiet"))] = False,
) -> int:
    """Runs another tool at a budget of calls, on one of our tasks.

    Args:
        engine: openevolve, shinka, or an engine of an installed package.
        task: Name (cp, mmd, ht, ...; see `evo tasks`) or folder.
        calls: Requests to the model that each run may make.
        seeds: Such as 40:45; a run each, 40 by default.
        python: The Python in whose environment the engine is installed.
        model: One of `evo models`.
        log_dir: Folder for a folder of each run, with its log and the engine's own files.
        quiet: Show no progress bar.
    """
    from evo.studies.allocation.drive import drive as run

    logs = run(
        engine, task, calls=calls or 1, seeds=seeds or [40], python=python, model=model,
        log_dir=log_dir, progress=not quiet,
    )  # fmt: skip
    rows = [
        (log.header.seed, len(log.outcomes), f"{log.trajectory[-1]:.5g}", log.path) for log in logs
    ]
    print(table(rows, ("seed", "calls", "best fitness", "log")))
    return 0


def compare(
    tasks: Annotated[list[str], Parameter(name="TASK", negative=())] | None = None,
    *,
    engines: str = "ours,openevolve,shinka,gepa",
    budget: Budget = None,
    runs: Count = 8,
    seed: Seed = 40,
    model: str = "offline",
    children: Annotated[Count, Parameter(name=FLAGS["children"])] = 4,
    search: str = "greedy",
    temperature: Number = None,
    max_tokens: Count = None,
    evaluation_timeout: Timeout = None,
    python: Pythons = None,
    protocol: Path | None = None,
    log_dir: Path = Path("logs/local/compare"),
    quiet: Annotated[Flag, Parameter(name=("-q", "--quiet"))] = False,
) -> int:
    """Runs several tools on the same tasks: one model, one gate, one evaluator, one budget.

    Every run starts from the task's initial program and asks for whole programs. The same command
    goes on where it was interrupted.

    Args:
        tasks: Names (cp, mmd, ht, ...; see `evo tasks`) or folders.
        engines: Comma-separated: ours (a search of this project), openevolve, shinka, gepa, or
            engines of installed packages.
        budget: Calls of each run, such as calls=32.
        runs: Runs of each tool on each task.
        seed: Of the first run; the next have the next seeds.
        model: One of `evo models`.
        children: Children of a generation (N) of ours.
        search: Search of ours, or one of your own, FILE.py:CLASS.
        temperature: Of every call (default: each tool's own).
        max_tokens: Longest reply of every call (default: each tool's own).
        evaluation_timeout: Seconds for the evaluation of one program, or auto (default: the
            task's).
        python: ENGINE=PATH, the Python in whose environment an engine is installed; several are
            allowed.
        protocol: TOML file that states all of this instead; its hash is written into every log.
        log_dir: Folder for the logs.
        quiet: Show no progress bars.
    """
    from evo.studies.comparison import Comparison, compare_engines, load_comparison

    if protocol is not None:
        if tasks:
            raise ValueError("expected tasks or --protocol, which names them; got both")
        comparison = load_comparison(protocol)
    else:
        limits = dict(budget or {})
        if not tasks or limits.keys() != {"calls"}:
            raise ValueError("expected one or more tasks and --budget calls=NUMBER")
        comparison = Comparison(
            tasks=tuple(tasks), engines=tuple(filter(None, engines.split(","))),
            calls=int(limits["calls"]), runs=runs or 8, seed=40 if seed is None else seed,
            model=model, children=children or 4, search=known_name("search", search),
            temperature=temperature,
            max_tokens=max_tokens, evaluation_timeout=evaluation_timeout,
        )  # fmt: skip
    done = compare_engines(comparison, pythons=python, log_dir=log_dir, progress=not quiet)
    rows = [
        (
            each.task,
            each.engine,
            each.seed,
            len(each.log.outcomes),
            f"{each.log.trajectory[-1]:.5g}",
        )
        for each in done
    ]
    print(table(rows, ("task", "tool", "seed", "calls", "best fitness")))
    print(f"replay report {quote(str(log_dir))}")
    return 0
