"""What the run browser knows of a run: its children as arrays, one of them in full, its drawing."""

from __future__ import annotations

import functools
import re
from collections import Counter
from dataclasses import dataclass
from shlex import quote
from typing import TYPE_CHECKING, Literal

import numpy as np

from evo.logs.constructions import kept_value
from evo.logs.log import Log
from evo.logs.records import STATUSES, Child, Evaluation, Initial, Outcome
from replay.logs.lineage import Place, parent_of, program_of
from replay.logs.others import from_here
from replay.statistics.numbers import amount

if TYPE_CHECKING:
    import pandas as pd

    from evo.logs.records import RunEnd
    from evo.runs.items import Prompt

LISTED = 300
"""Programs that a search lists at most."""

Hop = Literal["child", "improvement", "failure"]

UNKNOWN = "unknown"
"""Status of a child whose imported log states none."""

NAMED = (*STATUSES, UNKNOWN)
"""The names of statuses, by the numbers of `RunData.status`."""


class RunData:
    """The children of a log as arrays, the initial program first."""

    def __init__(self, log: Log) -> None:
        self.log = log  # as given
        self.records: dict[Place, Initial | Outcome] = {}  # by (generation, index), in order
        if log.initial is not None:
            self.records[0, 0] = log.initial
        self.records |= {(each.generation, each.index): each for each in log.outcomes}
        found = [each.evaluation for each in self.records.values()]
        self.places: list[Place] = list(self.records)
        if not self.places:
            raise ValueError(f"{log.path.name}: no program was evaluated yet")
        winners = {each.best for each in log.generations if each.improved}
        self.generation = np.array([place[0] for place in self.places])  # of each program
        self.index = np.array([place[1] for place in self.places])
        self.fitness = np.array(
            [np.nan if each.fitness is None else each.fitness for each in found]
        )
        self.status = np.array([NAMED.index(status_name(each)) for each in found])
        self.improved = np.array([place in winners for place in self.places])
        self.trajectory = log.trajectory
        self._asked = {(each.generation, each.index): each.parents for each in log.outcomes}
        self._numbers = {place: number for number, place in enumerate(self.places)}
        self._prompts: tuple[int, list[Prompt]] = 0, []

    @property
    def best(self) -> Place:
        """The best program so far, of a generation under way too; else the last."""
        if np.isnan(self.fitness).all():
            return self.places[-1]
        return self.places[int(np.nanargmax(self.fitness))]

    def number(self, place: Place) -> int:
        """Position of a program; the nearest one's where there is none at this place."""
        if place in self._numbers:
            return self._numbers[place]
        generation, index = place
        last = int(self.generation[-1])
        members = np.flatnonzero(self.generation == min(max(generation, 0), last))
        if not members.size:
            return 0
        return int(members[np.abs(self.index[members] - index).argmin()])

    def prompts(self, generation: int) -> list[Prompt]:
        """What the children of a generation were asked for; see `evo.runs.planning.asked_in`."""
        from evo.runs.planning import asked_in

        if self._prompts[0] != generation:  # of each generation the run is folded again
            self._prompts = generation, asked_in(self.log, generation)
        return self._prompts[1]

    def hop(self, place: Place, to: Hop, step: Literal[-1, 1]) -> Place | None:
        """Returns the next or previous program of a sort; None: there is none further on."""
        wanted = {
            "child": np.ones(len(self.places), dtype=bool),
            "improvement": self.improved,
            "failure": self.status != STATUSES.index("ok"),
        }[to]
        number = self.number(place)
        found = np.flatnonzero(wanted)
        found = found[found > number] if step > 0 else found[found < number][::-1]
        return self.places[int(found[0])] if found.size else None

    def table(self) -> pd.DataFrame:
        """One row per program."""
        import pandas as pd

        return pd.DataFrame(
            {
                "generation": self.generation,
                "index": self.index,
                "status": [NAMED[number] for number in self.status.tolist()],
                "fitness": self.fitness,
                "improved": self.improved,
            }
        )

    def parent(self, place: Place) -> Place | None:
        """The program that one rewrites; None: unknown or none."""
        if place == (0, 0):
            return None
        asked = self._asked.get(place)
        return asked[0] if asked else parent_of(self.log, place[0])

    @functools.cached_property
    def parents(self) -> list[int]:
        """The numbers of what the programs rewrite; -1: unknown or none."""
        found = [self.parent(place) for place in self.places]
        return [-1 if place is None else self._numbers.get(place, -1) for place in found]

    def tree(self) -> list[tuple[str, Place]]:
        """Who descends from whom, each program under its parent: the parents and the best."""
        wanted = {place for each in self.log.generations if (place := each.best) is not None}
        wanted = {self.best, *(p for place in wanted if (p := self.parent(place)) is not None)}
        waiting_parents = list(wanted)
        while waiting_parents:
            parent = self.parent(waiting_parents.pop())
            if parent is not None and parent not in wanted:
                wanted.add(parent)
                waiting_parents.append(parent)
        below: dict[Place | None, list[Place]] = {}
        for place in sorted(wanted):
            below.setdefault(self.parent(place), []).append(place)
        rows: list[tuple[str, Place]] = []
        waiting = [(place, 0) for place in reversed(below.get(None, []))]
        while waiting:
            place, depth = waiting.pop()
            mine = below.get(place, [])
            fitness = self.fitness[self.number(place)]
            stem = "│ " * (depth - 1) + "└ " if depth else ""
            label = "initial" if place == (0, 0) else f"{place[0]}.{place[1]}"
            rows.append((f"{stem}{label}  {fitness:.6g}", place))
            # A line without branches stays straight.
            waiting += [(each, depth + (len(mine) > 1)) for each in reversed(mine)]
        return rows

    def failures(self, text: str) -> list[tuple[str, Place]]:
        """The first LISTED failures whose text or error holds a text, by their message.

        The most frequent message comes first.
        """
        groups: dict[str, list[Place]] = {}
        for each in self.log.outcomes:
            found = text in self._texts[self.number((each.generation, each.index))]
            if found and each.evaluation.status != "ok":
                groups.setdefault(_message(each.evaluation), []).append(
                    (each.generation, each.index)
                )
        rows = []
        for message, places in sorted(groups.items(), key=lambda group: -len(group[1])):
            for number, place in enumerate(places):
                of = f"  {len(places)} times {message}" if not number else ""
                rows.append((f"{place[0]}.{place[1]}{of}", place))
        return rows[:LISTED]

    def find(self, text: str, status: str | None) -> list[tuple[str, Place]]:
        """The first LISTED programs of a status whose text or error holds a text."""
        rows = []
        for number, place in enumerate(self.places):
            named = NAMED[self.status[number]]
            if status not in (None, named) or (text and text not in self._texts[number]):
                continue
            value = self.fitness[number]
            known = named if np.isnan(value) else f"{value:.6g}"
            rows.append((f"{place[0]}.{place[1]}  {known}", place))
            if len(rows) == LISTED:
                break
        return rows

    @functools.cached_property
    def _texts(self) -> list[str]:
        """What a search looks through."""
        of = {(each.generation, each.index): each for each in self.log.children}
        texts = []
        for place in self.places:
            child = of.get(place)
            if child is None:
                texts.append(program_of(self.log, place) or "")
            else:
                texts.append(
                    f"{child.program or child.reply or ''}\n{child.evaluation.error or ''}"
                )
        return texts

    @functools.cached_property
    def counts(self) -> str:
        """Number of children by status, in words; those that are ok, even if there are none."""
        first = 1 if self.places[0] == (0, 0) else 0
        found = Counter(NAMED[number] for number in self.status[first:].tolist())
        counts = with_ok({name: found[name] for name in NAMED if found[name]})
        return ", ".join(f"{count:,} {name}" for name, count in counts.items())

    @property
    def label(self) -> str:
        """Task, model and seed."""
        header = self.log.header
        seed = f", seed {header.seed}" if header.seed >= 0 else ""
        if header.search is not None and header.search.name != "greedy":
            seed = f", {header.search.name}{seed}"
        if header.fork is not None:
            seed += f", fork at generation {header.fork.at}"
        return f"{header.task.name} by {header.model_name}{seed}"


