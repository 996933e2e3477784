"""The filter of system calls."""

from __future__ import annotations

import struct
import sys

import pytest

from evo.sandbox import kernel, seccomp


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
