"""The folder of a new task, as it is written and after a change."""

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import evo
from evo.tasks.beginning import new_task
from evo.tasks.task import load_task

KINDS = ("program", "instances", "prompt")


@pytest.mark.parametrize("kind", KINDS)
def test_a_new_task_evaluates_at_once_and_can_be_searched(kind: str, tmp_path: Path) -> None:
    written = new_task(tmp_path / "mine", kind)
    assert {path.name for path in written} >= {"evaluator.py", "task.toml"}
    task = load_task(tmp_path / "mine")
    assert task.name == "mine"
    assert task.evaluate(model="offline").status == "ok"
    log = evo.run(task, generations=2, children=3, log=tmp_path / "a.jsonl")
    assert sum(child.evaluation.status == "ok" for child in log.children) >= 3


def test_its_knapsacks_have_rows_that_no_search_sees(tmp_path: Path) -> None:
    new_task(tmp_path / "mine", "instances")
    found = load_task(tmp_path / "mine").evaluate()
    assert 0.5 < found.fitness < 1
    assert "check_fitness" in found.metrics
    (tmp_path / "mine" / "initial_program.py").write_text(
        "from itertools import combinations\n\n\n"
        "def solve(problem):\n"
        "    items, best = problem['items'], (0, [])\n"
        "    for size in range(len(items) + 1):\n"
        "        for chosen in combinations(range(len(items)), size):\n"
        "            if sum(items[k][0] for k in chosen) <= problem['capacity']:\n"
        "                best = max(best, (sum(items[k][1] for k in chosen), list(chosen)))\n"
        "    return best[1]\n"
    )
    perfect = load_task(tmp_path / "mine").evaluate()
    assert perfect.fitness == perfect.metrics["check_fitness"] == 1.0


def test_what_is_there_stays_as_it_is(tmp_path: Path) -> None:
    (tmp_path / "note.txt").write_text("mine")
    for place in (tmp_path, tmp_path / "note.txt"):
        with pytest.raises(FileExistsError, match="exists already"):
            new_task(place)
    assert [path.name for path in tmp_path.iterdir()] == ["note.txt"]


def test_an_unknown_kind_is_answered_with_the_known_ones(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"program, instances, prompt.*did you mean 'prompt'"):
        new_task(tmp_path / "mine", "promt")
    assert not (tmp_path / "mine").exists()


def test_the_command_says_what_to_do_next(tmp_path: Path) -> None:
    command = [shutil.which("evo", path=Path(sys.executable).parent) or "evo", "new", "my task"]
    done = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "evo run 'my task'" in done.stdout
    assert subprocess.run(command, capture_output=True, cwd=tmp_path).returncode != 0
