"""How long replies of 1 MB that are made to be slow take to parse, and texts to be compared.

    python tests/benchmarks/hostile_replies.py

Every case is to take less than 50 ms of processor time. The loop beside them is a yardstick: it
counts the characters of 1 MB in plain Python.
"""

from __future__ import annotations

import time
from collections.abc import Callable

from evo.filters import Filter, NearDuplicates, ProtectedRegions, SameProgram
from evo.prompt import NoMatch, apply_blocks, parse_reply
from evo.searches import Member

SIZE = 1_000_000
SEARCH, MIDDLE, REPLACE = "<<<<<<< SEARCH\n", "=======\n", ">>>>>>> REPLACE\n"
PROGRAM = "".join(f"def f{k}():\n    return {k} * 0.25\n\n" for k in range(300))


def filled(unit: str, before: str = "", after: str = "") -> str:
    """Returns a text of about 1 MB that repeats a unit."""
    return before + unit * ((SIZE - len(before) - len(after)) // len(unit)) + after


REPLIES = {
    "blank lines": filled("\n"),
    "empty blocks": filled("```\n```\n"),
    "blocks left open": filled("```python\n") + "`",
    "marks that get shorter": "".join("`" * k + "\n" for k in range(1410, 2, -1)),
    "one long mark": filled("`"),
    "a mark and spaces": filled(" ", "```", "`"),
    "a mark and a long tag": filled("a", "```", "`"),
    "a mark, spaces and a tag": "```" + " " * (SIZE // 2) + "a" * (SIZE // 2) + "`",
    "thoughts left open": filled("<think>"),
    "thoughts closed only": filled("</think>"),
    "searches left open": filled(SEARCH),
    "searches and middles": filled(SEARCH + MIDDLE),
    "middles": filled(MIDDLE, SEARCH),
    "searches, then middles": SEARCH * (SIZE // 30) + MIDDLE * (SIZE // 16),
    "spaces behind a mark": filled(" ", SEARCH.strip(), "x"),
    "blocks of one line": filled(f"{SEARCH}def f299():\n{MIDDLE}def f299():\n{REPLACE}"),
    "blocks that grow": filled(f"{SEARCH}\ndef f299():\n{MIDDLE}a\n\ndef f299():\n{REPLACE}"),
    "blocks of equal lines": filled(f"{SEARCH}{'x' * 9}\n{MIDDLE}{REPLACE}"),
}
LINES = "x = 1\n" * 40_000 + "y = 2\n" * 40_000
TEXTS = {
    "blank lines": (filled("\n"), filled("\n") + "x = 1\n"),
    "blank lines of two kinds": (filled("\n\v"), filled("\n\v") + "x = 1\n"),
    "short lines": (filled("x\n"), "y\n" + filled("x\n")),
    "spaces at line ends": (filled("x\n"), "y\n" + filled("x \n")),
    "two letters": ("ab" * 2000, "ba" * 1999 + "ab"),
    "two lines": (LINES, LINES[::-1] + "\n"),
    "many lines": (PROGRAM * 60, PROGRAM * 59 + PROGRAM.replace("0.25", "0.35")),
    "regions": (
        "a = 1\n# EVOLVE-BLOCK-START\n# EVOLVE-BLOCK-END\n",
        filled("# EVOLVE-BLOCK-START\n# EVOLVE-BLOCK-END\n"),
    ),
    "marks on one line": (
        "a = 1\n# EVOLVE-BLOCK-START\n# EVOLVE-BLOCK-END\n",
        filled("EVOLVE-BLOCK-START EVOLVE-BLOCK-END "),
    ),
    "lines behind a region": (
        "a = 1\n# EVOLVE-BLOCK-START\n# EVOLVE-BLOCK-END\n",
        "a = 1\n# EVOLVE-BLOCK-START\n# EVOLVE-BLOCK-END\n" + filled("x \n"),
    ),
    "starts of regions": (filled("# EVOLVE-BLOCK-START\n"), filled("# EVOLVE-BLOCK-START\n") + "#"),
}


def seconds(call: Callable[[], object]) -> float:
    """Returns the least seconds of processor time of three calls."""
    found = []
    for _ in range(3):
        began = time.process_time()
        call()
        found.append(time.process_time() - began)
    return min(found)


def applied(reply: str) -> None:
    """Applies the blocks of a reply, whether or not they fit."""
    try:
        apply_blocks(PROGRAM, reply)
    except NoMatch:
        return


def main() -> None:
    """Prints milliseconds by case."""
    reply = REPLIES["blank lines"]
    rows = {"(count in a loop)": seconds(lambda: sum(1 for _ in reply))}
    for name, text in REPLIES.items():
        rows[f"reply: {name}"] = seconds(lambda text=text: parse_reply(text, evolves="text"))
        rows[f"diff: {name}"] = seconds(lambda text=text: applied(text))
    filters: list[Filter] = [SameProgram(), NearDuplicates(), ProtectedRegions()]
    for name, (known, new) in TEXTS.items():
        archive = [Member((0, 0), 0.5, (), known)]
        for each in filters:
            rows[f"{each.name}: {name}"] = seconds(
                lambda each=each, new=new, archive=archive: each.check(new, archive)
            )
    for name, took in sorted(rows.items(), key=lambda row: -row[1]):
        print(f"{1000 * took:8.1f} ms  {name}")


if __name__ == "__main__":
    main()
