"""What a request asks the offline model for, and when a reply of it breaks off."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from offline_requests import PARENTS, TASKS, TOY, ask, parses, showing

from evo.logs.languages import KEEPS_FORM
from evo.logs.several import header_line
from evo.models.offline.model import answer
from evo.prompt import ShownProgram, advice_messages, build_messages
from evo.tasks.task import load_task

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
    seeded, first, unseeded = ([reply(*each, seed=seed) for each in talks] for seed in (3, 0, None))
    assert seeded[0] == seeded[1]
    assert first[0] == first[1]  # 0 is a seed
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


def replies(shown: str, *, model: str = "offline", count: int = 200) -> list[str]:
    """Replies of different seeds, hot, so that many fail."""
    return [answer(model, [("user", shown)], seed, 2.0)[0] for seed in range(count)]


def test_some_rewrites_keep_their_parent_of_known_and_unknown_tasks() -> None:
    for shown, low, high in ((BLOCK, 0.02, 0.2), (f"```python\n{PARENTS['cp']}```", 0.005, 0.2)):
        kept = sum("I keep the program." in text for text in replies(shown, count=300))
        assert low * 300 < kept < high * 300


def test_a_program_in_another_language_fails_to_compile_now_and_then() -> None:
    program = "int main(void) { int k = 3; return k; }\n"
    shown = f"{KEEPS_FORM}\n```c\n{program}```"
    whole_replies = [text for text in replies(shown) if text.count("```") == 2]
    ends = Counter(text.count(";") for text in whole_replies)
    assert ends.keys() == {program.count(";"), program.count(";") - 1}
    whole, broken = ends[program.count(";")], ends[program.count(";") - 1]
    assert 0 < broken < whole


def test_who_heeds_feedback_makes_fewer_mistakes() -> None:
    task = load_task("mmd").record
    told = "What went wrong lately:\n- error: it broke\n"

    def failures(feedback: str) -> int:
        user = build_messages(task, task.files[task.program_file], 0.5, feedback=feedback)[-1]
        found = replies(user["content"], model="offline-2", count=150)
        return sum(text.count("```python") == 0 or not sound(text) for text in found)

    assert failures(told) < 0.7 * failures("")


def sound(text: str) -> bool:
    """Whether the last block of a reply is closed and is Python."""
    program = text.rpartition("```python\n")[2].partition("\n```")
    return bool(program[1]) and parses(program[0])


def test_advice_on_a_search_and_files_of_a_program_are_answered_as_such() -> None:
    task = load_task("mmd").record
    parent = ShownProgram((0, 0), 0.5, task.files[task.program_file])
    asked = [
        (each["role"], each["content"])
        for each in advice_messages(task, [parent], generations=[], tried=[])
    ]
    assert "This advice is from the offline model" in reply(*asked)
    files = f"{header_line('a.py')}\n```python\n{TOY}```\n{header_line('b.txt')}\n```\n3 4\n```\n"
    changed = {
        reply(("user", files), seed=seed).partition("==== file: ")[2][:4] for seed in range(9)
    }
    assert changed == {"a.py", "b.tx"}
