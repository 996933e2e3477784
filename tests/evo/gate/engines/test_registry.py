"""Engines by name, and what they need."""

import sys
from pathlib import Path

import pytest

import evo
from evo.gate.engines.registry import check_installed


def test_what_is_missing_is_said_with_what_to_do(tmp_path):
    for name in ("openevolve", "shinka"):
        engine = evo.ENGINES[name]
        with pytest.raises(evo.EngineError, match=f"pip install {engine.package}"):
            check_installed(Path(sys.executable), engine)
    with pytest.raises(evo.EngineError, match="cannot be run"):
        check_installed(tmp_path / "python", evo.ENGINES["shinka"])
