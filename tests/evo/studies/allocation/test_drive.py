"""An engine alone: an allocation over one arm, kept once it is complete."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from toy_engine import toy

import evo
import replay
from evo.cli.entry import main
from evo.plugins import MistakenType
from evo.studies.allocation.drive import _complete
from evo.studies.allocation.journal import read_journal
from evo.studies.folders import ALLOCATION

pytestmark = pytest.mark.usefixtures("own_engines")


def test_a_tool_alone_is_the_case_of_one_arm(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    toy("single")
    command = ["drive", "single", "mmd", "--calls", "3", "--seeds", "41", "-q"]
    assert main([*command, "--log-dir", str(tmp_path)]) == 0
    assert "arm-00.jsonl" in capsys.readouterr().out
    folder = tmp_path / "single-min_max_distance-s41"
    log = evo.read_log(folder / "arm-00.jsonl")
    assert log.header.seed == 41
    assert (len(log.generations), len(log.outcomes)) == (3, 3)
    before = sorted((path, path.stat().st_mtime_ns) for path in tmp_path.rglob("*"))
    frame = replay.drive("single", "mmd", calls=3, seeds=[41], log_dir=tmp_path)
    assert frame["best_fitness"].tolist() == log.trajectory.tolist()
    assert before == sorted((path, path.stat().st_mtime_ns) for path in tmp_path.rglob("*"))
    assert _complete(folder, 3) is not None
    assert _complete(folder, 4) is None  # which would be another allocation
    journal = folder / ALLOCATION
    while len(read_journal(journal).told) == 3:
        journal.write_bytes(b"".join(journal.read_bytes().splitlines(keepends=True)[:-1]))
    assert _complete(folder, 3) is None
    toy("dead", how="raise", at=0)
    with pytest.raises(evo.EngineError, match=r"made no call: .*the toy broke"):
        evo.drive("dead", "mmd", calls=3, log_dir=tmp_path, progress=False)


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        ({"calls": 0}, "calls: expected at least 1, got 0"),
        ({"calls": "3"}, "calls: expected a whole number, got '3'"),
        ({"seeds": 5}, "seeds: expected several numbers such as"),
        ({"seeds": [1, 1]}, "seeds: expected at least one and all different"),
        ({"seeds": "40-42"}, "seeds: expected such as 7, 40:50"),
        ({"python": 5}, "python: expected a path, got 5"),
        ({"nonsense": 3}, "'nonsense' means nothing for an engine"),
    ],
)
def test_what_is_given_wrong_is_named_before_anything_is_made(
    wrong: dict[str, Any], words: str, tmp_path: Path
) -> None:
    toy("single")
    with pytest.raises((ValueError, MistakenType), match=f"{re.escape(words)}"):
        evo.drive("single", "mmd", **{"calls": 1, "log_dir": tmp_path, "progress": False, **wrong})
    assert not [*tmp_path.iterdir()]
