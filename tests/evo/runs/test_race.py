"""A race asks for a whole generation first, and tries only texts that nobody has tried."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import msgspec
import pytest
from samples import sample_child, sample_header

from evo.logs.records import Evaluation, Generation, Header, Initial, Planned
from evo.models.client import Call
from evo.runs.evaluate import DrawEvaluator, Evaluate
from evo.runs.items import BatchesItem, Prompt, ScreenItem, Step
from evo.runs.race import Race
from evo.runs.state import State, program_digest
from evo.searches.base import Member

HEADER = msgspec.structs.replace(sample_header(children=4), batches=2)
BEFORE = Evaluation(status="ok", fitness=0.25)


@dataclass(frozen=True)
class Short:
    """Refuses what is long."""

    name = "short"

    def check(self, program: str, archive: Sequence[Member]) -> str | None:
        """Returns why."""
        return "too long" if len(program) > 9 else None


def first(prompt: Prompt, state: State) -> Step[Any]:
    """Never begun here: what it would return is sent to the race."""
    yield from ()


def made(header: Header = HEADER) -> tuple[Race, State, list[Prompt]]:
    """Returns a race, the state after generation 0, and the prompts of generation 1."""
    state = State(header)
    state.take(Initial(evaluation=BEFORE))
    prompts = [
        Prompt((1, k), Planned(parents=((0, 0),)), [], f"{k}", "before")
        for k in range(header.children)
    ]
    evaluate = Evaluate(DrawEvaluator(header, lambda *_, **__: BEFORE))
    return Race(header, first, evaluate), state, prompts


def reply(program: str | None) -> Call:
    return Call((), None if program is None else f"```python\n{program}\n```")


def returned(step: Step[Any], sent: Any = None) -> Any:
    """Returns the result of a step that ends."""
    with pytest.raises(StopIteration) as end:
        step.send(sent)
    return end.value.value


def go(step: Step[None], *sent: Any) -> list[Any]:
    """Returns what a race asks for, given what came of it."""
    wanted, answers = [next(step)], list(sent)
    try:
        while answers:
            wanted.append(step.send(answers.pop(0)))
    except StopIteration:
        assert not answers
    return wanted


def test_equal_texts_race_once_and_each_child_has_its_own_call() -> None:
    race, state, prompts = made()
    calls = [reply("a = 1"), reply("b = 2"), reply("a = 1"), reply(None)]
    step = race.race(prompts, state, ())
    asked = next(step)
    assert len(asked) == 4
    batches = step.send(calls)
    assert isinstance(batches, BatchesItem)
    assert [text.strip() for text in batches.rivals] == ["a = 1", "b = 2"]
    assert [*batches.rivals.values()] == [BEFORE] * 2
    found = {text: Evaluation(status="ok", fitness=k / 4) for k, text in enumerate(batches.rivals)}
    assert returned(step, found) is None
    known = race.evaluate.known
    assert [known[program_digest(text)] for text in batches.rivals] == [*found.values()]
    assert [returned(race.ask(prompt, state)) for prompt in prompts] == calls
    assert race.calls == {}


def test_logged_children_are_not_asked_for_again_and_their_texts_race_all_the_same() -> None:
    race, state, prompts = made()
    logged = msgspec.structs.replace(sample_child(1, 1, 0.5), program="kept = 1")
    state.take(logged)
    asked, batches = go(
        race.race(prompts, state, ()), [reply("a = 1"), reply(None), reply("b = 2")]
    )
    assert len(asked) == 3
    assert [text.strip() for text in batches.rivals] == ["a = 1", "kept = 1", "b = 2"]


def test_what_the_archive_holds_does_not_race() -> None:
    race, state, prompts = made()
    for index in range(4):
        state.take(msgspec.structs.replace(sample_child(1, index, 0.5), program=f"x = {index}\n"))
    state.take(Generation(generation=1, best_fitness=0.5, best=(1, 0), improved=True, seconds=0.0))
    later = [Prompt((2, p.place[1]), p.planned, [], p.hash, p.program) for p in prompts]
    texts = ["x = 1", "x = 2", "x = 9", "x = 0"]
    [_, batches] = go(race.race(later, state, ()), [reply(each) for each in texts])
    assert [text.strip() for text in batches.rivals] == ["x = 9"]


def test_a_refused_text_does_not_race_and_without_any_there_is_no_race() -> None:
    race, state, prompts = made(msgspec.structs.replace(HEADER, children=2))
    filters = (Short(),)
    calls = [reply("a = 1"), reply("a = 123456789")]
    wanted = go(race.race(prompts, state, filters), calls, None, "too long")
    assert [type(each) for each in wanted[1:]] == [ScreenItem, ScreenItem, BatchesItem]
    assert [text.strip() for text in wanted[3].rivals] == ["a = 1"]
    race, state, prompts = made(msgspec.structs.replace(HEADER, children=2))
    wanted = go(race.race(prompts, state, filters), [reply(None), reply("a = 123456789")], "no")
    assert [type(each) for each in wanted] == [list, ScreenItem]
