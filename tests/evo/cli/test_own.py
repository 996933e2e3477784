"""Searches, filters and policies in a file of one's own, on the command line."""

import itertools
import sys

import pytest

import evo
from evo.cli.entry import main
from evo.filters.registry import FILTERS
from evo.policies import POLICIES
from evo.searches.registry import SEARCHES

SOURCE = '''
from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from beside_it import same

from evo.policies import BasePolicy
from evo.searches import Request


@dataclass(frozen=True)
class Mine:
    """Rewrites the latest program."""

    width: int = 1
    name = "NAME"

    def start(self, initial, min_improvement):
        return initial.place

    def plan(self, state, children, rng):
        return same(Request((state,)), children)

    def fold(self, state, generation):
        able = [member.place for member in generation if member.fitness is not None]
        return able[-1] if able else state


@dataclass(frozen=True)
class Long:
    """Refuses everything."""

    name = "NAME"

    def check(self, program, archive):
        return "too long"


@dataclass(frozen=True)
class Taken(Mine):
    name = "greedy"


class First(BasePolicy):
    name = "NAME"

    def ask(self, open_arms):
        return open_arms.argmax(axis=1)

    def tell(self, arm, reward, cost=None):
        pass


@dataclass
class Nameless:
    pass
'''
NUMBERS = itertools.count()
QUICK = ("-T", "1", "-N", "2", "-q")


@pytest.fixture
def name(tmp_path, monkeypatch):
    """A name that no other test uses, of the classes in mine.py in the working folder."""
    monkeypatch.chdir(tmp_path)
    name = f"own_{next(NUMBERS)}"
    (tmp_path / "mine.py").write_text(SOURCE.replace("NAME", name))
    (tmp_path / "beside_it.py").write_text("def same(each, n):\n    return [each] * n\n")
    monkeypatch.setattr("sys.path", [*sys.path])
    yield name
    for registry in (SEARCHES, FILTERS, POLICIES):
        registry.data.pop(name, None)


def test_a_search_in_a_file_runs_goes_on_and_plays_again(name, capsys):
    given = ("--search", "mine.py:Mine")
    assert main(["run", "mmd", *given, "--search-set", "width=3", "--log", "a.jsonl", *QUICK]) == 0
    search = evo.read_log("a.jsonl").header.search
    assert (search.name, search.fields) == (name, {"width": 3})
    assert search.source
    del SEARCHES[name]  # as in another process
    assert main(["resume", "a.jsonl", "-T", "2", "-q"]) == 2
    assert f"unknown search '{name}'" in capsys.readouterr().err
    assert main(["resume", "a.jsonl", "-T", "2", "-q", *given]) == 0
    assert len(evo.read_log("a.jsonl").generations) == 2
    del SEARCHES[name]
    assert main(["rerun", "a.jsonl", *given]) == 0
    assert "plans" not in capsys.readouterr().out


def test_a_filter_in_a_file_refuses_programs(name):
    given = ("--filter", "mine.py:Long")
    assert main(["run", "mmd", *given, "--log", "a.jsonl", *QUICK]) == 0
    log = evo.read_log("a.jsonl")
    assert [each.name for each in log.header.filters] == [name]
    assert {child.evaluation.status for child in log.children} == {"rejected"}
    del FILTERS[name]
    assert main(["resume", "a.jsonl", "-T", "2", "-q", *given]) == 0


def test_a_policy_in_a_file_allocates(name):
    given = ("--policy", "mine.py:First", "--arms", "2", "--rounds", "2", "--log-dir", "study")
    assert main(["allocate", "mmd", *given, "-N", "1", "-q"]) == 0
    arms = [evo.read_log(f"study/arm-0{k}.jsonl") for k in (0, 1)]
    assert [len(log.generations) for log in arms] == [2, 0]


def test_a_search_in_a_file_is_varied_and_is_an_arm(name, capsys):
    quick = ("--seeds", "0:2", "-T", "1", "-N", "1", "-q")
    given = ("--vary", "search=greedy,mine.py:Mine", "--log-dir", "selected")
    assert main(["select", "mmd", *given, *quick]) == 0
    assert f"search={name}" in capsys.readouterr().out.replace(" ", "")
    arms = ("--arm", "search=mine.py:Mine", "--arm", "children=1", "--rounds", "2")
    given = ("--policy", "round_robin", *arms, "--log-dir", "study", "-q")
    assert main(["allocate", "mmd", *given]) == 0
    header = evo.read_log("study/arm-00.jsonl").header
    assert header.search.name == name
    given = ("--vary", "search=mine.py:Absent", "--log-dir", "none")
    assert main(["select", "mmd", *given, *quick]) == 2
    assert "--vary search=mine.py:Absent: expected FILE.py:CLASS" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ("mine.py", "expected FILE.py:CLASS, the name of a class in mine.py, which has Mine, Long"),
        ("mine.py:", "expected FILE.py:CLASS"),
        ("mine.py:same", "expected FILE.py:CLASS"),
        ("mine.py:Nameless", "has no attribute `name`"),
        ("mine.py:Taken", "'greedy' is the name of a built-in search"),
        ("mine.py:Long", "the class has no method `start`, so it is no search"),
        ("none.py:Mine", "no file 'none.py'"),
        ("wrong.py:Mine", "wrong.py cannot be run: NameError in line 2: name 'nothing'"),
    ],
)
def test_what_is_wrong_with_it_is_said(name, given, said, tmp_path, capsys):
    (tmp_path / "wrong.py").write_text("import math\nnothing()\n")
    assert main(["run", "mmd", "--search", given, "--log", "a.jsonl", *QUICK]) == 2
    assert said in capsys.readouterr().err
    assert not (tmp_path / "a.jsonl").exists()


def test_resume_takes_only_what_is_ones_own(name, capsys):
    assert main(["resume", "a.jsonl", "--search", "population"]) == 2
    assert "the log names what is built in" in capsys.readouterr().err


def test_in_python_a_file_is_answered_with_what_to_give():
    with pytest.raises(ValueError, match="give a search of your own itself, an instance"):
        evo.run("mmd", search="mine.py:Mine")
