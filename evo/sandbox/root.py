"""A file tree of its own for the sandbox: Python, system libraries and nothing else."""

from __future__ import annotations

import os
import stat
import sys
from collections.abc import Iterable, Sequence

from evo.sandbox import kernel

DEVICES = ("/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom")

_SYSTEM = (
    "/usr",
    "/bin",
    "/sbin",
    "/lib",
    "/lib32",
    "/lib64",
    "/nix/store",
    "/gnu/store",
    "/etc/ld.so.cache",
    "/etc/alternatives",
    "/etc/passwd",
    "/etc/group",
    "/etc/nsswitch.conf",
    "/etc/localtime",
    "/etc/mime.types",
)
_LINKS = {
    "/dev/fd": "/proc/self/fd",
    "/dev/stdin": "/proc/self/fd/0",
    "/dev/stdout": "/proc/self/fd/1",
    "/dev/stderr": "/proc/self/fd/2",
}
_TEMPORARY = ("/dev/shm", "/var/tmp")  # shared memory and semaphores count as the program's files
_ANCHOR = "/sys"  # a folder that exists everywhere and that no program needs: the new tree's place


def readable_paths(packages: Iterable[str]) -> tuple[str, ...]:
    """What a program needs to read to run Python, NumPy and SciPy, and existing paths only.

    A path reached through symbolic links is listed under both its names. Nothing below another
    listed folder is listed.
    """
    libraries = os.environ.get("LD_LIBRARY_PATH", "").split(":")
    wanted = [*_SYSTEM, sys.prefix, sys.base_prefix, *packages, *filter(None, libraries)]
    both = {name for path in wanted for name in (os.path.abspath(path), os.path.realpath(path))}
    kept: list[str] = []
    for path in sorted(both, key=lambda path: (len(path), path)):
        below = any(path.startswith(f"{folder}/") and os.path.isdir(folder) for folder in kept)
        if os.path.exists(path) and path != "/" and not below:
            kept.append(path)
    return tuple(kept)


def working_folder(readable: Iterable[str]) -> str:
    """Where a process mounts its own folder: /tmp, unless that would hide a path it must read."""
    below = any(path == "/tmp" or path.startswith("/tmp/") for path in readable)
    return "/sandbox" if below else "/tmp"


def enter(readable: Sequence[str]) -> None:
    """Replace the calling process's file tree, in its own mount namespace, for good."""
    folder = working_folder(readable)
    kernel.mount("none", "/", "", kernel.MS_REC | kernel.MS_PRIVATE)
    kernel.mount("none", _ANCHOR, "tmpfs", kernel.MS_NOSUID, "size=1m,mode=755")
    for path in readable:
        _bind(path, read_only=True)
    for path in DEVICES:
        if os.path.exists(path):
            _bind(path, read_only=False)
    for path in ("/proc", "/tmp", "/var", folder):
        os.makedirs(_ANCHOR + path, exist_ok=True)
    kernel.mount("/proc", _ANCHOR + "/proc", "", kernel.MS_BIND | kernel.MS_REC)
    for path, target in (_LINKS | dict.fromkeys(_TEMPORARY, folder)).items():
        os.symlink(target, _ANCHOR + path)
    kernel.make_read_only(_ANCHOR, recursive=False)
    kernel.pivot_root(_ANCHOR)


def _bind(path: str, *, read_only: bool) -> None:
    target = _ANCHOR + path
    os.makedirs(os.path.dirname(target), exist_ok=True)
    if os.path.islink(path) and os.path.realpath(path) != path and os.path.isdir(path):
        os.symlink(os.path.realpath(path), target)
        return
    if stat.S_ISDIR(os.stat(path).st_mode):
        os.makedirs(target, exist_ok=True)
    else:
        with open(target, "wb"):
            pass
    kernel.mount(path, target, "", kernel.MS_BIND | kernel.MS_REC)
    if read_only:
        kernel.make_read_only(target, recursive=True)


def mount_folder(path: str, max_bytes: int, max_files: int, owner: int) -> None:
    """Mount an empty folder that holds so much, for one process."""
    options = f"size={max_bytes},nr_inodes={max_files},mode=700,uid={owner},gid={owner}"
    kernel.mount("none", path, "tmpfs", kernel.MS_NOSUID | kernel.MS_NODEV, options)


def mount_proc() -> None:
    """Show a process its own process tree only."""
    flags = kernel.MS_NOSUID | kernel.MS_NODEV | kernel.MS_NOEXEC
    kernel.mount("proc", "/proc", "proc", flags)


def hide_proc() -> None:
    """Show a process no process at all."""
    kernel.mount("none", "/proc", "tmpfs", kernel.MS_RDONLY | kernel.MS_NOSUID, "size=4k")
