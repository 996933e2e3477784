"""The command `evo`."""

from __future__ import annotations

import functools
import importlib
import signal
import sys
import warnings
from collections.abc import Callable, Mapping, Sequence
from importlib import metadata

from evo.cli.tables import FAILURE, MISTAKE

COMMANDS = {
    "run": "evo.cli.runs:run",
    "resume": "evo.cli.runs:resume",
    "rerun": "evo.cli.logs:rerun",
    "rescore": "evo.cli.runs:rescore",
    "evaluate": "evo.cli.runs:evaluate",
    "show": "evo.cli.logs:show",
    "stats": "evo.cli.logs:stats",
    "best": "evo.cli.logs:best",
    "verify": "evo.cli.logs:verify",
    "compact": "evo.cli.logs:compact",
    "protocol": "evo.cli.runs:protocol",
    "grid": "evo.cli.runs:grid",
    "fork": "evo.cli.runs:fork",
    "allocate": "evo.cli.studies:allocate",
    "sweep": "evo.cli.studies:sweep",
    "select": "evo.cli.studies:select",
    "pause": "evo.cli.studies:pause",
    "stop": "evo.cli.studies:stop",
    "tasks": "evo.cli.listing:tasks",
    "models": "evo.cli.listing:models",
    "serve": "evo.cli.serving:serve",
    "drive": "replay.cli.commands:drive",  # by name: evo itself imports nothing of replay
    "bench": "evo.cli.serving:bench",
}
"""Where each command stands, in the order of `evo --help`."""

GOES_ON = {
    "run": "stopped; `evo resume LOG` goes on where a log was",
    "resume": "stopped; `evo resume LOG` goes on where a log was",
    "fork": "stopped; `evo resume LOG` goes on where a fork was",
    "grid": "stopped; the same command goes on where it was",
    "allocate": "stopped; `evo allocate` with the same arguments and --log-dir goes on",
    "select": "stopped; `evo select` with the same arguments and --log-dir goes on",
    "sweep": "paused; the same command goes on where it was",
}
"""What a command says when it was stopped."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the command; returns its exit code."""
    text = "LLM-guided evolutionary search with replayable logs."
    return dispatch("evo", text, COMMANDS, arguments, GOES_ON)


def dispatch(
    name: str,
    text: str,
    commands: Mapping[str, str],
    arguments: Sequence[str] | None,
    stopped: Mapping[str, str],
) -> int:
    """Runs one command of a program and returns its exit code."""
    import cyclopts

    given = list(sys.argv[1:] if arguments is None else arguments)

    def work() -> int:
        app = cyclopts.App(
            name=name,
            help=text,
            version=functools.partial(metadata.version, "evo-replay"),
            help_formatter="plain",
            result_action="return_value",
            default_parameter=cyclopts.Parameter(negative=()),
            suppress_keyboard_interrupt=False,  # `guard` says how to go on
        )
        for command in [given[0]] if given and given[0] in commands else commands:
            module, _, function = commands[command].partition(":")
            app.command(getattr(importlib.import_module(module), function), name=command)
        code = app(given, exit_on_error=False, print_error=False)
        return MISTAKE if not given else code if isinstance(code, int) else 0

    return guard(name, work, stopped=stopped.get(given[0] if given else "", "stopped"))


def guard(name: str, work: Callable[[], int], *, stopped: str = "stopped") -> int:
    """Runs a command's work; mistakes and failures become one line and an exit code."""
    from cyclopts import CycloptsError

    from evo.models.client import EndpointDown, EndpointError
    from evo.sandbox import SandboxError

    def show(message: Warning | str, *_: object, **__: object) -> None:
        print(f"{name}: note: {message}", file=sys.stderr)

    def say(error: object) -> None:
        if isinstance(error, OSError) and error.filename is not None and error.strerror:
            error = f"{error.filename}: {error.strerror}"
        print(f"{name}: {' '.join(str(error).split())}", file=sys.stderr)

    with warnings.catch_warnings():
        if not sys.warnoptions:
            warnings.simplefilter("once", UserWarning)
            warnings.showwarning = show
        before = signal.signal(signal.SIGTERM, signal.default_int_handler)
        try:
            return work()
        except KeyboardInterrupt:
            say(stopped)
            return 130
        except BrokenPipeError:
            sys.stderr.close()
            return FAILURE
        except CycloptsError as error:
            say(f"{error} (see --help)")
            return MISTAKE
        except (EndpointDown, SandboxError) as error:  # no fault of the arguments
            say(error)
            return FAILURE
        except (ValueError, TypeError, OSError, OverflowError, EndpointError) as error:
            say(error)
            return MISTAKE
        finally:
            signal.signal(signal.SIGTERM, before)


if __name__ == "__main__":
    sys.exit(main())
