"""One list of options: what identifies a run and how a session works, shown by every verb."""

from __future__ import annotations

import inspect
import re
import typing
from collections.abc import Callable
from typing import Any, ParamSpec, TypeVar

from evo.configuration import Settings, make_header

P = ParamSpec("P")
R = TypeVar("R")


def takes_options(*without: str) -> Callable[[Callable[P, R]], Callable[P, R]]:
    """Makes a function's signature and docstring show the options behind its last `**options`.

    These are the arguments of `make_header` and the fields of `Settings`, with their defaults.

    Args:
        *without: Options that the function does not take.
    """

    def decorate(function: Callable[P, R]) -> Callable[P, R]:
        signature = inspect.signature(function, eval_str=False)
        own = [p for p in signature.parameters.values() if p.kind is not p.VAR_KEYWORD]
        given = {p.name for p in own} | set(without)
        more = [p for p in _options() if p.name not in given]
        hints = {p.name: p.annotation for p in more}
        function.__signature__ = signature.replace(parameters=[*own, *more])  # type: ignore[attr-defined]
        function.__annotations__ = {
            **{k: v for k, v in function.__annotations__.items() if k != "options"},
            **hints,
        }
        words = {name: text for name, text in _descriptions().items() if name in hints}
        lines = "".join(f"        {name}: {text}\n" for name, text in words.items())
        before = function.__doc__ or ""
        function.__doc__ = re.sub(r"^        \*\*options: .*\n", lines, before, flags=re.MULTILINE)
        return function

    return decorate


def _options() -> list[inspect.Parameter]:
    """The arguments of `make_header` but the task, then the fields of `Settings`."""
    found = []
    for source in (make_header, Settings):
        hints = typing.get_type_hints(source)
        for parameter in inspect.signature(source).parameters.values():
            if parameter.name != "task":
                kind, hint = parameter.KEYWORD_ONLY, hints[parameter.name]
                found.append(parameter.replace(kind=kind, annotation=hint))
    return found


def _descriptions() -> dict[str, str]:
    """What the docstrings say of each option, by name."""
    found: dict[str, Any] = {}
    for source in (make_header, Settings):
        text = inspect.cleandoc(source.__doc__ or "")
        block = re.search(r"^(?:Args|Attributes):\n((?:    .*\n?)+)", text, re.MULTILINE)
        for name, said in re.findall(
            r"^    (\w+): (.*(?:\n        .*)*)", block[1] if block else "", re.MULTILINE
        ):
            found[name] = " ".join(said.split())
    return found
