"""Parts of the jail that need no jailed process."""

from __future__ import annotations

import os
import struct
import sys
from pathlib import Path

import pytest

from evo.sandbox import kernel, root, seccomp
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


@pytest.mark.skipif(sys.platform != "linux", reason="seccomp is Linux's")
@pytest.mark.parametrize("machine", ["x86_64", "aarch64"])
@pytest.mark.parametrize("unix_sockets", [False, True])
def test_filter_ends_in_a_decision_on_every_way(
    monkeypatch: pytest.MonkeyPatch, machine: str, unix_sockets: bool
) -> None:
    monkeypatch.setattr(kernel, "MACHINE", machine)
    code = seccomp.build(unix_sockets=unix_sockets)
    steps = list(struct.iter_unpack("HBBI", code))
    assert len(steps) < 4096  # the kernel's own limit
    for position, (kind, if_true, if_false, _) in enumerate(steps):
        if kind == seccomp._RETURN:
            continue
        ahead = (if_true, if_false) if kind & 0x07 == 0x05 else (0,)
        assert all(position + 1 + jump < len(steps) for jump in ahead)
    assert steps[-1][0] == seccomp._RETURN
    monkeypatch.setattr(kernel, "MACHINE", "riscv64")
    with pytest.raises(OSError, match="'riscv64'"):
        seccomp.build(unix_sockets=False)


def test_working_folder_hides_nothing_that_is_read() -> None:
    assert root.working_folder(["/usr", "/opt/env", "/tmpfiles"]) == "/tmp"
    for readable in (["/usr", "/tmp/clone/.venv"], ["/tmp"]):
        folder = root.working_folder(readable)
        assert not any(path == folder or path.startswith(f"{folder}/") for path in readable)
