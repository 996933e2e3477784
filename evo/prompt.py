"""From parents and feedback to the messages of a call, and from a reply to a program. All pure."""

from __future__ import annotations

import math
import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypedDict

from evo.logs.records import Evaluation, Evolves, TaskRecord
from evo.logs.types import JsonObject
from evo.logs.words import Edits

PROMPT_VERSION = 1  # of the plain wording; part of a run's identity
TOLD_VERSION = 2  # of the wording with feedback or inspirations, or of a search
NOTED_VERSION = 3  # of feedback where a program shares its evaluator's process: notes are shown

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


class Message(TypedDict):
    """One message of a chat completion."""

    role: str
    content: str


@dataclass(frozen=True)
class Shown:
    """A program, its place and fitness, that a prompt may show besides the one to rewrite."""

    place: tuple[int, int]
    fitness: float | None
    program: str

    @property
    def rank(self) -> tuple[float, tuple[int, int]]:
        """Sorts the best first, and of equal ones the earliest."""
        return (math.inf if self.fitness is None else -round(self.fitness, 9), self.place)


@dataclass(frozen=True)
class Tried:
    """An evaluation that feedback may tell of, and a model's replies under a text, by instance."""

    evaluation: Evaluation
    replies: Mapping[str, str] = field(default_factory=dict)


