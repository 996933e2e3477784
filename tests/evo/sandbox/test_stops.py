"""What stops a run, resumably or before its first call, instead of becoming a child's status."""

from __future__ import annotations

from pathlib import Path

import pytest
from evo_runs import write_task

import evo
from evo.models.client import ModelClient
from evo.sandbox import SandboxError
from evo.sandbox import evaluator as driver
from evo.tasks.task import EvaluatorFailed

QUIET = {"progress": False, "max_concurrent": 1}


def test_a_failing_sandbox_stops_the_run_and_nothing_paid_for_is_lost(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "run.jsonl"
    ask, asked = driver._Worker.ask, []

    def breaks(self: driver._Worker, *arguments: object, **named: object) -> object:
        asked.append(arguments)
        if len(asked) > 3:
            raise OSError("no sandbox today")
        return ask(self, *arguments, **named)  # type: ignore[arg-type]

    with monkeypatch.context() as patch:
        patch.setattr(driver._Worker, "ask", breaks)
        with pytest.raises(SandboxError, match=r"failed twice.*no sandbox today"):
            evo.run("mmd", generations=1, children=8, log=path, **QUIET)
    before = evo.read_log(path)
    assert 1 <= len(before.replies) <= 1 + len(before.children)
    assert "no sandbox today" in (before.ends[-1].message or "")
    assert not any("sandbox" in (child.evaluation.error or "") for child in before.outcomes)
    log = evo.resume(path, **QUIET)
    whole = evo.run("mmd", generations=1, children=8, log=tmp_path / "whole.jsonl", **QUIET)
    assert log.trajectory.tolist() == whole.trajectory.tolist()
    for child, twin in zip(log.children, whole.children, strict=True):
        assert (child.index, child.reply) == (twin.index, twin.reply)
    for place, reply in before.replies.items():
        child = next(c for c in log.children if (c.generation, c.index) == place[:2])
        assert child.attempts == reply.attempts  # the very call of before


@pytest.mark.parametrize(
    ("evaluator", "says"),
    [
        ("open('missing.csv')\ndef evaluate(path): return {'combined_score': 1}", "missing.csv"),
        (
            "def evaluate(path):\n    try:\n        open('missing.csv')\n"
            "    except Exception as error:\n"
            "        return {'combined_score': 0.0, 'error': str(error)}",
            "No such file or directory: 'missing.csv'",
        ),
        ("def evaluate(path, other, more): return {'combined_score': 1}", "TypeError"),
        ("def evaluate(path):\n    return 1 / 0", r"evaluator.py, line 2.*ZeroDivisionError"),
        ("def evaluate(path):\n    return '3'", "must return a dict"),
        ("import os\ndef evaluate(path): os._exit(3)", "or the program, ended with exit code 3"),
        ("def score(value):\n    return value.area", r"line 2.*'int' object has no attribute"),
    ],
)
def test_an_evaluator_that_fails_by_itself_stops_before_the_first_call(
    tmp_path: Path, evaluator: str, says: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    program = "def f():\n    return 1\n"
    folder = write_task(tmp_path / "task", program, evaluator, "entry = ['f']\n")

    def never(*_: object, **__: object) -> None:
        raise AssertionError("a call was made")

    monkeypatch.setattr(ModelClient, "call", never)
    path = tmp_path / "run.jsonl"
    with pytest.raises(EvaluatorFailed, match=rf"fails on the initial program.*{says}") as caught:
        evo.run(folder, generations=8, children=16, log=path, **QUIET)
    assert "\n" not in str(caught.value)
    assert not path.exists()


def test_an_initial_program_that_fails_is_only_said(tmp_path: Path) -> None:
    evaluator = (
        "import runpy\n"
        "def evaluate(path):\n    return {'combined_score': runpy.run_path(path)['f']()}\n"
    )
    folder = write_task(tmp_path / "t", "def f():\n    raise KeyError('mine')\n", evaluator)
    with pytest.warns(UserWarning, match="the initial program is 'error'.*KeyError"):
        log = evo.run(folder, generations=1, children=1, log=tmp_path / "r.jsonl", **QUIET)
    assert log.finished
