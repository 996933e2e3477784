"""From a reply to the program in it: blocks of code, and changes of the parent."""

import random
import re
from pathlib import Path

import pytest
from evo_runs import write_task
from hypothesis import given
from hypothesis import strategies as st

import evo
from evo.logs.records import Evolves
from evo.prompt import NoMatch, apply_blocks, build_messages, parse_reply
from evo.tasks.task import load_task

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
    assert parse_reply(reply, finish_reason="length") is None


@given(st.text(alphabet=st.characters(codec="utf-8", exclude_characters="\r")))
def test_any_text_survives_prompt_and_parser(body: str) -> None:
    task = load_task("mmd").record
    prompt = build_messages(task, body, None)[-1]["content"]
    found = parse_reply(prompt.partition("\n")[2])
    assert found == (body.rstrip() + "\n" if body.strip() else None)


def test_a_text_may_be_in_any_language() -> None:
    reply = "```rust\nfn main() {}\n```"
    assert parse_reply(reply, evolves="text") == "fn main() {}\n"
    assert parse_reply(reply) is None
    assert parse_reply(f"{reply}\n```text\nchosen\n```", evolves="text") == "chosen\n"


def block(search: str, replacement: str) -> str:
    return f"<<<<<<< SEARCH\n{search}=======\n{replacement}>>>>>>> REPLACE\n"


LINES = "a = 1\nb = 2\na = 1\nreturn a\n"


@pytest.mark.parametrize(
    ("reply", "program"),
    [
        (block("a = 1\n", "a = 5\n"), "a = 5\nb = 2\na = 1\nreturn a\n"),  # the first place
        (block("a = 1  \nb = 2\n", "c = 3\n"), "c = 3\na = 1\nreturn a\n"),
        (block("b = 2\n", ""), "a = 1\na = 1\nreturn a\n"),
        (block("b = 2\n", "c\n\n") + "and\n" + block("c\n", "d\n"),
         "a = 1\nd\n\na = 1\nreturn a\n"),
        ("<think>" + block("b = 2\n", "x\n") + "</think>```\n" + block("b = 2\n", "y\n") + "```",
         "a = 1\ny\na = 1\nreturn a\n"),
        (block("b = 2\r\n", "c\r\n").replace("\n", "\r\n"), "a = 1\nc\na = 1\nreturn a\n"),
    ],
)  # fmt: skip
def test_blocks_are_applied_one_after_another(reply: str, program: str) -> None:
    assert apply_blocks(LINES, reply.replace("\r\r", "\r")) == program


@pytest.mark.parametrize(
    ("reply", "reason"),
    [
        ("```python\na = 5\n```", "no SEARCH/REPLACE block"),
        (block("b = 3\n", "c\n"), "block 1 does not match the program: 'b = 3'"),
        (block("b = 2\n", "c\n") + block("b = 2\n", "d\n"), "block 2 does not match"),
        (block("  b = 2\n", "c\n"), "block 1 does not match"),
        (block("\n", "c\n"), "block 1 has no lines to replace"),
        ("<<<<<<< SEARCH\nb = 2\n=======\nc\n", "no SEARCH/REPLACE block"),
    ],
)
def test_a_block_that_does_not_match_is_named(reply: str, reason: str) -> None:
    with pytest.raises(NoMatch, match=reason):
        apply_blocks(LINES, reply)


def test_replies_with_diffs_are_short_and_failures_have_a_reason(tmp_path: Path) -> None:
    filler = "".join(f"# line {k} of a long program\n" for k in range(300))
    task = write_task(
        tmp_path / "task", f"{filler}def f():\n    a = 0.25\n    return a\n",
        "def score(value):\n    return {'fitness': 1 - abs(1 - value)}\n", "entry = ['f']\n",
    )  # fmt: skip
    options = {"generations": 2, "children": 6, "seed": 1, "progress": False}
    log = evo.run(task, edits="diff", log=tmp_path / "a.jsonl", **options)
    changed = [child for child in log.children if child.program is not None]
    assert len(changed) > 6
    for child in changed:
        assert child.program.startswith(filler[:1000])
        assert len(child.reply) < len(child.program) / 4
        assert apply_blocks(log_program(log, child), child.reply) == child.program
    assert evo.rerun(log).same
    wrong = [child for child in log.children if child.evaluation.status == "no_program"]
    assert all("the reply has no program: " in child.evaluation.error for child in wrong)
    with pytest.raises(ValueError, match="edits: expected one of rewrite, diff"):
        evo.run(task, edits="patch", log=tmp_path / "b.jsonl", **options)


def log_program(log, child) -> str:  # type: ignore[no-untyped-def]
    """The program that a child of a greedy run rewrote."""
    if child.generation == 1:
        return log.header.task.files["initial_program.py"]
    best = log.generations[child.generation - 2].best
    return (
        log.child(*best).program if best != (0, 0) else log.header.task.files["initial_program.py"]
    )


EVOLVES: tuple[Evolves, ...] = ("python", "text")


def test_blocks_are_found_as_they_were_line_by_line() -> None:
    rng = random.Random(5)
    parts = ["```", "~~~", "````", "`", " ", "    ", "python", "text", "\n", "\n", "a", "(x)"]
    found = 0
    for _ in range(20_000):
        reply = "".join(rng.choices(parts, k=rng.randint(1, 14)))
        for evolves in EVOLVES:
            program = parse_reply(reply, evolves=evolves)
            assert program == line_by_line(reply, evolves)
            found += program is not None
    assert found > 50


def line_by_line(reply: str, evolves: Evolves) -> str | None:
    """Returns the program in a reply, found by a loop over its lines."""
    blocks: list[tuple[str, str]] = []
    fence, tag, lines = "", "", list[str]()
    for line in reply.split("\n"):
        match = re.match(r"^ {0,3}(`{3,}|~{3,})[ \t]*([\w+.-]*)[^\n`]*$", line)
        if not fence:
            if match:
                fence, tag, lines = match[1], match[2].lower(), []
        elif match and match[1][0] == fence[0] and len(match[1]) >= len(fence) and not match[2]:
            blocks.append((tag, "\n".join(lines)))
            fence = ""
        else:
            lines.append(line)
    if fence:
        return None
    names = ("python",) if evolves == "python" else ("text", "")
    tagged = [body for tag, body in blocks if tag in names]
    untagged = [body for tag, body in blocks if not tag]
    other = [body for _, body in blocks] if evolves == "text" else []
    bodies = tagged or untagged or other
    return bodies[-1] + "\n" if bodies and bodies[-1].strip() else None


def test_a_diff_has_at_most_a_thousand_blocks() -> None:
    block = "<<<<<<< SEARCH\na\n=======\na\n>>>>>>> REPLACE\n"
    assert apply_blocks("a\n", block * 1000) == "a\n"
    with pytest.raises(NoMatch, match=r"expected at most 1,000 blocks, got 1,001"):
        apply_blocks("a\n", block * 1001)
    with pytest.raises(NoMatch, match="no SEARCH/REPLACE block"):
        apply_blocks("a\n", "<<<<<<< SEARCH\n" + "=======\n" * 9)
