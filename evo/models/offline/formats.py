"""How a prompt shows its parent, and how a reply is laid out: as other tools ask for, too."""

from __future__ import annotations

import ast
import re
from typing import Literal, NamedTuple

from evo.keyed import KeyedStream
from evo.logs.languages import KEEPS_FORM, named
from evo.models.offline.program import parse

Format = Literal["block", "tagged", "difference", "tagged difference"]
"""`block`: a code block; `tagged`: in <NAME>, <DESCRIPTION> and <CODE> tags (ShinkaEvolve);
`difference`: SEARCH/REPLACE blocks (OpenEvolve); `tagged difference`: both (ShinkaEvolve)."""

_CLOSINGS = ("", "\nThis should help a little.", "\nThe interface is unchanged.")
_BLOCK = re.compile(r"^(`{3,})[ \t]*([\w+-]*)[ \t]*\n(.*?)^\1[ \t]*$", re.MULTILINE | re.DOTALL)
_EVOLVE = re.compile(r"(.*?EVOLVE-BLOCK-START[^\n]*\n)(.*?)([^\n]*EVOLVE-BLOCK-END.*)", re.DOTALL)


class Parent(NamedTuple):
    """The text to rewrite: `text` between what must stay as it is."""

    language: str
    text: str
    before: str = ""
    after: str = ""
    compiled: bool = False  # a program of a task in another language than Python


def find_parent(prompt: str) -> Parent | None:
    """Returns what a user message shows: its last Python block that holds code, else the last.

    Where the last block names no language, the last such block that is a program comes first: GEPA
    shows the program in one and what is known of it in a later one.
    """
    blocks = [(match[2].lower(), match[3]) for match in _BLOCK.finditer(prompt)]
    if not blocks:
        return None
    programs = [text for tag, text in blocks if tag in ("python", "py", "python3") and _code(text)]
    if programs:
        return make_parent("python", programs[-1])
    unnamed = [text for tag, text in blocks if not tag and _defines(text)]
    if unnamed and not blocks[-1][0]:
        return make_parent("python", unnamed[-1])
    language = blocks[-1][0] or "text"
    compiled = KEEPS_FORM in prompt and bool(named(language))
    return make_parent(language, blocks[-1][1], compiled=compiled)


def make_parent(language: str, text: str, *, compiled: bool = False) -> Parent:
    """Returns a text as a parent, of a program between marks only what they enclose."""
    marked = _EVOLVE.fullmatch(text) if language == "python" or compiled else None
    before, text, after = marked.groups() if marked else ("", text, "")
    return Parent(language, text, before, after, compiled)


def _code(text: str) -> bool:
    """Whether a block is a program rather than a placeholder; one that does not parse counts."""
    tree = parse(text)
    return tree is None or bool(tree.body)


def _defines(text: str) -> bool:
    """Whether a text is Python that defines a function or a class."""
    tree = parse(text)
    kinds = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
    return tree is not None and any(isinstance(each, kinds) for each in tree.body)


def reply_format(prompt: str) -> Format:
    """Returns the format that a prompt asks for, recognised by its marks."""
    if "<<<<<<< SEARCH" in prompt:
        return "tagged difference" if "<NAME>" in prompt else "difference"
    return "tagged" if "<CODE>" in prompt and "<NAME>" in prompt else "block"


def frame(parent: Parent, child: str, words: str, *, wanted: Format, draws: KeyedStream) -> str:
    """Returns the reply that proposes a child; `words`: what was done."""
    new, language = parent.before + child + parent.after, parent.language
    style = draws.weighted({"plain": 0.84, "thinking": 0.1, "sketch": 0.06})
    closing = draws.pick(_CLOSINGS)
    block = f"```{language}\n{new.rstrip()}\n```"
    if wanted == "block":
        if style == "thinking":
            return f"<think>\nWhat could be better? {words}\n</think>\n{words}\n\n{block}{closing}"
        if style == "sketch":
            sketch = f"```{language}\n# {words}\n```" if language == "python" else ""
            return f"The idea in short:\n{sketch}\nIn full:\n\n{block}{closing}"
        return f"{words}\n\n{block}{closing}"
    if wanted == "tagged":
        body = f"<CODE>\n{block}\n</CODE>"
    else:
        body = difference(parent.before + parent.text + parent.after, new)
    if wanted == "difference":
        return f"{words}\n\n{body}"
    if wanted == "tagged difference":
        body = f"<DIFF>\n{body}\n</DIFF>"
    return f"<NAME>\noffline_rewrite\n</NAME>\n\n<DESCRIPTION>\n{words}\n</DESCRIPTION>\n\n{body}"


def difference(old: str, new: str) -> str:
    """Returns one SEARCH/REPLACE block that turns the old text into the new.

    It spans from the first changed line to the last, and one more line before and after.
    """
    before, after = old.rstrip("\n").split("\n"), new.rstrip("\n").split("\n")
    first = 0
    while first < min(len(before), len(after)) and before[first] == after[first]:
        first += 1
    last = 0
    while last < min(len(before), len(after)) - first and before[-1 - last] == after[-1 - last]:
        last += 1
    first, last = max(first - 1, 0), max(last - 1, 0)
    search = "\n".join(before[first : len(before) - last])
    replacement = "\n".join(after[first : len(after) - last])
    return f"<<<<<<< SEARCH\n{search}\n=======\n{replacement}\n>>>>>>> REPLACE"
