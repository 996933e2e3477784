"""What ShinkaEvolve is given for a job, and what its evaluator tells it of a program."""

from __future__ import annotations

import dataclasses
import json
import re
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import msgspec
import pytest

import evo
from evo.gate.engines.job import UNSET, in_block
from evo.gate.engines.shinka import ENGINE, prepare
from evo.logs.records import Sampling


def settings(job: evo.Job) -> dict[str, Any]:
    assert prepare(job) == ["python", "run.py"]
    found: dict[str, Any] = json.loads((job.folder / "settings.json").read_text())
    return found


def test_settings_are_written_for_a_job_and_leave_open_what_it_does(job: evo.Job) -> None:
    written = settings(job)
    assert written["seed"] == 3
    evolution = written["evolution"]
    assert not {"patch_types", "patch_type_probs", "llm_kwargs"} & evolution.keys()
    assert evolution["llm_models"] == ["local/m@http://g/v1"]
    assert evolution["num_generations"] > job.calls  # it is the gate that ends it
    assert (job.folder / "initial.py").read_text() == in_block(job.task.initial_program)


def test_only_full_rewrites_are_asked_for_where_a_job_wants_them(job: evo.Job) -> None:
    evolution = settings(dataclasses.replace(job, full_rewrites=True))["evolution"]
    assert (evolution["patch_types"], evolution["patch_type_probs"]) == (["full"], [1.0])


@pytest.mark.parametrize("name", ["temperature", "max_tokens"])
def test_what_a_job_says_of_sampling_replaces_that_and_nothing_else(
    name: str, job: evo.Job
) -> None:
    def kwargs(**known: float) -> dict[str, Any] | None:
        sampling = msgspec.structs.replace(UNSET, **known)
        asked = dataclasses.replace(job, sampling=sampling)
        found: dict[str, Any] | None = settings(asked)["evolution"].get("llm_kwargs")
        return found

    key = {"temperature": "temperatures"}.get(name, name)
    one, two = kwargs(**{name: 1}), kwargs(**{name: 2})
    assert one is not None
    assert two is not None
    assert (one.pop(key), two.pop(key)) == (1, 2)
    assert one == two  # its own default of the other one
    assert len(one) == 1
    assert kwargs(top_p=0.9) is None  # which it has no setting for
    both = Sampling(temperature=0.5, top_p=0.9, max_tokens=600)
    evolution = settings(dataclasses.replace(job, sampling=both))["evolution"]
    assert evolution["llm_kwargs"] == {"temperatures": 0.5, "max_tokens": 600}


@pytest.mark.parametrize(
    ("found", "score", "reason"),
    [
        ({"status": "ok", "fitness": 0.25, "error": None}, 0.25, None),
        ({"status": "ok", "fitness": -3.0, "error": None}, -3.0, None),
        ({"status": "invalid", "fitness": None, "error": "too near"}, 0.0, "invalid: too near"),
    ],
)
def test_a_program_that_is_not_ok_is_incorrect_with_its_reason(
    found: dict[str, Any],
    score: float,
    reason: str | None,
    job: evo.Job,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
) -> None:
    prepare(job)
    judging = ModuleType("judging")
    vars(judging)["judge"] = lambda path: found if path == "p.py" else None
    monkeypatch.setitem(sys.modules, "judging", judging)
    space: dict[str, Any] = {"__name__": "evaluate"}
    exec((job.folder / "evaluate.py").read_text(), space)
    results = tmp_path / "new" / "results"
    space["main"]("p.py", str(results))
    metrics = json.loads((results / "metrics.json").read_text())
    assert metrics == {"combined_score": score, "public": {}, "private": {}}
    correct = json.loads((results / "correct.json").read_text())
    assert correct == {"correct": reason is None, "error": reason}


def test_the_parent_is_what_a_prompt_shows_as_the_current_program() -> None:
    shown = "# Past programs\n```python\nold = 1\n```\n# Current program\nIt scores 3.\n"
    prompt = f"{shown}```python\nx = 1\ny = 2\n```\n# Task\n```\nz\n```"
    match = re.search(ENGINE.parent, prompt, re.DOTALL)
    assert match is not None
    assert match[1] == "x = 1\ny = 2"
