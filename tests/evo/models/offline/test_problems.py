"""Word problems of each family, read by hand, and how well they are answered."""

from collections import Counter

import pytest

from evo.models.offline.problems import (
    Reading,
    accuracy,
    find_problem,
    format_number,
    read_demands,
    read_problem,
)


@pytest.mark.parametrize(
    ("text", "kind", "value", "steps"),
    [
        ("How many minutes are in 3 hours?", "convert", 180, 1),
        ("What is 1.5 kilometers in meters?", "convert", 1500, 1),
        ("A pump moves 12 liters per minute for 2 hours.", "rate", 1440, 2),
        ("Tom reads 12 pages per day for 3 days.", "rate", 36, 1),
        ("Ann has 12 coins and Bo has 30. How many more coins has Bo than Ann?", "compare", 18, 1),
        ("24 apples are shared among 6 children.", "share", 4, 1),
        ("Ann buys 3 boxes of 12 eggs.", "groups", 36, 1),
        ("Ann buys 3 boxes of 12 eggs and eats 5 of them.", "groups", 31, 2),
        ("Ann has 10 coins, finds 5 and gives 3 away.", "running", 12, 2),
        ("Ann has 1,200 coins.", "running", 1200, 1),
    ],
)
def test_each_family_is_worked_out(text, kind, value, steps):
    found = read_problem(text)
    assert (found.kind, found.value, found.steps) == (kind, pytest.approx(value), steps)


def test_a_text_without_numbers_is_no_problem_and_nothing_is_shared_among_none():
    assert read_problem("How many apples?") is None
    assert read_problem("24 apples are shared among 0 children.").kind == "running"


def test_what_haste_would_answer_is_known():
    rate = read_problem("A pump moves 12 liters per minute for 2 hours.")
    assert (rate.converted, rate.unconverted) == (True, 24)
    running = read_problem("Ann has 10 coins, finds 5 and gives 3 away.")
    assert running.half == 15


@pytest.mark.parametrize(
    ("prompt", "problem"),
    [
        ("Problem: two\nlines\n\nmore", "two lines"),
        ("Read on.\n  PROBLEM:  x  y ", "x y"),
        ("The problem: none at the start of a line", None),
        ("", None),
    ],
)
def test_a_problem_is_what_follows_the_word_up_to_an_empty_line(prompt, problem):
    assert find_problem(prompt) == problem


def reading(steps=1, converted=False):
    return Reading("running", (1.0,), 1.0, steps, converted, 1.0, 1.0)


@pytest.mark.parametrize(
    ("made", "demands", "probability"),
    [
        (reading(), set(), 0.45),
        (reading(2), set(), 0.30),
        (reading(), {"steps"}, 0.65),
        (reading(2), {"steps"}, 0.65),
        (reading(converted=True), set(), 0.30),
        (reading(converted=True), {"units"}, 0.65),
        (reading(), {"check", "known"}, 0.58),
        (reading(2, True), {"hasty", "long"}, 0.05),  # never none
        (reading(2, True), {"steps", "units", "check", "known"}, 0.97),  # never all
    ],
)
def test_a_system_message_sets_how_often_the_answer_is_right(made, demands, probability):
    assert accuracy(made, demands) == pytest.approx(probability)


def test_demands_are_read_whatever_their_case_and_a_long_message_costs():
    assert "format" in read_demands("Put the FINAL answer on the\nlast line.")
    assert "steps" in read_demands("Think step by step.")
    words = ["word"] * 120
    assert "long" not in read_demands(" ".join(words))
    assert "long" in read_demands(" ".join([*words, "more"]))
    assert read_demands("") == set()


@pytest.mark.parametrize(
    ("value", "text"),
    [(4.0, "4"), (100.0, "100"), (0.5, "0.5"), (1 / 3, "0.3333"), (10.00001, "10"), (7.25, "7.25")],
)
def test_numbers_are_written_without_needless_digits(value, text):
    assert format_number(value) == text


def test_shipped_problems_are_of_several_families():
    from evo.tasks.instances import read_instances
    from evo.tasks.task import load_task

    kinds = Counter(
        read_problem(find_problem(each["prompt"]) or each["prompt"]).kind
        for each in read_instances(load_task("wp").record)
    )
    assert len(kinds) >= 5
