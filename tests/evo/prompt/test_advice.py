"""The messages that ask for advice, and how prompts show it."""

from __future__ import annotations

import random
import re

from hypothesis import given
from hypothesis import strategies as st

import evo
from evo.prompt import ShownProgram, TriedRewrite, advice_messages, placed, read_advice


def test_of_a_text_sentences_are_compared_and_equal_rewrites_are_left_out() -> None:
    record = evo.load_task("word_problems").record
    parent = ShownProgram((0, 0), 0.5, "Solve it. Be brief. " + "Mind the units. " * 20)
    longer = parent.program + "Check it."
    rewrites = [
        TriedRewrite(ShownProgram((1, 0), 0.75, longer), parent),
        TriedRewrite(ShownProgram((1, 1), 0.5, parent.program), parent),
    ]
    system, user = advice_messages(record, [parent], generations=[], tried=rewrites)
    assert "rewrites a text" in system["content"]
    told = user["content"].partition("What was tried since:\n")[2].partition("The best text")[0]
    assert told == "- fitness 0.750000, from 0.500000:\n  +Check it.\n"


def test_of_many_rewrites_those_that_gained_and_lost_most_are_told() -> None:
    record = evo.load_task("mmd").record
    parent = ShownProgram((0, 0), 0.5, "a = 0\n")
    rewrites = [
        TriedRewrite(ShownProgram((1, k), k / 20, f"a = {k}\n"), parent) for k in range(1, 20)
    ]
    random.Random(3).shuffle(rewrites)
    user = advice_messages(record, [parent], generations=[], tried=rewrites)[1]["content"]
    assert re.findall(r"\+a = (\d+)", user) == ["19", "18", "17", "16", "4", "3", "2", "1"]
    alone = ShownProgram((1, 0), 0.6, "b = 1\n" * 3000)
    large = advice_messages(
        record, [alone, parent, ShownProgram((1, 1), 0.4, "c" * 30_000)], generations=[],
        tried=[TriedRewrite(alone, parent)],
    )[1]["content"]  # fmt: skip
    assert "too much changed to be told" in large
    assert "a = 0" in large
    assert "ccc" not in large


def test_the_best_program_is_shown_after_the_next_two() -> None:
    record = evo.load_task("mmd").record
    best = [ShownProgram((1, k), 0.9 - k / 10, f"rank = {k}\n") for k in range(5)]
    user = advice_messages(record, best, generations=[], tried=[])[1]["content"]
    assert re.findall(r"rank = (\d)", user) == ["1", "2", "0"]


texts = st.text(st.sampled_from("ab`~ \n-<>/thinkpyo"), max_size=400)


@given(texts | st.text(max_size=3000))
def test_of_any_reply_an_advice_is_short_and_opens_no_code_block(reply: str) -> None:
    advice = read_advice(reply)
    assert len(advice) <= 2000
    assert not any(line.lstrip().startswith(("```", "~~~")) for line in advice.splitlines())
    assert placed(advice) == "" or placed(advice).endswith(f"{advice}\n")


def test_an_advice_is_kept_whole_or_cut_at_the_end_of_a_line() -> None:
    lines = [f"- Point {k}: be bold." for k in range(200)]
    assert read_advice("\n".join(lines[:3])) == "\n".join(lines[:3])
    kept = read_advice("\n".join(lines)).split("\n")
    assert kept == lines[: len(kept)]
    assert len("\n".join(lines[: len(kept) + 1])) > 2000


def test_no_reply_and_thoughts_alone_are_no_advice() -> None:
    assert read_advice(None) == read_advice("<think>- Be bold.</think>\n```\n") == placed("") == ""
