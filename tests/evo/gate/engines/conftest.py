"""A job that engines prepare for."""

from __future__ import annotations

from pathlib import Path

import pytest

import evo


@pytest.fixture
def job(tmp_path: Path) -> evo.Job:
    return evo.Job(
        folder=tmp_path, python="python", task=evo.load_task("mmd"), model="m",
        endpoint="http://g/v1", judge="http://j/v1", calls=64, children=8, seed=3,
    )  # fmt: skip


@pytest.fixture(autouse=True)
def _engines(own_engines: None) -> None:
    """Every test here may register engines."""
