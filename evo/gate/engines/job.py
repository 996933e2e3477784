"""One run of another tool, whose programs our sandbox judges: its evaluator asks here."""

from __future__ import annotations

import contextlib
import itertools
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from evo.keyed import KeyedStream
from evo.models.listening import Listener, Request, Response
from evo.tasks.task import Task

if TYPE_CHECKING:
    import httpx2


@dataclass(frozen=True)
class Job:
    """One run of a tool, which leaves its records in `folder / "out"`."""

    folder: Path
    task: Task
    model: str  # its name, to call it by
    endpoint: str  # base URL of the gate
    calls: int
    seed: int


@dataclass(frozen=True)
class Tool:
    """A tool: `prepare` writes what it needs, and returns the arguments of its Python."""

    package: str
    module: str
    format: str  # of the importer
    prepare: Callable[[Job], list[str]]


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
    """A program with marks of what may be rewritten: its own, or around all of it."""
    if "EVOLVE-BLOCK-START" in program:
        return program
    return f"# EVOLVE-BLOCK-START\n{program.rstrip()}\n# EVOLVE-BLOCK-END\n"


def resampled(seed: int) -> httpx2.BaseTransport:
    """Returns a way to the offline model on which each request draws anew, as of a sampled model.

    It answers equal requests alike, and tools send one seed with all of theirs, or none.
    """
    import httpx2

    from evo.models.network import OfflineTransport

    numbers = itertools.count()

    class Resampled(OfflineTransport):
        def handle_request(self, request: httpx2.Request) -> httpx2.Response:
            body = msgspec.json.decode(request.read())
            body["seed"] = KeyedStream("driver", seed, next(numbers)).integer(0, 2**31 - 1)
            content = msgspec.json.encode(body)
            return super().handle_request(httpx2.Request("POST", request.url, content=content))

    return Resampled()


class Judge(Listener):
    """Scores what is posted to it, as long as the context lasts.

    What the task keeps private is left out: the tool may show a model whatever it receives.
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
