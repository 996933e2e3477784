"""Parts of the jail that need no jailed process."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from evo.sandbox.jail import remove_tree


@pytest.mark.slow
def test_removal_of_unreadable_and_very_deep_folders(tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "kept").touch()
    folder = tmp_path / "folder"
    folder.mkdir()
    here = os.getcwd()
    os.chdir(folder)
    for _ in range(sys.getrecursionlimit() + 100):
        os.mkdir("d")
        os.chdir("d")
    os.symlink(outside, "link")
    os.chmod(".", 0)
    os.chdir(here)
    remove_tree(str(folder))
    assert os.listdir(tmp_path) == ["outside"]
    assert os.listdir(outside) == ["kept"]
