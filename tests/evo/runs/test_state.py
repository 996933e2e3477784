"""The state of a run is the fold of its lines, whoever takes them."""

import contextlib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec
import pytest
from evo_runs import write_task
from samples import sample_lines

import evo
from evo.keyed import KeyedStream
from evo.logs.journal import Writer, encode_line
from evo.logs.log import read_log
from evo.logs.records import Child, Evaluation, Generation, Header, Tick
from evo.runs.arm import Arm
from evo.runs.configuration import Settings, make_header
from evo.runs.resources import open_resources
from evo.runs.state import State, costs_of_log, program_digest, state_of
from evo.searches import Member, Request
from evo.tasks.task import load_task

NOISY = "import random\n\n\ndef value():\n    return 0.5 + random.gauss(0, 0.3)\n"
JUDGE = "def score(value):\n    return {'fitness': value, 'size': 1.0}\n"
KINDS: dict[str, dict[str, Any]] = {
    "greedy": {"feedback": True, "inspirations": 1},
    "population": {"search": "population"},
    "confirmed": {"draws": 2, "confirm": 2},
    "drafts": {"drafts": 2, "critic": "offline-2"},
    "texts": {"task": load_task("wp", instances=3), "model": "offline-2"},
}
FACTS: tuple[str, ...]
FACTS = ("generation", "improved", "checks", "archive", "trajectory", "evaluations", "first")
FACTS += ("known", "plan", "children", "replies", "confirmation", "costs", "initial_cost")


def facts(state: State) -> dict[str, Any]:
    return {name: getattr(state, name) for name in FACTS}


@pytest.fixture
def task(tmp_path: Path) -> Path:
    return write_task(tmp_path / "noisy", NOISY, JUDGE, "entry = ['value']\n")


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.filterwarnings("ignore:.*evaluations are noisy")
def test_a_live_state_is_the_fold_of_its_log(kind: str, task: Path, tmp_path: Path) -> None:
    options = {"task": task, "children": 2, "seed": 1, **KINDS[kind]}
    header = make_header(options.pop("task"), **options)
    path = tmp_path / "a.jsonl"
    with open_resources(Settings(progress=False, workers=1)) as resources:
        with Writer.create(path, header) as writer:
            arm = Arm(writer, header, resources)
            arm.begin()
            for _ in range(2):
                arm.advance()
                assert facts(state_of(read_log(path))) == facts(arm.state)
        lines = path.read_bytes().splitlines(keepends=True)
        last = max(k for k, line in enumerate(lines) if b'"kind":"child"' in line)
        path.write_bytes(b"".join(lines[:last]))  # killed before its last child
        with contextlib.closing(Writer.claim(path)) as writer:
            again = Arm(writer, header, resources)
            again.begin(read_log(path))
            assert again.state.generation == 1
            again.advance()
    untimed = {"costs", "archive", "best", "evaluations", "initial_cost", "known"}
    now, whole = facts(again.state), facts(arm.state)
    assert {k: v for k, v in now.items() if k not in untimed} == {
        k: v for k, v in whole.items() if k not in untimed
    }
    assert [cost["calls"] for cost in again.state.costs] == [c["calls"] for c in arm.state.costs]


def test_the_archive_holds_complete_generations_only() -> None:
    header, session, initial, *rest = sample_lines(generations=2, children=3)
    assert isinstance(header, Header)
    state = State(header)
    state.take(session)
    state.take(initial)
    for line in rest:
        before = len(state.archive)
        state.take(line)
        assert len(state.archive) == before + isinstance(line, Generation)
        if isinstance(line, Child):
            assert state.children[line.index] is line
    assert [len(each) for each in state.archive] == [1, 3, 3]
    assert not state.children
    assert [member.place for member in state.programs()][:3] == [(0, 0), (1, 0), (1, 1)]
    assert state.members[1][0].program == "program 1 0"


def test_a_run_has_called_from_its_first_reply_on() -> None:
    header, session, initial, *rest = sample_lines(generations=2, children=3)
    assert isinstance(header, Header)
    state = State(header)
    for line in (session, initial):
        state.take(line)
    assert not state.has_called  # the initial program is evaluated without a call
    for line in rest:
        state.take(line)
        assert state.has_called


