"""Run Python in another kind of machine: `python container.py [--user] [--filter] ARGUMENTS...`.

Called as root. `--user` gives root up. `--filter` takes what a container takes whose root has no
namespaces: the calls that Docker's default filter refuses, and the capabilities that it drops.
Where the interpreter lives in a folder that only root may enter, this process alone sees that
folder open.
"""

from __future__ import annotations

import os
import sys
import tempfile
from pathlib import Path

from evo.sandbox import kernel, seccomp

USER = 50_000 + os.getpid() % 10_000
"""An id of its own: the limit on processes counts all processes of a user."""
REFUSED = (
    "unshare", "setns", "mount", "umount2", "pivot_root", "open_tree", "move_mount", "fsopen",
    "fsmount", "mount_setattr",
)  # fmt: skip
KEPT = {0, 1, 3, 4, 5, 6, 7, 8, 10, 13, 18, 27, 29, 31}  # capabilities of root in a container
PR_CAPBSET_DROP = 24


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


def contain() -> None:
    """Refuse this process, for good, what a container refuses."""
    column = list(seccomp._AUDIT_ARCH).index(kernel.MACHINE)
    number = seccomp._CLONE[kernel.MACHINE]
    deny = seccomp._step(seccomp._RETURN, seccomp._ERRNO | 1)
    absent = seccomp._step(seccomp._RETURN, seccomp._ERRNO | 38)
    steps = [seccomp._step(seccomp._LOAD, seccomp._NUMBER)]
    steps += [seccomp._step(seccomp._EQUAL, seccomp._CLONE3, 0, 1), absent]
    for name in REFUSED:
        steps += [seccomp._step(seccomp._EQUAL, seccomp._NAMES[name][column] or 0, 0, 1), deny]
    steps += seccomp._unless_argument(
        number, seccomp._ANY_BIT, seccomp._NEW_NAMESPACES, refuse_if=True
    )
    steps.append(seccomp._step(seccomp._RETURN, seccomp._ALLOW))
    for capability in {*range(64)} - KEPT:
        try:
            kernel.prctl(PR_CAPBSET_DROP, capability)
        except OSError:  # the kernel knows no more of them
            break
    seccomp.install(b"".join(steps))


def main() -> None:
    """Become the interpreter with the remaining arguments."""
    arguments = sys.argv[1:]
    options = [arguments.pop(0) for _ in range(2) if arguments[0] in ("--user", "--filter")]
    expose(Path(sys.base_prefix))
    if "--filter" in options:
        contain()
    if "--user" in options:
        os.setgroups([])
        os.setresgid(USER, USER, USER)
        os.setresuid(USER, USER, USER)
        kernel.prctl(kernel.PR_SET_DUMPABLE)
    os.execv(sys.executable, [sys.executable, *arguments])


if __name__ == "__main__":
    main()
