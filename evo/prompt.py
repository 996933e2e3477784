"""From a parent to the messages of a call, and from a reply to a program. Pure functions."""

from __future__ import annotations

import re
from typing import TypedDict

from evo.records import Evolves, TaskRecord

PROMPT_VERSION = 1
"""Number of the wording below; it is part of a run's identity."""


class Message(TypedDict):
    """One message of a chat completion."""

    role: str
    content: str


def build_messages(task: TaskRecord, program: str, fitness: float | None) -> list[Message]:
    """Returns the messages that ask for one full rewrite of a program.

    The fitness is rounded, so that last-bit differences between processors give equal prompts.
    """
    stated = "none yet: it does not run or is not valid" if fitness is None else f"{fitness:.6f}"
    if task.evolves == "python":
        what, block = "program", "python"
        rules = "Keep the names and signatures of its functions. "
    else:
        what, block, rules = "text", "text", ""
    fence = "`" * max(3, 1 + max((len(run) for run in re.findall("`+", program)), default=0))
    system = (
        f"You improve a {what} step by step. {task.statement}\n\n"
        f"Answer with the whole improved {what} in one {block} code block."
    )
    user = (
        f"Current {what} (fitness {stated}; higher is better):\n"
        f"{fence}{block}\n{program.rstrip()}\n{fence}\n"
        f"Rewrite it in full so that its fitness is higher. {rules}"
        f"Give one {fence}{block} block."
    )
    return [{"role": "system", "content": system}, {"role": "user", "content": user}]


_FENCE = re.compile(r"^ {0,3}(`{3,}|~{3,})[ \t]*([\w+.-]*)[^\n`]*$")
_TAGS: dict[Evolves, frozenset[str]] = {
    "python": frozenset({"python", "py", "python3"}),
    "text": frozenset({"text", "txt", "markdown", "md", "plaintext", ""}),
}


def parse_reply(
    reply: str | None, *, finish_reason: str | None = None, evolves: Evolves = "python"
) -> str | None:
    """Returns the program in a reply, or None.

    It is the last complete block of the task's language outside <think>...</think>; an untagged
    block counts where none is tagged. A truncated reply (finish reason `length`, or a block left
    open) has no program.
    """
    if reply is None or finish_reason == "length":
        return None
    text = _without_thoughts(reply)
    blocks: list[tuple[str, str]] = []
    fence, tag, lines = "", "", list[str]()
    for line in text.replace("\r\n", "\n").split("\n"):
        match = _FENCE.match(line)
        if not fence:
            if match:
                fence, tag, lines = match[1], match[2].lower(), []
        elif match and match[1][0] == fence[0] and len(match[1]) >= len(fence) and not match[2]:
            blocks.append((tag, "\n".join(lines)))
            fence = ""
        else:
            lines.append(line)
    if fence:
        return None
    tagged = [body for tag, body in blocks if tag in _TAGS[evolves]]
    untagged = [body for tag, body in blocks if not tag]
    found = tagged or untagged
    return found[-1] + "\n" if found and found[-1].strip() else None


def _without_thoughts(reply: str) -> str:
    """Removes <think>...</think>; thoughts left open swallow the rest of the reply."""
    text = re.sub(r"<think>.*?(</think>|\Z)", "", reply, flags=re.DOTALL)
    # Some templates put the opening tag into the prompt, so only the closing one is in the reply.
    return text.rpartition("</think>")[2]
