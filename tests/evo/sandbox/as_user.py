"""Run Python as an ordinary user: `python as_user.py ARGUMENTS...`, as root.

Where the interpreter lives in a folder that only root may enter, this process alone sees that
folder open.
"""

from __future__ import annotations

import os
import sys
import tempfile
from pathlib import Path

from evo.sandbox import kernel

USER = 54321


def expose(path: Path) -> None:
    """Make a folder reachable for everybody, in this process's own view of the file tree."""
    closed = [folder for folder in path.parents if not folder.stat().st_mode & 0o001]
    if not closed:
        return
    kernel.unshare(kernel.CLONE_NEWNS)
    kernel.mount("none", "/", "", kernel.MS_REC | kernel.MS_PRIVATE)
    aside = tempfile.mkdtemp()
    kernel.mount(str(path), aside, "", kernel.MS_BIND | kernel.MS_REC)
    kernel.mount("none", str(closed[-1]), "tmpfs", 0, "mode=755")
    path.mkdir(parents=True)
    kernel.mount(aside, str(path), "", kernel.MS_BIND | kernel.MS_REC)
    kernel.checked("umount2", aside.encode(), 0)
    os.rmdir(aside)


def main() -> None:
    """Give up root and become the interpreter with the remaining arguments."""
    expose(Path(sys.base_prefix))
    os.setgroups([])
    os.setresgid(USER, USER, USER)
    os.setresuid(USER, USER, USER)
    kernel.dumpable()
    os.execv(sys.executable, [sys.executable, *sys.argv[1:]])


if __name__ == "__main__":
    main()
