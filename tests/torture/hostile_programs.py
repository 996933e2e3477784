"""Hostile programs, each harmless even where a sandbox fails: bounded in number, size and time.

The table is `hostile.toml`. A program that finds itself able to do what it must not raises
`Escaped`.
"""

from __future__ import annotations

import tomllib
from dataclasses import dataclass
from pathlib import Path
from textwrap import indent

GOOD = "[[0.5, 0.5]] * 4"
"""A value whose fitness is 0.5."""

_HEAD = f"""
import os, sys, time, ctypes, signal
class Escaped(Exception): pass
GOOD = {GOOD}
def fork_and(action, seconds=20):
    pid = os.fork()
    if pid == 0:
        signal.alarm(seconds)
        try:
            action()
        finally:
            os._exit(0)
    return pid
"""
_TRIES = """
def construct():
    try:
{}
    except OSError:
        return GOOD
    raise Escaped
"""


@dataclass(frozen=True)
class Hostile:
    """A program, the statuses that are right, text its error must hold, the layers it needs."""

    name: str
    source: str = ""
    tries: str = ""
    returns: str = ""
    status: tuple[str, ...] = ("ok",)
    says: str = ""
    needs: tuple[str, ...] = ()

    def program(self, **fields: object) -> str:
        """Source with its fields filled in."""
        text = self.source
        if self.tries:
            text = _TRIES.format(indent(self.tries.strip(), " " * 8))
        if self.returns:
            text = f"import numpy as np\ndef construct():\n    return {self.returns}\n"
        for name, value in fields.items():
            text = text.replace(f"<<{name}>>", str(value))
        return f"{_HEAD}\n{text}"


_TABLE = tomllib.loads(Path(__file__).with_name("hostile.toml").read_text())
ALL = [Hostile(name, **fields) for name, fields in _TABLE.items()]
