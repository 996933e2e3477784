"""Sample logs that the package brings along."""

import pytest

import replay
from replay.cli.entry import main
from replay.logs.samples import copy_samples


def test_the_samples_are_runs_that_can_be_loaded(tmp_path, capsys):
    assert main(["samples", str(tmp_path / "new")]) == 0
    assert "try `replay report" in capsys.readouterr().out
    frame = replay.load(tmp_path / "new")
    assert frame["run"].nunique() >= 5
    assert set(frame["model"]) == {"qwen2.5-coder-1.5b"}


def test_nothing_is_overwritten(tmp_path):
    paths = copy_samples(tmp_path)
    paths[0].write_text("mine")
    with pytest.raises(FileExistsError, match="exists already"):
        copy_samples(tmp_path)
    assert paths[0].read_text() == "mine"
