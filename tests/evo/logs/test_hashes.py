"""A task's hash is over all that judges programs, and lines have one whoever inherited them."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from samples import sample_child, sample_header

from evo.logs.hashes import changed_parts, hash_of_lines, hash_of_task

TASK = sample_header().task
replace = msgspec.structs.replace

CHANGES: dict[str, tuple[dict[str, Any], list[str]]] = {
    "a file": ({"files": {**TASK.files, TASK.evaluator_file: "x = 1\n"}}, [TASK.evaluator_file]),
    "a new file": ({"files": {**TASK.files, "more.py": ""}}, ["more.py"]),
    "bytes": ({"encoded": {"data.bin": "AA=="}}, ["data.bin"]),
    "words": ({"statement": "Do it."}, ["the statement"]),
    "settings": (
        {"entry": ("other",), "scores": "any"},
        ["the setting entry", "the setting scores"],
    ),
    "a name": ({"name": "other"}, ["the setting name"]),
}


@pytest.mark.parametrize("what", CHANGES)
def test_a_change_is_another_hash_and_is_named(what: str) -> None:
    changes, named = CHANGES[what]
    other = replace(TASK, **changes)
    assert hash_of_task(other) != hash_of_task(TASK)
    assert changed_parts(TASK, other) == named == changed_parts(other, TASK)


def test_the_hash_leaves_out_itself_and_the_notes() -> None:
    assert hash_of_task(TASK) == hash_of_task(replace(TASK, hash="0" * 64)) == TASK.hash
    noted = replace(TASK, files={**TASK.files, "words.py": "x"}, notes_file="words.py")
    bare = replace(
        noted, files={k: v for k, v in noted.files.items() if k != "words.py"}, notes_file=""
    )
    assert hash_of_task(noted) == hash_of_task(bare)
    assert changed_parts(noted, replace(noted, hash="1" * 64)) == []
    other = replace(noted, files={**noted.files, "words.py": "y"})
    assert changed_parts(noted, other) == []


def test_lines_hash_alike_whether_or_not_they_are_inherited_and_in_their_order() -> None:
    one, two = sample_child(1, 0, 0.5), sample_child(1, 1, 0.25)
    lent = replace(one, inherited=True)
    assert hash_of_lines([one, two]) == hash_of_lines([lent, two])
    assert hash_of_lines([one, two]) != hash_of_lines([two, one])
    assert hash_of_lines([one]) != hash_of_lines([one, two])
    assert hash_of_lines(iter([one])) == hash_of_lines([one])
