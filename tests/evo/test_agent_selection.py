"""`evo.select_best(choices, evaluate=agent, data=rows)`: choices of an agent of one's own."""

import json
from pathlib import Path
from typing import Any

import pytest

import evo
from evo.selectors.race import Selection

ROWS = [{"n": n} for n in range(40)]
MODELS = {"plan": ["small", "large"], "act": ["small", "large"]}
SKILL = {"small": 0.25, "large": 0.5}
COSTS = {"small": 1.0, "large": 3.0}
asked: list[tuple[int, str, str]] = []


def agent(row: dict[str, int], *, plan: str, act: str) -> tuple[float, float]:
    asked.append((row["n"], plan, act))
    luck = ((row["n"] * 37) % 20 - 10) / 100
    return SKILL[plan] + 0.6 * SKILL[act] + luck, COSTS[plan] + COSTS[act]


def best(folder: Path, **more: Any) -> Selection:
    given: dict[str, Any] = {"evaluate": agent, "data": ROWS, "batch": 4, "progress": False}
    return evo.select_best(MODELS, log_dir=folder, **{**given, **more})


def test_a_product_of_choices_is_raced_on_paired_rows_and_nothing_is_asked_twice(
    tmp_path: Path,
) -> None:
    asked.clear()
    found = best(tmp_path / "s")
    assert found.labels[found.winner] == "plan=large, act=large"
    assert len(asked) == found.samples.sum() < 4 * 40
    assert found.spent["cost"].tolist() == (found.samples * [2.0, 4.0, 4.0, 6.0]).tolist()
    path = tmp_path / "s" / "agent.jsonl"
    lines = path.read_bytes().splitlines(keepends=True)
    assert len(lines) == len(asked) == len(set(asked))
    path.write_bytes(b"".join(lines[:9]) + lines[9][:20])  # killed
    asked.clear()
    again = best(tmp_path / "s", max_concurrent=1)
    assert repr(again) == repr(found)
    assert len(asked) == len(lines) - 9
    with pytest.raises(ValueError, match="holds a selection with data"):
        best(tmp_path / "s", data=ROWS[:20] + ROWS[:20])
    cheap = best(tmp_path / "c", cost_weight=0.2, bounds=(-1.5, 1.5), selector="brute_force")
    assert cheap.labels[cheap.winner] == "plan=small, act=small"


def test_a_budget_ends_it_alike_whatever_goes_on_at_once(tmp_path: Path) -> None:
    found = [
        best(
            tmp_path / str(slots), budget={"cost": 30}, selector="brute_force", max_concurrent=slots
        )
        for slots in (1, 8)
    ]
    assert repr(found[0]) == repr(found[1])
    assert found[0].end == "budget"
    assert found[0].samples.tolist() == [2, 2, 2, 2]  # 16 a row: the 32nd is spent by the second


def test_coroutines_failures_and_errors(tmp_path: Path) -> None:
    broken = True

    async def slow(row: int, *, skill: float) -> float | None:
        if broken and row == 3:
            raise RuntimeError("no answer")
        return None if row == 0 else skill

    given: dict[str, Any] = {
        "evaluate": slow, "data": [0, 1, 2, 3], "progress": False, "log_dir": tmp_path / "s",
        "selector": "brute_force", "max_concurrent": 1,
    }  # fmt: skip
    choices = [{"skill": 0.5}, {"skill": 0.75}]
    with pytest.raises(RuntimeError, match="no answer"):
        evo.select_best(choices, **given)
    broken = False
    found = evo.select_best(choices, **given)
    assert (found.winner, found.failures.tolist()) == (1, [1, 1])
    assert found.mean.tolist() == [0.375, 0.5625]
    kept = json.loads((tmp_path / "s" / "selection.json").read_text())
    assert sorted(kept["rows"]) == [0, 1, 2, 3]


@pytest.mark.parametrize(
    ("arguments", "error", "said"),
    [
        ({"data": None}, ValueError, "expected agent.row, ..choice. and rows"),
        ({"evaluate": None, "data": [1]}, ValueError, "expected agent"),
        ({"cost_weight": -1}, ValueError, "cost_weight"),
        ({"budget": {"calls": 3}}, ValueError, "out of samples, cost, seconds"),
        ({"task": "mmd"}, TypeError, "task: evaluate and data take choices alone"),
        ({"children": 3}, TypeError, "children: evaluate and data"),
    ],
)
def test_mistakes_are_named(
    arguments: dict[str, Any], error: type[Exception], said: str, tmp_path: Path
) -> None:
    with pytest.raises(error, match=said):
        best(tmp_path / "s", **arguments)
    assert not (tmp_path / "s").exists()
