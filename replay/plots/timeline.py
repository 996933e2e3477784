"""Where the time of a run went: slots by time, and what was spent beside it."""

from __future__ import annotations

import heapq
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from evo.logs.cost import cost_of_calls
from replay.logs.given import check_loaded
from replay.plots.chart import Chart
from replay.plots.marks import Bars, Line, Mark, Rule
from replay.plots.medium import REFERENCE
from replay.plots.panel import Axis, Panel
from replay.plots.style import PALETTE
from replay.statistics.numbers import amount, number

if TYPE_CHECKING:
    from evo.logs.log import Log
    from evo.logs.records import Outcome

LATEST = 12
"""Generations that are shown, the last ones."""

ROW, TALLEST = 14.0, 420.0
"""Pixels of a slot, and of all of them at most."""

KINDS = {
    "call": PALETTE[0],
    "failed attempt": PALETTE[1],
    "evaluation": PALETTE[2],
}
"""What a slot does, and its colour; the rest is idle."""


@dataclass
class Pieces:
    """What the slots did, one piece after the other.

    Attributes:
        begin: Seconds since the first generation that is shown.
        end: The same.
        slot: From 0.
        texts: What was done, for whom.
    """

    begin: list[float] = field(default_factory=list)
    end: list[float] = field(default_factory=list)
    slot: list[int] = field(default_factory=list)
    texts: list[str] = field(default_factory=list)

    @property
    def seconds(self) -> float:
        """Of all of them together."""
        return float(np.sum(self.end) - np.sum(self.begin))


def timeline(log: Log, *, generations: int = LATEST) -> Chart:
    """Draws where the time of a run went: what each slot did, and what was spent meanwhile.

    A log holds how long calls and evaluations took and how long each generation did, and not when
    each began. So every generation is laid out as the run works: its children in order, each on the
    first slot that is free. What is left of a generation's time is idle: slots that wait at the
    barrier for the last child, and pauses that a log does not name (rate limits, back-off). By it
    one chooses the number of calls in flight (`max_concurrent`).

    Args:
        log: A run, from `evo.read_log`.
        generations: How many are shown, the last ones.

    Raises:
        ValueError: No generation is complete, or the log does not hold its times.

    Example:
        >>> chart = replay.plots.charts.timeline(evo.read_log(path))
    """
    check_loaded("timeline", log, "evo.read_log")
    shown = [each for each in log.generations if not each.inherited][-generations:]
    if not shown:
        raise ValueError("expected a run with a complete generation, got none")
    lengths = [each.seconds for each in shown]
    if any(seconds is None for seconds in lengths):
        raise ValueError("the log does not say how long its generations took")
    children: dict[int, list[Outcome]] = {each.generation: [] for each in shown}
    for outcome in log.outcomes:
        if outcome.generation in children:
            children[outcome.generation].append(outcome)
    slots = _slots(log)
    ends = np.cumsum([seconds or 0.0 for seconds in lengths])
    pieces = {kind: Pieces() for kind in KINDS}
    squeezed = 0
    for each, begin, end in zip(shown, [0.0, *ends], ends, strict=False):
        squeezed += _lay_out(pieces, children[each.generation], slots, float(begin), float(end))
    whole = float(ends[-1])
    heading = _Heading(log, shown[0].generation, shown[-1].generation, slots, whole, squeezed)
    return Chart(panels=[_slots_panel(pieces, ends, heading), _spent_panel(log, children, ends)])


def _slots(log: Log) -> int:
    """Calls that were in flight at most."""
    allowed = log.sessions[-1].max_concurrent if log.sessions else log.header.children
    return max(1, min(allowed, log.header.children))


def _lay_out(
    pieces: dict[str, Pieces], outcomes: Iterable[Outcome], slots: int, begin: float, end: float
) -> bool:
    """Adds what the slots did in a generation; returns whether it had to be squeezed to fit."""
    free = [(begin, slot) for slot in range(slots)]
    found: list[tuple[str, float, float, int, str]] = []
    for outcome in sorted(outcomes, key=lambda each: each.index):
        at, slot = heapq.heappop(free)
        of = f"generation {outcome.generation}, child {outcome.index}"
        for place, attempt in enumerate(outcome.attempts, start=1):
            kind = "call" if attempt.status == "ok" else "failed attempt"
            words = f"{of}: attempt {place} {attempt.status}"
            words += f", {attempt.error[:80]}" if attempt.error else ""
            until = at + (attempt.latency or 0.0)
            found.append((kind, at, until, slot, f"{words}, {number(until - at)} s"))
            at = until
        until = at + (outcome.evaluation.seconds or 0.0)
        status = outcome.evaluation.status or "unknown"
        words = f"{of}: evaluation {status}, {number(until - at)} s"
        found.append(("evaluation", at, until, slot, words))
        heapq.heappush(free, (until, slot))
    last = max([at for at, _ in free], default=begin)
    # Evaluations run beside the slots where there are processors for them.
    scale = min(1.0, (end - begin) / (last - begin)) if last > begin else 1.0
    for kind, a, b, slot, words in found:
        made = pieces[kind]
        made.begin.append(begin + scale * (a - begin))
        made.end.append(begin + scale * (b - begin))
        made.slot.append(slot)
        made.texts.append(words)
    return scale < 0.98