def _message(evaluation: Evaluation) -> str:
    """The status and the sentence of an error."""
    line = sentence(evaluation.error)
    status = status_name(evaluation)
    return f"{status}: {line}" if line else status


def with_ok(counts: dict[str, int]) -> dict[str, int]:
    """Numbers of children by status, that of `ok` also where it is 0 and any status is known."""
    return {"ok": 0, **counts} if counts.keys() & set(STATUSES) else counts


def status_name(evaluation: Evaluation) -> str:
    """The status of a program in words."""
    return evaluation.status or UNKNOWN


def sentence(error: str | None) -> str:
    """The line of an error that says what went wrong: of a traceback, its last one."""
    text = re.split(r"^--- std", error or "", flags=re.MULTILINE)[0].strip()
    lines = text.splitlines() or [""]
    return lines[-1] if lines[0].startswith("Traceback") else lines[0]


@dataclass(frozen=True)
class Drawing:
    """The value that a program returned, or the reason why nothing is drawn."""

    picture: str = ""  # how it is drawn, see `replay.plots.construction`
    value: object = None  # as nested lists, out of the log; None: nothing to draw
    reason: str = ""  # why not
    pictured: bool = True  # whether there is a picture of any program of the log


def drawing_of(log: Log, evaluation: Evaluation, program: str | None, value: object) -> Drawing:
    """The construction that was kept of a program. Looking at a log runs nothing of it."""
    task = log.header.task
    if not task.picture:
        whose = "an imported log" if log.header.source != "evo" else task.name
        reason = f"{whose} has no picture of what a program returns"
        return Drawing(reason=reason, pictured=False)
    if value is None and log.header.compact:
        reason = "the log is compact: it keeps no constructions and no programs"
        return Drawing(reason=reason, pictured=False)
    if evaluation.status != "ok":
        return Drawing(reason=f"{status_name(evaluation)}: no construction to draw")
    if value is None and program is not None:
        value = kept_value(log.path, program)
    if value is None:
        return Drawing(
            reason="the log keeps no construction of this program; of the best, "
            f"`evo best --value {quote(from_here(log.path))}` keeps it beside the log"
        )
    return Drawing(picture=task.picture, value=value)


