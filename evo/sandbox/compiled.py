"""Programs in other languages: compiled and run in a jailed process, within its limits."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys

from evo.logs.languages import ENTRY, LANGUAGES

PLACES = (os.path.dirname(sys.executable), "/usr/local/bin", "/usr/bin", "/bin")
"""Where compilers are looked for: the folders that programs in the sandbox can see."""

MISSING = "no compiler or interpreter for"
_MOST = 2000  # characters of what a compiler or a program says that are kept
_ERROR = re.compile(r"^.*\berror\b.*$", re.MULTILINE | re.IGNORECASE)
_WRAPPED = """\
from evo.sandbox.compiled import build

{entry} = build({language!r}, {text!r})
"""


class ProgramFailed(RuntimeError):  # noqa: N818 - about the program, not an error of ours
    """A program does not compile, or ends with another exit code than 0.

    Attributes:
        notes: What the compiler says, for the model to read.
    """

    def __init__(self, words: str, notes: str = "") -> None:
        super().__init__(words)
        self.notes = notes


def in_python(language: str, text: str) -> str:
    """Returns a module of Python in which a program of another language is `evo_program`."""
    return _WRAPPED.format(entry=ENTRY, language=language, text=text)


def find_tool(language: str) -> str | None:
    """Returns the path of a compiler or interpreter that programs can reach, or None."""
    places = os.pathsep.join(PLACES)
    return next(
        filter(None, (shutil.which(t, path=places) for t in LANGUAGES[language].tools)), None
    )


class CompiledProgram:
    """A program that is ready to run; calling it runs it once.

    Args:
        command: The words that run it.
    """

    def __init__(self, command: list[str]) -> None:
        self._command = command

    def __call__(self, value: object = None, *arguments: object) -> object:
        """Runs the program and returns what it printed, read as JSON if it is JSON.

        Args:
            value: What it reads on its standard input: a text as it is, another value as JSON.
            *arguments: Words behind its name.

        Raises:
            ProgramFailed: It ended with another exit code than 0.
        """
        given = "" if value is None else value if isinstance(value, str) else json.dumps(value)
        done = subprocess.run(
            [*self._command, *map(str, arguments)], input=given, capture_output=True, check=False,
            encoding="utf-8", errors="replace",
        )  # fmt: skip
        if done.returncode:
            said = f"{done.stderr[-_MOST:].rstrip()}\n" if done.stderr.strip() else ""
            raise ProgramFailed(f"{said}the program {_ending(done.returncode)}")
        try:
            return json.loads(done.stdout)
        except (ValueError, RecursionError):
            return done.stdout


def build(language: str, text: str) -> CompiledProgram:
    """Writes a program into the working folder and compiles it, unless it is interpreted.

    Raises:
        ProgramFailed: It does not compile; or there is no compiler or interpreter, with what to
            install.
    """
    known, tool = LANGUAGES[language], find_tool(language)
    if tool is None:
        raise ProgramFailed(
            f"{MISSING} {language} ({' or '.join(known.tools)}) is in {', '.join(PLACES[1:])}: "
            f"{known.install}"
        )
    words = {"source": f"program{known.suffix}", "program": os.path.abspath("program")}
    with open(words["source"], "w", encoding="utf-8", errors="surrogatepass") as file:
        file.write(text)
    if not known.build:
        return CompiledProgram([tool, *(each.format(**words) for each in known.run)])
    command = [tool, *(each.format(**words) for each in known.build)]
    plain = {**os.environ, "LC_ALL": "C"}  # so that messages are alike on every machine
    done = subprocess.run(
        command, capture_output=True, check=False, text=True, errors="replace", env=plain
    )
    if done.returncode:
        notes = (done.stderr or done.stdout).strip()
        first = _ERROR.search(notes)
        reason = first[0].strip() if first else _ending(done.returncode)
        raise ProgramFailed(f"the program does not compile: {reason}", notes[:_MOST])
    return CompiledProgram([words["program"]])


def _ending(code: int) -> str:
    """Says how a program or a compiler ended."""
    return f"ended with exit code {code}" if code > 0 else f"was ended by signal {-code}"
