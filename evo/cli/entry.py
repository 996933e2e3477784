"""The command `evo`."""

from __future__ import annotations

import atexit
import contextlib
import functools
import gc
import importlib
import io
import os
import re
import signal
import sys
import traceback
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from importlib import metadata
from typing import TextIO

import cyclopts

from evo.cli.going_on import Interrupted
from evo.cli.help import HELP_ALL, Help, shorten
from evo.cli.mistakes import words_of
from evo.cli.options import COMMON
from evo.cli.tables import FAILURE, MISTAKE
from evo.logs.escapes import plain_text
from evo.logs.examples import SEPARATOR
from evo.logs.first_write import WRITTEN
from evo.neighbours import require_ours
from evo.plugins import MistakenType

COMMANDS = {
    "Search": {
        "new": "evo.cli.runs:new",
        "run": "evo.cli.runs:run",
        "resume": "evo.cli.runs:resume",
        "fork": "evo.cli.runs:fork",
        "evaluate": "evo.cli.runs:evaluate",
    },
    "Look": {
        "show": "evo.cli.logs:show",
        "stats": "evo.cli.logs:stats",
        "best": "evo.cli.logs:best",
        "tasks": "evo.cli.listing:tasks",
        "models": "evo.cli.listing:models",
    },
    "Compare": {
        "grid": "evo.cli.runs:grid",
        "allocate": "evo.cli.studies:allocate",
        "sweep": "evo.cli.studies:sweep",
        "select": "evo.cli.studies:select",
        "protocol": "evo.cli.runs:protocol",
    },
    "Control": {
        "pause": "evo.cli.requests:pause",
        "stop": "evo.cli.requests:stop",
        "go-on": "evo.cli.requests:go_on",
        "verify": "evo.cli.logs:verify",
        "rerun": "evo.cli.logs:rerun",
        "rescore": "evo.cli.runs:rescore",
        "compact": "evo.cli.logs:compact",
    },
    "Serve": {
        "serve": "evo.cli.serving:serve",
        "watch": "evo.cli.watching:watch",
        "drive": "evo.cli.studies:drive",
        "compare": "evo.cli.studies:compare",
        "bench": "evo.cli.serving:bench",
    },
}
"""Where each command stands, by group, in the order of `evo --help`."""

GOES_ON = {
    "run": "stopped; the same command goes on where it was",
    "resume": "stopped; the same command goes on where it was",
    "fork": "stopped; the same command goes on where it was",
    "grid": "stopped; the same command goes on where it was",
    "allocate": "stopped; `evo allocate` with the same arguments and --log-dir goes on",
    "drive": "stopped; the same command goes on where it was, as far as the engine can",
    "compare": "stopped; the same command goes on where it was",
    "select": "stopped; `evo select` with the same arguments and --log-dir goes on",
    "sweep": "paused; the same command goes on where it was",
}
"""The message of a command that was stopped after it had begun to write."""

BUG = "this is a bug: please report it, with the lines above and the command"
"""The message of an error that is nobody's mistake but ours."""

# Nothing is collected of a process that ends: looking for it takes longer than most commands.
atexit.register(gc.freeze)

NOTHING_YET = "stopped before anything was started or written; give the same command again"
"""The message of such a command that was stopped before that."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the command; returns its exit code."""
    require_ours(sys.modules["evo"], "read_log")
    text = "LLM-guided evolutionary search with replayable logs."
    return dispatch("evo", text, COMMANDS, arguments, GOES_ON)


def dispatch(
    name: str,
    text: str,
    commands: Mapping[str, Mapping[str, str]],
    arguments: Sequence[str] | None,
    stopped: Mapping[str, str],
) -> int:
    """Runs one command of a program and returns its exit code.

    Args:
        name: The program.
        text: What it is for.
        commands: Where each command stands, by group and name.
        arguments: The words after the program's name (default: those of this process).
        stopped: What a command prints when it was stopped, by name.
    """
    given = list(sys.argv[1:] if arguments is None else arguments)
    everything = HELP_ALL in given
    given = ["--help" if word == HELP_ALL else word for word in given]
    known = {command for group in commands.values() for command in group}
    only = given[0] if given and given[0] in known else None

    def work() -> int:
        app = make_app(name, text)
        for order, (title, group) in enumerate(commands.items(), 1):
            panel = cyclopts.Group(title, sort_key=order)
            for rank, (command, place) in enumerate(group.items()):
                if only in {None, command}:
                    module, _, function = place.partition(":")
                    act = getattr(importlib.import_module(module), function)
                    act = act if everything else shorten(act)
                    app.command(act, name=command, group=panel, sort_key=rank)
        code = app(given, exit_on_error=False, print_error=False)
        return MISTAKE if not given else code if isinstance(code, int) else 0

    return guard(name, work, stopped=stopped.get(given[0] if given else ""))


