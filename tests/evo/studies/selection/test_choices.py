"""The choices of a selection."""

import math
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from agents import ROWS, best

import evo

COMMON: dict[str, Any] = {"task": "mmd", "generations": 1, "children": 1, "progress": False}


TEXTS = [
    "Answer the question.",
    "Think step by step, keep the units, and end with a line 'Answer: <number>'.",
    "Think step by step.",
]


WP = evo.load_task("word_problems", instances=24)


PROBLEMS: dict[str, Any] = {"task": WP, "samples": "problems", "batch": 4, "progress": False}


CHOICES = [{"text": text} for text in TEXTS]


@pytest.mark.parametrize("number", [math.inf, math.nan])
def test_a_choice_that_the_folder_cannot_hold_is_refused(number: float, tmp_path: Path) -> None:
    given: dict[str, Any] = {"data": [0, 1], "log_dir": tmp_path / "s", "progress": False}
    with pytest.raises(ValueError, match="expected a finite number"):
        evo.select_best({"skill": [0.5, number]}, evaluate=lambda row, **choice: 0.5, **given)
    assert not (tmp_path / "s").exists()


RUNS, ROW = (evo.select_best, [{"children": 1}], COMMON), (best, None, {})


TEXT = (evo.select_best, CHOICES, PROBLEMS)


@pytest.mark.parametrize(
    ("kind", "arguments", "said"),
    [
        (RUNS, {"choices": []}, "at least one"),
        (RUNS, {"choices": [{"childen": 2}]}, "did you mean 'children'"),
        (RUNS, {"choices": [{"children": 2}, {"children": 2}]}, "0 and 1 are the same"),
        (RUNS, {"seeds": [1, 1]}, "all different"),
        (RUNS, {"choices": [{"policy": "ucb1"}]}, "a field of sweeps alone"),
        (RUNS, {"selector": "ucb"}, "expected a selector out of"),
        (RUNS, {"failure_value": 2.0}, "failure_value"),
        (RUNS, {"budget": {"hours": 1}}, "expected a unit out of"),
        (RUNS, {"task": None}, "task: expected one"),
        (RUNS, {"bounds": (1.0, 0.0)}, "bounds"),
        (TEXT, {"task": "cp"}, "only where a model is asked a data set"),
        (TEXT, {"choices": [{"text": "a", "children": 4}]}, "children: nothing evolves"),
        (TEXT, {"choices": [{"text": " "}]}, "expected a system prompt, got ' '"),
        (TEXT, {"samples": "problem"}, "expected 'seeds' or 'problems'"),
        (TEXT, {"choices": [{}, {"text": WP.initial_program}]}, "0 and 1 are the same"),
        (TEXT, {"choices": [{"texts": "a"}]}, "unknown field 'texts'"),
        (TEXT, {"choices": [{"task": WP}, {"task": "wp"}], "task": None}, "share one data set"),
        (ROW, {"data": None}, "expected agent.row, ..choice. and a list of rows"),
        (ROW, {"data": pd.DataFrame(ROWS)}, "to_dict"),
        (ROW, {"evaluate": None}, "expected agent"),
        (ROW, {"cost_weight": -1}, "cost_weight"),
        (ROW, {"budget": {"calls": 3}}, "out of samples, cost, seconds"),
        (ROW, {"task": "mmd"}, "task: evaluate and data take choices alone"),
        (ROW, {"children": 3}, "children: evaluate and data"),
    ],
)
def test_mistakes_are_named(
    kind: Any, arguments: dict[str, Any], said: str, tmp_path: Path
) -> None:
    verb, choices, common = kind
    given = {**({} if choices is None else {"choices": choices}), **common, **arguments}
    folder = tmp_path / "s"
    with pytest.raises((ValueError, TypeError), match=said):
        verb(folder, **given) if verb is best else verb(**given, log_dir=folder)
    assert not folder.exists()
