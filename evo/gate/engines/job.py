"""The job of an engine: the task, the model, and where to have programs evaluated."""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import msgspec

from evo.logs.records import Evaluation, Sampling
from evo.models.responses import HttpRequest, Response, error_response
from evo.models.serving import HttpServer
from evo.plugins import MistakenType, guarded
from evo.sandbox import EvaluatorClosed, SandboxError
from evo.tasks.task import Task

FOREVER = 10**7
"""Seconds for the timeouts of engines, whose requests wait at the gate between pulls."""


UNSET = Sampling(temperature=None, top_p=None, max_tokens=None)
"""Leaves it to the engine what to ask the model with."""


@dataclass(frozen=True)
class Job:
    """One run of an engine.

    Attributes:
        folder: Its own, in which it is started; `judging.py` lies there.
        python: The Python in whose environment the engine is installed.
        task: The task.
        model: Name of the model, to call it by.
        endpoint: Base URL of the gate.
        judge: URL to which a program is posted; the answer is JSON with its `status`, `fitness`
            and `error`.
        calls: The most calls that it can be granted.
        children: Calls that a pull grants.
        seed: Of the run.
        sampling: What to ask the model with; None in it: as the engine does by default.
        full_rewrites: Whether replies should be whole programs, whatever the engine's default is.

    Example:
        >>> job = evo.Job(
        ...     folder=path.parent, python="python3", task=evo.load_task("mmd"), model="offline",
        ...     endpoint="http://127.0.0.1:1", judge="http://127.0.0.1:2",
        ...     calls=8, children=4, seed=0,
        ... )
        >>> job.calls // job.children
        2
    """

    folder: Path
    python: str
    task: Task
    model: str
    endpoint: str
    judge: str
    calls: int
    children: int
    seed: int
    sampling: Sampling = field(default_factory=lambda: UNSET)
    full_rewrites: bool = False


@dataclass(frozen=True)
class Engine:
    """A tool that evolves programs, known by its name once it is registered.

    Attributes:
        name: Its name.
        prepare: Writes what the engine needs into the folder of a job and returns the command that
            starts it there.
        package: The package to install; empty if it needs none.
        module: What the engine's Python must be able to import; empty if nothing.
        parent: Regular expression whose group 1 is, in the engine's prompts, the program to be
            rewritten; empty if they do not say. Blank lines and indentation around it do not count.
        resumes: Whether `prepare` returns a command that goes on from what the engine itself left
            in the folder. An engine that cannot is over once its process has ended.
        overlaps: Whether it asks for the next reply while a program is still to be judged.

    Example:
        >>> def prepare(job):
        ...     return [job.python, "-m", "mine", str(job.folder)]
        >>> evo.Engine("mine", prepare, package="mine").name
        'mine'
    """

    name: str
    prepare: Callable[[Job], list[str]]
    package: str = ""
    module: str = ""
    parent: str = ""
    resumes: bool = False
    overlaps: bool = False

    def __post_init__(self) -> None:
        if not callable(self.prepare):
            raise MistakenType(f"prepare: expected a function of a job, got {self.prepare!r:.80}")
        try:
            groups = re.compile(self.parent).groups
        except re.error as error:
            raise ValueError(f"parent: {self.parent!r} is no regular expression: {error}") from None
        if self.parent and not groups:
            raise ValueError(
                f"parent: expected a regular expression whose group 1 is the program, got "
                f"{self.parent!r}, which has no group"
            )

    def command(self, job: Job) -> list[str]:
        """Prepares a job and returns the command that starts the engine.

        Raises:
            TypeError: `prepare` returned no list of texts.
            ValueError: It failed.
        """
        found: object = guarded("engine", self.name, self.prepare)(job)
        listed = found if isinstance(found, list | tuple) else ()
        if not listed or not all(isinstance(each, str | os.PathLike) for each in listed):
            raise MistakenType(
                f"engine {self.name!r}: expected `prepare` to return the command that starts it, a "
                f"list such as [job.python, 'engine.py'], got {found!r:.80}"
            )
        return [os.fspath(each) for each in listed]


ASK = '''\
"""Asks what a program is worth."""

import json
import urllib.request


def judge(program_path):
    with open(program_path, "rb") as file:
        request = urllib.request.Request({url!r}, file.read(), {{"Content-Type": "text/x-python"}})
    with urllib.request.urlopen(request) as answer:
        return json.load(answer)
'''
"""A module for the engine's own Python, with the URL of the judge to be filled in."""


def known_sampling(sampling: Sampling) -> dict[str, float | int]:
    """Returns the fields of a sampling that are set, by their names in a request."""
    fields = msgspec.to_builtins(sampling)
    names = ("temperature", "top_p", "max_tokens")
    return {name: fields[name] for name in names if fields.get(name) is not None}


def in_block(program: str) -> str:
    """A program with marks of what may be rewritten: its own, or around all of it."""
    if "EVOLVE-BLOCK-START" in program:
        return program
    return f"# EVOLVE-BLOCK-START\n{program.rstrip()}\n# EVOLVE-BLOCK-END\n"


def plain_lines(program: str) -> str:
    """A program's text without marks of what may be rewritten, which engines add and take away."""
    lines = (line.rstrip() for line in program.strip().splitlines())
    return "\n".join(line for line in lines if line and "EVOLVE-BLOCK-" not in line)


class ProgramJudge(HttpServer):
    """A local server that scores the programs posted to it, as a context manager.

    What the task keeps private is left out: the engine may show a model whatever it receives.

    Args:
        evaluate: Evaluates a program.
    """

    def __init__(self, evaluate: Callable[[str], Evaluation]) -> None:
        super().__init__("127.0.0.1", 0)
        self._evaluate = evaluate

    async def respond(self, request: HttpRequest) -> Response:
        """Returns status, fitness and error of a program."""
        try:
            program = request.body.decode("utf-8", "replace")
            evaluation = await self.in_thread(self._evaluate, program)
        except (EvaluatorClosed, SandboxError) as error:
            return error_response(503, f"nothing is judged any more: {error}", "judge")
        found = {name: getattr(evaluation, name) for name in ("status", "fitness", "error")}
        return Response(200, msgspec.json.encode(found))