@dataclass(frozen=True)
class _Heading:
    """What is known of a timeline as a whole."""

    log: Log
    first: int
    last: int
    slots: int
    seconds: float
    squeezed: int

    def words(self, pieces: dict[str, Pieces]) -> str:
        """What the slots did, in shares of their time."""
        every = self.slots * self.seconds
        shown = f"Generations {self.first} to {self.last}"
        if self.first == self.last:
            shown = f"Generation {self.first}"
        if not every:
            return f"{shown} took no time."
        shares = {kind: each.seconds / every for kind, each in pieces.items()}
        idle = max(0.0, 1 - sum(shares.values()))
        parts = [f"{kind}s {100 * share:.0f} %" for kind, share in shares.items() if share >= 0.005]
        text = f"{shown} took {number(self.seconds)} s on {amount(self.slots, 'slot')}: "
        text += f"{', '.join([*parts, f'idle {100 * idle:.0f} %'])}. "
        text += "Laid out in order of the children, as a log holds durations and not moments"
        if self.squeezed:
            are = "is" if self.squeezed == 1 else "are"
            text += f"; {amount(self.squeezed, 'generation')} {are} squeezed, as evaluations "
            text += "overlapped calls"
        return f"{text}."


def _slots_panel(pieces: dict[str, Pieces], ends: np.ndarray, heading: _Heading) -> Panel:
    """Slots by time."""
    marks: list[Mark] = [
        Bars(
            x0=each.begin, x1=each.end, y=each.slot, color=KINDS[kind], thickness=0.8,
            opacity=0.85, texts=each.texts, label=kind,
        )
        for kind, each in pieces.items()
        if each.begin
    ]  # fmt: skip
    marks += [Rule(x=float(end), color="faint", dash="3 3") for end in ends[:-1]]
    header = heading.log.header
    seed = f", seed {header.seed}" if header.seed >= 0 else ""
    return Panel(
        title=f"Where the time went: {header.task.name}, {header.model_name}{seed}",
        about=heading.words(pieces), marks=marks, legend=True, zoom=True, shares="seconds",
        height=min(TALLEST, max(60.0, ROW * heading.slots)),
        x=Axis(domain=(0.0, heading.seconds or 1.0), label="seconds"),
        y=Axis(
            domain=(heading.slots - 0.4, -0.6), label="slot", whole=True, grid=False,
        ),
    )  # fmt: skip


def _spent_panel(log: Log, children: dict[int, list[Outcome]], ends: np.ndarray) -> Panel:
    """What was spent by the end of each generation."""
    counts = [sum(len(o.attempts) for o in outcomes) for outcomes in children.values()]
    before = sum(
        len(o.attempts) for o in log.outcomes if not o.inherited and o.generation < min(children)
    )
    spent = before + np.cumsum([0, *counts])
    total = cost_of_calls(log.calls, log.header).dollars
    about = amount(int(spent[-1]), "attempt")
    if total is not None and log.header.model.is_llm:
        about += f"; the whole run cost ${total:.4f}"
    stated = log.sessions[-1].generations if log.sessions else None  # of an arm there is none
    goal = (stated or 0) * log.header.children
    marks: list[Mark] = []
    if stated and goal < 1.5 * spent[-1]:
        marks.append(Rule(y=float(goal), dash=REFERENCE))
        about += f"; the goal of {amount(stated, 'generation')} is {amount(goal, 'call')} (dotted)"
    marks.append(Line(
        x=[0.0, *ends], y=spent, color=PALETTE[0], width=2.2,
        texts=[f"{count} attempts after {number(at)} s" for at, count in
               zip([0.0, *ends], spent, strict=True)],
    ))  # fmt: skip
    return Panel(
        title="What was spent", about=f"{about}.", marks=marks, height=120, shares="seconds",
        x=Axis(domain=(0.0, float(ends[-1]) or 1.0), label="seconds"),
        y=Axis(label="attempts so far"), zoom=True,
    )  # fmt: skip
