"""Fixtures shared by all tests."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
SHARED_DATA = ROOT.parent / "shared" / "data"

sys.path.insert(0, str(Path(__file__).parent))


@pytest.fixture
def shared_data() -> Path:
    """Real logs kept outside the repository."""
    if not SHARED_DATA.is_dir():
        pytest.skip(f"the real logs are not there ({SHARED_DATA.name} beside the project)")
    return SHARED_DATA
