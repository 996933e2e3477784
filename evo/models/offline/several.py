"""Rewrites one file of a program of several: a program, a table of numbers or a text."""

from __future__ import annotations

import re
from collections.abc import Callable

from evo.keyed import KeyedStream
from evo.logs.several import header_line, named_in, pack
from evo.models.offline.edits import change_number
from evo.models.offline.formats import Parent, difference
from evo.models.offline.texts import rewrite_text

_FILE = re.compile(
    r"^(?P<header>==== file: [^\n]+ ====)\n(?P<fence>`{3,})(?P<tag>[^\n`]*)\n"
    r"(?P<text>.*?)^(?P=fence)[ \t]*$",
    re.MULTILINE | re.DOTALL,
)
_NUMBER = re.compile(r"(?<![\w.])\d+(?:\.\d+)?(?![\w.])")


def files_shown(prompt: str) -> dict[str, Parent]:
    """Returns the files of the current program in a prompt, by name; empty: it is no such one."""
    _, _, shown = prompt.rpartition("\nCurrent ") if "\nCurrent " in prompt else ("", "", prompt)
    found = dict[str, Parent]()
    for block in _FILE.finditer(shown):
        if (name := named_in(block["header"])) is not None:
            found[name] = Parent(block["tag"] or "text", block["text"])
    return found


def text_of(files: dict[str, Parent]) -> str:
    """Returns the files as one text, which keys what is drawn."""
    return pack({name: each.text for name, each in files.items()})


def rewrite_files(
    files: dict[str, Parent],
    draws: KeyedStream,
    *,
    diff: bool,
    program: Callable[[str], tuple[str, str]],
) -> str:
    """Returns a reply that changes one of the files.

    Args:
        files: The files by name.
        draws: What is drawn.
        diff: Whether to answer in SEARCH/REPLACE blocks.
        program: Rewrites a program in Python, and says how.
    """
    name = draws.pick(list(files))
    parent = files[name]
    if parent.language == "python":
        child, words = program(parent.text)
    elif _is_table(parent.text):
        child, words = _change_table(parent.text, draws)
    else:
        child, words = rewrite_text(parent.text, draws)
    fence = "`" * max([3, *(1 + len(run) for run in re.findall("`+", child))])
    body = (
        difference(parent.text, child)
        if diff
        else f"{fence}{parent.language}\n{child.rstrip()}\n{fence}"
    )
    return f"{words}\n\n{header_line(name)}\n{body}"


def _is_table(text: str) -> bool:
    """Whether most lines of a text begin with a number."""
    lines = [line for line in text.splitlines() if line.strip()]
    return 2 * sum(bool(_NUMBER.match(line.lstrip("-"))) for line in lines) > len(lines)


def _change_table(text: str, draws: KeyedStream) -> tuple[str, str]:
    """Returns a table with one number, sometimes two, changed."""
    places = [found.span() for found in _NUMBER.finditer(text)]
    chosen = {draws.integer(0, len(places) - 1) for _ in range(draws.integer(1, 2))}
    for place in sorted(chosen, reverse=True):
        start, end = places[place]
        text = text[:start] + change_number(text[start:end], draws) + text[end:]
    return text, "I change a number of the table."
