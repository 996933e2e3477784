"""The offline model's rewrites of a program of several files: one file, and what it may become."""

from __future__ import annotations

import re

import pytest

from evo.keyed import KeyedStream
from evo.logs.several import pack, unpack
from evo.models.offline.formats import Parent
from evo.models.offline.several import files_shown, rewrite_files, text_of
from evo.prompt import apply_blocks

TABLE = "1.5 2\n-3 4.25\n\nlast 5\n"
FILES = {
    "main.py": Parent("python", "def value():\n    return 1\n"),
    "table.txt": Parent("text", TABLE),
    "notes.txt": Parent("text", "Think of it.\nSay it in words.\n"),
}


def shown(files: dict[str, Parent], fence: str = "```") -> str:
    return "".join(
        f"==== file: {name} ====\n{fence}{each.language}\n{each.text}{fence}\n"
        for name, each in files.items()
    )


def rewritten(seed: int, files: dict[str, Parent] = FILES, *, diff: bool = False) -> str:
    return rewrite_files(
        files, KeyedStream("several", seed), diff=diff,
        program=lambda text: (text.replace("1", "2"), "I double it."),
    )  # fmt: skip


def named(reply: str) -> str:
    found = re.search(r"^==== file: (.+) ====$", reply, re.MULTILINE)
    assert found is not None
    return found[1]


@pytest.mark.parametrize("fence", ["```", "`````"])
def test_the_files_of_the_current_program_are_read_and_no_others(fence: str) -> None:
    assert files_shown(shown(FILES, fence)) == FILES
    others = {"old.py": Parent("python", "x = 1\n")}
    assert files_shown(f"{shown(others)}\nCurrent program:\n{shown(FILES)}") == FILES
    assert files_shown("Rewrite this.\n```python\nx = 1\n```\n") == {}


def test_equal_files_in_another_order_are_the_same_text_but_for_the_first() -> None:
    moved = {name: FILES[name] for name in ("main.py", "notes.txt", "table.txt")}
    assert text_of(moved) == text_of(FILES)
    assert unpack(text_of(FILES)) == {name: each.text for name, each in FILES.items()}


def test_each_file_is_changed_now_and_then_and_the_draws_alone_say_which() -> None:
    replies = [rewritten(seed) for seed in range(40)]
    assert replies == [rewritten(seed) for seed in range(40)]
    assert set(map(named, replies)) == FILES.keys()


@pytest.mark.parametrize("seed", range(20))
def test_a_whole_file_and_its_blocks_are_the_same_change_but_for_empty_lines(seed: int) -> None:
    whole, blocks = rewritten(seed), rewritten(seed, diff=True)
    name = named(whole)
    assert named(blocks) == name
    new = files_shown(f"\nCurrent {whole[whole.index('====') :]}")[name].text
    changed = apply_blocks(FILES[name].text, blocks)
    filled = [[*filter(None, text.split("\n"))] for text in (changed, new, FILES[name].text)]
    assert filled[0] == filled[1] != filled[2]


def test_of_a_table_one_or_two_numbers_change_and_nothing_else() -> None:
    number = re.compile(r"\d+(?:\.\d+)?")
    counts = set()
    for seed in range(30):
        reply = rewritten(seed, {"table.txt": FILES["table.txt"]})
        new = files_shown(f"\nCurrent {reply[reply.index('====') :]}")["table.txt"].text
        assert number.sub("#", new).split() == number.sub("#", TABLE).split()
        counts.add(
            sum(a != b for a, b in zip(number.findall(new), number.findall(TABLE), strict=True))
        )
    assert counts <= {0, 1, 2}
    assert counts & {1, 2}


def test_fences_are_longer_than_those_within_a_file() -> None:
    inside = {"main.py": Parent("python", '"""\n````\n1\n````\n"""\n')}
    reply = rewritten(1, inside)
    assert "`````python\n" in reply
    [text] = [
        each.text for each in files_shown(f"\nCurrent {reply[reply.index('====') :]}").values()
    ]
    assert pack({"main.py": text}) == pack({"main.py": inside["main.py"].text.replace("1", "2")})
