"""A program of one's own in the place of a reply, for `evo.Searcher.tell(program=...)`.

A log holds replies, from which programs are read whenever it is played again, so a program that is
told has to be found in one.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from evo.logs.languages import LANGUAGES
from evo.logs.records import Header
from evo.logs.several import pack, unpack
from evo.models.client import Call
from evo.models.offline.formats import difference
from evo.prompt import reply_of_files
from evo.runs.ask import program_in
from evo.runs.items import Prompt


def as_reply(program: str, prompt: Prompt, header: Header) -> str:
    """Returns a reply to a prompt in which a program is found, and no other.

    Raises:
        ValueError: The program is empty, or no reply states it as it is.
    """
    if not program.strip():
        raise ValueError("program: expected a program or text that is not empty")
    for reply in _replies_with(program, prompt, header):
        found = program_in(Call((), reply), prompt, header)
        if found is not None and found.rstrip() == _expected(program, prompt, header).rstrip():
            return reply
    raise ValueError(
        "program: no reply states it as it is: it or its parent holds marks of replies, such as "
        "<think> or a line of seven '=', or it has a file that the task does not let it have; "
        "leave that out, or tell it as reply="
    )


def _expected(program: str, prompt: Prompt, header: Header) -> str:
    """Returns the child that a program of one's own should be; files that it leaves out stay."""
    if header.task.program_files:
        return pack({**unpack(prompt.program), **unpack(program)})
    return program.replace("\r\n", "\n")


def _replies_with(program: str, prompt: Prompt, header: Header) -> Iterator[str]:
    """Yields replies that may state a program."""
    if header.task.program_files:
        yield reply_of_files(program)
        return
    if header.edits_of(prompt.planned) == "diff":
        parent = prompt.program
        yield f"<<<<<<< SEARCH\n{parent.rstrip()}\n=======\n{program.rstrip()}\n>>>>>>> REPLACE\n"
        yield difference(parent, program)  # what both begin and end with may hold such marks
        return
    evolves, language = header.task.evolves, header.task.language
    tag = LANGUAGES[language].fences[0] if language else "python" if evolves == "python" else ""
    longest = max(map(len, re.findall("`+", program)), default=0)
    for fence in ("```", "````", "~~~~~", "`" * (longest + 1)):
        yield f"{fence}{tag}\n{program.rstrip()}\n{fence}\n"
