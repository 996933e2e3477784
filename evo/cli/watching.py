"""The command that runs another program behind a gate."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
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
        print(f"log: {gate.log}", file=sys.stderr, flush=True)
        code = _run(command, gate.url)
    assert gate.log is not None  # it was asked for
    sys.stdout.flush()
    show_gate(gate.log)
    return code


def _run(command: tuple[str, ...], url: str) -> int:
    """Runs a program with the gate's address in its environment; returns its exit code."""
    told = {**dict.fromkeys(VARIABLES, url), "OPENAI_API_KEY": "watched"}
    process = subprocess.Popen(command, env={**os.environ, **told})
    with process:
        while True:
            try:
                code = process.wait()
            except KeyboardInterrupt:  # the program receives it, too, and decides how to end
                continue
            return code if code >= 0 else 128 - code
