"""One list of options: what identifies a run, how far it goes, how a session works."""

from __future__ import annotations

import inspect
import re
import typing
from collections.abc import Callable, Sequence
from typing import Any, ParamSpec, TypeVar

from evo.runs.configuration import Settings, make_header

P = ParamSpec("P")
R = TypeVar("R")


WHOLE = "A whole Settings value instead of its fields as keywords."


def takes_options(
    *without: str,
    sources: Sequence[Callable[..., Any]] = (make_header, Settings),
    kept: Callable[..., Any] | None = None,
) -> Callable[[Callable[P, R]], Callable[P, R]]:
    """Makes a function's signature and docstring show the options behind its last `**options`.

    Their `sources` are the arguments of `make_header`, and the fields of `Settings`, or a whole one
    instead; those of the source that is `kept` are None unless given.
    """

    def decorate(function: Callable[P, R]) -> Callable[P, R]:
        signature = inspect.signature(function)
        own = [p for p in signature.parameters.values() if p.kind is not p.VAR_KEYWORD]
        given = {p.name for p in own} | {"task", *without}
        more = [
            p.replace(default=None, annotation=p.annotation | None) if source is kept else p
            for source in sources
            for p in _options(source)
            if p.name not in given
        ]
        if Settings in sources:
            kind = inspect.Parameter.KEYWORD_ONLY
            settings = inspect.Parameter("settings", kind, default=None, annotation=Settings | None)
            more = [settings, *more]
        function.__signature__ = signature.replace(parameters=[*own, *more])  # type: ignore[attr-defined]
        before = {k: v for k, v in function.__annotations__.items() if k != "options"}
        function.__annotations__ = before | {p.name: p.annotation for p in more}
        said = {"settings": WHOLE}
        for source in sources:
            said |= descriptions(source)
        lines = "".join(f"    {p.name}: {said[p.name]}\n" for p in more)
        text = inspect.cleandoc(function.__doc__ or "")  # as Python 3.13 stores every docstring
        function.__doc__ = re.sub(r"^    \*\*options: .*(?:\n|$)", lines, text, flags=re.MULTILINE)
        return function

    return decorate


def _options(source: Callable[..., Any]) -> list[inspect.Parameter]:
    hints = typing.get_type_hints(source)
    return [
        each.replace(kind=each.KEYWORD_ONLY, annotation=hints[each.name])
        for each in inspect.signature(source).parameters.values()
    ]


def descriptions(source: Callable[..., Any]) -> dict[str, str]:
    """Returns what a docstring says of each option, by name."""
    text = inspect.cleandoc(source.__doc__ or "")
    block = re.search(r"^(?:Args|Attributes):\n((?:    .*\n?)+)", text, re.MULTILINE)
    entry = re.compile(r"^    (\w+): (.*(?:\n        .*)*)", re.MULTILINE)
    return {name: " ".join(said.split()) for name, said in entry.findall(block[1] if block else "")}
