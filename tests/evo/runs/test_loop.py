"""A run passes through the parts that it uses, and through no other."""

import inspect
import json
import sys
from collections import Counter
from pathlib import Path
from types import FrameType
from typing import Any

import pytest
from evo_runs import QUIET

import evo

PARTS = {
    "filters": {"filters": "near_duplicates"},
    "models/critics.py": {"drafts": 2, "critic": "offline-2"},
    "runs/advice.py": {"advice": 1},
    "runs/accept.py": {"draws": 2, "confirm": 2},
    "runs/budget.py": {"budget": {"calls": 9}},
    "runs/mixture.py": {"models": ["offline", "offline-2"]},
    "models/cache.py": {"cache": "replies.db"},
    "values.py": {"search": "population"},
}
"""Options, by the files that only they need."""

OTHERS = ("gate", "studies", "runs/batches.py", "runs/dataset.py", "runs/fork.py", "runs/race.py")
"""What belongs to other verbs and to tasks with a data set."""


def files_passed(path: Path, **options: Any) -> set[str]:
    """Returns the files of the package in which one run of one child calls a function."""
    package = Path(evo.__file__).parent
    passed = set[str]()

    def note(frame: FrameType, event: str, _: object) -> None:
        code = frame.f_code
        called = event == "call" and code.co_flags & inspect.CO_OPTIMIZED  # no module, no class
        if called and code.co_filename.startswith(f"{package}/"):
            passed.add(code.co_filename.removeprefix(f"{package}/"))

    before = sys.getprofile()
    sys.setprofile(note)
    try:
        evo.run("mmd", generations=1, children=1, max_concurrent=1, log=path, **options, **QUIET)
    finally:
        sys.setprofile(before)
    return passed


@pytest.fixture(scope="module")
def plain(tmp_path_factory: pytest.TempPathFactory) -> set[str]:
    """The files that a run without any option passes."""
    return files_passed(tmp_path_factory.mktemp("plain") / "a.jsonl")


def test_a_plain_run_passes_no_part_that_it_does_not_use(plain: set[str]) -> None:
    assert {"runs/loop.py", "runs/state.py", "models/client.py"} <= plain
    assert not [name for name in plain if name.startswith((*PARTS, *OTHERS))]


@pytest.mark.parametrize(
    "part", ["filters", "runs/advice.py", "runs/budget.py", "runs/mixture.py", "values.py"]
)
def test_a_part_is_passed_where_a_run_uses_it(part: str, tmp_path: Path) -> None:
    passed = files_passed(tmp_path / "a.jsonl", **PARTS[part])
    assert any(name.startswith(part) for name in passed)


@pytest.mark.parametrize("generation", [1, 2])
def test_of_a_generation_under_way_only_the_children_that_are_missing_are_made(
    generation: int, tmp_path: Path
) -> None:
    """Whichever they are: they are known by index, and not by the number of the generation."""
    path, whole = tmp_path / "a.jsonl", tmp_path / "whole.jsonl"
    how = {"generations": 2, "children": 3, "max_concurrent": 1, **QUIET}
    evo.run("mmd", log=whole, **how)
    kinds, kept = Counter[str](), list[bytes]()
    for line in whole.read_bytes().splitlines(keepends=True):
        kinds[kind := json.loads(line)["kind"]] += 1
        if kind == "child" and kinds["child"] > 3 * (generation - 1) + 2:
            break
        kept.append(line)
    path.write_bytes(b"".join(kept))
    again = evo.run("mmd", log=path, **how)
    assert [c.index for c in again.children] == [0, 1, 2] * 2
    assert [c.program for c in again.children] == [c.program for c in evo.read_log(whole).children]
    assert sum(json.loads(x)["kind"] == "reply" for x in path.read_bytes().splitlines()) == 6
    assert not evo.verify(path).faults
