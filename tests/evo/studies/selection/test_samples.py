"""Samples of a selection: runs, scores on problems, and an agent's own scores."""

import math
import threading
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from agents import MODELS, ROWS, best, tried
from evo_runs import write_task

import evo

COMMON: dict[str, Any] = {"task": "mmd", "generations": 1, "children": 1, "progress": False}


def test_problems_whose_scores_may_be_any_numbers_need_bounds(tmp_path: Path) -> None:
    def score(reply: str, row: dict[str, str]) -> float:
        return 50.0 if "better" in reply else 20.0

    rows = [{"prompt": f"{k}"} for k in range(12)]
    made = evo.task("t", initial_program="Say it.", evaluate=score, instances=rows, statement="x")
    given: dict[str, Any] = {
        "task": made, "samples": "problems", "model": lambda messages: messages[0]["content"],
        "batch": 4, "progress": False,
    }  # fmt: skip
    two = [{"text": "This one."}, {"text": "The better one."}]
    with pytest.raises(ValueError, match=r"'t' declares no scale; give bounds=\(low, high\)"):
        evo.select_best(two, **given, log_dir=tmp_path / "a")
    found = evo.select_best(two, **given, log_dir=tmp_path / "a", bounds=(0, 100))
    assert found.mean.tolist() == pytest.approx([20, 50])
    assert found.winner == 1


def test_problems_under_a_budget_of_tokens_are_asked_in_waves(tmp_path: Path) -> None:
    together, flying, lock = [0], [0], threading.Condition()

    def model(messages: list[dict[str, str]]) -> evo.Reply:
        with lock:  # each waits a while for another one
            flying[0] += 1
            together[0] = max(together[0], flying[0])
            lock.notify_all()
            lock.wait_for(lambda: together[0] > 1, timeout=0.2)
            flying[0] -= 1
        return evo.Reply("7", usage={"prompt_tokens": 15, "completion_tokens": 5})

    def score(reply: str, row: dict[str, str]) -> float:
        return float(reply == row["answer"])

    rows = [{"prompt": "How many?", "answer": str(k)} for k in range(12)]
    made = evo.task("t", initial_program="Say it.", evaluate=score, instances=rows,
                    statement="x", scale="unit")  # fmt: skip
    given: dict[str, Any] = {
        "task": made, "samples": "problems", "model": model, "batch": 4, "progress": False,
        "selector": "brute_force", "budget": {"tokens": 260},
    }  # fmt: skip
    two = [{"text": "This one."}, {"text": "Another one."}]
    one_by_one = evo.select_best(two, **given, log_dir=tmp_path / "a", max_concurrent=1)
    assert together == [1]
    at_once = evo.select_best(two, **given, log_dir=tmp_path / "b")
    assert together == [2]
    assert at_once.end == "budget"
    np.testing.assert_array_equal(at_once.outcomes, one_by_one.outcomes)
    assert at_once.spent["tokens"].sum() == 260
    again = evo.select_best(two, **given, log_dir=tmp_path / "b")
    assert again.samples.tolist() == at_once.samples.tolist()


@pytest.mark.filterwarnings("ignore:.*the search begins without a fitness")
def test_a_run_without_fitness_counts_as_a_failure(tmp_path: Path) -> None:
    judge = "def score(value):\n    return {'fitness': value}\n"
    toml = "statement = 'Return a number.'\nentry = ['make']\n"
    task = write_task(tmp_path / "task", "def make():\n    raise ValueError\n", judge, toml)
    given: dict[str, Any] = {**COMMON, "task": task, "seeds": [1, 2], "failure_value": 0.25}
    two = [{"children": 1}, {"children": 2}]
    words = r"'task' declares no scale; give bounds.*, or scale=\"unit\" to evo\.task, in a folder"
    with pytest.raises(ValueError, match=words):
        evo.select_best(two, **given, log_dir=tmp_path / "a")
    with pytest.raises(TypeError, match=r"bounds: expected \(low, high\), .*got 5"):
        evo.select_best(two, **given, log_dir=tmp_path / "a", bounds=5)  # type: ignore[arg-type]
    assert not (tmp_path / "a").exists()
    with pytest.warns(UserWarning, match="all 4 samples failed.*none has a fitness, `evo show"):
        failed = evo.select_best(two, **given, log_dir=tmp_path / "a", bounds=(0.0, 1.0))
    assert (failed.failures.tolist(), failed.mean.tolist()) == ([2, 2], [0.25, 0.25])
    assert failed.winner == 0  # equal, and it made fewer calls
    assert "4 failed" in repr(failed)


