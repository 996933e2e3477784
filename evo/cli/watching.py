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
import webbrowser
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from evo.cli.gates import NO_GATE, GateOptions

VARIABLES = ("OPENAI_BASE_URL", "OPENAI_API_BASE")
"""Where programs look for the address of an endpoint; the older name is still read by some."""
NOTHING_PASSED = (
    "no call passed the gate. A program that takes the endpoint's address from a file or an option "
    "of its own does not read OPENAI_BASE_URL: give it the address of `evo serve` there"
)


def watch(
    *command: Annotated[str, Parameter(allow_leading_hyphen=True)],
    model: str = "offline",
    options: GateOptions = NO_GATE,
    view: Annotated[bool | None, Parameter(negative="--no-view")] = None,
) -> int:
    """Runs a program that calls a model behind a gate: `evo watch -- COMMAND`.

    The program finds the gate's address in OPENAI_BASE_URL and a key of no value in OPENAI_API_KEY.
    Every call is counted, limited and logged; whatever model it names, the gate's own is asked.
    A live page shows the calls while they are made and, of a tool whose files `replay` reads, its
    children, their lineage and failures; `replay view LOG` serves it again.

    Args:
        command: The program and its arguments, after `--`.
        model: One of `evo models`.
        options: What is counted, limited and kept.
        view: Serve the live page while the program runs, and open it where there is a screen
            (default: serve it if this is a terminal).
    """
    from evo.cli.gate_logs import show_gate

    if not command:
        raise ValueError("expected a command after --, such as `evo watch -- python my_tool.py`")
    if shutil.which(command[0]) is None:
        raise ValueError(f"{command[0]}: there is no such program")
    gate = options.gate(model, logged=True)
    with gate:
        assert gate.log is not None  # it was asked for
        gate.account.watch(folders_of(command))
        before = _answers(gate.log)
        look = f"log: {gate.log}; to look while it runs: replay view {shlex.quote(str(gate.log))}"
        print(look, file=sys.stderr, flush=True)
        shown = sys.stderr.isatty() if view is None else view
        with _page(gate.log, opened=bool(view)) if shown else contextlib.nullcontext():
            code = _run(command, gate.url)
    sys.stdout.flush()
    show_gate(gate.log)
    if _answers(gate.log) == before:
        print(f"evo: note: {NOTHING_PASSED}", file=sys.stderr)
    return code


def _answers(log: Path) -> int:
    """How many requests a gate forwarded, answered from its cache or refused for its budget."""
    from evo.gate.log import read_gate_log

    found = read_gate_log(log)
    return len(found.passed) + len(found.kept) + sum(each.refused for each in found.closed)


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


@contextlib.contextmanager
def _page(log: Path, opened: bool) -> Iterator[None]:
    """Serves the live page of a gate's log, from a process of its own, and says where."""
    process = subprocess.Popen(
        [sys.executable, "-m", "replay", "view", str(log)],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,  # Ctrl-C is the program's
    )
    announcer = threading.Thread(target=_announce, args=(process, opened))
    announcer.start()
    try:
        yield
    finally:
        process.terminate()
        announcer.join()
        process.wait()


def _announce(process: subprocess.Popen[str], opened: bool) -> None:
    """Says where the page is, once it is served, or why it is not."""
    assert process.stdout is not None
    with process.stdout:
        words, link = "", ""
        for line in process.stdout:
            if line.startswith("http://"):
                link = line.strip()
                break
            words = line.strip() or words  # what it says before, or why there is no link
        if link:
            print(f"page: {link}", file=sys.stderr, flush=True)
        if link and opened and _has_screen():
            webbrowser.open(link)
        process.stdout.read()  # to its end, so that it never waits for a reader
    if words and not link:
        print(f"no page: {words}", file=sys.stderr, flush=True)


def _has_screen() -> bool:
    """Whether a browser opened here gets a window, and not the terminal of the program."""
    shown = os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY")
    return sys.platform == "darwin" or bool(shown)


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
