"""System calls without a function of Python: they say what failed, and change what they name."""

from __future__ import annotations

import errno
import os
import subprocess
import sys
from pathlib import Path

import pytest

from evo.sandbox import kernel

linux = pytest.mark.skipif(sys.platform != "linux", reason="system calls of Linux")


def in_a_child(work: str) -> str:
    """What some lines print in a process of their own, since they change that for good."""
    lines = f"import ctypes, os\nfrom evo.sandbox import kernel\n{work}"
    done = subprocess.run([sys.executable, "-c", lines], capture_output=True, text=True, check=True)
    return done.stdout.strip()


def test_a_call_that_fails_names_itself_and_the_reason() -> None:
    with pytest.raises(OSError, match=r"chdir: No such file or directory") as raised:
        kernel.checked("chdir", b"/none/of/these")
    assert raised.value.errno == errno.ENOENT
    assert kernel.checked("getpid") == os.getpid()


def test_a_function_that_the_c_library_lacks_is_an_error_like_any_other() -> None:
    with pytest.raises(OSError, match="the C library has no function 'no_such_function'"):
        kernel.checked("no_such_function")


def test_calls_by_number_are_refused_where_the_numbers_are_unknown(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(kernel, "MACHINE", "riscv64")
    with pytest.raises(OSError, match="pivot_root: no system call number known for 'riscv64'"):
        kernel.pivot_root("/none")
    assert Path.cwd() != Path("/")
    monkeypatch.setattr(kernel, "LINUX", False)
    with pytest.raises(OSError, match="known for Linux only"):
        kernel.syscall(39)


@linux
def test_a_call_by_number_that_fails_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(OSError, match="syscall: ") as raised:
        kernel.make_read_only(str(tmp_path / "none"), recursive=True)
    assert raised.value.errno in (errno.ENOENT, errno.EPERM, errno.ENOSYS)


@linux
def test_an_attribute_is_set_for_the_process_that_asks() -> None:
    read = "print(ctypes.CDLL(None).prctl({}, 0, 0, 0, 0))"
    changed = f"kernel.prctl(kernel.PR_SET_NO_NEW_PRIVS)\n{read.format(39)}"
    assert (in_a_child(read.format(39)), in_a_child(changed)) == ("0", "1")
    changed = f"kernel.prctl(kernel.PR_SET_DUMPABLE, 0)\n{read.format(3)}"
    assert (in_a_child(read.format(3)), in_a_child(changed)) == ("1", "0")


@linux
def test_capabilities_are_gone_once_they_are_dropped() -> None:
    effective = "print([x for x in open('/proc/self/status') if x.startswith('CapEff')][0])"
    assert in_a_child(f"kernel.drop_capabilities()\n{effective}").split()[1] == "0" * 16


@linux
def test_the_namespace_of_another_kind_is_not_entered() -> None:
    with open("/proc/self/ns/uts") as namespace, pytest.raises(OSError, match="setns: Invalid arg"):
        kernel.setns(namespace.fileno(), kernel.CLONE_NEWNET)
