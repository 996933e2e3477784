"""The command `evo`."""

from __future__ import annotations

import argparse
import re
import signal
import sys
import warnings
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NoReturn

from evo import commands
from evo.commands import FAILURE, MISTAKE
from evo.commands.bench import bench
from evo.commands.select import select
from evo.commands.stats import show_stats
from evo.commands.sweep import pause, stop, sweep
from evo.concurrency import PRESETS

GOES_ON = {
    "run": "stopped; `evo resume LOG` goes on where a log was",
    "resume": "stopped; `evo resume LOG` goes on where a log was",
    "grid": "stopped; the same command goes on where it was",
    "allocate": "stopped; `evo allocate` with the same arguments and --log-dir goes on",
    "select": "stopped; `evo select` with the same arguments and --log-dir goes on",
    "sweep": "paused; the same command goes on where it was",
}
"""What a command says when it was stopped."""


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


def instance_range(text: str) -> int | slice:
    """Parses `40`, the first 40, or a slice such as `40:60` or `40:`.

    Raises:
        argparse.ArgumentTypeError: Not of that form.
    """
    match = re.fullmatch(r"(\d*):(\d*)", text)
    if match is None:
        return at_least(1)(text)
    first, end = (int(number) if number else None for number in match.groups())
    return slice(first, end)


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


