"""The offline model as an adviser on a search: a stand-in, which says that it is one.

What it says is drawn from its ideas for the task of the last program that the prompt shows, or from
sentences that fit any task. The offline model's rewrites do not follow it.
"""

from __future__ import annotations

import re

from evo.keyed import KeyedStream
from evo.models.offline.formats import find_parent
from evo.models.offline.program import find_bank

_ASKED = re.compile(r"^You advise on a search in which a model rewrites a (program|text) ")
_HEAD = "- This advice is from the offline model, a stand-in and not an LLM."
_GENERAL = (
    "Change one thing at a time, so that what helps can be told from what does not.",
    "Keep the change that gained most, and try it with other numbers.",
    "Leave out a part that has gained nothing.",
    "Begin from another idea than the best one had.",
    "Undo the last change that lost, and try its opposite.",
)


def is_asked(system: str) -> bool:
    """Whether a system message asks for advice on a search."""
    return _ASKED.match(system) is not None


def advise(prompt: str, key: object) -> str:
    """Returns a few points of advice."""
    draws = KeyedStream("advice", prompt, key)
    parent = find_parent(prompt)
    found = find_bank(parent.text) if parent is not None and parent.language == "python" else None
    points = [draws.pick(_GENERAL)]
    if found is not None:
        bank, _ = found
        points.append(f"Try {draws.pick(bank.moves).title}.")
        points.append(f"Begin from {draws.pick(bank.layouts).title}.")
    return "\n".join([_HEAD, *(f"- {point}" for point in points)])
