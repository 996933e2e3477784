"""What the run browser knows of a run: its children as arrays, one of them in full, its drawing."""

from __future__ import annotations

import functools
import threading
from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from evo.log import Log
from evo.records import STATUSES, Child, Evaluation, TaskRecord
from replay.ancestry import Place, parent_of, program_of

if TYPE_CHECKING:
    import pandas as pd

Hop = Literal["child", "improvement", "failure"]

MOST_DRAWINGS = 256
"""Constructions that are kept."""


class RunData:
    """The children of a log as arrays, the initial program first.

    Args:
        log: Read; what is appended to it later is not seen here.

    Raises:
        ValueError: Nothing was evaluated yet.

    Attributes:
        log: As given.
        places: (generation, index) of each program, in order.
        generation: Of each program.
        fitness: NaN unless ok.
        status: Number in `evo.records.STATUSES`.
        improved: Whether it replaced its parent.
        trajectory: Best fitness after each complete generation, shape (T + 1,).
    """

    def __init__(self, log: Log) -> None:
        self.log = log
        evaluations: list[Evaluation] = []
        self.places: list[Place] = []
        if log.initial is not None:
            evaluations.append(log.initial.evaluation)
            self.places.append((0, 0))
        for outcome in log.outcomes:
            evaluations.append(outcome.evaluation)
            self.places.append((outcome.generation, outcome.index))
        if not self.places:
            raise ValueError(f"{log.path.name}: no program was evaluated yet")
        winners = {each.best for each in log.generations if each.improved}
        self.generation = np.array([place[0] for place in self.places])
        self.index = np.array([place[1] for place in self.places])
        self.fitness = np.array(
            [np.nan if each.fitness is None else each.fitness for each in evaluations]
        )
        self.status = np.array([STATUSES.index(each.status) for each in evaluations])
        self.improved = np.array([place in winners for place in self.places])
        self.trajectory = log.trajectory
        self._numbers = {place: number for number, place in enumerate(self.places)}

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
                "status": [STATUSES[number] for number in self.status.tolist()],
                "fitness": self.fitness,
                "improved": self.improved,
            }
        )

    @functools.cached_property
    def counts(self) -> str:
        """Number of children by status, in words."""
        found = Counter(
            STATUSES[number]
            for number, place in zip(self.status.tolist(), self.places, strict=True)
            if place != (0, 0)
        )
        return ", ".join(f"{found[name]:,} {name}" for name in STATUSES if found[name])

    @property
    def label(self) -> str:
        """Task, model and seed."""
        header = self.log.header
        model = header.model.name + ("" if header.model.is_llm else " (not an LLM)")
        seed = f", seed {header.seed}" if header.seed >= 0 else ""
        return f"{header.task.name} by {model}{seed}"


@dataclass(frozen=True)
class Drawing:
    """What a program returned, or why there is nothing to draw.

    Attributes:
        picture: How it is drawn, see `replay.plots.construction`.
        value: As nested lists; None: nothing to draw.
        reason: Why not.
    """

    picture: str = ""
    value: Any = None
    reason: str = ""


PENDING = Drawing(reason="drawing ...")


class Drawings:
    """Constructions of programs: each is evaluated once, in the sandbox."""

    def __init__(self) -> None:
        self._known: dict[tuple[str, str], Drawing] = {}
        self._lock = threading.Lock()

    def known(self, log: Log, evaluation: Evaluation, program: str | None) -> Drawing:
        """What is known without evaluating anything; `PENDING` where that would help."""
        task = log.header.task
        if not task.picture:
            whose = "an imported log" if log.header.source != "evo" else task.name
            return Drawing(reason=f"{whose} has no picture of what a program returns")
        if evaluation.status != "ok":
            return Drawing(reason=f"{evaluation.status}: no construction to draw")
        if program is None:
            return Drawing(reason="a compact log holds no programs, so nothing can be drawn")
        with self._lock:
            return self._known.get((task.hash, program), PENDING)

    def evaluate(self, log: Log, program: str) -> Drawing:
        """Runs a program in the sandbox for what it returns."""
        from evo.sandbox import SandboxError, evaluate

        task: TaskRecord = log.header.task
        try:
            found = evaluate(task, program, log.header.limits, keep_value=True)
        except SandboxError as error:
            made = Drawing(reason=f"the sandbox does not work here: {error}")
        else:
            if found.status == "ok" and found.value is not None:
                made = Drawing(picture=task.picture, value=found.value)
            else:
                said = (found.error or "").partition("\n--- std")[0]  # its output comes after
                last = said.rstrip().rpartition("\n")[2]
                made = Drawing(reason=f"evaluated again, the program is {found.status}: {last}")
        with self._lock:
            self._known[task.hash, program] = made
            for key in list(self._known)[:-MOST_DRAWINGS]:
                del self._known[key]
        return made


@dataclass(frozen=True, kw_only=True)
class RunView:
    """One program of a run.

    Attributes:
        data: The run.
        place: Of the program.
        evaluation: Of the program.
        child: With its texts; None for the initial program.
        program: Its text, if the log has it.
        parent: Place of what it rewrote; None: unknown or none.
        drawing: What it returned.
    """

    data: RunData
    place: Place
    evaluation: Evaluation
    child: Child | None
    program: str | None
    parent: Place | None
    drawing: Drawing

    @property
    def words(self) -> str:
        """The program, its place in the run, and the run, in sentences."""
        evaluation = self.evaluation
        if evaluation.fitness is None:
            found = f"{evaluation.status}, so it has no fitness"
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


@dataclass(frozen=True)
class NoRun:
    """Why there is no run to show."""

    words: str

    def table(self) -> pd.DataFrame:
        """The sentence."""
        import pandas as pd

        return pd.DataFrame({"note": [self.words]})


def name(place: Place) -> str:
    """A program in words."""
    if place == (0, 0):
        return "the initial program"
    return f"child {place[1]} of generation {place[0]}"


def run_words(data: RunData) -> str:
    """A run in a sentence."""
    header = data.log.header
    best = data.trajectory[-1]
    reached = "nothing is ok yet" if np.isnan(best) else f"best fitness {best:.6g}"
    return (
        f"Run: {data.label}, T = {len(data.log.generations)} of N = {header.children}, {reached}; "
        f"{data.counts or 'no children yet'}."
    )


def look_at(data: RunData, place: Place, drawings: Drawings, *, evaluate: bool) -> RunView:
    """Reads one program of a run.

    Args:
        data: The run.
        place: Of the program; the nearest one is taken where there is none.
        drawings: What is known of constructions.
        evaluate: Run the program now if its construction is not known.
    """
    log = data.log
    place = data.places[data.number(place)]
    child = None if place == (0, 0) else log.child(*place)
    program = program_of(log, place) if child is None else child.program
    if child is None:
        assert log.initial is not None
        evaluation = log.initial.evaluation
    else:
        evaluation = child.evaluation
    drawing = drawings.known(log, evaluation, program)
    if drawing is PENDING and evaluate and program is not None:
        drawing = drawings.evaluate(log, program)
    return RunView(
        data=data,
        place=place,
        evaluation=evaluation,
        child=child,
        program=program,
        parent=parent_of(log, place[0]),
        drawing=drawing,
    )
