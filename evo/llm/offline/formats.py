"""How a reply is laid out: prose and one code block, or what other tools ask for."""

from __future__ import annotations

from typing import Literal

from evo.keyed import KeyedStream

Format = Literal["block", "tagged", "difference", "tagged difference"]
"""`block`: a code block; `tagged`: in <NAME>, <DESCRIPTION> and <CODE> tags (ShinkaEvolve);
`difference`: SEARCH/REPLACE blocks (OpenEvolve); `tagged difference`: both (ShinkaEvolve)."""

_CLOSINGS = ("", "\nThis should help a little.", "\nThe interface is unchanged.")


def reply_format(prompt: str) -> Format:
    """Returns the format that a prompt asks for: told from the marks that it shows."""
    if "<<<<<<< SEARCH" in prompt:
        return "tagged difference" if "<NAME>" in prompt else "difference"
    return "tagged" if "<CODE>" in prompt and "<NAME>" in prompt else "block"


def frame(
    old: str, new: str, words: str, *, language: str, wanted: Format, draws: KeyedStream
) -> str:
    """Returns the reply that proposes a child.

    Args:
        old: The parent.
        new: The child.
        words: What was done.
        language: Tag of the code block.
        wanted: The format.
        draws: Where chance comes from.
    """
    style = draws.weighted({"plain": 0.84, "thinking": 0.1, "sketch": 0.06})
    closing = draws.pick(_CLOSINGS)
    if wanted == "block":
        block = f"```{language}\n{new.rstrip()}\n```"
        if style == "thinking":
            return f"<think>\nWhat could be better? {words}\n</think>\n{words}\n\n{block}{closing}"
        if style == "sketch":
            sketch = f"```{language}\n# {words}\n```" if language == "python" else ""
            return f"The idea in short:\n{sketch}\nIn full:\n\n{block}{closing}"
        return f"{words}\n\n{block}{closing}"
    if wanted == "tagged":
        body = f"<CODE>\n```{language}\n{new.rstrip()}\n```\n</CODE>"
    else:
        body = difference(old, new)
    if wanted == "tagged difference":
        body = f"<DIFF>\n{body}\n</DIFF>"
    if wanted == "difference":
        return f"{words}\n\n{body}"
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
