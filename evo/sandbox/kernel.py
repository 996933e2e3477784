"""Linux system calls that Python has no function for, through the C library."""

from __future__ import annotations

import ctypes
import os
import platform
import sys

CLONE_NEWNS = 0x00020000
CLONE_NEWUTS = 0x04000000
CLONE_NEWIPC = 0x08000000
CLONE_NEWUSER = 0x10000000
CLONE_NEWPID = 0x20000000
CLONE_NEWNET = 0x40000000

MS_RDONLY = 1
MS_NOSUID = 2
MS_NODEV = 4
MS_NOEXEC = 8
MS_BIND = 4096
MS_REC = 16384
MS_PRIVATE = 1 << 18
MNT_DETACH = 2

PR_SET_PDEATHSIG = 1  # the signal when the parent ends; changes of user undo it
PR_SET_DUMPABLE = 4  # gives back /proc/self to a process that changed its user
PR_SET_CHILD_SUBREAPER = 36  # adopts descendants whose parent ended, so that they can be found
PR_SET_NO_NEW_PRIVS = 38  # nothing executed from now on gains rights

_AT_FDCWD = -100
_AT_RECURSIVE = 0x8000
_MOUNT_ATTR_RDONLY = 1
_MOUNT_ATTR_NOSUID = 2
_SYS_MOUNT_SETATTR = 442
_SYS_PIVOT_ROOT = {"x86_64": 155, "aarch64": 41}
_CAPABILITY_VERSION_3 = 0x20080522

LINUX = sys.platform == "linux"
MACHINE = platform.machine() if LINUX else ""

_libc = ctypes.CDLL(None, use_errno=True)


def checked(name: str, *arguments: object) -> int:
    """Call a function of the C library, `OSError` where it returns a negative number."""
    function = getattr(_libc, name, None)
    if function is None:
        raise OSError(f"the C library has no function {name!r}")
    returned = int(function(*arguments))
    if returned < 0:
        code = ctypes.get_errno()
        raise OSError(code, f"{name}: {os.strerror(code)}")
    return returned


def syscall(number: int, *arguments: object) -> int:
    """A system call by number; every argument is passed as a 64-bit word or pointer."""
    if not LINUX:
        raise OSError("system calls by number are known for Linux only")
    words = [ctypes.c_long(a) if isinstance(a, int) else a for a in arguments]
    return checked("syscall", ctypes.c_long(number), *words)


def unshare(flags: int) -> None:
    """Leave the namespaces named by `flags` for new ones."""
    checked("unshare", ctypes.c_int(flags))


def setns(descriptor: int, kind: int) -> None:
    """Enter the namespace that `descriptor` refers to."""
    checked("setns", ctypes.c_int(descriptor), ctypes.c_int(kind))


def mount(source: str, target: str, kind: str, flags: int = 0, options: str = "") -> None:
    """Attach a file system or folder at `target`; empty texts become null pointers."""
    texts = [text.encode() or None for text in (source, target, kind)]
    checked("mount", *texts, ctypes.c_ulong(flags), options.encode() or None)


def make_read_only(target: str, *, recursive: bool) -> None:
    """Forbid writing and set-user-id below a mount (Linux 5.12)."""
    attributes = (ctypes.c_uint64 * 4)(_MOUNT_ATTR_RDONLY | _MOUNT_ATTR_NOSUID, 0, 0, 0)
    flags = _AT_RECURSIVE if recursive else 0
    syscall(
        _SYS_MOUNT_SETATTR,
        _AT_FDCWD,
        ctypes.c_char_p(target.encode()),
        flags,
        ctypes.byref(attributes),
        ctypes.sizeof(attributes),
    )


def pivot_root(folder: str) -> None:
    """Make `folder`, a mount, the root; what was the root becomes unreachable."""
    number = _SYS_PIVOT_ROOT.get(MACHINE)
    if number is None:
        raise OSError(f"pivot_root: no system call number known for {MACHINE!r}")
    os.chdir(folder)
    dot = ctypes.c_char_p(b".")
    syscall(number, dot, dot)
    checked("umount2", b".", ctypes.c_int(MNT_DETACH))
    os.chdir("/")


def prctl(option: int, argument: int = 1) -> None:
    """Set one attribute of the calling process."""
    zero = ctypes.c_ulong(0)
    checked("prctl", ctypes.c_int(option), ctypes.c_ulong(argument), zero, zero, zero)


def drop_capabilities() -> None:
    """Give up every capability."""
    header = (ctypes.c_uint32 * 2)(_CAPABILITY_VERSION_3, 0)
    nothing = (ctypes.c_uint32 * 6)()
    checked("capset", ctypes.byref(header), ctypes.byref(nothing))
