"""Early warnings of a run: each of its kind, of its model, and none where nothing is to be said.

What is warned of is tested in `test_fruitless.py` and `test_standstill.py`.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from samples import sample_child, sample_header

from evo.runs.early import EarlyWarnings
from evo.runs.fruitless import FRUITLESS

TINY = 1e-12  # below min_improvement


@pytest.mark.parametrize("over", [False, True])
def test_each_kind_names_the_model_and_a_log_that_is_played_again_says_nothing(over: bool) -> None:
    said: list[str] = []
    early = EarlyWarnings(
        sample_header(), Path("a.jsonl"), lambda kind, words: said.append(kind), over=over
    )
    early.begin(TINY)
    for index in range(2 * FRUITLESS):
        early.take(sample_child(1, index, None))
    assert said == ([] if over else ["standstill sample", "fruitless sample"])


def test_nothing_is_said_once_it_is_ended() -> None:
    said: list[str] = []
    early = EarlyWarnings(
        sample_header(), Path("a.jsonl"), lambda kind, words: said.append(words), over=False
    )
    for index in range(FRUITLESS - 1):
        early.take(sample_child(1, index, None))
    early.end()
    early.begin(TINY)
    early.take(sample_child(2, 0, None))
    assert said == []


def test_a_usual_run_is_not_warned_of() -> None:
    said: list[str] = []
    early = EarlyWarnings(
        sample_header(), Path("a.jsonl"), lambda kind, words: said.append(words), over=False
    )
    early.begin(0.25)
    for index in range(2 * FRUITLESS):
        early.take(sample_child(1, index, 0.5 if index == FRUITLESS - 1 else None))
    assert said == []