def make_app(name: str, text: str) -> cyclopts.App:
    """Returns a program without its commands."""
    last = cyclopts.Group("Help", sort_key=100)
    app = cyclopts.App(
        name=name,
        help=text,
        version=functools.partial(metadata.version, "evo-replay"),
        help_format="plaintext",
        help_formatter=Help(),
        result_action="return_value",
        default_parameter=cyclopts.Parameter(negative=()),
        group_arguments=COMMON,
        group_parameters=COMMON,
        suppress_keyboard_interrupt=False,  # `guard` prints how to go on
    )
    for flag in ("--help", "--version"):
        app[flag].group = last
    return app


STANDARD_ERROR = 2
"""The last of the descriptors of standard streams."""


@contextlib.contextmanager
def _named(stream: str) -> Iterator[None]:
    """Has an error of a stream, such as a full disk, name the stream."""
    try:
        yield
    except BrokenPipeError:
        raise
    except OSError as error:
        raise OSError(error.errno, f"cannot write there: {error.strerror}", stream) from error


class _Plain(io.TextIOBase):
    """Standard output on which control characters are escaped, whoever's text holds them."""

    def __init__(self, inner: TextIO) -> None:
        self._inner = inner

    def write(self, text: str) -> int:
        with _named("standard output"):
            self._inner.write(plain_text(text))
        return len(text)

    def flush(self) -> None:
        if not self._inner.closed:  # this is flushed once more when it is collected
            with _named("standard output"):
                self._inner.flush()

    def isatty(self) -> bool:
        return self._inner.isatty()

    def fileno(self) -> int:
        return self._inner.fileno()

    @property
    def encoding(self) -> str:  # type: ignore[override]
        """That of the stream behind it."""
        return self._inner.encoding


def _open_what_is_closed() -> None:
    """Opens the null device for standard streams that are closed, as those of a service may be.

    Else what is printed would be a failure, and a log could get the descriptor of one of them.
    """
    while (number := os.open(os.devnull, os.O_RDWR)) <= STANDARD_ERROR:
        pass
    os.close(number)
    for name in ("stdout", "stderr"):
        if getattr(sys, name) is None:
            setattr(sys, name, open(os.devnull, "w", encoding="utf-8"))  # noqa: SIM115 - to the end


def guard(name: str, work: Callable[[], int], *, stopped: str | None = None) -> int:
    """Runs a command's work; mistakes and failures become one line and an exit code.

    Args:
        name: The program.
        work: Returns the exit code.
        stopped: What to print if the work is stopped after it has begun to write.
    """
    WRITTEN.clear()
    _open_what_is_closed()

    shown = set[str]()

    def show(message: Warning | str, *_: object, **__: object) -> None:
        # Python forgets what it showed "once" whenever a package changes the filters of warnings.
        if (text := plain_text(str(message))) not in shown:
            shown.add(text)
            print(f"{name}: note: {text}", file=sys.stderr)

    def say(error: object) -> None:
        if isinstance(error, OSError) and error.filename is not None and error.strerror:
            error = f"{error.filename}: {error.strerror}"
        print(f"{name}: {plain_text(in_one_line(str(error)))}", file=sys.stderr)

    with warnings.catch_warnings():
        if not sys.warnoptions:
            warnings.simplefilter("once", UserWarning)
            warnings.showwarning = show
        before = signal.signal(signal.SIGTERM, signal.default_int_handler)
        try:
            with contextlib.redirect_stdout(_Plain(sys.stdout)):
                return work()
        except Interrupted as error:
            say(error)
            return 130
        except KeyboardInterrupt:
            say("stopped" if stopped is None else stopped if WRITTEN.is_set() else NOTHING_YET)
            return 130
        except BrokenPipeError:
            sys.stderr.close()
            return FAILURE
        except cyclopts.CycloptsError as error:
            say(f"{words_of(error)} (see --help)")
            return MISTAKE
        except Exception as error:
            if (code := exit_code(error)) is None:
                traceback.print_exc()
                say(BUG)
                return FAILURE
            say(error)
            return code
        finally:
            signal.signal(signal.SIGTERM, before)


def in_one_line(message: str) -> str:
    """Returns a message in one line; lines of a file, which it indents, are told apart in it."""
    separated = re.sub(r"(\n {4}.+)(?=\n {4})", rf"\1{SEPARATOR}", message)
    return " ".join(separated.split())


def exit_code(error: Exception) -> int | None:
    """Returns the exit code of an error that has a message for the user; None of any other."""
    from evo.models.client import EndpointDown, EndpointError
    from evo.sandbox import SandboxError

    if isinstance(error, EndpointDown | SandboxError):  # no fault of the arguments
        return FAILURE
    if isinstance(error, ValueError | MistakenType | OSError | OverflowError | EndpointError):
        return MISTAKE
    return None


if __name__ == "__main__":
    sys.exit(main())
