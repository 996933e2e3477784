"""From parents and feedback to the messages of a call. All pure."""

from __future__ import annotations

import functools
import json
import math
import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypedDict

from evo.logs.languages import KEEPS_FORM, LANGUAGES, fence_of
from evo.logs.literals import Edits
from evo.logs.records import Evaluation, TaskRecord
from evo.logs.several import header_line, unpack
from evo.logs.types import JsonObject

PROMPT_VERSION = 1  # of the plain wording; part of a run's identity
TOLD_VERSION = 2  # of the wording with feedback or inspirations, or of a search
NOTED_VERSION = 3  # of feedback where a program shares its evaluator's process: notes are shown
EXACT_VERSION = 4  # of feedback, whose answers and whole numbers are exact since; of inspirations
# of runs that confirm, which are ranked by the confirmed fitness since
WRITTEN_VERSION = (
    5  # of feedback, which tells short numbers of errors and notes as they are written
)

OPERATORS = {
    "rewrite": "",
    "mutate": "Change one idea in it and keep the rest. ",
    "cross": "Bring together what is best in it and in the {what} to mix in. ",
}
"""The sentence of the prompt for each operator."""

BLOCKS = """\
Give one or more blocks of this form, and no other code. The lines to replace are copied exactly \
from the current {what}; they may be few, and each block is applied after the one before it.
<<<<<<< SEARCH
lines to replace
=======
lines in their place
>>>>>>> REPLACE"""
"""How a reply with `edits="diff"` is asked for; OpenEvolve writes its blocks in the same form."""

FAILURES, LENGTH = 3, 400
"""Failures that a prompt tells of at most, and characters of each."""

DIGITS = 6
"""Digits to which longer fractions are rounded."""

ENDS = 80
"""Characters at either end of a long answer or reply that a prompt tells of."""


class Message(TypedDict):
    """One message of a chat completion."""

    role: str
    content: str


@dataclass(frozen=True)
class ShownProgram:
    """A program, its place and fitness, that a prompt may show besides the one to rewrite."""

    place: tuple[int, int]
    fitness: float | None
    program: str

    @property
    def rank(self) -> tuple[float, tuple[int, int]]:
        """Sorts the best first, and of equal ones the earliest."""
        return (math.inf if self.fitness is None else -round(self.fitness, 9), self.place)


@dataclass(frozen=True)
class TriedProgram:
    """An evaluation that feedback may tell of, and a model's replies under a text, by instance."""

    evaluation: Evaluation
    replies: Mapping[str, str] = field(default_factory=dict)


def build_messages(
    task: TaskRecord,
    program: str,
    fitness: float | None,
    *,
    statement: str | None = None,
    mixed: Sequence[ShownProgram] = (),
    inspirations: Sequence[ShownProgram] = (),
    feedback: str = "",
    advice: str = "",
    operator: str = "rewrite",
    edits: Edits = "rewrite",
    rules: str = "",
) -> list[Message]:
    """Returns the messages that ask for one child of a program, which is shown behind all others.

    The fitness is rounded, so that last-bit differences between processors give equal prompts.

    Args:
        task: What the program is for.
        program: The program to rewrite.
        fitness: Its fitness, if it has one.
        statement: Text in place of the task's own statement.
        mixed: Programs to mix in.
        inspirations: Other programs to show.
        feedback: Lines about the parent and recent failures; see `feedback`.
        advice: Lines of advice on the search; see `evo.prompt.advice`.
        operator: One of `OPERATORS`.
        edits: Whether the reply is a full rewrite, or SEARCH/REPLACE blocks.
        rules: Sentences about what a program may not change, each with a space behind it.
    """
    several = bool(task.program_files)
    whole = edits == "rewrite" and not several
    what, block = words_for(task)
    if task.language:
        rules = f"{KEEPS_FORM} {rules}"
    elif task.evolves == "python":
        rules = f"Keep the names and signatures of its functions. {rules}"
    fence = fence_around([program, *(other.program for other in (*mixed, *inspirations))])
    if several:
        asked = _asked_files(task, program, edits)
    elif edits == "rewrite":
        asked = f"Answer with the whole improved {what} in one {block} code block."
    else:
        asked = f"Answer with changes to the current {what} in SEARCH/REPLACE blocks."
    system = f"You improve a {what} step by step. {statement or task.statement}\n\n{asked}"
    others = [(f"Another {what}, to mix in", each) for each in mixed]
    others += [(f"Another {what}", each) for each in inspirations]
    shown = "".join(
        f"{who} (fitness {stated(other.fitness)}):\n"
        f"{in_blocks(other.program, several, fence, block)}"
        for who, other in others
    )
    last = f"Give one {fence}{block} block."
    if several:
        last = f"Give each file that you change, in a {fence} block below its header line."
    user = (
        f"{shown}Current {what} (fitness {stated(fitness)}; higher is better):\n"
        f"{in_blocks(program, several, fence, block)}{feedback}{advice}"
        f"{'Rewrite it in full' if whole else 'Change it'} so that its fitness is "
        f"higher. {OPERATORS[operator].format(what=what)}{rules}"
        + (last if edits == "rewrite" else BLOCKS.format(what=what))
    )
    return [{"role": "system", "content": system}, {"role": "user", "content": user}]


