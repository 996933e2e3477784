"""Commands that make runs, go on with them, and evaluate programs."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, Unpack

from cyclopts import Parameter

from evo.cli.folders import logs_with_programs, unfinished_logs
from evo.cli.going_on import do
from evo.cli.options import (
    FLAGS,
    Budget,
    Count,
    Flag,
    InstanceOptions,
    LogPaths,
    Output,
    OwnFilters,
    OwnSearch,
    Resume,
    Seed,
    Seeds,
    ShellOptions,
    TaskOptions,
    Timeout,
    ValueOptions,
    takes,
)
from evo.cli.own import make_known
from evo.cli.tables import FAILURE, number, print_grid, print_logs, read_text, table
from evo.runs.options import (
    ChangeOptions,
    ConfigurationOptions,
    EvaluateOptions,
    ForkOptions,
    GoalOptions,
    GridOptions,
    ResumeOptions,
    SessionOptions,
    StudyOptions,
    SweepOptions,
)

if TYPE_CHECKING:
    from evo.logs.log import Logs
    from evo.logs.records import Evaluation
    from evo.prompt import Message
    from evo.runs.handle import Prepared
    from evo.tasks.task import Task


def new(folder: Path, *, kind: Literal["program", "instances", "prompt"] = "program") -> int:
    """Writes the folder of a new task, with comments; it evaluates at once.

    Args:
        folder: Where to write it.
        kind: What evolves: a program that is run once, one that is run for each row of a data set
            (instances), or a text under which a model answers each row (prompt).
    """
    from evo.tasks.beginning import new_task

    for path in new_task(folder, kind):
        print(path)
    place = shlex.quote(str(folder))
    print(
        f"Change these to your problem. `evo evaluate {place}` scores the program to start from, "
        f"`evo evaluate {place} --prompt` shows what a model is told, `evo run {place}` searches."
    )
    return 0


class FirstOptions(ConfigurationOptions, EvaluateOptions, total=False):
    """What the first prompt of a run depends on, and how it is evaluated."""


class SeriesFlags(GoalOptions, StudyOptions, total=False):
    """What runs with different seeds have in common."""


@takes(
    *(TaskOptions, SeriesFlags, ValueOptions, ShellOptions),
    shown=("generations", "children", "model", "search", "target", "quiet"),
)
def run(
    task: str | None = None,
    *,
    seeds: Seeds = None,
    seed: Seed = None,
    budget: Budget = None,
    log: Path | None = None,
    log_dir: str | None = None,
    resume: Resume = True,
    protocol: str | None = None,
    dry_run: Flag = False,
    **options: Unpack[SeriesFlags],
) -> int:
    """Runs searches, one per seed, and logs them; or those that a protocol still lacks.

    Args:
        task: Name (cp, mmd, ht, ...; see `evo tasks`) or folder of the task.
        seeds: Seeds of several runs, such as 40:50 for 40 ... 49.
        seed: Seed of one run (default: 0).
        budget: Limit of all runs together, such as calls=512, tokens=1e6 or dollars=2; seconds=60
            is time of this command.
        log: Path of the log of one run.
        log_dir: Folder for the logs (default: logs/local).
        resume: Continue a log of equal configuration; --no-resume begins a new one.
        protocol: File or name of a protocol to run; no other options but --log-dir and those of
            the endpoint and machine go with it.
        dry_run: Call nothing; show what the runs may cost in calls, tokens, dollars and time.
    """
    from evo.cli.estimates import bought, outlook_on_logs
    from evo.runs.bounds import cost_bound
    from evo.runs.estimate import estimate, planned_runs
    from evo.runs.verbs import prepare_many, prepare_run

    if protocol is not None:
        if dry_run:
            raise ValueError("--dry-run: `evo protocol FILE` shows what a protocol costs")
        if task is not None or seeds is not None or seed is not None or log is not None:
            raise ValueError(
                "--protocol fixes the task, the seeds and the logs: give none of these"
            )
        return _run_protocol(protocol, log_dir, options)
    if task is None:
        raise ValueError("expected a TASK, or --protocol FILE (see `evo run --help`)")
    if seeds is not None and seed is not None:
        raise ValueError("--seed is one seed, --seeds are several: give one of them")
    if log is not None and (seeds or log_dir is not None):
        raise ValueError("--log: goes with one seed; --log-dir takes several")
    if dry_run:
        print(estimate(task, seeds=seeds or [seed or 0], budget=budget, **options))
        planned = planned_runs(task, seeds or [seed or 0], **options)
        if words := bought([cost_bound(*run, retries=0) for run in planned], budget, in_waves=True):
            print(f"{words[:1].upper()}{words[1:]}.")
        return 0
    if log is None:
        prepared = prepare_many(
            task,
            seeds=seeds or [seed or 0],
            log_dir=log_dir,
            resume=resume,
            budget=budget,
            **options,
        )
        return _carry_out(prepared, budget)
    else:
        alone = prepare_run(task, seed=seed or 0, log=log, resume=resume, budget=budget, **options)
        print(outlook_on_logs(alone, budget), flush=True)
        return print_logs([do(alone, budget)], budget)


def _carry_out(prepared: Prepared[Logs], budget: dict[str, float] | None) -> int:
    """Says what runs may cost, does them, and shows what became of them."""
    from evo.cli.estimates import outlook_on_logs

    print(outlook_on_logs(prepared, budget, in_waves=True), flush=True)
    logs = do(prepared, budget)
    return print_logs(logs, budget)


def _run_protocol(name: str, folder: str | None, given: SeriesFlags) -> int:
    """Prints what a protocol costs, then makes the runs that are missing."""
    from evo.runs.signatures import options_in
    from evo.studies.protocol import load_protocol, logs_of, run_protocol, state_cost

    known = load_protocol(name)
    settings = options_in(SessionOptions, given)
    if other := given.keys() - settings.keys():
        raise ValueError(f"--{min(other)}: the protocol {known.name!r} fixes this")
    print(state_cost(known, logs_of(known, folder)), flush=True)
    return print_logs(run_protocol(known, log_dir=folder, **settings))


def protocol(file: str, *, status: Flag = False, log_dir: Path | None = None) -> int:
    """Shows what a protocol costs, and how far it is.

    Args:
        file: File, or name of a shipped protocol.
        status: Show its conditions and the progress of each.
        log_dir: Folder of its logs; by default logs/local/NAME.
    """
    from evo.studies.protocol import load_protocol, logs_of, state_cost
    from evo.studies.protocol_status import status_rows

    known = load_protocol(file)
    logs = logs_of(known, log_dir)
    print(state_cost(known, logs))
    if status:
        print(table(status_rows(known, logs), ("condition", "runs", "calls", "ok")))
    return 0


@takes(
    *(ResumeOptions, ShellOptions),
    shown=("generations", "target", "quiet"),
    as_logged=("generations", "target", "patience"),
)
def resume(
    logs: LogPaths,
    *,
    model: str | None = None,
    base_url: str | None = None,
    budget: Budget = None,
    search: OwnSearch = None,
    filters: OwnFilters = None,
    **options: Unpack[ResumeOptions],
) -> int:
    """Continues killed runs, extends finished ones (-T), or continues sweeps.

    Args:
        logs: Logs; folders, whose unfinished runs all go on; or folders of sweeps and nothing else.
        model: Name of the model to call (default: the logged name).
        base_url: Where it is asked, https://host/v1 (default: where your models.toml or
            OPENAI_BASE_URL says; a log does not decide where calls go).
        budget: Limit of what all logs hold and what is added, such as calls=512; seconds=60 is
            time of this command alone.
        search: The search, if it is one of your own.
        filters: A filter of your own; may be given several times.
    """
    from evo.cli.studies import go_on
    from evo.runs.signatures import options_in
    from evo.runs.verbs import prepare_resume
    from evo.studies.sweep.design import is_sweep

    make_known(search, filters)
    sweeps = [path for path in logs if is_sweep(path)]
    if not sweeps:
        goals = options_in(GoalOptions, options)
        found = unfinished_logs(
            logs, goals.get("generations"), finished=budget is not None or bool(goals)
        )
        if not found:
            print(f"no run to continue in {', '.join(logs)}")
            return 0
        prepared = prepare_resume(found, model=model, base_url=base_url, budget=budget, **options)
        return _carry_out(prepared, budget)
    settings = options_in(SessionOptions, options)
    elsewhere = model is not None or base_url is not None
    if len(sweeps) < len(logs) or elsewhere or len(settings) < len(options):
        raise ValueError(
            "expected logs, or folders of sweeps alone and without -T, --model and --base-url"
        )
    return go_on(sweeps, budget, options_in(SweepOptions, settings))


@takes(
    *(ForkOptions, ValueOptions, ShellOptions),
    shown=("generations", "model", "search", "quiet"),
    as_logged=("generations", *ChangeOptions.__annotations__),
)
def fork(
    log: str,
    *,
    at: int,
    copies: Count = 1,
    task: str | None = None,
    budget: Budget = None,
    log_dir: str | None = None,
    resume: Resume = True,
    **options: Unpack[ForkOptions],
) -> int:
    """Continues from one state of a logged run, once or several times, unchanged or changed.

    Args:
        log: Log of a run, with its programs.
        at: The last generation that is shared; 0 shares the initial program alone.
        copies: Number of forks; copy 0 keeps the seed of the run.
        task: Name or folder of the task, for a log that was imported.
        budget: Limit of all copies together, such as calls=512; seconds=60 is time of this command.
        log_dir: Folder for the forks (default: one beside the log, such as run-40-forks).
        resume: Continue equal forks in the folder; --no-resume begins new ones.
    """
    from evo.runs.fork import prepare_fork

    prepared = prepare_fork(
        log,
        at=at,
        copies=copies or 1,
        task=task,
        log_dir=log_dir,
        resume=resume,
        budget=budget,
        **options,
    )
    return _carry_out(prepared, budget)


@takes(
    *(TaskOptions, GridOptions, ValueOptions, ShellOptions),
    shown=("model", "search", "quiet"),
)
def grid(
    task: str,
    *,
    calls: Count = None,
    seeds: Seeds = None,
    budget: Budget = None,
    log_dir: str | None = None,
    resume: Resume = True,
    **options: Unpack[GridOptions],
) -> int:
    """Makes runs of every split of C calls into T generations of N children.

    Args:
        task: Name (cp, mmd, ht, ...; see `evo tasks`) or folder of the task.
        calls: C, calls of each run (default: 512).
        seeds: Seeds of the runs (default: 40:50, which is 40 ... 49).
        budget: Limit of all runs together, such as calls=4096; seconds=60 is time of this command.
        log_dir: Folder for the logs (default: logs/local/grid-TASK).
        resume: Continue logs of equal configuration in the folder; --no-resume begins new ones.
    """
    from evo.cli.estimates import outlook_on_logs, too_few
    from evo.runs.bounds import powers_of_two
    from evo.runs.verbs import prepare_grid

    calls, chosen = calls or 512, seeds or range(40, 50)
    prepared = prepare_grid(
        task, calls=calls, seeds=chosen, log_dir=log_dir, resume=resume, budget=budget, **options
    )
    print(outlook_on_logs(prepared, budget, in_waves=True))
    calls_a_seed = sum(n * (calls // n) for n in powers_of_two(calls))
    if note := too_few(len(chosen), calls_a_seed, budget):
        print(note, flush=True)
    print_grid(prepared.do(), budget)
    return 0


@takes(
    *(InstanceOptions, ConfigurationOptions, EvaluateOptions, ValueOptions, ShellOptions),
    shown=("model", "critic", "evaluation_timeout", "quiet"),
    flags={"evaluation_timeout": ("--evaluation-timeout", "--timeout")},
)
def evaluate(
    task: str,
    *,
    program: Path | None = None,
    prompt: Flag = False,
    **options: Unpack[FirstOptions],
) -> int:
    """Evaluates a program on a task; with --prompt, as the run whose options are given begins.

    Args:
        task: Name (cp, mmd, ht, ...; see `evo tasks`) or folder of the task.
        program: File with the program, or folder where it is several files (default: the task's
            initial program).
        prompt: Also show the first prompt that a run would send. Options of `evo run` that say
            what a run is go with it, such as --search or --feedback.
    """
    from evo.runs.configuration import make_header, settings_of
    from evo.runs.first import first_of
    from evo.runs.judge import noise_words
    from evo.runs.signatures import options_in
    from evo.tasks.several import program_text
    from evo.tasks.task import load_task
    from evo.tasks.their_config import untaken

    loaded = load_task(task)
    text = loaded.initial_program
    if program is not None:
        several = loaded.record.program_files and program.is_dir()
        text = program_text(loaded.record, program if several else read_text(program))
    messages: tuple[Message, ...] = ()
    if not prompt:
        found = _evaluated(loaded, text, options)
    header = make_header(loaded, **options_in(ConfigurationOptions, options))
    settings = settings_of(options)
    if prompt:
        first = first_of(header, settings, text)
        found, messages = first.evaluation, first.messages
    print(f"{loaded.name}: {found.status}, fitness {number(found.fitness, '.10g', 'none')}")
    rows = [(name, f"{value:.10g}") for name, value in found.metrics.items()]
    rows.append(("seconds (wall)", number(found.seconds, ".3f", "unknown")))
    print(table(rows, ("metric", "value")))
    if found.error:
        print(found.error)
    if found.notes:
        print(found.notes)
    if words := untaken(loaded.record.files):
        print(words)
    if noise := noise_words(header, settings, text, found):
        print(noise)
    for message in messages:
        print(f"\n--- {message['role']}\n{message['content']}")
    return 0 if found.status == "ok" else FAILURE


def _evaluated(task: Task, program: str, options: FirstOptions) -> Evaluation:
    """Evaluates a program; raises where an option has no bearing on an evaluation alone."""
    from evo.runs.judge import evaluate as evaluate_program

    known = {*EvaluateOptions.__annotations__, "model", "critic", "evaluation_timeout"}
    for name in options:
        if name not in known:
            flag = FLAGS.get(name, (f"--{name.replace('_', '-')}",))[-1]
            raise ValueError(
                f"{flag}: says what a run is, which the evaluation of a program does not depend "
                "on; add --prompt for the first prompt of a run with these options, or leave it out"
            )
    given: dict[str, Any] = dict(options)
    return evaluate_program(task, program, **given)


def rescore(
    logs: LogPaths,
    *,
    metric: str | None = None,
    evaluation_timeout: Timeout = None,
    draws: Annotated[Count, Parameter(name=FLAGS["draws"])] = None,
    all_stages: bool = False,
    workers: Count = None,
    output: Output = None,
) -> int:
    """Evaluates the programs of logs again, jailed, and writes new logs.

    Args:
        logs: Logs with programs, or folders of logs.
        metric: Metric to take as the fitness, such as strict_fitness (default: the fitness).
        evaluation_timeout: Seconds per evaluation, or auto: fixed anew by the initial program
            (default: as in the log).
        draws: Evaluations of each program, whose mean is its fitness (default: as in the log).
        all_stages: Evaluate programs that a stage refused in full, too.
        workers: Evaluations at a time (default: one per core).
        output: Path of the new log of a single log (default: beside it, .rescored.jsonl).
    """
    from evo.runs.playback import rescore as rescore_log

    chosen = logs_with_programs(logs)
    if output and len(chosen) > 1:
        raise ValueError("--output: goes with one log")
    made = [
        rescore_log(
            path,
            metric=metric,
            evaluation_timeout=evaluation_timeout,
            draws=draws,
            all_stages=all_stages,
            workers=workers,
            log=output,
        )
        for path in chosen
    ]
    return print_logs(made)
