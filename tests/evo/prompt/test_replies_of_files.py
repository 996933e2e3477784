"""Prompts that show several files, and replies that give some of them."""

import msgspec
import pytest

import evo
from evo.logs.several import header_line, pack, unpack
from evo.prompt import NoMatch, build_messages, files_after, reply_of_files

RECORD = msgspec.structs.replace(
    evo.load_task("packing_table").record, program_files=("main.py", "lib/*.py", "table.txt")
)
FILES = {"main.py": "import lib.a\n", "lib/a.py": "x = 1\n", "table.txt": "0 ```\n"}
PARENT = pack(FILES)
MAIN, TABLE, NEW = map(header_line, ("main.py", "table.txt", "lib/new.py"))


def after(reply: str, edits: str = "rewrite") -> dict[str, str]:
    return unpack(files_after(reply, PARENT, RECORD, edits))


@pytest.mark.parametrize(
    ("reply", "changed"),
    [
        (f"{TABLE}\n```text\n1 1\n```", {"table.txt": "1 1\n"}),
        (f"Why.\n\n{TABLE}\n\n```\n1 1\n```\nDone.", {"table.txt": "1 1\n"}),
        (f"```\n{TABLE}\n1 1\n{MAIN}\ny = 2\n```", {"table.txt": "1 1\n", "main.py": "y = 2\n"}),
        (f"{MAIN}\n````python\na = '''\n```\n'''\n````", {"main.py": "a = '''\n```\n'''\n"}),
        (f"{TABLE}\n```\n1\n```\nbetter:\n{TABLE}\n```\n2\n```", {"table.txt": "2\n"}),
        (f"{NEW}\n```python\nz = 3\n```", {"lib/new.py": "z = 3\n"}),
        (f"<think>{MAIN}\n```\nno\n```\n</think>{TABLE}\n```\n1\n```", {"table.txt": "1\n"}),
    ],
)
def test_a_reply_changes_the_files_that_it_gives_and_no_other(reply, changed):
    assert after(reply) == {**FILES, **changed}


@pytest.mark.parametrize(
    ("reply", "reason"),
    [
        ("I cannot.", "no file below a header line"),
        ("```python\nx = 1\n```", "no file below a header line"),
        (f"{header_line('evaluator.py')}\n```\nscore = 1\n```", "'evaluator.py' is none of"),
        (f"{header_line('../a.py')}\n```\nx\n```", "is none of the program"),
        (f"{MAIN}\n```python\nx = 1", "left open"),
        (f"{MAIN}\n```python\n\n```", "main.py is empty"),
    ],
)
def test_a_reply_without_a_file_says_what_was_missing(reply, reason):
    with pytest.raises(NoMatch, match=reason):
        after(reply)


def test_a_difference_names_its_file():
    change = "<<<<<<< SEARCH\n{}\n=======\n{}\n>>>>>>> REPLACE"
    reply = f"{TABLE}\n{change.format('0 ```', '5 5')}\n{header_line('lib/a.py')}\n"
    reply += change.format("x = 1", "x = 2")
    assert after(reply, "diff") == {**FILES, "table.txt": "5 5\n", "lib/a.py": "x = 2\n"}
    new = f"{NEW}\n```python\nz = 3\n```\n{MAIN}\n{change.format('import lib.a', 'import lib.new')}"
    assert after(new, "diff")["lib/new.py"] == "z = 3\n"
    with pytest.raises(NoMatch, match=r"table.txt: block 1 does not match the program: 'x = 1'"):
        after(f"{TABLE}\n{change.format('x = 1', 'x = 2')}", "diff")
    with pytest.raises(NoMatch, match="no file below a header line"):
        after(change.format("x = 1", "x = 2"), "diff")


def test_what_a_prompt_shows_is_what_a_reply_may_give():
    system, user = build_messages(RECORD, PARENT, 0.5)
    assert "A new file, named lib/*.py, is given in full" in system["content"]
    shown = user["content"]
    assert f"{MAIN}\n````python\nimport lib.a\n````" in shown
    assert f"{TABLE}\n````text\n0 ```\n````" in shown
    assert "in full" not in shown
    assert files_after(shown, PARENT, RECORD, "rewrite") == PARENT
    assert files_after(reply_of_files(PARENT), PARENT, RECORD, "rewrite") == PARENT


def test_an_escaped_line_is_shown_as_it_is():
    tricky = pack({"main.py": f"{TABLE}\nx = 1\n", "table.txt": "0\n"})
    assert unpack(tricky)["main.py"] == f"{TABLE}\nx = 1\n"
    assert list(unpack(tricky)) == ["main.py", "table.txt"]
