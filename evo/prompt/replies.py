"""From a reply to the program in it. All pure."""

from __future__ import annotations

import re
from collections.abc import Sequence

from evo.logs.languages import LANGUAGES
from evo.logs.literals import Edits
from evo.logs.records import Evolves, TaskRecord
from evo.logs.several import header_line, may_be_new, named_in, pack, unpack

MOST_BLOCKS = 1000
"""SEARCH/REPLACE blocks of a reply at most."""

# A block left open runs to the end of the text; what is matched once is never tried again.
_BLOCK = re.compile(
    r"""^[ ]{0,3}(?P<marks>(?P<mark>[`~])(?P=mark){2,}+)[ \t]*+(?P<tag>[\w+.-]*+)[^\n`]*+$
    (?P<body>.*?)
    (?:^[ ]{0,3}(?P<end>(?P=marks)(?P=mark)*+)[ \t]*+(?![\w+.-])[^\n`]*+$|\Z)""",
    re.MULTILINE | re.DOTALL | re.VERBOSE,
)
_TAGS: dict[Evolves, frozenset[str]] = {
    "python": frozenset({"python", "py", "python3"}),
    "text": frozenset({"text", "txt", "markdown", "md", "plaintext", ""}),
}


def parse_reply(
    reply: str | None,
    *,
    finish_reason: str | None = None,
    evolves: Evolves = "python",
    language: str = "",
) -> str | None:
    """Returns the program in a reply, or None.

    It is the last complete block of the task's language outside <think>...</think>; an untagged
    block counts where none is tagged, and for a text, which may be in any language, a block of
    whatever tag where there is no other. A truncated reply (finish reason `length`, or a block left
    open) has no program.
    """
    if reply is None or finish_reason == "length":
        return None
    # Only the last block of each tag may hold the program, and only the last of all may be open.
    found = {block["tag"]: block for block in _BLOCK.finditer(without_thoughts(reply))}
    blocks = sorted(found.values(), key=re.Match.start)
    if blocks and blocks[-1]["end"] is None:
        return None
    tags = LANGUAGES[language].fences if language else _TAGS[evolves]
    bodies = dict[str, str]()
    for block in blocks:
        tag = block["tag"].lower()
        kind = "tagged" if tag in tags else "other" if tag else "untagged"
        bodies[kind] = block["body"]
    kinds = ("tagged", "untagged", "other") if evolves == "text" else ("tagged", "untagged")
    body = next((bodies[kind] for kind in kinds if kind in bodies), "")[1:-1]
    return body + "\n" if body.strip() else None


def without_thoughts(reply: str) -> str:
    """Returns a reply without what stands in <think>...</think>, and with plain line ends.

    Thoughts left open swallow the rest of the reply; some templates put the opening tag into the
    prompt, so only the closing one is in the reply.
    """
    first, *rest = reply.split("<think>")
    # What follows the end of a thought is told; a thought without an end has no such part.
    told = "".join([first, *(part for text in rest for part in text.split("</think>", 1)[1:])])
    return told.rpartition("</think>")[2].replace("\r\n", "\n")


class NoMatch(ValueError):  # noqa: N818
    """A reply holds no SEARCH/REPLACE block, or one whose lines are not in the program."""


def apply_blocks(program: str, reply: str) -> str:
    """Returns a program after the SEARCH/REPLACE blocks of a reply, one after another.

    A block replaces the first place where its lines stand, spaces at their ends left aside.

    Raises:
        NoMatch: There is no block, or one does not match, which the message names.
    """
    blocks = _changes(without_thoughts(reply))
    if not blocks:
        raise NoMatch("no SEARCH/REPLACE block")
    if len(blocks) > MOST_BLOCKS:
        raise NoMatch(f"expected at most {MOST_BLOCKS:,} blocks, got {len(blocks):,}")
    lines = program.rstrip("\n").split("\n")
    known = _framed(lines)
    for number, (search, replacement) in enumerate(blocks, start=1):
        wanted = _framed(search.rstrip("\n").split("\n"))
        if not wanted.strip("\n"):
            raise NoMatch(f"block {number} has no lines to replace")
        if (start := known.find(wanted)) < 0:
            first = next(line for line in wanted.split("\n") if line).strip()[:80]
            raise NoMatch(f"block {number} does not match the program: {first!r}")
        new = replacement.removesuffix("\n").split("\n") if replacement else []
        before, count = known.count("\n", 0, start), wanted.count("\n") - 1
        lines[before : before + count] = new
        known = known[:start] + (_framed(new) if new else "\n") + known[start + len(wanted) :]
    return "\n".join(lines).rstrip("\n") + "\n"


