"""The command `evo`."""

from __future__ import annotations

import argparse
import re
import signal
import sys
import warnings
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

if TYPE_CHECKING:
    from evo.configuration import Settings
    from evo.log import Log

MISTAKE = 2  # exit code of a mistake in the arguments or the input
FAILURE = 1  # exit code where the work itself failed


class Parser(argparse.ArgumentParser):
    """A parser whose errors are one line."""

    def error(self, message: str) -> NoReturn:
        """Prints the message in one line and exits with code 2."""
        self.exit(MISTAKE, f"{self.prog}: {message} (see {self.prog} --help)\n")


def seed_range(text: str) -> list[int]:
    """Parses `7`, `40:50` (40 ... 49) or `1,5,40:50`.

    Raises:
        argparse.ArgumentTypeError: Not of that form, empty, or a seed occurs twice.
    """
    seeds: list[int] = []
    for part in text.split(","):
        match = re.fullmatch(r"\s*(\d+)(?::(\d+))?\s*", part)
        if match is None:
            raise argparse.ArgumentTypeError(
                f"expected seeds such as 7, 40:50 or 1,5,40:50, got {text!r}"
            )
        low = int(match[1])
        seeds += range(low, int(match[2])) if match[2] else [low]
    if not seeds or len(set(seeds)) < len(seeds):
        raise argparse.ArgumentTypeError(
            f"expected at least one seed and none twice, got {text!r} (40:50 is 40 ... 49)"
        )
    return seeds


def at_least(low: int) -> Callable[[str], int]:
    """Returns a parser of whole numbers from `low` on."""

    def parse(text: str) -> int:
        try:
            value = int(text)
        except ValueError:
            raise argparse.ArgumentTypeError(f"expected a whole number, got {text!r}") from None
        if value < low:
            raise argparse.ArgumentTypeError(f"expected at least {low}, got {value}")
        return value

    return parse


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


