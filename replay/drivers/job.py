"""One run of another tool, whose programs our sandbox judges: its evaluator asks here."""

from __future__ import annotations

import contextlib
from dataclasses import dataclass
from pathlib import Path

import msgspec

from evo.llm.listening import Listener, Request
from evo.llm.offline.endpoint import Response
from evo.task import Task


@dataclass(frozen=True)
class Job:
    """One run of a tool.

    Attributes:
        folder: Where it works; it leaves its records in `folder / "out"`.
        task: What it improves.
        model: Name of the model, to call it by.
        endpoint: Base URL of the gate.
        judge: URL that judges a program.
        calls: Its budget.
        seed: Its seed.
    """

    folder: Path
    task: Task
    model: str
    endpoint: str
    judge: str
    calls: int
    seed: int


ASK = '''\
"""Asks the driver what a program is worth."""

import json
import urllib.request


def judge(program_path):
    with open(program_path, "rb") as file:
        request = urllib.request.Request({url!r}, file.read(), {{"Content-Type": "text/x-python"}})
    with urllib.request.urlopen(request) as answer:
        return json.load(answer)
'''
"""A module for the tool's own Python, with the URL of the judge to be filled in."""


def in_block(program: str) -> str:
    """Returns a program of which all may be rewritten, in the marks that these tools know."""
    return f"# EVOLVE-BLOCK-START\n{program.rstrip()}\n# EVOLVE-BLOCK-END\n"


class Judge(Listener):
    """Scores what is posted to it, as long as the context lasts.

    What the task keeps private is not told: the tool may show a model whatever it gets.
    """

    def __init__(self, task: Task) -> None:
        super().__init__("127.0.0.1", 0)
        self._task = task

    def begin(self, opened: contextlib.ExitStack) -> None:
        """Needs nothing."""

    def respond(self, request: Request) -> Response:
        """Returns status, fitness and error of a program."""
        import evo

        program = request.body.decode("utf-8", "replace")
        evaluation = evo.evaluate(self._task, program)
        found = {name: getattr(evaluation, name) for name in ("status", "fitness", "error")}
        return Response(200, msgspec.json.encode(found))
