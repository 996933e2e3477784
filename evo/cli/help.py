"""Help: a page of plain text, short by default and complete with `--help-all`."""

from __future__ import annotations

import functools
import inspect
import textwrap
from collections.abc import Callable
from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter

from evo.cli.options import COMMON

if TYPE_CHECKING:
    from cyclopts.help import HelpEntry, HelpPanel
    from rich.console import Console, ConsoleOptions

HELP_ALL = "--help-all"
"""The flag that asks for the help with all options."""

WIDTH = 100
"""Columns of a page at most."""

LEFT = {"parameter": 30, "command": 10}
"""Columns of the names at most."""


def shorten(command: Callable[..., int]) -> Callable[..., int]:
    """Returns a command whose help leaves out the options that belong to groups."""
    signature = inspect.signature(command)
    parameters = [
        each.replace(annotation=Annotated[each.annotation, Parameter(show=False)])
        if _is_grouped(each)
        else each
        for each in signature.parameters.values()
    ]
    if not any(map(_is_grouped, parameters)):
        return command

    @functools.wraps(command)
    def short(*values: object, **options: object) -> int:
        return command(*values, **options)

    short.__signature__ = signature.replace(parameters=parameters)  # type: ignore[attr-defined]
    short.__annotations__ = {each.name: each.annotation for each in parameters}
    short.__doc__ = f"{command.__doc__}\n\n{HELP_ALL} lists further options."
    return short


def _is_grouped(parameter: inspect.Parameter) -> bool:
    metadata = getattr(parameter.annotation, "__metadata__", ())
    return any(
        isinstance(each, Parameter) and each.group not in {None, (), (COMMON,)} for each in metadata
    )


class Help:
    """Formats help as two columns: names, and descriptions that end in the default."""

    def __call__(self, console: Console, options: ConsoleOptions, panel: HelpPanel) -> None:
        """Prints a panel of options or commands."""
        if panel.entries:
            lines = [f"{panel.title}:"]
            for entry in panel.entries:
                left = LEFT[panel.format]
                lines += _columns(_names(entry), _description(entry), left, _width(console))
            _print(console, "\n".join(lines))

    def render_usage(self, console: Console, options: ConsoleOptions, usage: object) -> None:
        """Prints the line of usage."""
        _print(console, f"Usage: {_plain(usage)}")

    def render_description(
        self, console: Console, options: ConsoleOptions, description: object
    ) -> None:
        """Prints what a program or command is for."""
        paragraphs = _plain(description).split("\n\n")
        width = _width(console)
        _print(console, "\n\n".join(textwrap.fill(text, width) for text in paragraphs))


def _plain(text: object) -> str:
    """Returns the plain text of what cyclopts wraps for its own formatters."""
    inner = getattr(text, "primary_renderable", text)
    return str(getattr(inner, "plain", inner) or "").strip()


def _width(console: Console) -> int:
    return min(console.width, WIDTH)


def _print(console: Console, text: str) -> None:
    if text:
        console.print(f"{text}\n", highlight=False, markup=False, soft_wrap=True)


def _names(entry: HelpEntry) -> str:
    if entry.positional_label:
        return entry.positional_label
    short = [name for name in entry.all_options if not name.startswith("--")]
    long = [name for name in entry.all_options if name.startswith("--")]
    names = ", ".join([*short, *long])
    metavar = {"STR": "TEXT", "PATH": "FILE"}.get(entry.metavar or "", entry.metavar)
    return f"{names} {metavar}" if metavar else names


def _description(entry: HelpEntry) -> str:
    text = _plain(entry.description)
    if entry.choices:
        text += f" One of: {', '.join(entry.choices)}."
    stated = entry.default not in {None, "None", "False", ""} and "default:" not in text
    if stated and text.endswith("."):
        text = f"{text[:-1]} (default: {entry.default})."
    return f"{text} Required." if entry.required else text


def _columns(name: str, text: str, left: int, width: int) -> list[str]:
    """Returns the lines of an entry; a name that is too long has a line of its own."""
    indent = " " * (left + 2)
    body = textwrap.wrap(text, max(width - len(indent), 20)) or [""]
    first = f"  {name}".ljust(len(indent))
    if len(name) + 3 > len(indent):
        return [first, *(indent + line for line in body)]
    return [(first + body[0]).rstrip(), *(indent + line for line in body[1:])]
