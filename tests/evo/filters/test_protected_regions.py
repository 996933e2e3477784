"""Protected regions: what stands outside the marks, and what the prompt says of it."""

import re
from pathlib import Path
from typing import Any

import pytest
from evo_runs import write_task
from filter_samples import JUDGE, PROGRAM, QUIET
from hypothesis import given
from hypothesis import strategies as st

import evo
from evo.filters import ProtectedRegions
from evo.filters.protected_regions import _outside
from evo.logs.several import pack
from evo.runs.planning import asked_in
from evo.searches import Member

MARKED = """\
import math

# EVOLVE-BLOCK-START
def inner():
    return 1.5
# EVOLVE-BLOCK-END

def value():
    return 2 * inner()
"""


@pytest.mark.parametrize(
    ("changed", "reason"),
    [
        (MARKED.replace("1.5", "math.pi"), None),
        (MARKED.replace("    return 1.5", "    a = 1\n\n    return a"), None),
        (MARKED.replace("\n\ndef value", "  \n\n\ndef value") + "\n", None),
        (MARKED.replace("2 * inner", "9 * inner"), "was changed: 'return 2 \\* inner\\(\\)'"),
        (MARKED.replace("import math", "import math, os"), "was changed: 'import math'"),
        (MARKED + "value = inner\n", "was changed: 'value = inner'"),
        (MARKED.replace("# EVOLVE-BLOCK-END\n", ""), "expected 1 regions between marks, got 0"),
        ("def value():\n    return 5\n", "expected 1 regions between marks, got 0"),
        (MARKED * 2, "expected 1 regions between marks, got 2"),
    ],
)
def test_what_stands_outside_the_marks_is_protected(changed: str, reason: str | None) -> None:
    initial = Member((0, 0), 0.5, (), MARKED)
    found = ProtectedRegions().check(changed, [initial, Member((1, 0), 0.5, (), changed)])
    assert (found is None) if reason is None else re.search(reason, found or "")
    assert ProtectedRegions().check(changed, [Member((0, 0), 0.5, (), PROGRAM)]) is None


def test_what_is_protected_is_what_the_initial_program_closes() -> None:
    opened = "a = 1\n# EVOLVE-BLOCK-START\nb = 2\n"
    initial = f"{opened}# EVOLVE-BLOCK-END\nc = 3\n"
    assert ProtectedRegions().check("c = 4\n", [Member((0, 0), 0.5, (), opened)]) is None
    later = Member((1, 0), 0.5, (), initial.replace("a = 1", "a = 2"))
    known = [later, Member((0, 0), 0.5, (), initial)]
    assert ProtectedRegions().check(initial.replace("b = 2", "b = 5"), known) is None
    assert "'a = 1'" in (ProtectedRegions().check(str(later.program), known) or "")
    assert "got 0" in (ProtectedRegions().check(opened, known) or "")


def test_marks_are_kept_in_each_of_several_files() -> None:
    files = {"a.py": MARKED, "b.py": "x = 1\n"}
    known = [Member((0, 0), 0.5, (), pack(files))]
    check = ProtectedRegions().check
    assert check(pack({**files, "a.py": MARKED.replace("1.5", "2.5"), "b.py": ""}), known) is None
    moved = check(pack({**files, "a.py": MARKED.replace("2 * inner", "3 * inner")}), known)
    assert moved is not None
    assert moved.startswith("a.py: a line outside the marks was changed")
    assert "expected 1 regions" in (check(pack({"b.py": "x = 1\n"}), known) or "")
    assert "was changed" in (check(MARKED, known) or "")  # no longer several files


def test_the_prompt_says_what_is_protected(tmp_path: Path) -> None:
    task = write_task(tmp_path / "marked", MARKED, JUDGE, "entry = ['value']\n")
    how: dict[str, Any] = {"generations": 2, "children": 4, "seed": 2, **QUIET}
    log = evo.run(task, filters="protected_regions", log=tmp_path / "a.jsonl", **how)
    asked = asked_in(log, 1)[0]
    assert f"{ProtectedRegions.rule} Give one" in asked.messages[-1]["content"]
    assert asked.hash == log.children[0].prompt_hash
    assert log.best.evaluation.fitness > 0.6  # better than the initial program
    assert evo.rerun(log).same
    plain = evo.run(task, log=tmp_path / "b.jsonl", **how)
    assert "EVOLVE-BLOCK-START and" not in asked_in(plain, 1)[0].messages[-1]["content"]


OLD_REGION = re.compile(
    r"^[^\n]*EVOLVE-BLOCK-START[^\n]*$(?:.*?^[^\n]*(EVOLVE-BLOCK-END)[^\n]*$|.*)",
    re.MULTILINE | re.DOTALL,
)


@given(
    st.lists(
        st.sampled_from(["EVOLVE-BLOCK-START", "EVOLVE-BLOCK-END", "\n", "# ", "x", "\r", " \n"])
    ).map("".join)
)
def test_regions_are_those_of_the_pattern_that_says_what_one_is(text: str) -> None:
    parts, end = [], 0
    for region in OLD_REGION.finditer(text):
        if region[1]:
            parts.append(text[end : region.start()])
            end = region.end()
    assert _outside(text) == [*parts, text[end:]]
