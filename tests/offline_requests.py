"""Requests to the offline model and readers of its replies, shared by its tests."""

from __future__ import annotations

import ast
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import msgspec

from evo.models.offline.endpoint import respond
from evo.models.responses import Response
from evo.prompt import parse_reply
from evo.tasks.task import load_task

TASKS = ("cp", "mmd", "ht")
PARENTS = {name: load_task(name).initial_program for name in TASKS}

TOY = '''import math

LIMIT = 12

def area(width, height=2.5):
    """Area of a field."""
    total = 0.0
    for k in range(10):
        if width > k:
            total = total + math.sqrt(width * height) / 3
    return total

def solve():
    return [area(k + 0.25) for k in range(LIMIT)]
'''
"""A program of none of the shipped tasks."""

TEXT = "You solve problems.\nGive the answer as a number. Be quick about it."
"""A parent that is no program."""

SEARCH_REPLACE = "Answer like this:\n<<<<<<< SEARCH\nold\n=======\nnew\n>>>>>>> REPLACE"
TAGGED = "Answer with <NAME>, <DESCRIPTION> and <CODE> tags."


@dataclass(frozen=True)
class Reply:
    """What a completion holds."""

    text: str
    finish_reason: str
    usage: dict[str, Any]

    @property
    def program(self) -> str | None:
        return parse_reply(self.text, finish_reason=self.finish_reason)


def showing(parent: str, *, system: str = "", language: str = "python") -> list[dict[str, str]]:
    """Messages that show a parent."""
    user = {"role": "user", "content": f"```{language}\n{parent.rstrip()}\n```\nRewrite it."}
    return [{"role": "system", "content": system}, user] if system else [user]


def post(messages: Sequence[Mapping[str, Any]], **fields: Any) -> Response:
    body = {"model": "offline", "messages": list(messages), **fields}
    return respond("POST", "/v1/chat/completions", msgspec.json.encode(body))


def ask(messages: Sequence[Mapping[str, Any]], **fields: Any) -> Reply:
    """Sends a request that must succeed."""
    response = post(messages, **fields)
    assert response.status == 200, response.content
    completion = msgspec.json.decode(response.content)
    choice = completion["choices"][0]
    return Reply(choice["message"]["content"], choice["finish_reason"], completion["usage"])


def descend(parent: str, generations: int, **fields: Any) -> list[str]:
    """Programs that the model makes one out of the other; what is not Python is skipped."""
    chain = [parent]
    for seed in range(generations):
        program = ask(showing(chain[-1]), seed=seed, **fields).program
        chain.append(program if program and parses(program) else chain[-1])
    return chain


def parses(program: str) -> bool:
    try:
        ast.parse(program)
    except SyntaxError:
        return False
    return True
