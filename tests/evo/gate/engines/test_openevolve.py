"""What OpenEvolve is given for a job."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path

import evo
from evo.gate.engines.openevolve import prepare
from evo.logs.records import Sampling


def test_settings_are_written_for_a_job_and_leave_open_what_it_does(
    job: evo.Job, tmp_path: Path
) -> None:
    command = prepare(job)
    assert command[0] == "python"
    assert "--checkpoint" not in command
    settings = json.loads((tmp_path / "config.yaml").read_text())
    assert settings["checkpoint_interval"] == 8
    assert settings["llm"]["api_base"] == "http://g/v1"
    assert settings["diff_based_evolution"]
    assert "temperature" not in settings["llm"]
    sampling = Sampling(temperature=0.5, top_p=0.9, max_tokens=600)
    prepare(dataclasses.replace(job, sampling=sampling, full_rewrites=True))
    settings = json.loads((tmp_path / "config.yaml").read_text())
    assert not settings["diff_based_evolution"]
    assert [settings["llm"][n] for n in ("temperature", "top_p", "max_tokens")] == [0.5, 0.9, 600]


def test_it_goes_on_from_the_last_checkpoint_that_is_whole(job: evo.Job, tmp_path: Path) -> None:
    for number in (8, 16, 24):
        folder = tmp_path / "out" / "checkpoints" / f"checkpoint_{number}"
        folder.mkdir(parents=True)
        if number < 24:  # the last one was not written to its end
            (folder / "best_program_info.json").touch()
    assert prepare(job)[-2:] == ["--checkpoint", str(folder.with_name("checkpoint_16"))]
