"""Other tools at a stated budget: their runs are a table like ours."""

import pandas as pd
import pytest
from samples import write_sample

import evo
import replay


def test_what_is_asked_for_reaches_the_tool_and_its_logs_are_the_table(tmp_path, monkeypatch):
    logs = [evo.read_log(write_sample(tmp_path / f"{seed}.jsonl", seed=seed)) for seed in (40, 41)]
    asked = []
    monkeypatch.setattr(evo, "drive", lambda *args, **how: asked.append((args, how)) or logs)
    frame = replay.drive(
        "shinka", "mmd", calls=9, python="their/python", seeds=(40, 41), model="m", log_dir=tmp_path
    )
    assert asked == [
        (
            ("shinka", "mmd"),
            {
                "calls": 9, "python": "their/python", "seeds": (40, 41), "model": "m",
                "log_dir": tmp_path,
            },
        )
    ]  # fmt: skip
    pd.testing.assert_frame_equal(frame, replay.load(logs, progress=False))
    assert frame["seed"].unique().tolist() == [40, 41]


def test_a_tool_that_nobody_knows_is_refused(tmp_path):
    with pytest.raises(evo.EngineError, match="nobody"):
        replay.drive("nobody", "mmd", calls=1, log_dir=tmp_path)
    assert not list(tmp_path.iterdir())