def test_an_agents_choices_are_raced_on_paired_rows_and_none_is_tried_twice(
    tmp_path: Path,
) -> None:
    tried.clear()
    made = best(tmp_path / "s")
    assert made.labels[made.winner] == "plan=large, act=large"
    assert len(tried) == made.samples.sum() < 4 * 40
    assert made.spent["cost"].tolist() == (made.samples * [2.0, 4.0, 4.0, 6.0]).tolist()
    path = tmp_path / "s" / "agent.jsonl"
    lines = path.read_bytes().splitlines(keepends=True)
    assert len(lines) == len(tried) == len(set(tried))
    path.write_bytes(b"".join(lines[:9]) + lines[9][:20])  # killed
    tried.clear()
    assert repr(best(tmp_path / "s", max_concurrent=1)) == repr(made)
    assert len(tried) == len(lines) - 9
    with pytest.raises(ValueError, match="holds a selection with data"):
        best(tmp_path / "s", data=ROWS[:20] + ROWS[:20])
    cheap = best(tmp_path / "c", cost_weight=0.2, bounds=(-1.5, 1.5), selector="brute_force")
    assert cheap.labels[cheap.winner] == "plan=small, act=small"
    for slots in (1, 8):
        given = {"selector": "brute_force", "max_concurrent": slots, "budget": {"cost": 30}}
        cut = best(tmp_path / str(slots), **given)
        assert (cut.end, cut.samples.tolist()) == ("budget", [2, 2, 2, 2])  # 16 a row


def test_an_agent_may_be_a_coroutine_and_fail(tmp_path: Path) -> None:
    broken = [3]

    async def slow(row: int, *, skill: float) -> float | None:
        if row in broken:
            raise RuntimeError("no answer")
        return None if row == 0 else skill

    given: dict[str, Any] = {
        "evaluate": slow, "data": [0, 1, 2, 3], "progress": False, "log_dir": tmp_path / "s",
        "selector": "brute_force", "max_concurrent": 1,
    }  # fmt: skip
    choices = [{"skill": 0.5}, {"skill": 0.75}]
    with pytest.raises(RuntimeError, match="no answer"):
        evo.select_best(choices, **given)
    broken.clear()
    made = evo.select_best(choices, **given)
    assert (made.winner, made.failures.tolist()) == (1, [1, 1])
    assert made.mean.tolist() == [0.375, 0.5625]


@pytest.mark.parametrize("said", ["high", (0.5,), (0.5, math.nan), (0.5, -1.0), [0.5, 1.0]])
def test_what_an_agent_may_not_say_is_told_and_nothing_of_it_is_kept(
    tmp_path: Path, said: Any
) -> None:
    given = {"data": ROWS, "log_dir": tmp_path / "s", "progress": False}
    with pytest.raises(ValueError, match="expected the agent to return a score"):
        evo.select_best(MODELS, evaluate=lambda row, **choice: said, **given)
    assert (tmp_path / "s" / "agent.jsonl").read_bytes() == b""


def test_a_score_that_is_no_number_is_a_failure_now_and_when_it_goes_on(tmp_path: Path) -> None:
    def endless(row: dict[str, int], *, skill: float) -> float:
        return math.inf if row["n"] % 2 else skill

    given: dict[str, Any] = {"evaluate": endless, "data": ROWS, "log_dir": tmp_path / "s"}
    made = evo.select_best({"skill": [0.2, 0.8]}, progress=False, **given)
    assert made.failures.sum() > 0
    assert repr(evo.select_best({"skill": [0.2, 0.8]}, progress=False, **given)) == repr(made)


def test_an_agent_that_returns_nothing_is_warned_of(tmp_path: Path) -> None:
    def forgetful(row: int, words: int) -> None:
        return None

    given: dict[str, Any] = {"evaluate": forgetful, "data": [1, 2, 3], "progress": False}
    with pytest.warns(UserWarning, match="all 6 samples failed.*evaluate returned no score"):
        evo.select_best({"words": [1, 5]}, **given, log_dir=tmp_path / "a")
