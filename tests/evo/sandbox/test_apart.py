"""What a program can reach of its task: nothing that stands in the evaluator or in the data set."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import cast

import pytest
from toy import LIMITS, make_task

from evo.sandbox import Evaluator
from evo.sandbox.jail import LAYERS

MARKER = "held-out-answer-3f81"
EVALUATOR = f"""
import json

ANSWER = {MARKER!r}

def score(value):
    with open("instances.jsonl") as file:
        return float(json.loads(file.readline())["output"] == ANSWER)
"""
# The program knows the marker by halves, so that its own text is no find.
PROGRAM = """
import gc, os, sys, types

HALVES = ("held-out-answer", "-3f81")

def has(data):
    found = data.find(HALVES[0].encode())
    while found >= 0:
        end = found + len(HALVES[0])
        if data[end : end + len(HALVES[1])] == HALVES[1].encode():
            return True
        found = data.find(HALVES[0].encode(), end)
    return False

def in_memory(pid):
    with open(f"/proc/{pid}/maps") as file:
        areas = [line.split() for line in file]
    with open(f"/proc/{pid}/mem", "rb", buffering=0) as memory:
        for place, rights, *_ in areas:
            start, end = (int(number, 16) for number in place.split("-"))
            if rights.startswith("r") and end < 2**63:
                try:
                    memory.seek(start)
                    if has(memory.read(end - start)):
                        return True
                except (OSError, ValueError, MemoryError):
                    pass
    return False

def construct():
    found, looked = [], ["frames", "objects", "environment"]
    frame = sys._getframe()
    while frame:
        if any(has(repr(each).encode()) for each in list(frame.f_locals.values())):
            found.append("frames")
        frame = frame.f_back
    for each in gc.get_objects() + gc.get_referrers(str):
        if isinstance(each, (dict, list, tuple, types.FunctionType)) or hasattr(each, "files"):
            try:
                text = repr(getattr(each, "files", each))
            except BaseException:
                continue
            if has(text.encode("utf-8", "replace")):
                found.append(f"objects: {type(each).__name__}")
    if has(repr(os.environ).encode()):
        found.append("environment")
    for number in range(256):
        try:
            os.set_blocking(number, False)
            if has(os.read(number, 1 << 20)):
                found.append(f"descriptor {number}")
        except OSError:
            pass
    for pid in sorted({str(os.getpid()), str(os.getppid()), *OTHERS} - {"0"}):
        try:
            if in_memory(pid):
                found.append(f"memory of {'itself' if pid == str(os.getpid()) else pid}")
            looked.append("memory" if pid == str(os.getpid()) else "memory of others")
        except OSError:
            pass
    return [found, sorted(set(looked))]
"""


def children(pid: int) -> set[str]:
    """Numbers of the processes that one started, and of theirs."""
    found = set[str]()
    for task in Path(f"/proc/{pid}/task").iterdir():
        for name in (task / "children").read_text().split():
            found |= {name, *children(int(name))}
    return found


def looked_for(evaluator: Evaluator) -> tuple[list[str], list[str]]:
    files = {
        "evaluator.py": EVALUATOR,
        "instances.jsonl": f'{{"output": "{MARKER}"}}\n',
        "initial_program.py": "",
    }
    task = make_task(EVALUATOR, files=files, statement=MARKER)
    first = evaluator.evaluate(task, "def construct():\n    return [1]", LIMITS)
    assert (first.status, first.fitness) == ("ok", 1.0), first  # the evaluator holds the marker
    others = sorted(children(os.getpid()))
    program = PROGRAM.replace("OTHERS", repr(others))
    second = evaluator.evaluate(task, program, LIMITS, keep_value=True)
    assert second.status == "ok", second.error
    found, looked = cast("list[list[str]]", second.value)
    return found, looked


@pytest.fixture(params=["all", "no namespaces", "nothing but the filter"])
def walls(request: pytest.FixtureRequest) -> Iterator[Evaluator]:
    without = {
        "all": (),
        "no namespaces": ("mount", "pid", "network"),
        "nothing but the filter": tuple(name for name in LAYERS if name not in ("seccomp", "user")),
    }[request.param]
    with Evaluator(1, without=without) as made:
        yield made


def test_a_program_reaches_nothing_of_evaluator_and_data_set(walls: Evaluator) -> None:
    found, looked = looked_for(walls)
    assert found == []
    assert {"frames", "objects", "environment"} <= set(looked)


def test_the_look_finds_what_is_there(evaluator: Evaluator) -> None:
    """The same program in a task whose program text holds the marker."""
    program = PROGRAM.replace("OTHERS", "[]") + f"\nLEAK = {{1: {MARKER!r}}}\n"
    seen = evaluator.evaluate(
        make_task("def score(value):\n    return 1.0\n"), program, LIMITS, keep_value=True
    )
    assert seen.status == "ok", seen.error
    found, looked = cast("list[list[str]]", seen.value)
    assert any(place.startswith("objects") for place in found)
    assert ("memory of itself" in found) == ("memory" in looked)


@pytest.fixture
def fresh() -> Iterator[Evaluator]:
    """An evaluator that no other test gave the marker in a program's text."""
    with Evaluator(1) as made:
        yield made


def test_shared_isolation_uses_servers_of_its_own(fresh: Evaluator) -> None:
    """A program of another task must not find what a shared one left in its server."""
    source = f"MARK = {MARKER!r}\n\ndef evaluate(path):\n    return {{'combined_score': 1.0}}\n"
    shared = make_task(source, isolation="shared")
    assert fresh.evaluate(shared, "", LIMITS).fitness == 1.0
    seen = fresh.evaluate(
        make_task("def score(value):\n    return 1.0\n"),
        PROGRAM.replace("OTHERS", "[]"),
        LIMITS,
        keep_value=True,
    )
    assert seen.status == "ok", seen.error
    assert cast("list[list[str]]", seen.value)[0] == []
