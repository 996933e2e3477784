"""The command that runs another program behind a gate."""

from __future__ import annotations

import contextlib
import os
import shlex
import shutil
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from evo.cli.gates import NO_GATE, GateOptions

VARIABLES = ("OPENAI_BASE_URL", "OPENAI_API_BASE")
"""Where programs look for the address of an endpoint; the older name is still read by some."""


def watch(
    *command: Annotated[str, Parameter(allow_leading_hyphen=True)],
    model: str = "offline",
    options: GateOptions = NO_GATE,
) -> int:
    """Runs a program that calls a model behind a gate: `evo watch -- COMMAND`.

    The program finds the gate's address in OPENAI_BASE_URL and a key of no value in OPENAI_API_KEY.
    Every call is counted, limited and logged; whatever model it names, the gate's own is asked.
    `replay view LOG` shows the calls while they are made and, of a tool whose files `replay` reads,
    its children, their lineage and failures.

    Args:
        command: The program and its arguments, after `--`.
        model: One of `evo models`.
        options: What is counted, limited and kept.
    """
    from evo.cli.logs import show_gate

    if not command:
        raise ValueError("expected a command after --, such as `evo watch -- python my_tool.py`")
    if shutil.which(command[0]) is None:
        raise ValueError(f"{command[0]}: there is no such program")
    gate = options.gate(model, logged=True)
    with gate:
        assert gate.log is not None  # it was asked for
        gate.account.watch(folders_of(command))
        look = f"log: {gate.log}; to look while it runs: replay view {shlex.quote(str(gate.log))}"
        print(look, file=sys.stderr, flush=True)
        code = _run(command, gate.url)
    sys.stdout.flush()
    show_gate(gate.log)
    return code


def folders_of(command: Sequence[str]) -> list[Path]:
    """The folders in which a program's files are looked for.

    Where it is started, and those that its arguments name elsewhere: a folder, which need not exist
    yet, or that of a file.
    """
    here = Path.cwd()
    found = [here]
    for argument in command[1:]:
        with contextlib.suppress(OSError, RuntimeError, ValueError):  # it is no path
            named = Path(argument.partition("=")[2] or argument).expanduser()
            path = Path(os.path.normpath(here / named))
            folder = path.parent if path.is_file() else path
            if not folder.is_relative_to(here) and folder.parent.is_dir():
                found.append(folder)
    return list(dict.fromkeys(found))


def _run(command: tuple[str, ...], url: str) -> int:
    """Runs a program with the gate's address in its environment; returns its exit code."""
    told = {**dict.fromkeys(VARIABLES, url), "OPENAI_API_KEY": "watched"}
    with _interrupts_are_the_programs():
        code = subprocess.run(command, check=False, env={**os.environ, **told}).returncode
    return code if code >= 0 else 128 - code


@contextlib.contextmanager
def _interrupts_are_the_programs() -> Iterator[None]:
    """Leaves Ctrl-C to the program, which receives it as well and decides how to end.

    A KeyboardInterrupt here, in the moment in which the program ends, would lose its exit code.
    """
    usual = signal.getsignal(signal.SIGINT)
    in_main = threading.current_thread() is threading.main_thread()
    if usual is not signal.default_int_handler or not in_main:
        yield  # whoever started this has other wishes
        return
    signal.signal(signal.SIGINT, lambda *_: None)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, usual)
