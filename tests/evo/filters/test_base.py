"""What filters answer: the first that refuses gives the reason, before and after an evaluation."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import msgspec
import pytest
from filter_samples import archive

from evo.filters import SameProgram
from evo.filters.base import LONGEST, exclusion, refusal
from evo.logs.records import Evaluation
from evo.searches import Member

OK = Evaluation(status="ok", fitness=0.5)


@dataclass(frozen=True)
class Answers:
    """Answers what it is told to, and counts how often it was asked."""

    answer: Any
    asked: list[str]
    name: str = "answers"

    def check(self, program: str, archive: Sequence[Member]) -> Any:
        self.asked.append(program)
        return self.answer


@dataclass(frozen=True)
class After(Answers):
    """Looks at evaluations, too."""

    name: str = "after"

    def after(self, evaluation: Evaluation, archive: Sequence[Member]) -> Any:
        self.asked.append(evaluation.status)
        return self.answer


def test_filters_are_asked_in_order_up_to_the_first_that_refuses() -> None:
    asked: list[str] = []
    passing, no, never = (
        Answers(answer, asked, name)
        for answer, name in ((None, "passing"), ("too long", "no"), ("worse", "never"))
    )
    assert refusal("x", filters=(passing, no, never), archive=[]) == "no: too long"
    assert asked == ["x", "x"]
    assert refusal("x", filters=(passing, passing), archive=archive("x")) is None
    assert refusal("x", filters=(), archive=[]) is None


def test_only_filters_that_look_at_evaluations_are_asked_of_one() -> None:
    asked: list[str] = []
    before, after = Answers("no", asked), After("as another", asked)
    assert exclusion(OK, filters=(before, after), archive=[]) == "after: as another"
    assert asked == ["ok"]
    assert exclusion(OK, filters=(before,), archive=[]) is None
    assert exclusion(OK, filters=(After(None, asked), After("b", asked)), archive=[]) == "after: b"


@pytest.mark.parametrize("over", [-1, 0, 1])
def test_a_reason_is_logged_up_to_so_many_characters(over: int) -> None:
    words = "x" * (LONGEST - len("answers: ") + over)
    found = refusal("p", filters=[Answers(words, [])], archive=[]) or ""
    assert len(found) == min(LONGEST, LONGEST + over)
    assert found == f"answers: {words}"[:LONGEST]


def test_a_reason_that_quotes_half_a_character_can_be_logged() -> None:
    found = refusal("p", filters=[Answers("holds \ud800", [])], archive=[])
    kept = exclusion(OK, filters=[After("holds \ud800", [])], archive=[])
    assert (found, kept) == ("answers: holds ?", "after: holds ?")
    assert msgspec.json.decode(msgspec.json.encode([found, kept])) == [found, kept]


@pytest.mark.parametrize("answer", [False, True, 0, [], "", " \n"])
def test_an_answer_that_is_no_sentence_names_the_method(answer: object) -> None:
    with pytest.raises(
        TypeError,
        match=r"filter 'answers': expected `check` to return a sentence.*; "
        r"correct it, then `evo resume LOG --filter FILE\.py:CLASS`",
    ):
        refusal("p", filters=[Answers(answer, [])], archive=[])
    with pytest.raises(TypeError, match=r"`after` .* says why the program is kept out of the arch"):
        exclusion(OK, filters=[After(answer, [])], archive=[])


@dataclass(frozen=True)
class Emptying:
    """Empties the archive that it is given."""

    name: str = "emptying"

    def check(self, program: str, archive: list[Member]) -> None:
        archive.clear()

    def after(self, evaluation: Evaluation, archive: list[Member]) -> None:
        archive.clear()


@dataclass(frozen=True)
class Rounding:
    """Keeps out what has no speed, and spoils it."""

    name: str = "rounding"

    def check(self, program: str, archive: list[Member]) -> None:
        return None

    def after(self, evaluation: Evaluation, archive: list[Member]) -> str | None:
        return None if evaluation.metrics.pop("speed", None) else "no speed"


def test_what_one_filter_does_to_an_evaluation_is_not_seen_by_the_next() -> None:
    fast = Evaluation(status="ok", fitness=0.5, metrics={"speed": 2.0})
    assert exclusion(fast, filters=(Rounding(), Rounding()), archive=[]) is None
    assert fast.metrics == {"speed": 2.0}


def test_what_one_filter_does_to_the_archive_hides_nothing_from_the_next() -> None:
    known = archive("x")
    answer = refusal("x", filters=(Emptying(), SameProgram()), archive=known)
    assert answer is not None
    assert answer == refusal("x", filters=(SameProgram(),), archive=known)
    assert exclusion(OK, filters=(Emptying(),), archive=known) is None
    assert known == archive("x")
