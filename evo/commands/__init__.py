"""What the subcommands of `evo` do."""

from __future__ import annotations

import argparse
import contextlib
import functools
import re
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from evo.configuration import Settings
    from evo.log import Log
    from evo.task import Task

MISTAKE = 2  # exit code of a mistake in the arguments or the input
FAILURE = 1  # exit code where the work itself failed


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


def settings_of(arguments: argparse.Namespace) -> Settings:
    """Returns how the session works, as the arguments say."""
    from evo.configuration import Settings

    return Settings(
        max_concurrent=arguments.max_concurrent,
        timeout=arguments.timeout,
        retries=arguments.retries,
        workers=arguments.workers,
        scheduler=_scheduler_of(arguments),
        cache=arguments.cache,
        progress=not arguments.quiet,
        preset=arguments.preset,
        requests_per_minute=arguments.rpm,
        tokens_per_minute=arguments.tpm,
    )


def _scheduler_of(arguments: argparse.Namespace) -> str | None:
    if (arguments.backend == "dask") != (arguments.scheduler is not None):
        raise ValueError(
            "--backend dask and --scheduler ADDRESS go together, such as "
            "--backend dask --scheduler tcp://host:8786"
        )
    scheduler: str | None = arguments.scheduler
    return scheduler


def configuration_of(arguments: argparse.Namespace) -> dict[str, Any]:
    """Returns what identifies a run, as the arguments say."""
    names = ("model", "temperature", "top_p", "max_tokens", "evaluation_timeout")
    return {name: getattr(arguments, name) for name in names}


def task_of(arguments: argparse.Namespace) -> Task:
    """Returns the task that the arguments name."""
    from evo.task import load_task

    return load_task(
        arguments.task,
        program=arguments.program,
        evaluator=arguments.evaluator,
        instances=arguments.instances,
    )


def print_logs(logs: Sequence[Log]) -> None:
    """Prints one line per log."""
    rows = []
    for log in logs:
        counts = log.status_counts
        rows.append(
            (
                log.header.seed,
                len(log.generations),
                f"{log.trajectory[0]:.5f}",
                f"{log.trajectory[-1]:.5f}",
                counts.get("ok", 0),
                len(log.outcomes) - counts.get("ok", 0),
                "unknown" if log.seconds is None else f"{log.seconds:.1f}",
                log.path,
            )
        )
    heads = ("seed", "T", "initial", "best fitness", "ok", "failed", "seconds", "log")
    print(table(rows, heads))
    if any(not log.header.model.is_llm for log in logs):
        print("The offline model is a random rewriter, not an LLM.")


def run_searches(arguments: argparse.Namespace) -> int:
    """`evo run`."""
    from evo.runs.verbs import run, run_many

    task = task_of(arguments)
    common: dict[str, Any] = {
        "generations": arguments.generations,
        "children": arguments.children,
        "settings": settings_of(arguments),
        **configuration_of(arguments),
    }
    seeds = arguments.seeds or [arguments.seed or 0]
    if arguments.log is not None:
        if len(seeds) > 1 or arguments.resume:
            raise ValueError("--log: goes with one seed; --log-dir takes several, and --resume")
        logs = [run(task, seed=seeds[0], log=arguments.log, **common)]
    else:
        logs = run_many(
            task, seeds=seeds, log_dir=arguments.log_dir, resume=arguments.resume, **common
        )
    print_logs(logs)
    return 0


def resume_logs(arguments: argparse.Namespace) -> int:
    """`evo resume`."""
    from evo.runs.verbs import resume_many
    from evo.sweeping.design import is_sweep

    if sweeps := [path for path in arguments.logs if is_sweep(path)]:
        from evo.commands.sweep import go_on

        if len(sweeps) < len(arguments.logs) or arguments.generations:
            raise ValueError("expected logs, or folders of sweeps alone and without -T")
        return go_on(sweeps, settings_of(arguments))
    logs = resume_many(
        arguments.logs,
        generations=arguments.generations,
        model=arguments.model,
        settings=settings_of(arguments),
    )
    print_logs(logs)
    return 0


def rerun_logs(arguments: argparse.Namespace) -> int:
    """`evo rerun`."""
    from evo.runs.playback import rerun

    same = True
    for path in arguments.logs:
        outcome = rerun(path, workers=arguments.workers)
        print(outcome)
        same = same and outcome.same
    return 0 if same else FAILURE


