"""Explorers are tested where the extra [notebook] is installed, and skipped elsewhere."""

from pathlib import Path

import pytest


class _Skipped(pytest.Module):
    """A file of tests that is skipped before its imports fail."""

    def collect(self) -> list[pytest.Item]:
        pytest.importorskip("ipywidgets", reason="explorers need the extra [notebook]")
        return list(super().collect())


def pytest_pycollect_makemodule(module_path: Path, parent: pytest.Collector) -> pytest.Module:
    """Every file of this folder."""
    return _Skipped.from_parent(parent, path=module_path)