def test_what_a_state_knows_does_not_depend_on_the_order_of_answers(tmp_path: Path) -> None:
    import random

    states = []
    for shuffle in (None, random.Random(1), random.Random(2)):
        lines = sample_lines(generations=3, children=4, shuffle=shuffle)
        assert isinstance(lines[0], Header)
        states.append(State(lines[0]))
        for line in lines[1:]:
            states[-1].take(line)
    assert facts(states[0]) == facts(states[1]) == facts(states[2])


def test_the_time_of_a_generation_under_way_is_part_of_the_state() -> None:
    header, *lines = sample_lines(generations=1, children=2)
    assert isinstance(header, Header)
    state = State(header)
    state.take(lines[1])
    state.take(Tick(generation=1, seconds=11.5))
    assert state.seconds == 11.5
    for line in lines[2:5]:
        state.take(line)
    assert state.generation == 1
    assert state.seconds == 0.0


def test_inherited_generations_cost_nothing(task: Path, tmp_path: Path) -> None:
    quiet: dict[str, Any] = {"progress": False, "workers": 1, "confirm": 2}
    log = evo.run(task, generations=2, children=2, log=tmp_path / "a.jsonl", **quiet)
    fork = evo.fork(log, at=1, log_dir=tmp_path / "forks", progress=False, workers=1)[0]
    assert [cost["calls"] for cost in costs_of_log(fork)] == [0, 0, 2]
    assert state_of(fork).trajectory[:2] == state_of(log).trajectory[:2]


def test_a_second_draw_of_the_initial_program_is_logged_and_counted(
    task: Path, tmp_path: Path
) -> None:
    with pytest.warns(UserWarning, match="evaluations are noisy"):
        log = evo.run(task, generations=1, children=1, log=tmp_path / "a.jsonl", progress=False)
    assert log.initial is not None
    assert log.initial.second is not None
    assert log.initial.second.fitness != log.initial.evaluation.fitness
    spent = (log.initial.evaluation.seconds or 0) + (log.initial.second.seconds or 0)
    assert costs_of_log(log)[0]["seconds"] == pytest.approx(spent)
    again = tmp_path / "b.jsonl"
    again.write_bytes(b"".join(encode_line(line) for line in (log.header, log.initial)))
    resumed = evo.resume(again, generations=1, progress=False)
    assert resumed.initial == log.initial  # not evaluated a third time


def test_a_refused_program_counts_neither_as_evaluated_nor_as_known() -> None:
    """So that the same program is evaluated where no filter refuses it."""
    header, *lines = sample_lines(generations=1, children=2)
    assert isinstance(header, Header)
    refused = Evaluation(status="rejected", error="short: too long")
    for status in (None, refused):
        state = State(header)
        for line in lines:
            changed = status is not None and isinstance(line, Child) and line.index == 0
            state.take(msgspec.structs.replace(line, evaluation=status) if changed else line)
        program = next(each.program for each in lines if isinstance(each, Child) and not each.index)
        assert program is not None
        known = program in [member.program for member in state.programs()]
        assert (program_digest(program) in state.evaluations) == known == (status is None)


@dataclass(frozen=True)
class Emptying:
    """Rewrites the initial program, and empties each generation that it is given."""

    name: str = "emptying"

    def start(self, initial: Member, min_improvement: float) -> Member:
        return initial

    def plan(self, state: Member, children: int, rng: KeyedStream) -> list[Request]:
        return [Request((state.place,))] * children

    def fold(self, state: Member, generation: list[Member]) -> Member:
        generation.clear()
        return state


def test_what_a_search_does_to_a_generation_hides_nothing_from_filters(tmp_path: Path) -> None:
    log = evo.run(
        "mmd",
        search=Emptying(),
        generations=2,
        children=2,
        log=tmp_path / "a.jsonl",
        progress=False,
    )
    state = state_of(log)
    before = [member.place for member in state.programs()]
    state.searched(Emptying(), 0.0)
    assert [member.place for member in state.programs()] == before
    assert len(before) > 1
