"""What a request asks the offline model for, and when a reply of it breaks off."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from offline_requests import PARENTS, TASKS, TOY, ask, showing

from evo.models.offline.model import answer

TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=300)
BLOCK = f"```python\n{TOY}```\n"
PROBLEM = "Problem: Eve has 3 boxes of 8 figs. How many figs has she?"


def test_only_parent_seed_and_temperature_matter() -> None:
    def reply(*, system: str = "", seed: int | None = 5, **fields: Any) -> str:
        return ask(showing(PARENTS["cp"], system=system), seed=seed, **fields).text

    assert reply() == reply(system="Be bold.", top_p=0.3, user="someone", stop=None)
    assert len({reply(temperature=t / 10) for t in range(21)}) > 3
    assert len({reply(seed=None, system=f"Be bold {k} times.") for k in range(100)}) > 75


@given(
    text=TEXTS,
    language=st.sampled_from(["python", "text", "", "json"]),
    seed=st.integers(0, 99),
    data=st.data(),
)
def test_any_parent_is_answered(text: str, language: str, seed: int, data: st.DataObject) -> None:
    """Arbitrary texts, and programs of the tasks with a random piece replaced."""
    if data.draw(st.booleans()):
        program = PARENTS[data.draw(st.sampled_from(TASKS))]
        start = data.draw(st.integers(0, len(program)))
        end = data.draw(st.integers(start, min(start + 40, len(program))))
        text = program[:start] + text[:40] + program[end:]
    assert ask(showing(text, language=language), seed=seed).finish_reason in {"stop", "length"}


def reply(*messages: tuple[str, str], seed: int | None = 3, temperature: float = 0.0) -> str:
    return answer("offline", messages, seed, temperature)[0]


def test_a_message_with_neither_code_nor_problem_is_told_what_answers() -> None:
    plain = reply(("user", "hello"))
    assert "not an LLM" in plain
    assert reply(("system", BLOCK), ("user", "hello")) == plain  # only what a user says counts
    assert reply(("user", f"Read: {PROBLEM}")) == plain  # a line must begin with the word


def test_the_last_message_of_a_user_is_answered_and_code_before_a_problem() -> None:
    solved, rewritten = reply(("user", PROBLEM)), reply(("user", BLOCK))
    assert "def area" in rewritten
    assert "def area" not in solved
    assert reply(("user", BLOCK), ("user", PROBLEM), ("assistant", BLOCK)) == solved
    assert reply(("user", f"{BLOCK}\n{PROBLEM}")) == rewritten


def test_without_a_seed_the_whole_conversation_takes_its_place() -> None:
    talks = [[("user", BLOCK)], [("system", "Be bold."), ("user", BLOCK)]]
    seeded, unseeded = ([reply(*each, seed=seed) for each in talks] for seed in (3, None))
    assert seeded[0] == seeded[1]
    assert unseeded[0] != unseeded[1]
    assert unseeded == [reply(*each, seed=None) for each in talks]


@pytest.mark.parametrize("language", ["python", "text"])
def test_a_reply_breaks_off_before_its_end_if_and_only_if_it_says_so(
    language: str,
) -> None:
    shown = BLOCK.replace("python", language, 1)
    told = [answer("offline", [("user", shown)], seed, 2.0) for seed in range(200)]
    whole = [text for text, reason in told if reason == "stop"]
    cut = [text for text, reason in told if reason == "length"]
    assert all(text.count("```") % 2 == 0 for text in whole)
    assert 5 < len(cut) < 50
    assert not [text for text in cut if text.rstrip().endswith(("```", "little.", "unchanged."))]
