"""What the next children are asked for: the search's plan, checked and made into prompts."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec
import pytest
from evo_runs import QUIET
from samples import sample_child

import evo
import replay
from evo.keyed import KeyedStream
from evo.logs.journal import LogError
from evo.logs.maintenance import faults_of
from evo.logs.missing import missing_lines
from evo.logs.records import Evaluation, Generation, Header, Initial, Plan, Planned, SearchRecord
from evo.models.client import prompt_hash
from evo.runs.configuration import make_header
from evo.runs.planning import Planner, replies_under, with_edits
from evo.runs.state import State, state_of
from evo.searches import SEARCHES, Member, Request
from evo.searches.base import Place
from evo.searches.registry import record_of

HALF: tuple[float | None, ...] = (0.5, None, 0.25)


@dataclass(frozen=True)
class Fixed:
    """Asks for what it is told to."""

    parents: tuple[Any, ...] = ((0, 0),)
    operator: str = "rewrite"
    short: int = 0

    name = "fixed"

    def start(self, initial: Member, min_improvement: float) -> None:
        return None

    def plan(self, state: None, children: int, rng: KeyedStream) -> list[Request]:
        return [Request(self.parents, self.operator)] * (children - self.short)

    def fold(self, state: None, generation: Sequence[Member]) -> None:
        return None


def header_of(search: Any = "greedy", **options: Any) -> Header:
    return make_header("mmd", children=3, search=search, **options)


def state_after(
    header: Header, *rows: Sequence[float | None], kept_out: Place | None = None
) -> State:
    """Returns the state after some generations of these fitnesses."""
    state = State(header)
    state.take(Initial(evaluation=Evaluation(status="ok", fitness=0.125)))
    best, place = 0.125, (0, 0)
    for number, row in enumerate(rows, start=1):
        for index, value in enumerate(row):
            child = sample_child(number, index, value)
            if (number, index) == kept_out:
                child = msgspec.structs.replace(child, kept_out="same_output: as before")
            elif value is not None and value > best:
                best, place = value, (number, index)
            state.take(child)
        line = Generation(
            generation=number, best_fitness=best, best=place, improved=True, seconds=0.0
        )
        state.take(line)
    return state


def test_greedy_asks_every_child_to_rewrite_the_best_program() -> None:
    prompts = Planner()(state_after(header_of(), HALF))
    assert [each.place for each in prompts] == [(2, 0), (2, 1), (2, 2)]
    assert {each.planned for each in prompts} == {Planned(parents=((1, 0),))}
    assert {each.program for each in prompts} == {"program 1 0"}
    assert {each.hash for each in prompts} == {prompt_hash(prompts[0].messages)}
    assert "program 1 0" in prompts[0].messages[1]["content"]
    assert "0.500000" in prompts[0].messages[1]["content"]


def test_the_initial_program_may_be_rewritten_even_where_it_failed() -> None:
    state = State(header_of())
    state.take(Initial(evaluation=Evaluation(status="error", error="no")))
    assert {each.planned.parents for each in Planner()(state)} == {((0, 0),)}
    assert "none yet" in Planner()(state)[0].messages[1]["content"]


def test_an_initial_program_that_failed_may_still_be_asked_for_once_another_is_the_best() -> None:
    state = State(header_of(Fixed()))
    state.take(Initial(evaluation=Evaluation(status="error", error="no")))
    state.take(sample_child(1, 0, 0.5))
    state.take(Generation(generation=1, best_fitness=0.5, best=(1, 0), improved=True, seconds=0.0))
    assert state.best.place == (1, 0)
    assert {each.planned.parents for each in Planner()(state)} == {((0, 0),)}


@pytest.mark.parametrize(
    ("search", "message"),
    [
        (Fixed(short=1), "search 'fixed': expected a request for each of 3 children, got 2"),
        (Fixed(short=-1), "expected a request for each of 3 children, got 4"),
        (Fixed(operator="invent"), "search 'fixed': unknown operator 'invent', expected one of"),
        (Fixed(parents=()), "search 'fixed': expected a parent for each request, got none"),
        (Fixed(parents=((1, 1),)), r"expected parents that are ok programs .*, got \(1, 1\)"),
        (Fixed(parents=((1, 3),)), r"expected parents that are ok programs .*, got \(1, 3\)"),
        (Fixed(parents=((2, 0),)), r"expected parents that are ok programs .*, got \(2, 0\)"),
        (Fixed(parents=((0, 0), (1, 1)), operator="cross"), r"got \(1, 1\)"),
    ],
)
def test_a_plan_that_cannot_be_is_refused(search: Fixed, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        Planner()(state_after(header_of(search), HALF))


def test_a_program_that_was_kept_out_is_no_parent() -> None:
    planner, search = Planner(), Fixed(parents=((1, 2),))
    assert planner(state_after(header_of(search), HALF))[0].program == "program 1 2"
    with pytest.raises(ValueError, match=r"got \(1, 2\)"):
        planner(state_after(header_of(search), HALF, kept_out=(1, 2)))


def test_a_plan_that_is_logged_is_kept_to_and_a_difference_is_said_while_the_run_goes_on() -> None:
    header = header_of()
    same = Plan(generation=2, requests=(Planned(parents=((1, 0),)),) * 3)
    other = Plan(generation=2, requests=(Planned(parents=((1, 2),)),) * 3)
    state = state_after(header, HALF)
    for played in (True, False):
        planner = Planner("a.jsonl", {2: same}, played=played)
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            assert planner(state)[0].program == "program 1 0"
        assert planner.differing == []
    played = Planner("a.jsonl", {2: other}, played=True)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert played(state)[0].program == "program 1 2"
    assert played.differing == [2]
    live = Planner("a.jsonl")
    state.take(other)  # as it stood in the log when a session began
    with pytest.warns(UserWarning, match="a.jsonl: generation 2 goes on as it was planned"):
        assert live(state)[0].program == "program 1 2"
    assert live.differing == [2]


def test_where_the_search_is_not_known_a_log_that_is_played_needs_its_plan() -> None:
    header = msgspec.structs.replace(header_of(), search=SearchRecord(name="somebodys"))
    state, logged = (
        state_after(header, HALF),
        Plan(generation=2, requests=(Planned(parents=((1, 2),)),) * 3),
    )
    with pytest.raises(ValueError, match="somebodys"):
        Planner(logged={2: logged})(state)
    planner = Planner(logged={2: logged}, played=True)
    assert {each.program for each in planner(state)} == {"program 1 2"}
    assert planner.differing == []
    with pytest.raises(LogError, match="no plan of generation 2 is logged"):
        Planner(played=True)(state)


@pytest.mark.parametrize(
    ("count", "shown"), [(1, [(1, 2)]), (2, [(0, 0), (1, 2)]), (9, [(0, 0), (1, 2)])]
)
def test_inspirations_are_the_best_others_from_worse_to_better(
    count: int, shown: list[Place]
) -> None:
    prompts = Planner()(state_after(header_of(inspirations=count), HALF))
    assert [*prompts[0].planned.inspirations] == shown
    text = prompts[0].messages[1]["content"]
    assert text.index("program 1 2") < text.index("program 1 0")
    assert "program 1 1" not in text  # it failed


def test_a_run_without_a_barrier_numbers_its_requests() -> None:
    header = header_of(asynchronous=True)
    state = State(header)
    state.take(Initial(evaluation=Evaluation(status="ok", fitness=0.125)))
    planner = Planner()
    for number, place in ((0, (1, 0)), (2, (1, 2)), (3, (2, 0)), (7, (3, 1))):
        plan = planner.request(state, number)
        assert (plan.generation, plan.request, plan.after) == (place[0], number, 0)
        assert plan.requests == (Planned(parents=((0, 0),)),)
        prompt = planner.prompt(state, plan)
        assert (prompt.place, prompt.request, prompt.after) == (place, number, 0)
        assert prompt.hash == prompt_hash(prompt.messages)
    state.take(msgspec.structs.replace(sample_child(1, 0, 0.5), request=0, after=0))
    plan = planner.request(state, 1)
    assert (plan.after, plan.requests[0].parents) == (1, ((1, 0),))


def test_requests_of_a_played_log_are_followed_and_differences_are_noted_by_generation() -> None:
    header = header_of(asynchronous=True)
    state = State(header)
    state.take(Initial(evaluation=Evaluation(status="ok", fitness=0.125)))
    state.take(msgspec.structs.replace(sample_child(1, 0, 0.5), request=0, after=0))
    old = Plan(generation=2, requests=(Planned(parents=((0, 0),)),), request=4, after=1)
    planner = Planner(played=True, requests={4: old})
    assert planner.request(state, 4).requests == old.requests
    assert planner.differing == [2]
    assert planner.request(state, 5).requests[0].parents == ((1, 0),)
    assert planner.differing == [2]
    unknown = State(msgspec.structs.replace(header, search=SearchRecord(name="somebodys")))
    unknown.take(Initial(evaluation=Evaluation(status="ok", fitness=0.125)))
    planner = Planner(played=True, requests={4: old})
    assert planner.request(unknown, 4).requests == old.requests
    assert planner.differing == []
    with pytest.raises(LogError, match="no plan of request 5 is logged"):
        planner.request(unknown, 5)


def test_without_a_text_or_a_model_that_is_asked_there_are_no_replies() -> None:
    header = header_of()
    state = state_after(header)
    assert replies_under(state, header, [{"id": "a"}], "text") == {}
    asked = make_header("wp", model="offline-2")
    assert replies_under(State(asked), asked, [{"id": "a"}], None) == {}
    assert replies_under(State(asked), asked, [{"id": "a"}], "text") == {}


@dataclass(frozen=True)
class Stubborn(evo.searches.BestOfN):
    """Rewrites the initial program."""

    name = "stubborn"


class Mutating(Stubborn):
    """The same class after a change, with which it plans otherwise."""

    def plan(self, state: Any, children: int, rng: Any) -> list[Request]:
        return [Request(((0, 0),), "mutate")] * children


def differing(log: evo.Log) -> Sequence[int]:
    with pytest.warns(UserWarning, match="the code of search 'stubborn'"):
        return evo.rerun(log).differing_plans


@pytest.mark.parametrize("asynchronous", [False, True])
def test_a_plan_that_differs_is_counted_by_generation_and_without_a_barrier_too(
    asynchronous: bool, tmp_path: Path
) -> None:
    SEARCHES["stubborn"] = Stubborn
    try:
        log = evo.run("mmd", search="stubborn", generations=2, children=2, log=tmp_path / "a.jsonl",
                      asynchronous=asynchronous, **QUIET)  # fmt: skip
        assert evo.rerun(log).differing_plans == ()
        SEARCHES["stubborn"] = Mutating
        assert differing(log) == (1, 2)
    finally:
        del SEARCHES["stubborn"]


@dataclass(frozen=True)
class Schedule:
    """Greedy, at temperatures of its own."""

    by_index: tuple[float | None, ...] = (0.2, None, 1.4)
    fall: float = 0.1
    name = "schedule"

    def start(self, initial: Any, min_improvement: float) -> Any:
        return 0, initial

    def plan(self, state: Any, children: int, rng: Any) -> list[Request]:
        number, best = state
        given = [self.by_index[i % len(self.by_index)] for i in range(children)]
        if number and self.fall:
            given = [
                None if each is None else max(0.0, each - number * self.fall) for each in given
            ]
        return [Request((best.place,), temperature=each) for each in given]

    def fold(self, state: Any, generation: Any) -> Any:
        number, best = state
        for member in generation:
            if member.fitness is not None and member.fitness > best.fitness + 1e-9:
                best = member
        return number + 1, best


def warm(messages: Any, *, temperature: float) -> str:
    """A model whose program is the temperature at which it is asked."""
    return f"```python\ndef solve():\n    return [{temperature!r}]\n```"


def as_fitness(value: Any) -> float:
    return float(value[0])


def warmth(tmp_path: Path) -> evo.Task:
    return evo.task("warmth", initial_program="def solve():\n    return [0.0]\n",
                    evaluate=as_fitness, statement="Be warm.")  # fmt: skip


@pytest.mark.parametrize("asynchronous", [False, True])
def test_each_call_is_made_at_the_temperature_of_its_request_and_a_rerun_keeps_to_it(
    asynchronous: bool, tmp_path: Path
) -> None:
    given: dict[str, Any] = {
        "model": warm, "temperature": 0.7, "children": 3, "search": Schedule(), "progress": False,
        "log": tmp_path / "a", "asynchronous": asynchronous,
    }  # fmt: skip
    log = evo.run(warmth(tmp_path), generations=1, **given)
    log = evo.run(warmth(tmp_path), generations=3, **given)  # goes on
    plans = log.requests.values() if asynchronous else log.plans.values()
    for plan in plans:
        for request in plan.requests:
            assert request.temperature is None or 0.0 <= request.temperature <= 1.4
    for child in log.children:
        if asynchronous:
            (request,) = log.requests[child.request or 0].requests
        else:
            request = log.plans[child.generation].requests[child.index]
        asked = 0.7 if request.temperature is None else request.temperature
        assert child.evaluation.fitness == pytest.approx(asked)
    assert len({child.evaluation.fitness for child in log.children}) > (1 if asynchronous else 3)
    assert evo.rerun(log.path, search=Schedule()).same
    assert not evo.verify(log.path).faults


def test_a_constant_schedule_is_the_temperature_of_the_run(tmp_path: Path) -> None:
    given: dict[str, Any] = {"generations": 3, "children": 2, "seed": 3, "progress": False}
    own = evo.run("mmd", search=Schedule((0.3,), 0.0), log=tmp_path / "own", **given)
    run = evo.run("mmd", temperature=0.3, log=tmp_path / "run", **given)
    other = evo.run("mmd", temperature=1.5, log=tmp_path / "other", **given)
    replies = [[child.reply for child in log.children] for log in (own, run, other)]
    assert replies[0] == replies[1]
    assert own.trajectory.tolist() == run.trajectory.tolist()
    assert {each.temperature for plan in own.plans.values() for each in plan.requests} == {0.3}


def test_another_schedule_than_the_one_that_was_logged_is_reported(tmp_path: Path) -> None:
    given: dict[str, Any] = {"generations": 2, "children": 2, "progress": False}
    log = evo.run("mmd", search=Schedule((0.3,), 0.0), log=tmp_path / "own", **given)
    planner = Planner(played=True, logged=log.plans)
    state = state_of(log, through=0)
    state.header = msgspec.structs.replace(state.header, search=record_of(Schedule((0.9,), 0.0)))
    prompts = planner(state)
    assert planner.differing == [1]
    assert [each.planned.temperature for each in prompts] == [0.3, 0.3]


def test_a_prompt_that_is_asked_by_hand_states_its_temperature(tmp_path: Path) -> None:
    searcher = evo.Searcher(
        "mmd", children=3, temperature=0.7, search=Schedule(), log=tmp_path / "a"
    )
    assert [prompt.sampling.temperature for prompt in searcher.ask()] == [0.2, 0.7, 1.4]
    searcher.close()


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        (-0.1, "temperature"),
        (2.5, "temperature"),
        ("warm", "temperature"),
        (float("nan"), "by_index: a log holds finite numbers"),  # a field of the search
    ],
)
def test_a_temperature_that_cannot_be_is_refused_by_the_name_of_the_search(
    wrong: Any, words: str, tmp_path: Path
) -> None:
    given: dict[str, Any] = {"generations": 1, "children": 1, "progress": False}
    with pytest.raises((ValueError, TypeError), match=words):
        evo.run("mmd", search=Schedule((wrong,), 0.0), log=tmp_path / "a", **given)


def test_mixed_edits_are_drawn_for_each_child_and_logged(tmp_path: Path) -> None:
    how: dict[str, Any] = {"generations": 3, "children": 6, **QUIET}
    log = evo.run("mmd", edits="mixed", log=tmp_path / "a.jsonl", **how)
    planned = [request.edits for plan in log.plans.values() for request in plan.requests]
    assert planned == [child.edits for child in log.children]
    assert set(planned) == {"diff", "rewrite"}
    for child in log.children:
        assert ("<<<<<<< SEARCH" in (child.reply or "")) == (child.edits == "diff")
    assert evo.rerun(log).same
    assert [*faults_of(log), *missing_lines(log)] == []
    table = replay.children(log, progress=False)
    assert table["edits"].tolist() == planned

    header = log.header
    often = [
        request.edits
        for number in range(1, 101)
        for request in with_edits((Planned(parents=((0, 0),)),) * 6, header, number)
    ]
    assert 264 < often.count("diff") < 336  # of 600: 3 SD
    whole = evo.run("mmd", log=tmp_path / "b.jsonl", **how)
    assert replay.children(whole, progress=False)["edits"].unique().tolist() == ["rewrite"]
    [blocks] = evo.fork(log, at=2, edits="diff", log_dir=tmp_path, generations=3, **QUIET)
    assert {child.edits for child in blocks.children[12:]} == {None}
    again = replay.children(blocks, progress=False)["edits"].tolist()
    assert again == [*planned[:12], *["diff"] * 6]


def test_without_a_barrier_mixed_edits_are_drawn_by_request(tmp_path: Path) -> None:
    log = evo.run("mmd", edits="mixed", diff_share=0.7, asynchronous=True, generations=2,
                  children=4, log=tmp_path / "a.jsonl", **QUIET)  # fmt: skip
    asked = {number: plan.requests[0].edits for number, plan in log.requests.items()}
    assert {child.request: child.edits for child in log.children}.items() <= asked.items()
    assert evo.rerun(log).same


def test_a_program_that_is_told_suits_what_its_prompt_asks_for(tmp_path: Path) -> None:
    with evo.Searcher("mmd", edits="mixed", generations=1, children=8, log=tmp_path / "a.jsonl",
                      progress=False) as search:  # fmt: skip
        for asked in search.ask(8):
            search.tell(asked, program=evo.load_task("mmd").record.files["initial_program.py"])
    log = evo.read_log(tmp_path / "a.jsonl")
    assert {child.edits for child in log.children} == {"diff", "rewrite"}
    assert log.status_counts == {"ok": 8}


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"edits": "both"}, "expected one of rewrite, diff, mixed, got 'both'"),
        ({"edits": "mixed", "diff_share": 1}, "between 0 and 1, got 1"),
        ({"diff_share": 0.5}, 'needs edits="mixed"'),
    ],
)
def test_mixed_edits_that_cannot_be_are_refused(options: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        make_header("mmd", **options)
