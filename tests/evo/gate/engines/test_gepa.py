"""What GEPA is given for a job."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path

import evo
from evo.gate.engines.gepa import prepare
from evo.logs.records import Sampling


def test_settings_are_written_for_a_job_and_leave_open_what_it_does(
    job: evo.Job, tmp_path: Path
) -> None:
    assert prepare(job) == ["python", "run.py"]
    assert json.loads((tmp_path / "settings.json").read_text())["sampling"] == {}
    sampling = Sampling(temperature=0.5, top_p=0.9, max_tokens=600)
    prepare(dataclasses.replace(job, sampling=sampling, full_rewrites=True))
    written = json.loads((tmp_path / "settings.json").read_text())
    assert written["sampling"] == {"temperature": 0.5, "top_p": 0.9, "max_tokens": 600}
