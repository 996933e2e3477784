"""Fixtures shared by all tests."""

from __future__ import annotations

import os
import signal
import sys
from pathlib import Path

import pytest
from hypothesis import settings

ROOT = Path(__file__).resolve().parents[1]
SHARED_DATA = ROOT.parent / "shared" / "data"

# A slow machine is no failure, and in CI the same tree gives the same verdict; elsewhere every run
# tries new examples.
settings.register_profile("local", deadline=None)
settings.register_profile("ci", deadline=None, derandomize=True)
settings.load_profile("ci" if os.environ.get("CI") == "true" else "local")

# A parent that ignores Ctrl-C, such as nohup or a background job, would hand that on to what the
# tests start and interrupt.
signal.signal(signal.SIGINT, signal.default_int_handler)

sys.path.insert(0, str(Path(__file__).parent))


@pytest.fixture
def shared_data() -> Path:
    """Real logs kept outside the repository."""
    if not SHARED_DATA.is_dir():
        pytest.skip(f"the real logs are not there ({SHARED_DATA.name} beside the project)")
    return SHARED_DATA