@dataclass(frozen=True, kw_only=True)
class RunView:
    """One program of a run."""

    data: RunData  # the run
    place: Place  # of the program
    evaluation: Evaluation  # of the program
    child: Child | None  # with its texts; None for the initial program
    program: str | None  # its text, if the log has it
    parent: Place | None  # place of what it rewrote; None: unknown or none
    drawing: Drawing  # what it returned

    @property
    def words(self) -> str:
        """The program, its place in the run, and the run, in sentences."""
        evaluation = self.evaluation
        if evaluation.fitness is None:
            found = f"{status_name(evaluation)}, so it has no fitness"
        else:
            found = f"ok, fitness {evaluation.fitness:.6g}"
        text = [f"{name(self.place).capitalize()}: {found}."]
        if self.parent is not None:
            before = self.data.fitness[self.data.number(self.parent)]
            text.append(f"It rewrites {name(self.parent)}")
            if evaluation.fitness is not None and not np.isnan(before):
                gain = evaluation.fitness - before
                verb = "gains" if gain > 0 else "loses" if gain < 0 else "changes its fitness by"
                text[-1] += f" and {verb} {abs(gain):.3g}"
            replaced = self.data.improved[self.data.number(self.place)]
            text[-1] += "; it became the next parent." if replaced else "."
        return " ".join([*text, run_words(self.data)])

    def table(self) -> pd.DataFrame:
        """One row per program of the run."""
        return self.data.table()


def name(place: Place) -> str:
    """A program in words."""
    if place == (0, 0):
        return "the initial program"
    return f"child {place[1]} of generation {place[0]}"


def end_words(end: RunEnd) -> str:
    """Why a session ended; one that was asked to end is called paused or stopped."""
    if end.reason == "interrupted" and end.message in (None, "paused"):
        return end.message or "stopped"
    return f"{end.reason}: {end.message}" if end.message else end.reason


def own_goal(log: Log) -> int | None:
    """T of a run; None of one that goes on as long as its study does, such as an arm."""
    return None if log.sessions and not log.sessions[-1].generations else log.goal


def done_words(log: Log) -> str:
    """How many generations are complete, and of how many."""
    done, goal = len(log.generations), own_goal(log)
    if goal is None:
        return amount(done, "generation")
    return f"{done:,} of {amount(goal, 'generation')}"


def run_words(data: RunData) -> str:
    """A run in a sentence."""
    header = data.log.header
    best = data.trajectory[-1]
    reached = "nothing is ok yet" if np.isnan(best) else f"best fitness {best:.6g}"
    return (
        f"Run: {data.label}, T = {len(data.log.generations)} of N = {header.children}, {reached}; "
        f"{data.counts or 'no children yet'}."
    )


def look_at(data: RunData, place: Place) -> RunView:
    """Reads the program at a place of a run; the nearest one where there is none."""
    log = data.log
    place = data.places[data.number(place)]
    child = None if place == (0, 0) else log.child(*place)
    at = log.initial if child is None else child
    assert at is not None
    program = program_of(log, place) if child is None else child.program
    return RunView(
        data=data,
        place=place,
        evaluation=at.evaluation,
        child=child,
        program=program,
        parent=data.parent(place),
        drawing=drawing_of(log, at.evaluation, program, at.value),
    )