def _framed(lines: Sequence[str]) -> str:
    """Returns lines without spaces at their ends, each between line ends."""
    return "\n".join(["", *(line.rstrip() for line in lines), ""])


_CHANGE = re.compile(
    r"""^<{7}[ ]?SEARCH[ \t]*+\n(.*?)
    (?:^={7}[ \t]*+\n(.*?)(?:^>{7}[ ]?(REPLACE)[ \t]*+$|\Z)|\Z)""",
    re.MULTILINE | re.DOTALL | re.VERBOSE,
)


def _changes(text: str) -> list[tuple[str, str]]:
    """Returns what each SEARCH/REPLACE block of a text searches and what it puts in its place.

    A block left open runs to the end of the text, so that it is read once, and does not count.
    """
    return [(found[1], found[2]) for found in _CHANGE.finditer(text) if found[3]]


def files_after(reply: str, parent: str, task: TaskRecord, edits: Edits) -> str:
    """Returns a program of several files after a reply, as one text.

    A reply gives a file in a code block below its header line, or as the first line within the
    block. With `edits="diff"`, SEARCH/REPLACE blocks below a header line change that file. Files
    that are not given stay as they are, and a new one is taken only where its name fits a pattern
    of the task.

    Args:
        reply: The model's text.
        parent: The program that it was asked to rewrite.
        task: Says which files there may be.
        edits: How the reply was asked for.

    Raises:
        NoMatch: The reply gives no file, is cut, or a block does not fit its file.
    """
    files, reply = unpack(parent), without_thoughts(reply)
    given = _files_given(_CHANGE.sub("", reply) if edits == "diff" else reply)
    names = [*files, *(name for name in given if may_be_new(name, task.program_files, task.files))]
    changed = {name: given[name] for name in names if name in given}
    if edits == "diff":
        for name, blocks in _parts_below_headers(reply).items():
            if name not in files or name in changed or not _changes(blocks):
                continue
            try:
                changed[name] = apply_blocks(files[name], blocks)
            except NoMatch as error:
                raise NoMatch(f"{name}: {error}") from None
    if not changed:
        raise NoMatch(
            f"no file below a header line, such as {header_line(next(iter(files)))!r}"
            + (f"; {next(iter(given))!r} is none of the program" if given else "")
        )
    after = {**files, **changed}
    if not after[next(iter(files))].strip():
        raise NoMatch(f"{next(iter(files))} is empty")
    return pack(after)


def _files_given(reply: str) -> dict[str, str]:
    """Returns the files that a reply gives in full; of one that it gives twice, the last."""
    found = dict[str, str]()
    end = 0
    for block in _BLOCK.finditer(reply):
        if block["end"] is None:
            raise NoMatch("a code block is left open")
        above = reply[end : block.start()].rstrip().rpartition("\n")[2]
        end, body = block.end(), block["body"][1:]
        if named_in(body.partition("\n")[0]) is not None:
            try:
                found |= unpack(body)
            except ValueError as error:
                raise NoMatch(str(error)) from None
        elif (name := named_in(above.strip())) is not None:
            found[name] = body
    return found


def _parts_below_headers(reply: str) -> dict[str, str]:
    """Returns what stands below each header line of a reply."""
    found, name = dict[str, list[str]](), ""
    for line in reply.split("\n"):
        other = named_in(line.strip())
        if other is not None:
            name = other
        elif name:
            found.setdefault(name, []).append(line)
    return {each: "\n".join(lines) for each, lines in found.items()}


def reply_of_files(program: str) -> str:
    """Returns a reply that gives every file of a program."""
    runs = [len(run) for run in re.findall("`+", program)]
    fence = "`" * max(3, 1 + max(runs, default=0))
    return "\n".join(
        f"{header_line(name)}\n{fence}\n{text.rstrip()}\n{fence}\n"
        for name, text in unpack(program).items()
    )
