import pytest
from hypothesis import given
from hypothesis import strategies as st

from evo.prompt import build_messages, parse_reply
from evo.task import load_task

PROGRAM = "def f():\n    return 1\n"


@pytest.mark.parametrize(
    ("reply", "program"),
    [
        (f"Sure.\n```python\n{PROGRAM}```\nDone.", PROGRAM),
        (f"```python\nfirst = 1\n```\nbetter:\n```python\n{PROGRAM}```", PROGRAM),
        (f"<think>\n```python\nx = 0\n```\n</think>\n```py\n{PROGRAM}```", PROGRAM),
        (f"```python\nx = 0\n```\n</think>\n```python\n{PROGRAM}```", PROGRAM),
        (f"```python\n{PROGRAM}```\n```bash\nls\n```", PROGRAM),
        (f"```\n{PROGRAM}```", PROGRAM),
        (f"~~~python\n{PROGRAM}~~~", PROGRAM),
        (f"````python\n{PROGRAM}```\n````", PROGRAM + "```\n"),
        (f"```python\r\n{PROGRAM}```", PROGRAM),
        (f"```python\n{PROGRAM}", None),
        (f"```python\nx = 0\n```\n```python\n{PROGRAM}", None),
        (f"<think>\n```python\n{PROGRAM}```", None),
        ("I cannot do that.", None),
        ("```bash\nls\n```", None),
        ("```python\n\n```", None),
        ("", None),
        (None, None),
    ],
)
def test_program_is_last_complete_python_block(reply: str | None, program: str | None) -> None:
    assert parse_reply(reply) == program


def test_truncated_reply_has_no_program() -> None:
    assert parse_reply(f"```python\n{PROGRAM}```", finish_reason="length") is None


@given(st.text(alphabet=st.characters(codec="utf-8", exclude_characters="\r")))
def test_any_text_survives_prompt_and_parser(body: str) -> None:
    task = load_task("mmd").record
    prompt = build_messages(task, body, None)[-1]["content"]
    found = parse_reply(prompt.partition("\n")[2])
    assert found == (body.rstrip() + "\n" if body.strip() else None)


@given(st.text())
def test_parser_takes_any_reply(reply: str) -> None:
    program = parse_reply(reply)
    assert program is None or program.strip()


def test_last_bit_of_fitness_does_not_change_the_prompt() -> None:
    task = load_task("cp").record
    assert build_messages(task, PROGRAM, 0.3) == build_messages(task, PROGRAM, 0.1 + 0.2)
    assert build_messages(task, PROGRAM, 0.3) != build_messages(task, PROGRAM, 0.4)


def test_prompt_states_task_and_program() -> None:
    task = load_task("ht")
    system, user = build_messages(task.record, task.initial_program, None)
    assert task.statement in system["content"]
    assert task.initial_program.rstrip() in user["content"]
