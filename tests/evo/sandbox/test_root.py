"""The folders that a program sees."""

from __future__ import annotations

import sys
from pathlib import Path

from evo.sandbox import root


def test_readable_paths_cover_python_and_each_other_once(tmp_path: Path) -> None:
    packages = tmp_path / "packages"
    packages.mkdir()
    (packages / "within").mkdir()
    link = tmp_path / "link"
    link.symlink_to(packages)
    found = root.readable_paths([str(link), str(packages / "within"), str(tmp_path / "absent")])
    assert {str(link), str(packages)} <= set(found)
    assert str(packages / "within") not in found
    for prefix in (sys.prefix, sys.base_prefix):
        assert any(prefix == path or prefix.startswith(f"{path}/") for path in found)
    home = str(Path.home())
    assert home not in found
    assert "/" not in found


def test_working_folder_hides_nothing_that_is_read() -> None:
    assert root.working_folder(["/usr", "/opt/env", "/tmpfiles"]) == "/tmp"
    for readable in (["/usr", "/tmp/clone/.venv"], ["/tmp"]):
        folder = root.working_folder(readable)
        assert not any(path == folder or path.startswith(f"{folder}/") for path in readable)