def rescore_logs(arguments: argparse.Namespace) -> int:
    """`evo rescore`."""
    from evo.runs.playback import rescore

    if arguments.output and len(arguments.logs) > 1:
        raise ValueError("--output: goes with one log")
    print_logs(
        [
            rescore(
                path,
                metric=arguments.metric,
                evaluation_timeout=arguments.evaluation_timeout,
                workers=arguments.workers,
                log=arguments.output,
            )
            for path in arguments.logs
        ]
    )
    return 0


def show_logs(arguments: argparse.Namespace) -> int:
    """`evo show`."""
    from evo.log import read_log, summarise

    for path in arguments.logs:
        log = read_log(path)
        print(f"{path}\n{summarise(log)}")
        if log.sessions:
            print(f"sandbox: {', '.join(log.sessions[-1].protections) or 'no protection active'}")
        for end in log.ends[-1:]:
            print(f"last session: {end.reason}{': ' + end.message if end.message else ''}")
        by_generation: dict[int, list[str]] = {}
        for outcome in log.outcomes:
            by_generation.setdefault(outcome.generation, []).append(outcome.evaluation.status)
        rows = [
            (
                g.generation,
                "none" if g.best_fitness is None else f"{g.best_fitness:.6f}",
                "yes" if g.improved else "",
                by_generation[g.generation].count("ok"),
                len(by_generation[g.generation]) - by_generation[g.generation].count("ok"),
                len(g.repeats),
                "unknown" if g.seconds is None else "" if g.seconds is None else f"{g.seconds:.2f}",
            )
            for g in log.generations
        ]
        heads = ("generation", "best fitness", "improved", "ok", "failed", "repeats", "seconds")
        print(table(rows, heads))
        print(", ".join(f"{n} {status}" for status, n in sorted(log.status_counts.items())))
    return 0


def write_best(arguments: argparse.Namespace) -> int:
    """`evo best`."""
    from evo.journal import LogError
    from evo.log import read_log

    best = read_log(arguments.log).best
    if best.program is None:
        raise LogError(f"{arguments.log}: a compact log holds no programs")
    if arguments.output:
        Path(arguments.output).write_text(best.program, encoding="utf-8")
    else:
        sys.stdout.write(best.program)
    where = f"generation {best.generation}, child {best.index}"
    print(f"{where}: fitness {best.evaluation.fitness}", file=sys.stderr)
    return 0


def verify_logs(arguments: argparse.Namespace) -> int:
    """`evo verify`."""
    from evo.journal import LogError
    from evo.rounds import ALLOCATION, read_journal
    from evo.upkeep import verify

    sound = True
    for path in map(Path, arguments.logs):
        try:
            if path.name == ALLOCATION:
                print(f"{path}: sound, {len(read_journal(path).told)} rounds")
                continue
            verification = verify(path)
        except LogError as error:
            print(error, file=sys.stderr)
            sound = False
            continue
        for fault in verification.faults:
            print(fault, file=sys.stderr)
            sound = False
        if not verification.faults:
            print(f"{path}: sound, {verification.log.lines} lines")
    return 0 if sound else MISTAKE


def compact_log(arguments: argparse.Namespace) -> int:
    """`evo compact`."""
    from evo.upkeep import compact

    path = Path(arguments.log)
    stem = path.name.removesuffix(".gz").removesuffix(".jsonl")
    target = arguments.output or path.with_name(f"{stem}.compact.jsonl.gz")
    log = compact(path, target)
    before, after = path.stat().st_size, log.path.stat().st_size
    print(f"{log.path}: {after:,} bytes, {after / before:.0%} of {path}")
    return 0


def list_tasks(_: argparse.Namespace) -> int:
    """`evo tasks`."""
    from evo.task import load_task, shipped_tasks

    rows = []
    for name, config in shipped_tasks().items():
        seconds = load_task(name).limits.seconds
        rows.append((name, ", ".join(config.aliases), f"{seconds:g}", config.title))
    print(table(rows, ("task", "aliases", "seconds", "what it asks")))
    print("Any folder with initial_program.py and evaluator.py is a task, too.")
    return 0


def list_models(_: argparse.Namespace) -> int:
    """`evo models`."""
    from evo.llm.registry import load_models

    rows = [
        (
            model.name,
            "" if model.active_parameters is None else f"{model.active_parameters:,}",
            "" if model.context is None else f"{model.context:,}",
            "" if model.input_price is None else f"{model.input_price:g}",
            "" if model.output_price is None else f"{model.output_price:g}",
            "" if model.is_llm else "not an LLM",
        )
        for model in load_models().values()
    ]
    heads = ("model", "active parameters", "context", "$/M in", "$/M out", "")
    print(table(rows, heads))
    return 0


