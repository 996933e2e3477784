"""Runs of GEPA 0.1: the state in its run folder, an untrusted pickle.

An iteration is a generation: it proposes one candidate, or several where it works on several tasks.
A proposal that is no better than its parent on a minibatch is not evaluated further: its child is
`partial`. Fitness is the mean over the validation set, which is the aggregate score of GEPA. A
candidate with several components is kept as a JSON object of their texts.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from pathlib import Path

import msgspec

from evo.logs.records import Child, Evaluation, Instance
from replay.importers import foreign, reading
from replay.importers.foreign import Imported
from replay.importers.pickles import load
from replay.importers.reading import LogFormatError

_FILE = "gepa_state.bin"


class _Task(msgspec.Struct):
    """A proposal for one parent and its scores on a minibatch."""

    parent_idx: int | None = None
    subsample_scores: list[float] | None = None
    new_subsample_scores: list[float] | None = None

    @property
    def gained(self) -> float:
        """How far the proposal is better than its parent."""
        if self.new_subsample_scores is None:
            return -math.inf
        return math.fsum(self.new_subsample_scores) - math.fsum(self.subsample_scores or ())


class _Iteration(msgspec.Struct):
    """An entry of the trace; `new_program_indices` are the candidates that it accepted."""

    i: int
    tasks: list[_Task] = []
    new_program_idx: int | None = None
    new_program_indices: list[int] = []

    @property
    def accepted(self) -> list[int]:
        """The candidates that the iteration accepted."""
        one = [] if self.new_program_idx is None else [self.new_program_idx]
        return self.new_program_indices or one


class _State(msgspec.Struct):
    """What is read of the state: candidates with their scores and parents, and the trace."""

    program_candidates: list[dict[str, str]]
    prog_candidate_val_subscores: list[dict[int | str, float]]
    parent_program_for_candidate: list[list[int | None]]
    full_program_trace: list[_Iteration]


def recognises(path: Path) -> bool:
    """Whether the path is such a state, or a folder with one."""
    return (path / _FILE).is_file() if path.is_dir() else path.name == _FILE


def read(path: Path) -> list[Imported]:
    """Reads a run folder, or the state in it."""
    file = path / _FILE if path.is_dir() else path
    if not file.is_file():
        raise LogFormatError(f"{path}: expected {_FILE}")
    state = reading.convert(load(file, package="gepa"), _State, file)
    count = len(state.program_candidates)
    columns = (state.prog_candidate_val_subscores, state.parent_program_for_candidate)
    if not count or any(len(column) != count for column in columns):
        raise LogFormatError(f"{file}: expected scores and parents of each candidate")
    trace = state.full_program_trace
    foreign.within(len(trace), file, "iterations")
    found = [index for entry in trace for index in entry.accepted]
    if any(not 0 < index < count for index in found) or len(set(found)) < len(found):
        raise LogFormatError(f"{file}: the trace names a candidate that is not there, or twice")
    places = {0: (0, 0)}
    for number, entry in enumerate(trace, start=1):
        places |= {index: (number, k) for k, index in enumerate(entry.accepted)}
    generations = [
        _children(entry, number, state, places) for number, entry in enumerate(trace, start=1)
    ]
    lost = ["the model, its calls and tokens", "seeds and times", "texts that were not accepted"]
    if absent := count - 1 - len(found):
        lost.append(f"where {absent} of {count} candidates were made")
    children = [child for generation in generations for child in generation]
    if idle := sum(child.evaluation.status is None for child in children):
        lost.append(f"what {idle} of {len(children)} calls proposed, if they were made at all")
    return [
        foreign.assemble(
            path,
            "GEPA",
            name=(path if path.is_dir() else path.parent).resolve().name,
            model=foreign.named(()),
            children=generations,
            initial=_candidate(0, (0, 0), state, places),
            lost=lost,
            n=max([1, *map(len, generations)]),
        )
    ]


def _children(
    entry: _Iteration, number: int, state: _State, places: Mapping[int, tuple[int, int]]
) -> list[Child]:
    """The accepted candidates of an iteration, then those that were dropped on a minibatch."""
    children = [_candidate(i, (number, k), state, places) for k, i in enumerate(entry.accepted)]
    parents = [state.parent_program_for_candidate[i] for i in entry.accepted]
    left = list(entry.tasks)
    for task in sorted(entry.tasks, key=lambda task: task.gained, reverse=True):
        if [task.parent_idx] in parents:  # of proposals for one parent the best are accepted
            parents.remove([task.parent_idx])
            left = [each for each in left if each is not task]
    for task in left:
        index, parent = (
            len(children),
            places.get(-1 if task.parent_idx is None else task.parent_idx),
        )
        scores, before = task.new_subsample_scores, task.subsample_scores
        if scores is None:
            failure = foreign.failed(number, (None, foreign.NOT_IN_SOURCE), index=index)
            children.append(failure)
            continue
        tried = f"{len(scores)} instance{'s' * (len(scores) != 1)}"
        gained = f"{math.fsum(scores):.6g} gained, its parent gained {math.fsum(before or ()):.6g}"
        dropped = Evaluation(
            status="partial", error=f"dropped after {tried}: {gained}", seconds=None
        )
        children.append(foreign.born(number, dropped, parent=parent, index=index))
    return children or [foreign.failed(number, (None, foreign.NOT_IN_SOURCE))]


def _candidate(
    index: int, place: tuple[int, int], state: _State, places: Mapping[int, tuple[int, int]]
) -> Child:
    """A candidate that was evaluated on the validation set."""
    texts, scores = state.program_candidates[index], state.prog_candidate_val_subscores[index]
    made_from = state.parent_program_for_candidate[index]
    parents = [places[p] for p in made_from if p is not None and p in places]
    whole = json.dumps(texts, ensure_ascii=False, sort_keys=True, indent=1)
    child = foreign.born(
        place[0],
        _evaluation(list(scores.values()), [str(name) for name in scores]),
        program=next(iter(texts.values())) if len(texts) == 1 else whole,
        index=place[1],
    )
    operator = "cross" if len(parents) > 1 else "rewrite"
    return msgspec.structs.replace(child, parents=tuple(parents), operator=operator)


def _evaluation(scores: Sequence[float], names: Sequence[str]) -> Evaluation:
    """The mean over the validation set, with its instances if their scores are shares."""
    mean = math.fsum(scores) / len(scores) if scores else None
    found = foreign.judged(mean)
    if not all(0 <= score <= 1 for score in scores):
        return found
    pairs = zip(names, scores, strict=True)
    instances = tuple(Instance(id=name, status="ok", score=score) for name, score in pairs)
    return msgspec.structs.replace(found, instances=instances)