def _add_settings(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("how it works (not part of the run's identity)")
    group.add_argument(
        "--max-concurrent", type=at_least(1), default=20, metavar="CALLS",
        help="calls in flight at most; 1 works in order (default 20)",
    )  # fmt: skip
    group.add_argument(
        "--timeout", type=float, default=600.0, metavar="SECONDS",
        help="of one attempt (default 600)",
    )  # fmt: skip
    group.add_argument(
        "--retries", type=at_least(0), default=5, help="attempts beyond the first (default 5)"
    )
    group.add_argument(
        "--workers", type=at_least(1), help="evaluations at a time (default: one per core)"
    )
    group.add_argument(
        "--evaluations", type=Path, metavar="DIR", help="folder of evaluations shared by runs"
    )
    group.add_argument("-q", "--quiet", action="store_true", help="no progress bar")


def _settings(arguments: argparse.Namespace) -> Settings:
    from evo.configuration import Settings

    return Settings(
        max_concurrent=arguments.max_concurrent,
        timeout=arguments.timeout,
        retries=arguments.retries,
        workers=arguments.workers,
        evaluations=arguments.evaluations,
        progress=not arguments.quiet,
    )


def _add_configuration(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("task", help="name (cp, mmd, ht, ...; see `evo tasks`) or folder")
    parser.add_argument(
        "-T", "--generations", type=at_least(1), default=8, help="generations (default 8)"
    )
    parser.add_argument(
        "-N", "--children", type=at_least(1), default=16,
        help="children per generation (default 16)",
    )  # fmt: skip
    parser.add_argument("--model", default="offline", help="see `evo models` (default offline)")
    parser.add_argument("--temperature", type=float, help="default: the model's")
    parser.add_argument("--top-p", type=float, help="default: the model's")
    parser.add_argument("--max-tokens", type=at_least(1), help="default: the model's")
    parser.add_argument(
        "--evaluation-timeout", type=float, metavar="SECONDS", help="default: the task's"
    )
    parser.add_argument("--program", metavar="FILE", help="initial program of a folder")
    parser.add_argument("--evaluator", metavar="FILE", help="evaluator of a folder")


def _configuration(arguments: argparse.Namespace) -> dict[str, Any]:
    names = ("children", "model", "temperature", "top_p", "max_tokens", "evaluation_timeout")
    return {name: getattr(arguments, name) for name in names}


def build_parser() -> argparse.ArgumentParser:
    """Returns the parser of the whole command."""
    parser = Parser(prog="evo", description="LLM-guided evolutionary search with replayable logs.")
    commands = parser.add_subparsers(dest="command", metavar="COMMAND", parser_class=Parser)

    def command(name: str, work: Callable[[argparse.Namespace], int], text: str) -> Parser:
        made: Parser = commands.add_parser(name, help=text, description=text)
        made.set_defaults(work=work)
        return made

    one = command("run", _run, "run searches, one per seed, and log them")
    _add_configuration(one)
    seeds = one.add_mutually_exclusive_group()
    seeds.add_argument("--seeds", type=seed_range, help="such as 40:50, which is 40 ... 49")
    seeds.add_argument("--seed", type=at_least(0), help="one seed (default 0)")
    place = one.add_mutually_exclusive_group()
    place.add_argument("--log-dir", help="folder of the logs (default logs/local)")
    place.add_argument("--log", help="path of the log of one run")
    one.add_argument(
        "--resume", action="store_true", help="go on with logs in the folder, make what is missing"
    )
    _add_settings(one)

    one = command("resume", _resume, "go on with logs: finish killed runs, or extend finished ones")
    one.add_argument("logs", nargs="+", metavar="LOG")
    one.add_argument("-T", "--generations", type=at_least(1), help="new goal (default: the old)")
    _add_settings(one)

    one = command("rerun", _rerun, "play logs again with themselves as the model")
    one.add_argument("logs", nargs="+", metavar="LOG")
    one.add_argument("--workers", type=at_least(1))

    one = command("rescore", _rescore, "evaluate logged programs again, into a new log")
    one.add_argument("logs", nargs="+", metavar="LOG")
    one.add_argument("--metric", help="take this metric as the fitness, e.g. strict_fitness")
    one.add_argument("--evaluation-timeout", type=float, metavar="SECONDS")
    one.add_argument("--workers", type=at_least(1))
    one.add_argument("-o", "--output", help="path of the new log (of one log)")

    one = command("show", _show, "show what logs hold")
    one.add_argument("logs", nargs="+", metavar="LOG")

    one = command("best", _best, "write out the best program of a log")
    one.add_argument("log", metavar="LOG")
    one.add_argument("-o", "--output", help="file to write (default: standard output)")

    one = command("verify", _verify, "check every line of logs")
    one.add_argument("logs", nargs="+", metavar="LOG")

    one = command("compact", _compact, "copy a log without replies and programs")
    one.add_argument("log", metavar="LOG")
    one.add_argument("-o", "--output", help="new file (default: beside it, .compact.jsonl.gz)")

    command("tasks", _tasks, "list the shipped tasks")
    command("models", _models, "list the known models")

    one = command("serve", _serve, "serve the offline model over HTTP (not an LLM)")
    one.add_argument("--host", default="127.0.0.1")
    one.add_argument("--port", type=at_least(0), default=8000)
    one.add_argument("--request-log", type=Path, metavar="FILE", help="JSON line per request")
    one.add_argument("--faults", help="such as rate_limit:0.1,server_error:0.05")
    one.add_argument("--latency", help="lognormal seconds, MEDIAN,SIGMA such as 2,1")
    one.add_argument("--rpm", type=at_least(1), help="requests per minute before a 429")
    one.add_argument("--tpm", type=at_least(1), help="tokens per minute before a 429")
    return parser


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the command; returns its exit code."""
    parser = build_parser()
    parsed = parser.parse_args(arguments)
    if parsed.command is None:
        parser.print_help()
        return MISTAKE
    return guard("evo", lambda: int(parsed.work(parsed)))


def guard(name: str, work: Callable[[], int]) -> int:
    """Runs a command's work; mistakes and failures become one line and an exit code."""

    def show(message: Warning | str, *_: object, **__: object) -> None:
        print(f"{name}: note: {message}", file=sys.stderr)

    def terminate(*_: object) -> None:
        raise KeyboardInterrupt

    def say(error: object) -> None:
        print(f"{name}: {' '.join(str(error).split())}", file=sys.stderr)

    with warnings.catch_warnings():
        if not sys.warnoptions:
            warnings.simplefilter("once", UserWarning)
            warnings.showwarning = show
        before = signal.signal(signal.SIGTERM, terminate)
        try:
            return work()
        except KeyboardInterrupt:
            say("stopped; `evo resume` goes on where it was")
            return 130
        except BrokenPipeError:
            sys.stderr.close()
            return FAILURE
        except (ValueError, TypeError, OSError) as error:
            say(error)
            return MISTAKE
        except Exception as error:
            if not _is_endpoint_error(error):
                raise
            say(error)
            return FAILURE if type(error).__name__ == "EndpointDown" else MISTAKE
        finally:
            signal.signal(signal.SIGTERM, before)


def _is_endpoint_error(error: Exception) -> bool:
    from evo.llm.client import EndpointDown, EndpointRefused

    return isinstance(error, EndpointDown | EndpointRefused)


def _report(logs: Sequence[Log]) -> None:
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


def _run(arguments: argparse.Namespace) -> int:
    from evo.search import run, run_many
    from evo.task import load_task

    task = load_task(arguments.task, program=arguments.program, evaluator=arguments.evaluator)
    common: dict[str, Any] = {
        "generations": arguments.generations,
        "settings": _settings(arguments),
        **_configuration(arguments),
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
    _report(logs)
    return 0


def _resume(arguments: argparse.Namespace) -> int:
    from evo.search import resume_many

    logs = resume_many(
        arguments.logs, generations=arguments.generations, settings=_settings(arguments)
    )
    _report(logs)
    return 0


def _rerun(arguments: argparse.Namespace) -> int:
    from evo.rerun import rerun

    same = True
    for path in arguments.logs:
        outcome = rerun(path, workers=arguments.workers)
        print(outcome)
        same = same and outcome.same
    return 0 if same else FAILURE


def _rescore(arguments: argparse.Namespace) -> int:
    from evo.rerun import rescore

    if arguments.output and len(arguments.logs) > 1:
        raise ValueError("--output: goes with one log")
    _report(
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


def _show(arguments: argparse.Namespace) -> int:
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


def _best(arguments: argparse.Namespace) -> int:
    from evo.log import LogError, read_log

    best = read_log(arguments.log).best
    if best.program is None:
        raise LogError(f"{arguments.log}: a compact log holds no programs")
    where = f"generation {best.generation}, child {best.index}"
    print(f"{where}: fitness {best.evaluation.fitness}", file=sys.stderr)
    if arguments.output:
        Path(arguments.output).write_text(best.program, encoding="utf-8")
    else:
        sys.stdout.write(best.program)
    return 0


def _verify(arguments: argparse.Namespace) -> int:
    from evo.log import LogError
    from evo.upkeep import verify

    sound = True
    for path in arguments.logs:
        try:
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


def _compact(arguments: argparse.Namespace) -> int:
    from evo.upkeep import compact

    path = Path(arguments.log)
    stem = path.name.removesuffix(".gz").removesuffix(".jsonl")
    target = arguments.output or path.with_name(f"{stem}.compact.jsonl.gz")
    log = compact(path, target)
    before, after = path.stat().st_size, log.path.stat().st_size
    print(f"{log.path}: {after:,} bytes, {after / before:.0%} of {path}")
    return 0


def _tasks(_: argparse.Namespace) -> int:
    from evo.task import load_task, shipped_tasks

    rows = []
    for name, config in shipped_tasks().items():
        seconds = load_task(name).limits.seconds
        rows.append((name, ", ".join(config.aliases), f"{seconds:g}", config.title))
    print(table(rows, ("task", "aliases", "seconds", "what it asks")))
    print("Any folder with initial_program.py and evaluator.py is a task, too.")
    return 0


def _models(_: argparse.Namespace) -> int:
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


def _serve(arguments: argparse.Namespace) -> int:
    from evo.llm.offline import Latency
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


if __name__ == "__main__":
    sys.exit(main())