def build_messages(
    task: TaskRecord,
    program: str,
    fitness: float | None,
    *,
    statement: str | None = None,
    mixed: Sequence[Shown] = (),
    inspirations: Sequence[Shown] = (),
    feedback: str = "",
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
        operator: One of `OPERATORS`.
        edits: Whether the reply is a full rewrite, or SEARCH/REPLACE blocks.
        rules: Sentences about what a program may not change, each with a space behind it.
    """
    if task.evolves == "python":
        what, block = "program", "python"
        rules = f"Keep the names and signatures of its functions. {rules}"
    else:
        what, block = "text", "text"
    texts = [program, *(other.program for other in (*mixed, *inspirations))]
    runs = [len(run) for text in texts for run in re.findall("`+", text)]
    fence = "`" * max(3, 1 + max(runs, default=0))
    system = f"You improve a {what} step by step. {statement or task.statement}\n\n" + (
        f"Answer with the whole improved {what} in one {block} code block."
        if edits == "rewrite"
        else f"Answer with changes to the current {what} in SEARCH/REPLACE blocks."
    )
    others = [(f"Another {what}, to mix in", each) for each in mixed]
    others += [(f"Another {what}", each) for each in inspirations]
    shown = "".join(
        f"{who} (fitness {_stated(other.fitness)}):\n"
        f"{fence}{block}\n{other.program.rstrip()}\n{fence}\n"
        for who, other in others
    )
    user = (
        f"{shown}Current {what} (fitness {_stated(fitness)}; higher is better):\n"
        f"{fence}{block}\n{program.rstrip()}\n{fence}\n{feedback}"
        f"{'Rewrite it in full' if edits == 'rewrite' else 'Change it'} so that its fitness is "
        f"higher. {OPERATORS[operator].format(what=what)}{rules}"
        + (f"Give one {fence}{block} block." if edits == "rewrite" else BLOCKS.format(what=what))
    )
    return [{"role": "system", "content": system}, {"role": "user", "content": user}]


def _stated(fitness: float | None) -> str:
    return "none yet: it does not run or is not valid" if fitness is None else f"{fitness:.6f}"


def inspire(archive: Iterable[Shown], parents: Collection[str], count: int) -> list[Shown]:
    """Returns the best programs other than the parents, from worse to better; each text once.

    The archive holds programs with a fitness, sorted by rank.
    """
    seen, found = {parent.strip() for parent in parents}, list[Shown]()
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
    latest: Sequence[Tried],
    instances: Sequence[JsonObject] = (),
    *,
    noted: bool = True,
) -> str:
    """Returns the lines about the parent's metrics and the recent failures.

    It depends on logged evaluations alone, the parent's and those of the latest generation: no
    paths, addresses or durations, numbers to six digits, nothing private or held out. If `noted`,
    it tells the evaluator's notes on the parent, and with a failure those on that program.
    """
    metrics = public_metrics(task, parent.metrics)
    lines = [f"Its metrics: {', '.join(f'{k} {v:.6g}' for k, v in metrics.items())}."]
    lines = lines if metrics else []
    if noted and parent.notes:
        notes = (_plain(line) for line in parent.notes.splitlines() if line.strip())
        lines += ["Notes of its evaluator:", *(f"- {line}" for line in notes)]
    known = {each["id"]: each for each in instances if not each.get("check")}
    failures = [text for tried in latest if (text := _failure(tried, known, noted))]
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


def _failure(tried: Tried, instances: Mapping[str, JsonObject], noted: bool) -> str:
    """Says in a line how an evaluation failed, or on which instance; empty if it did not."""
    evaluation = tried.evaluation
    if evaluation.status == "no_reply":  # nothing that a program can mend
        return ""
    if evaluation.status != "ok" and not evaluation.instances:
        text = f"{evaluation.status}: {_plain(last_line(evaluation.error))}"
        text += f"; {_plain(evaluation.notes)}" if noted and evaluation.notes else ""
        return text[:LENGTH]
    for each in evaluation.instances:
        if each.id in instances and each.status != "no_reply" and not each.score:
            text = f"instance {each.id}: {'score 0' if each.status == 'ok' else each.status}"
            if "answer" in instances[each.id]:
                text += f", expected {_plain(str(instances[each.id]['answer']))}"
            if each.id in tried.replies:
                text += f", got {_plain(tried.replies[each.id])}"
            return text[:LENGTH]
    return ""


def last_line(error: str | None) -> str:
    """Returns the last line of an error, what the program printed left out."""
    text = re.split(r"^--- std", error or "", flags=re.MULTILINE)[0].strip()
    return text.rpartition("\n")[2]


_UNTELLABLE = re.compile(
    r"""\w+://\S+ | \b0x[0-9a-fA-F]+ | \b\d{1,3}(?:\.\d{1,3}){3}(?::\d+)?
    | (?<![\w<])(?:[A-Za-z]:)?[\\/][\w.+~-]+(?:[\\/][\w.+~-]*)*
    | (?<![\w.])\d+(?:\.\d+)?\s?(?:ms|s|sec|secs|seconds?|minutes?)\b""",
    re.VERBOSE,
)
_NUMBER = re.compile(r"(?<![\w.])-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?(?![\w.]*\w)")


def _plain(text: str) -> str:
    """Leaves out what differs from machine to machine, on one line."""
    shortened = _UNTELLABLE.sub("[...]", " ".join(text.split()))
    return _NUMBER.sub(lambda number: f"{float(number[0]):.6g}", shortened)


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
    block counts where none is tagged, and for a text, which may be in any language, a block of
    whatever tag where there is no other. A truncated reply (finish reason `length`, or a block left
    open) has no program.
    """
    if reply is None or finish_reason == "length":
        return None
    text = _without_thoughts(reply)
    blocks: list[tuple[str, str]] = []
    fence, tag, lines = "", "", list[str]()
    for line in text.split("\n"):
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
    other = [body for _, body in blocks] if evolves == "text" else []
    found = tagged or untagged or other
    return found[-1] + "\n" if found and found[-1].strip() else None


def _without_thoughts(reply: str) -> str:
    """Returns a reply without what stands in <think>...</think>, and with plain line ends.

    Thoughts left open swallow the rest of the reply; some templates put the opening tag into the
    prompt, so only the closing one is in the reply.
    """
    text = re.sub(r"<think>.*?(</think>|\Z)", "", reply, flags=re.DOTALL).rpartition("</think>")[2]
    return text.replace("\r\n", "\n")


_CHANGE = re.compile(
    r"^<{7} ?SEARCH[ \t]*\n(.*?)^={7}[ \t]*\n(.*?)^>{7} ?REPLACE[ \t]*$",
    re.MULTILINE | re.DOTALL,
)


class NoMatch(ValueError):  # noqa: N818
    """A reply holds no SEARCH/REPLACE block, or one whose lines are not in the program."""


def apply_blocks(program: str, reply: str) -> str:
    """Returns a program after the SEARCH/REPLACE blocks of a reply, one after another.

    A block replaces the first place where its lines stand, spaces at their ends left aside.

    Raises:
        NoMatch: There is no block, or one does not match, which the message names.
    """
    blocks = _CHANGE.findall(_without_thoughts(reply))
    if not blocks:
        raise NoMatch("no SEARCH/REPLACE block")
    lines = program.rstrip("\n").split("\n")
    for number, (search, replacement) in enumerate(blocks, start=1):
        wanted = [line.rstrip() for line in search.rstrip("\n").split("\n")]
        if not any(wanted):
            raise NoMatch(f"block {number} has no lines to replace")
        known = [line.rstrip() for line in lines]
        last = len(known) - len(wanted)
        starts = (k for k in range(last + 1) if known[k : k + len(wanted)] == wanted)
        if (start := next(starts, None)) is None:
            first = next(line for line in wanted if line).strip()[:80]
            raise NoMatch(f"block {number} does not match the program: {first!r}")
        new = replacement.removesuffix("\n").split("\n") if replacement else []
        lines[start : start + len(wanted)] = new
    return "\n".join(lines).rstrip("\n") + "\n"
