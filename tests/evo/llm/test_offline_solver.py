"""Word problems: the offline model answers better the better the system message asks."""

from __future__ import annotations

import re

import pytest
from offline_requests import ask

from evo.llm.offline.problems import read_problem
from evo.llm.offline.solver import accuracy, read_demands

PROBLEMS = {
    "Ada has 34 marbles, loses 9 and finds 15. How many has she now?": 40,
    "A shop sells 7 boxes of 12 eggs and 5 of them break. How many are left?": 79,
    "Ken has 23 stamps and Lou has 41. How many more stamps does Lou have than Ken?": 18,
    "84 cards are divided among 7 players. How many does each get?": 12,
    "How many grams are there in 3 kilograms?": 3000,
    "A tap gives 4 litres per minute for 3 hours. How much is that?": 720,
    "A cyclist rides 18 km per hour for 4 hours. How far is that?": 72,
    "A tree holds 52 birds and loses 17 of them. How many are left?": 35,
}
"""Problems and their answers, worked out by hand."""

SEEDS = range(150)
FORMAT = "End with a line of the form 'Answer: <number>'."
Try = tuple[str, int]


def right(system: str, problems: list[str] | None = None) -> set[Try]:
    """Problems and seeds whose reply's last number is the answer."""
    found = set()
    for problem in problems or PROBLEMS:
        messages = [{"role": "user", "content": f"Problem: {problem}"}]
        if system:
            messages.insert(0, {"role": "system", "content": system})
        for seed in SEEDS:
            numbers = re.findall(r"\d+(?:\.\d+)?", ask(messages, seed=seed).text)
            if float(numbers[-1]) == PROBLEMS[problem]:
                found.add((problem, seed))
    return found


def share(found: set[Try], problems: list[str] | None = None) -> float:
    return len(found) / (len(SEEDS) * len(problems or PROBLEMS))


def test_the_problems_are_read_rightly() -> None:
    for problem, answer in PROBLEMS.items():
        reading = read_problem(problem)
        assert reading is not None
        assert reading.value == answer


@pytest.mark.parametrize("system", [FORMAT, f"Check it step by step. {FORMAT}"])
def test_shares_are_those_that_are_documented(system: str) -> None:
    expected = 0.0
    for problem in PROBLEMS:
        reading = read_problem(problem)
        assert reading is not None
        expected += accuracy(reading, read_demands(system)) / len(PROBLEMS)
    tries = len(SEEDS) * len(PROBLEMS)
    assert abs(share(right(system)) - expected) < 4 * (expected * (1 - expected) / tries) ** 0.5


@pytest.mark.parametrize("problem", ["", "How are you?", "What is the colour of grass?"])
def test_a_problem_without_numbers_is_answered_in_words(problem: str) -> None:
    reply = ask([{"role": "user", "content": f"Problem: {problem}\n"}], seed=1)
    assert reply.finish_reason == "stop"
    assert not re.search(r"\d", reply.text)
