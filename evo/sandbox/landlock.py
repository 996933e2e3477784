"""Landlock: a process gives up access to all files but those named (Linux 5.13)."""

from __future__ import annotations

import ctypes
import os
import stat
from collections.abc import Iterable

from evo.sandbox import kernel

_SYS_CREATE_RULESET = 444
_SYS_ADD_RULE = 445
_SYS_RESTRICT_SELF = 446
_CREATE_RULESET_VERSION = 1
_RULE_PATH_BENEATH = 1

_EXECUTE = 1 << 0
_WRITE_FILE = 1 << 1
_READ_FILE = 1 << 2
_READ_DIRECTORY = 1 << 3
_TRUNCATE = 1 << 14
_IOCTL = 1 << 15
_READ = _EXECUTE | _READ_FILE | _READ_DIRECTORY
_OF_FILES = _EXECUTE | _WRITE_FILE | _READ_FILE | _TRUNCATE | _IOCTL


class _PathBeneath(ctypes.Structure):
    _pack_ = 1
    _fields_ = (("allowed", ctypes.c_uint64), ("descriptor", ctypes.c_int32))


SIGNALS = 6
"""The first interface that keeps signals from processes outside."""


def version() -> int:
    """Number of the kernel's Landlock interface; `OSError` where there is none."""
    return kernel.syscall(_SYS_CREATE_RULESET, 0, 0, _CREATE_RULESET_VERSION)


def _all_rights(interface: int) -> int:
    bits = 13 if interface < 2 else 14 if interface < 3 else 15 if interface < 5 else 16
    return (1 << bits) - 1


def restrict(interface: int, *, readable: Iterable[str], writable: Iterable[str]) -> None:
    """Confine the calling process, for good, to the given files and folders.

    From interface 4 on TCP is refused too; from 6 on, abstract sockets of and signals to
    processes outside. Requires `PR_SET_NO_NEW_PRIVS`. Paths that do not exist are skipped. In
    writable folders everything is allowed.
    """
    rights = _all_rights(interface)
    attributes = (ctypes.c_uint64 * 3)(rights, 0b11, 0b11)
    size = 8 if interface < 4 else 16 if interface < 6 else 24
    ruleset = kernel.syscall(_SYS_CREATE_RULESET, ctypes.byref(attributes), size, 0)
    try:
        for path in readable:
            _allow(ruleset, path, _READ, rights)
        for path in writable:
            _allow(ruleset, path, rights, rights)
        kernel.syscall(_SYS_RESTRICT_SELF, ruleset, 0)
    finally:
        os.close(ruleset)


def _allow(ruleset: int, path: str, allowed: int, handled: int) -> None:
    try:
        descriptor = os.open(path, os.O_PATH | os.O_CLOEXEC)
    except OSError:
        return
    try:
        if not stat.S_ISDIR(os.fstat(descriptor).st_mode):
            allowed &= _OF_FILES
        rule = _PathBeneath(allowed & handled, descriptor)
        kernel.syscall(_SYS_ADD_RULE, ruleset, _RULE_PATH_BENEATH, ctypes.byref(rule), 0)
    finally:
        os.close(descriptor)