def serve_offline(arguments: argparse.Namespace) -> int:
    """`evo serve`."""
    from evo.llm.offline.latency import Latency
    from evo.llm.server import serve

    latency = None
    if arguments.latency:
        try:
            median, sigma = (float(part) for part in arguments.latency.split(","))
        except ValueError:
            raise ValueError(
                f"--latency: expected MEDIAN,SIGMA such as 2,1, got {arguments.latency!r}"
            ) from None
        latency = Latency(median, sigma)
    with contextlib.suppress(KeyboardInterrupt):
        serve(
            arguments.host,
            arguments.port,
            latency=latency,
            faults=arguments.faults,
            request_log=arguments.request_log,
            rpm=arguments.rpm,
            tpm=arguments.tpm,
        )
    return 0


def make_grid(arguments: argparse.Namespace) -> int:
    """`evo grid`."""
    from evo.runs.verbs import run_grid

    task = task_of(arguments)
    logs = run_grid(
        task,
        budget=arguments.budget,
        seeds=arguments.seeds,
        log_dir=arguments.log_dir,
        settings=settings_of(arguments),
        **configuration_of(arguments),
    )
    by_children: dict[int, list[Log]] = {}
    for log in logs:
        by_children.setdefault(log.header.children, []).append(log)
    rows = []
    for children, group in sorted(by_children.items()):
        finals = sorted(float(log.trajectory[-1]) for log in group)
        middle = f"{finals[len(finals) // 2]:.4f}"
        row = (len(group[0].generations), children, len(group), middle, f"{finals[-1]:.4f}")
        rows.append(row)
    print(table(rows, ("T", "N", "runs", "median fitness", "best fitness")))
    return 0


def allocate(arguments: argparse.Namespace) -> int:
    """`evo allocate`."""
    from evo.live import allocate_live
    from evo.policies import find_policy

    task = task_of(arguments)
    parameters = numbers("--set", arguments.parameters)
    build: Any = find_policy(arguments.policy)
    policy = functools.partial(build, **parameters) if parameters else arguments.policy
    allocation = allocate_live(
        task,
        policy,
        arms=[_arm(text) for text in arguments.own_arms] or arguments.arms,
        rounds=arguments.rounds,
        children=arguments.children,
        seed=arguments.seed,
        arm_seed=arguments.arm_seed,
        cap=arguments.cap,
        reward=arguments.reward,
        budget=numbers("--budget", arguments.budgets),
        in_flight=arguments.in_flight,
        log_dir=arguments.log_dir,
        settings=settings_of(arguments),
        **configuration_of(arguments),
    )
    pulls = allocation.pulls.tolist()
    rows = [
        (
            k,
            log.header.model.name,
            log.header.children,
            log.header.seed,
            pulls.count(k),
            f"{log.trajectory[-1]:.5f}",
            log.path,
        )
        for k, log in enumerate(allocation.arms)
    ]
    print(table(rows, ("arm", "model", "N", "seed", "pulls", "best fitness", "log")))
    spent = ", ".join(f"{amount[-1]:.6g} {unit}" for unit, amount in allocation.spent.items())
    print(f"best fitness {allocation.best_fitness[-1]:.6f}; spent {spent}; {allocation.path}")
    return 0


def _arm(text: str) -> str | dict[str, Any]:
    """Parses an arm: NAME=VALUE pairs, or the path of a log."""
    if Path(text).exists() or "=" not in text:
        return text
    types: dict[str, Callable[[str], Any]] = {"model": str, "task": str}
    types |= dict.fromkeys(("children", "seed", "max_tokens"), int)
    own: dict[str, Any] = {}
    for part in text.split(","):
        name, _, value = part.partition("=")
        try:
            own[name.strip()] = types.get(name.strip(), float)(value)
        except ValueError:
            raise ValueError(
                f"--arm: expected NAME=VALUE,... such as model=offline,children=8, got {part!r}"
            ) from None
    return own


def numbers(option: str, texts: Sequence[str]) -> dict[str, float]:
    """Parses NAME=NUMBER arguments."""
    found: dict[str, float] = {}
    for text in texts:
        name, _, number = text.partition("=")
        try:
            found[name] = float(number)
        except ValueError:
            raise ValueError(f"{option}: expected NAME=NUMBER, got {text!r}") from None
    return found
