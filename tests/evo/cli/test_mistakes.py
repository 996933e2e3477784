"""Arguments that do not fit a command: what was expected, what came, what to do."""

from __future__ import annotations

from pathlib import Path
from unittest.mock import patch

import pytest
from commands import call, one_line

from evo.searches import SEARCHES
from replay.cli.entry import main as replay_main


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (
            ["allocate", "mmd", "ucb1"],
            "expected --policy and its value, got 'ucb1' without a name; write `--policy ucb1`",
        ),
        (
            ["drive", "shinka", "mmd", "6 4"],
            "expected --calls and its value, got '6 4' without a name; write `--calls '6 4'`",
        ),
        (["allocate", "mmd"], "expected --policy and its value, got none"),
        (["allocate", "mmd", "--policy"], "--policy: expected a value after it, got none"),
        (
            ["allocate", "mmd", "--polcy", "ucb1"],
            "expected --policy, got the unknown option --polcy; did you mean --policy?",
        ),
        (["allocate", "mmd", "--x", "3"], "expected --policy, got the unknown option --x"),
        (["allocate", "--policy", "ucb1"], "expected TASK, got none"),
        (
            ["allocate", "mmd", "ucb1", "--policy", "ucb1"],
            "expected no further words, got 'ucb1'; leave them out or name their options",
        ),
        (["run", "mmd", "--nonsense"], "Unknown option: --nonsense"),
    ],
)
def test_a_mistake_says_what_was_expected_what_came_and_what_to_do(
    arguments: list[str], words: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert call(*arguments) == 2
    line = one_line(capsys)
    assert line.startswith(f"evo: {words}")
    assert line.endswith(" (see --help)")


def test_the_other_program_speaks_alike(capsys: pytest.CaptureFixture[str]) -> None:
    assert replay_main(["import", "auto"]) == 2
    assert one_line(capsys).startswith("replay: expected ")


OWN = """
import dataclasses
from evo.searches import Request

@dataclasses.dataclass(frozen=True)
class Own:
    name = "own"
    version = 1

    def start(self, initial, min_improvement):
        return None

    def plan(self, state, children, rng):
        return [Request(((0, 0),))] * children

    def fold(self, state, generation):
        return state
"""


def test_a_search_of_ones_own_that_is_unknown_or_changed_is_named_by_an_option(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("own.py").write_text(OWN)
    begin = ["run", "mmd", "-N", "1", "--log", "a.jsonl", "--search", "own.py:Own", "--quiet"]
    with patch.dict(SEARCHES):
        assert call(*begin, "-T", "1") == 0
    capsys.readouterr()
    assert call("resume", "a.jsonl", "-T", "2") == 2
    assert "`--search FILE.py:CLASS`" in one_line(capsys)
    Path("own.py").write_text(OWN.replace("(0, 0)", "(1 - 1, 0)"))
    with patch.dict(SEARCHES):
        assert call(*begin, "-T", "2") == 2
    assert "`evo resume a.jsonl --search FILE.py:CLASS`" in one_line(capsys)
    with patch.dict(SEARCHES):
        assert call("resume", "a.jsonl", "--search", "own.py:Own", "-T", "2", "--quiet") == 0