def words_for(task: TaskRecord) -> tuple[str, str]:
    """Returns in a word what evolves on a task, and the tag of its code blocks."""
    if task.language:
        return "program", LANGUAGES[task.language].fences[0]
    return ("program", "python") if task.evolves == "python" else ("text", "text")


def fence_around(texts: Iterable[str]) -> str:
    """Returns a fence of code blocks that is longer than any run of backticks in some texts."""
    runs = [len(run) for text in texts for run in re.findall("`+", text)]
    return "`" * max(3, 1 + max(runs, default=0))


def in_blocks(program: str, several: bool, fence: str, block: str) -> str:
    """Returns a program in its code block, or each of its files in one below its header line."""
    if not several:
        return f"{fence}{block}\n{program.rstrip()}\n{fence}\n"
    return "".join(
        f"{header_line(name)}\n{fence}{fence_of(name)}\n{text.rstrip()}\n{fence}\n"
        for name, text in unpack(program).items()
    )


def _asked_files(task: TaskRecord, program: str, edits: Edits) -> str:
    """Returns how a reply gives the files of a program of several."""
    names = list(unpack(program))
    new = [pattern for pattern in task.program_files if set(pattern) & set("*?[")]
    if edits == "diff":
        asked = (
            "Answer with changes in SEARCH/REPLACE blocks, those of a file below its header line"
        )
    else:
        asked = (
            "Answer with each file that you change, in full, in a code block below its header line"
        )
    asked = f"It has {len(names)} files. {asked}, {header_line(names[0])} for instance."
    asked += " A file that you leave out stays as it is."
    if new:
        asked += f" A new file, named {' or '.join(new)}, is given in full in a code block."
    return asked


def stated(fitness: float | None) -> str:
    """Returns a fitness as prompts state it, rounded."""
    return "none yet: it does not run or is not valid" if fitness is None else f"{fitness:.6f}"


def inspire(
    archive: Iterable[ShownProgram], parents: Collection[str], count: int
) -> list[ShownProgram]:
    """Returns the best programs other than the parents, from worse to better; each text once.

    The archive holds programs with a fitness, sorted by rank.
    """
    seen, found = {parent.strip() for parent in parents}, list[ShownProgram]()
    for each in archive:
        if len(found) == count:
            break
        if each.program.strip() not in seen:
            seen.add(each.program.strip())
            found.append(each)
    return found[::-1]


def feedback(
    task: TaskRecord,
    parent: Evaluation,
    latest: Sequence[TriedProgram],
    instances: Sequence[JsonObject] = (),
    *,
    version: int = WRITTEN_VERSION,
) -> str:
    """Returns the lines about the parent's metrics and the recent failures.

    It depends on logged evaluations alone, the parent's and those of the latest generation, and
    holds nothing private or held out. Errors and notes are told without paths, addresses and
    durations, and with longer fractions rounded to six digits, since these differ from machine to
    machine; expected answers and replies are told as they are.

    Args:
        task: What the program is for.
        parent: The evaluation of the program to rewrite.
        latest: The programs of the latest generation.
        instances: The task's data set.
        version: The prompt version. Up to `TOLD_VERSION`, only a task with an evaluator of its own
            is told of notes: those on the parent, and with a failure those on that program. Before
            `EXACT_VERSION`, answers and replies were treated as errors are. Before
            `WRITTEN_VERSION`, 1e400 was told as inf and 1.50 as 1.5.
    """
    noted = task.isolation == "separate" or version >= NOTED_VERSION
    number = _rounded if version >= EXACT_VERSION else "{:.6g}".format
    metrics = public_metrics(task, parent.metrics)
    lines = [f"Its metrics: {', '.join(f'{k} {number(v)}' for k, v in metrics.items())}."]
    lines = lines if metrics else []
    if noted and parent.notes:
        notes = (_plain(line, version) for line in parent.notes.splitlines() if line.strip())
        lines += ["Notes of its evaluator:", *(f"- {line}" for line in notes)]
    known = {each["id"]: each for each in instances if not each.get("check")}
    failures = [text for tried in latest if (text := _failure(tried, known, noted, version))]
    distinct = list(dict.fromkeys(failures))[:FAILURES]
    if distinct:
        lines += ["What went wrong lately:", *(f"- {text}" for text in distinct)]
    return "".join(f"{line}\n" for line in lines)


