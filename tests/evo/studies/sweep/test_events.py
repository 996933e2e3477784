"""The events of a sweep."""

import time
from pathlib import Path
from typing import Any

import pytest

import evo
from evo.studies.sweep.events import EventLog

COMMON: dict[str, Any] = {"task": "mmd", "seeds": [1, 2], "children": 2, "progress": False}


ONE = {**COMMON, "seeds": [1]}


def test_a_clock_that_is_set_forward_adds_no_seconds(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    began, clock = time.monotonic(), time.time
    ahead = 0.0

    def jumping() -> float:
        nonlocal ahead
        ahead += 3600
        return clock() + ahead

    monkeypatch.setattr(time, "time", jumping)
    for _ in range(2):
        evo.sweep({"generations": [1, 2]}, log_dir=tmp_path / "s", **ONE)
    assert 0 < EventLog(tmp_path / "s").state.seconds < time.monotonic() - began
