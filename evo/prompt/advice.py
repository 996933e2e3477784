"""Advice on a search: the messages that ask for it, and how prompts show it. All pure.

The messages show what the log holds so far: the best programs, what was tried since the last
advice, and what went wrong. The prompt of a child shows its parent alone; the model that advises
sees the search as a whole.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Sequence
from dataclasses import dataclass

from evo.logs.records import TaskRecord
from evo.prompt.messages import (
    Message,
    ShownProgram,
    fence_around,
    in_blocks,
    stated,
    words_for,
)
from evo.prompt.replies import without_thoughts

BEST, SHOWN = 3, 24_000
"""The most programs that are shown, and the most characters of all of them but the best one."""

GENERATIONS = 20
"""The most generations that are listed; these are the last ones."""

TRIED, LINES, WIDTH = 8, 12, 160
"""The most rewrites that are listed, changed lines of each (sentences, where a text evolves), and
characters of a line."""

MOST_LINES = 2_000
"""A longer program is not compared with its parent."""

LONGEST = 2_000
"""The most characters of advice that a prompt shows."""

POINTS = 5
"""Points of advice that are asked for."""


@dataclass(frozen=True)
class TriedRewrite:
    """A child, and the parent that it rewrote.

    Attributes:
        child: Its place, fitness and program.
        parent: Those of its parent.
    """

    child: ShownProgram
    parent: ShownProgram

    @property
    def gain(self) -> float:
        """How much better than its parent it is, rounded; 0 where either has no fitness."""
        one, other = self.child.fitness, self.parent.fitness
        return 0.0 if one is None or other is None else round(one - other, 9)


@dataclass(frozen=True)
class GenerationSummary:
    """How a generation went: its number, the best fitness after it, and its children by status."""

    number: int
    best_fitness: float | None
    statuses: tuple[tuple[str, int], ...] = ()


def advice_messages(
    task: TaskRecord,
    best: Sequence[ShownProgram],
    *,
    generations: Sequence[GenerationSummary],
    tried: Sequence[TriedRewrite],
    feedback: str = "",
    earlier: str = "",
    statement: str | None = None,
) -> list[Message]:
    """Returns the messages that ask for advice on a search.

    Args:
        task: What the programs are for.
        best: The best programs, the best one first.
        generations: How the generations went, in order.
        tried: The rewrites since the advice before, the latest ones first.
        feedback: Lines about the best program and recent failures; see `evo.prompt.feedback`.
        earlier: The advice that prompts have shown so far.
        statement: Text in place of the task's own statement.
    """
    what, block = words_for(task)
    system = (
        f"You advise on a search in which a model rewrites a {what} again and again. It sees the "
        f"{what} to rewrite and your advice, but not what was tried before; you do. Their task: "
        f"{statement or task.statement}\n\nAnswer with at most {POINTS} points, each in one or two "
        "sentences on a line of its own that begins with `- `: what has helped, what to leave, "
        "and what to try that nobody has tried. Give no code block."
    )
    lines = ["How the search went:", *map(_generation_line, generations[-GENERATIONS:])]
    if shown := _chosen(tried):
        lines += [
            "What was tried since:",
            *(line for each in shown for line in _rewrite_lines(each, what)),
        ]
    if earlier:
        lines += ["The advice so far:", *earlier.splitlines()]
    first, *others = best
    room, also = SHOWN, list[ShownProgram]()
    for each in others[: BEST - 1]:
        room -= len(each.program)
        if room >= 0:
            also.append(each)
    fence, several = fence_around(each.program for each in best), bool(task.program_files)
    programs = "".join(
        f"{who} (fitness {stated(each.fitness)}; higher is better):\n"
        f"{in_blocks(each.program, several, fence, block)}"
        for who, each in [
            *((f"Another {what}", each) for each in also),
            (f"The best {what}", first),
        ]
    )
    user = "\n".join(lines) + f"\n{programs}{feedback}What should be tried next?"
    return [{"role": "system", "content": system}, {"role": "user", "content": user}]


def _generation_line(each: GenerationSummary) -> str:
    counts = ", ".join(f"{count} {status}" for status, count in each.statuses)
    children = f", children: {counts}" if counts else ""
    return f"- generation {each.number}: best fitness {stated(each.best_fitness)}{children}"


def _chosen(tried: Sequence[TriedRewrite]) -> list[TriedRewrite]:
    """Returns the rewrites that gained most and those that lost most, each program once."""
    changed = [each for each in tried if each.child.program.strip() != each.parent.program.strip()]
    distinct = {each.child.program.strip(): each for each in changed}
    ranked = sorted(distinct.values(), key=lambda each: (-each.gain, each.child.place))
    if len(ranked) > TRIED:
        ranked = [*ranked[: TRIED // 2], *ranked[-TRIED // 2 :]]
    return ranked


def _rewrite_lines(each: TriedRewrite, what: str) -> list[str]:
    """Returns what a rewrite changed and what came of it, in lines."""
    parts = re.compile(r"\n|(?<=[.!?:])\s+" if what == "text" else r"\n")
    old, new = (parts.split(shown.program) for shown in (each.parent, each.child))
    changed: list[str] = []
    if max(len(old), len(new)) <= MOST_LINES:
        compared = [*difflib.unified_diff(old, new, n=0, lineterm="")][2:]
        changed = [line for line in compared if not line.startswith("@@") and line[1:].strip()]
    more = len(changed) - LINES
    shown = [line if len(line) <= WIDTH else f"{line[:WIDTH]} [...]" for line in changed[:LINES]]
    head = f"- fitness {_known(each.child.fitness)}, from {_known(each.parent.fitness)}:"
    left = [f"  and {more} more changed lines"] if more > 0 else []
    return [head, *(f"  {line}" for line in shown or ["too much changed to be told"]), *left]


def _known(fitness: float | None) -> str:
    return "none" if fitness is None else f"{fitness:.6f}"


def read_advice(reply: str | None) -> str:
    """Returns the advice in a reply, as prompts show it: at most `LONGEST` characters; "": none.

    Thoughts and the fences of code blocks are left out, since a fence would end that of a program.
    """
    text = without_thoughts(reply or "")
    lines = [line.rstrip() for line in text.splitlines() if line.strip()]
    kept = [line for line in lines if not re.match(r"\s*(`{3}|~{3})", line)]
    advice = "\n".join(kept)
    if len(advice) > LONGEST:  # whole lines, unless the first one alone is longer
        cut = advice[:LONGEST]
        advice = cut.rpartition("\n")[0] or cut
    return advice


def placed(advice: str) -> str:
    """Returns the lines by which the prompt of a child shows advice; "": there is none."""
    if not advice:
        return ""
    return f"Advice from a look over the whole search, to follow where it helps:\n{advice}\n"