def public_metrics(task: TaskRecord, metrics: Mapping[str, float]) -> dict[str, float]:
    """Returns the metrics that a prompt, a policy or a search may see, by name."""
    held = ("check_", "private_")
    return {
        name: metrics[name]
        for name in sorted(metrics)
        if name not in task.private and not name.startswith(held)
    }


def _failure(
    tried: TriedProgram, instances: Mapping[str, JsonObject], noted: bool, version: int
) -> str:
    """Says in a line how an evaluation failed, or on which instance; empty if it did not."""
    evaluation = tried.evaluation
    if evaluation.status == "no_reply":  # nothing that a program can mend
        return ""
    if evaluation.status != "ok" and not evaluation.instances:
        text = f"{evaluation.status}: {_plain(last_line(evaluation.error), version)}"
        text += f"; {_plain(evaluation.notes, version)}" if noted and evaluation.notes else ""
        return text[:LENGTH]
    quoted = _quoted if version >= EXACT_VERSION else functools.partial(_plain, version=version)
    for each in evaluation.instances:
        if each.id in instances and each.status != "no_reply" and not each.score:
            text = f"instance {each.id}: {'score 0' if each.status == 'ok' else each.status}"
            if "answer" in instances[each.id]:
                text += f", expected {quoted(str(instances[each.id]['answer']))}"
            if each.id in tried.replies:
                text += f", got {quoted(tried.replies[each.id])}"
            return text if version >= EXACT_VERSION else text[:LENGTH]
    return ""


def last_line(error: str | None) -> str:
    """Returns the last line of an error, what the program printed left out."""
    text = re.split(r"^--- std", error or "", flags=re.MULTILINE)[0].strip()
    return text.rpartition("\n")[2]


# What is matched once is never tried again, so that both patterns are linear in the text.
_UNTELLABLE = re.compile(
    r"""(?<!\w)\w++://\S+ | \b0x[0-9a-fA-F]+ | \b\d{1,3}(?:\.\d{1,3}){3}(?::\d+)?
    | (?<![\w<])(?:[A-Za-z]:)?[\\/][\w.+~-]+(?:[\\/][\w.+~-]*)*
    | (?<![\w.])\d++(?:\.\d++)?\s?(?:ms|s|sec|secs|seconds?|minutes?)\b""",
    re.VERBOSE,
)
_NUMBER = re.compile(r"(?<![\w.])-?\d++(?:\.\d++)?+(?:[eE][+-]?\d++)?+(?!\.*+\w)")


def _plain(text: str, version: int) -> str:
    """Leaves out what differs from machine to machine, on one line."""
    shortened = _UNTELLABLE.sub("[...]", " ".join(text.split()))
    if version < EXACT_VERSION:
        return _NUMBER.sub(lambda number: f"{float(number[0]):.6g}", shortened)
    return _NUMBER.sub(lambda number: _rounded_if_long(number[0], version), shortened)


def _rounded_if_long(number: str, version: int) -> str:
    """Returns a number of an error or a note: a whole or a short one as it is written."""
    if number.lstrip("-").isdigit():
        return number
    digits = sum(map(str.isdigit, number.lower().partition("e")[0].lstrip("-0.")))
    short = digits <= DIGITS or math.isinf(float(number))
    return number if short and version >= WRITTEN_VERSION else _rounded(float(number))


def _rounded(value: float) -> str:
    """Returns a number to six digits, or as many as are before its point."""
    digits = len(f"{abs(value):.0f}") if abs(value) < 1e15 else DIGITS
    return f"{value:.{max(DIGITS, digits)}g}"


def _quoted(text: str) -> str:
    """Returns a text as it is, as a JSON string if it is not one line; of a long one its ends."""
    if len(text) > 2 * ENDS:
        text = f"{text[:ENDS]} [...] {text[-ENDS:]}"
    return text if text == " ".join(text.split()) else json.dumps(text, ensure_ascii=False)