def _add_settings(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("how it works (not part of the run's identity)")
    group.add_argument(
        "--max-concurrent", type=at_least(1), metavar="CALLS",
        help="calls in flight at most; 1 works in order (default: the preset's, else 20)",
    )  # fmt: skip
    group.add_argument(
        "--preset", choices=tuple(PRESETS), help="how hard to go at an endpoint, --rpm included"
    )
    group.add_argument("--rpm", type=at_least(1), help="requests per minute (default: no limit)")
    group.add_argument("--tpm", type=at_least(1), help="tokens per minute (default: no limit)")
    group.add_argument(
        "--timeout", type=float, default=600.0, metavar="SECONDS",
        help="of one attempt (default 600)",
    )  # fmt: skip
    group.add_argument(
        "--retries", type=at_least(0), default=5, help="attempts beyond the first (default 5)"
    )
    group.add_argument(
        "--workers", type=at_least(1),
        help="evaluations at a time (default: one per core, or per thread of a cluster's workers)",
    )  # fmt: skip
    group.add_argument(
        "--backend", choices=("local", "dask"), default="local",
        help="where programs are evaluated: here, or on the workers of a Dask scheduler",
    )  # fmt: skip
    group.add_argument("--scheduler", metavar="ADDRESS", help="of Dask, such as tcp://host:8786")
    group.add_argument(
        "--cache", type=Path, metavar="FILE",
        help="replies shared by runs: the same request, seed included, is made once",
    )  # fmt: skip
    group.add_argument("-q", "--quiet", action="store_true", help="no progress bar")


def _add_configuration(parser: argparse.ArgumentParser, *, shape: bool = True) -> None:
    parser.add_argument("task", help="name (cp, mmd, ht, ...; see `evo tasks`) or folder")
    if shape:
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
    parser.add_argument(
        "--instances", type=instance_range, metavar="COUNT",
        help="of the task's data set: the first so many, or FIRST:END such as 40:60 (default: all)",
    )  # fmt: skip


def build_parser() -> argparse.ArgumentParser:
    """Returns the parser of the whole command."""
    parser = Parser(prog="evo", description="LLM-guided evolutionary search with replayable logs.")
    adder = parser.add_subparsers(dest="command", metavar="COMMAND", parser_class=Parser)

    def command(name: str, work: Callable[[argparse.Namespace], int], text: str) -> Parser:
        made: Parser = adder.add_parser(name, help=text, description=text)
        made.set_defaults(work=work)
        return made

    one = command("run", commands.run_searches, "run searches, one per seed, and log them")
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

    one = command(
        "resume",
        commands.resume_logs,
        "go on with logs: finish killed runs, or extend finished ones",
    )
    one.add_argument("logs", nargs="+", metavar="LOG", help="or the folder of a sweep")
    one.add_argument("-T", "--generations", type=at_least(1), help="new goal (default: the old)")
    one.add_argument("--model", help="whom to call, whatever the log says (see `evo models`)")
    _add_settings(one)

    one = command("rerun", commands.rerun_logs, "play logs again with themselves as the model")
    one.add_argument("logs", nargs="+", metavar="LOG")
    one.add_argument("--workers", type=at_least(1))

    one = command("rescore", commands.rescore_logs, "evaluate logged programs again")
    one.add_argument("logs", nargs="+", metavar="LOG")
    one.add_argument("--metric", help="take this metric as the fitness, e.g. strict_fitness")
    one.add_argument("--evaluation-timeout", type=float, metavar="SECONDS")
    one.add_argument("--workers", type=at_least(1))
    one.add_argument("-o", "--output", help="path of the new log (of one log)")

    one = command("show", commands.show_logs, "show what logs hold")
    one.add_argument("logs", nargs="+", metavar="LOG")

    one = command("stats", show_stats, "show what the calls of logs came to")
    one.add_argument("logs", nargs="+", metavar="LOG", help="or a folder of logs")

    one = command("best", commands.write_best, "write out the best program of a log")
    one.add_argument("log", metavar="LOG")
    one.add_argument("-o", "--output", help="file to write (default: standard output)")

    one = command("verify", commands.verify_logs, "check every line of logs")
    one.add_argument("logs", nargs="+", metavar="LOG")

    one = command("compact", commands.compact_log, "copy a log without replies and programs")
    one.add_argument("log", metavar="LOG")
    one.add_argument("-o", "--output", help="new file (default: beside it, .compact.jsonl.gz)")

    one = command("grid", commands.make_grid, "make the runs behind a full T x N sweep")
    _add_configuration(one, shape=False)
    one.add_argument("--budget", type=at_least(1), default=512, help="C, calls (default 512)")
    one.add_argument("--seeds", type=seed_range, default=seed_range("40:50"))
    one.add_argument("--log-dir", help="folder of the logs (default logs/local/grid-TASK)")
    _add_settings(one)

    one = command("allocate", commands.allocate, "let a policy spend rounds over parallel runs")
    _add_configuration(one, shape=False)
    one.add_argument(
        "-N", "--children", type=at_least(1), default=16,
        help="children per generation (default 16)",
    )  # fmt: skip
    one.add_argument("--policy", required=True, help="ucb1, thompson, exp3p, ...")
    one.add_argument(
        "--set", action="append", default=[], metavar="NAME=NUMBER", dest="parameters",
        help="a parameter of the policy, such as c=0.1",
    )  # fmt: skip
    one.add_argument("--arms", type=at_least(1), default=10, help="K, parallel runs (default 10)")
    one.add_argument(
        "--arm", action="append", default=[], metavar="NAME=VALUE,...", dest="own_arms",
        help="instead of --arms, once per arm: what differs for it, such as "
        "model=gpt-4o,temperature=0.2,children=8; or a log to go on from",
    )  # fmt: skip
    one.add_argument(
        "--in-flight", type=at_least(1), default=1, metavar="ROUNDS",
        help="rounds at once; the policy is asked before earlier rewards are in (default 1)",
    )  # fmt: skip
    one.add_argument("--rounds", type=at_least(1), default=64, help="pulls (default 64)")
    one.add_argument("--reward", default="best_fitness", help="what the policy is told")
    one.add_argument("--seed", type=at_least(0), default=0, help="of the policy (default 0)")
    one.add_argument("--arm-seed", type=at_least(0), default=40, help="of arm 0 (default 40)")
    one.add_argument("--cap", type=at_least(1), help="generations of an arm at most")
    one.add_argument(
        "--budget", action="append", default=[], metavar="UNIT=NUMBER", dest="budgets",
        help="end once so much is spent: calls, tokens, flops, dollars or seconds",
    )  # fmt: skip
    one.add_argument("--log-dir", help="folder of the logs; one that exists is gone on with")
    _add_settings(one)

    one = command("bench", bench, "measure parallel calls, or find an endpoint's best concurrency")
    one.add_argument("--endpoint", metavar="URL", help="base URL of an endpoint to try")
    one.add_argument("--model", help="of the endpoint, or one of `evo models`; none: offline")
    one.add_argument(
        "--calls", type=at_least(1), default=16,
        help="at each concurrency of an endpoint; also the highest one (default 16)",
    )  # fmt: skip
    one.add_argument(
        "--max-tokens", type=at_least(1), default=256, help="of an endpoint's reply (default 256)"
    )
    one.add_argument(
        "--timeout", type=float, default=600.0, metavar="SECONDS", help="of a call (default 600)"
    )

    one = command("sweep", sweep, "try many configurations on the same seeds")
    one.add_argument("file", metavar="FILE", help="sweep.toml, or the folder of a sweep to go on")
    one.add_argument(
        "--budget", action="append", default=[], metavar="UNIT=NUMBER", dest="budgets",
        help="limit in calls, tokens, dollars or seconds (default: that of the file)",
    )  # fmt: skip
    one.add_argument(
        "--log-dir", help="folder (default logs/local/sweep-NAME); one that exists is gone on with"
    )
    _add_settings(one)

    one = command("select", select, "find the best configuration in few runs, at a confidence")
    _add_configuration(one)
    one.add_argument(
        "--vary", action="append", default=[], metavar="FIELD=VALUE,...",
        help="values of a field, such as children=4,16; several fields make a grid",
    )  # fmt: skip
    one.add_argument(
        "--problems", action="store_true",
        help="a sample is a problem of the task's data set, not a run: -T, -N, --seeds are idle",
    )  # fmt: skip
    one.add_argument(
        "--text", action="append", default=[], type=Path, metavar="FILE", dest="texts",
        help="with --problems: a text to try, or a log whose best text is taken",
    )  # fmt: skip
    one.add_argument("--selector", default="arm_elimination", help="default arm_elimination")
    one.add_argument(
        "--set", action="append", default=[], metavar="NAME=NUMBER", dest="parameters",
        help="a parameter of the selector, such as threshold=0.9",
    )  # fmt: skip
    one.add_argument("--seeds", type=seed_range, default=seed_range("40:60"))
    one.add_argument("--delta", type=float, default=0.05, help="chance to be wrong (default 0.05)")
    one.add_argument(
        "--batch", type=at_least(1), help="samples of each in a round (default 1 run, 10 problems)"
    )
    one.add_argument("--low", type=float, default=0.0, help="least fitness there is (default 0)")
    one.add_argument("--high", type=float, default=1.0, help="largest, for clipping (default 1)")
    one.add_argument("--failure-value", type=float, help="of a run without fitness (default low)")
    one.add_argument("--interval", choices=("anytime", "compat"), default="anytime")
    one.add_argument("--seed", type=at_least(0), default=0, help="of the selector (default 0)")
    one.add_argument(
        "--budget", action="append", default=[], metavar="UNIT=NUMBER", dest="budgets",
        help="end once so much is spent: samples, calls, tokens, flops, dollars or seconds",
    )  # fmt: skip
    one.add_argument("--log-dir", help="folder of the logs; one that exists is gone on with")
    _add_settings(one)

    one = command("pause", pause, "pause sweeps, on whatever machine: calls in flight finish")
    one.add_argument("folders", nargs="+", metavar="DIR")

    one = command("stop", stop, "stop sweeps, allocations, or the sessions that write logs")
    one.add_argument(
        "paths", nargs="+", metavar="PATH", help="folder of a sweep or allocation, or a log"
    )

    command("tasks", commands.list_tasks, "list the shipped tasks")
    command("models", commands.list_models, "list the known models")

    one = command("serve", commands.serve_offline, "serve the offline model over HTTP (not an LLM)")
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
    stopped = GOES_ON.get(parsed.command, "stopped")
    return guard("evo", lambda: int(parsed.work(parsed)), stopped=stopped)


def guard(name: str, work: Callable[[], int], *, stopped: str = "stopped") -> int:
    """Runs a command's work; mistakes and failures become one line and an exit code.

    Args:
        name: Of the program.
        work: Returns the exit code.
        stopped: What to say after Ctrl-C or SIGTERM.
    """

    def show(message: Warning | str, *_: object, **__: object) -> None:
        print(f"{name}: note: {message}", file=sys.stderr)

    def terminate(*_: object) -> None:
        raise KeyboardInterrupt

    def say(error: object) -> None:
        if isinstance(error, OSError) and error.filename is not None and error.strerror:
            error = f"{error.filename}: {error.strerror}"
        print(f"{name}: {' '.join(str(error).split())}", file=sys.stderr)

    with warnings.catch_warnings():
        if not sys.warnoptions:
            warnings.simplefilter("once", UserWarning)
            warnings.showwarning = show
        before = signal.signal(signal.SIGTERM, terminate)
        try:
            return work()
        except KeyboardInterrupt:
            say(stopped)
            return 130
        except BrokenPipeError:
            sys.stderr.close()
            return FAILURE
        except (ValueError, TypeError, OSError) as error:
            say(error)
            return MISTAKE
        except Exception as error:
            code = _failure_code(error)
            if code is None:
                raise
            say(error)
            return code
        finally:
            signal.signal(signal.SIGTERM, before)


def _failure_code(error: Exception) -> int | None:
    """Returns the exit code of a failure of the endpoint or the sandbox; None for other errors."""
    from evo.llm.client import EndpointDown, EndpointError
    from evo.sandbox import SandboxError

    if isinstance(error, EndpointDown | SandboxError):
        return FAILURE
    return MISTAKE if isinstance(error, EndpointError) else None


if __name__ == "__main__":
    sys.exit(main())
