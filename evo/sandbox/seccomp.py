"""Seccomp: a process gives up system calls that no honest program needs (x86-64 and AArch64).

The filter names what is refused rather than what is allowed, so that evaluators may start the
same Python and libraries of any version run; files are the business of the other layers.
"""

from __future__ import annotations

import ctypes
import errno
import struct

from evo.sandbox import kernel

_AUDIT_ARCH = {"x86_64": 0xC000003E, "aarch64": 0xC00000B7}
_SYS_SECCOMP = {"x86_64": 317, "aarch64": 277}
_SET_MODE_FILTER = 1
_SPEC_ALLOW = 4  # keep the processor's speculation: switching it off slows every program

_LOAD, _EQUAL, _AT_LEAST, _ANY_BIT, _RETURN = 0x20, 0x15, 0x35, 0x45, 0x06
_ALLOW = 0x7FFF0000
_ERRNO = 0x00050000
_NUMBER, _ARCH, _FIRST_ARGUMENT = 0, 4, 16
_X32 = 0x40000000
_AF_UNIX = 1
_NEW_NAMESPACES = 0x7E020000
_CLONE3 = 435  # its flags are in memory, out of the filter's sight; libraries fall back to clone

_CALLS = """
    ptrace 101 117, process_vm_readv 310 270, process_vm_writev 311 271, kcmp 312 272,
    pidfd_getfd 438 438, perf_event_open 298 241, userfaultfd 323 282, bpf 321 280,
    io_uring_setup 425 425, memfd_create 319 279, shmget 29 194, semget 64 190, msgget 68 186,
    mq_open 240 180, memfd_secret 447 447, clock_settime 227 112, clock_adjtime 305 266,
    adjtimex 159 171, settimeofday 164 170, sethostname 170 161, setdomainname 171 162,
    mount 165 40, umount2 166 39, pivot_root 155 41, chroot 161 51, open_tree 428 428,
    open_tree_attr 467 467, fanotify_init 300 262, move_mount 429 429, fsopen 430 430,
    fsconfig 431 431, fsmount 432 432, fspick 433 433, mount_setattr 442 442, unshare 272 97,
    setns 308 268, name_to_handle_at 303 264, open_by_handle_at 304 265, add_key 248 217,
    request_key 249 218, keyctl 250 219, init_module 175 105, finit_module 313 273,
    delete_module 176 106, kexec_load 246 104, kexec_file_load 320 294, reboot 169 142,
    swapon 167 224, swapoff 168 225, acct 163 89, quotactl 179 60, syslog 103 116, iopl 172 -,
    ioperm 173 -, ioprio_set 251 30
"""  # name, number on x86-64, number on AArch64
# memfd_create to memfd_secret would keep files outside the size-capped folder, and io_uring_setup
# would open sockets past this filter.
_NAMES = {
    name: (int(x86), None if arm == "-" else int(arm))
    for name, x86, arm in (call.split() for call in _CALLS.split(","))
}
_SOCKET = {"x86_64": 41, "aarch64": 198}
_CLONE = {"x86_64": 56, "aarch64": 220}
_KILL = {"x86_64": 62, "aarch64": 129}
_EVERYBODY = 0xFFFFFFFF  # kill(-1), which without a process tree reaches all of a user's processes
_PRCTL = {"x86_64": 157, "aarch64": 167}
_OF_ITSELF = {
    "x86_64": {302: 1, 141: 2, 142: 1, 144: 1, 203: 1, 314: 1, 256: 1, 279: 1},
    "aarch64": {261: 1, 140: 2, 118: 1, 119: 1, 122: 1, 274: 1, 238: 1, 239: 1},
}
"""Calls that name a process, which may be the caller alone: prlimit64, setpriority,
sched_setparam, sched_setscheduler, sched_setaffinity, sched_setattr, migrate_pages and move_pages;
and how many first arguments must be 0 (0 says the caller, and of setpriority one process)."""


class _Program(ctypes.Structure):
    _fields_ = (("length", ctypes.c_ushort), ("instructions", ctypes.c_char_p))


def _step(code: int, value: int, if_true: int = 0, if_false: int = 0) -> bytes:
    return struct.pack("HBBI", code, if_true, if_false, value)


def _unless_argument(number: int, test: int, value: int, *, refuse_if: bool) -> list[bytes]:
    """Refuse call `number` depending on a test of its first argument."""
    jump = (0, 1) if refuse_if else (1, 0)
    return [
        _step(_EQUAL, number, 0, 4),
        _step(_LOAD, _FIRST_ARGUMENT),
        _step(test, value, *jump),
        _step(_RETURN, _ERRNO | errno.EPERM),
        _step(_RETURN, _ALLOW),
    ]


def _unless_zero(number: int, count: int) -> list[bytes]:
    """Refuse call `number` unless its first `count` arguments, 32 bits each, are 0."""
    steps = [_step(_EQUAL, number, 0, 2 * count + 2)]
    for place in range(count):
        steps.append(_step(_LOAD, _FIRST_ARGUMENT + 8 * place))
        steps.append(_step(_EQUAL, 0, 0, 2 * (count - 1 - place) + 1))
    return [*steps, _step(_RETURN, _ALLOW), _step(_RETURN, _ERRNO | errno.EPERM)]


def build(*, unix_sockets: bool) -> bytes:
    """Instructions of the filter for this machine; `OSError` where its calls are not known.

    Sockets of the family AF_UNIX are safe where the process has its own network and its own root
    folder. Pairs of sockets are always allowed.
    """
    if kernel.MACHINE not in _AUDIT_ARCH:
        raise OSError(f"seccomp: no filter for {kernel.MACHINE!r}, only for {list(_AUDIT_ARCH)}")
    machine = kernel.MACHINE
    column = list(_AUDIT_ARCH).index(machine)
    steps = [
        _step(_LOAD, _ARCH),
        _step(_EQUAL, _AUDIT_ARCH[machine], 1, 0),
        _step(_RETURN, _ERRNO | errno.ENOSYS),
        _step(_LOAD, _NUMBER),
        _step(_AT_LEAST, _X32, 0, 1),
        _step(_RETURN, _ERRNO | errno.ENOSYS),
        _step(_EQUAL, _CLONE3, 0, 1),
        _step(_RETURN, _ERRNO | errno.ENOSYS),
    ]
    for numbers in _NAMES.values():
        number = numbers[column]
        if number is not None:
            steps += [_step(_EQUAL, number, 0, 1), _step(_RETURN, _ERRNO | errno.EPERM)]
    if unix_sockets:
        steps += _unless_argument(_SOCKET[machine], _EQUAL, _AF_UNIX, refuse_if=False)
    else:
        steps += [_step(_EQUAL, _SOCKET[machine], 0, 1), _step(_RETURN, _ERRNO | errno.EPERM)]
    steps += _unless_argument(_CLONE[machine], _ANY_BIT, _NEW_NAMESPACES, refuse_if=True)
    steps += _unless_argument(_PRCTL[machine], _EQUAL, kernel.PR_SET_PDEATHSIG, refuse_if=True)
    steps += _unless_argument(_KILL[machine], _EQUAL, _EVERYBODY, refuse_if=True)
    for number, count in _OF_ITSELF[machine].items():
        steps += _unless_zero(number, count)
    steps.append(_step(_RETURN, _ALLOW))
    return b"".join(steps)


def install(instructions: bytes) -> None:
    """Put the calling process, for good, under a filter. Requires `PR_SET_NO_NEW_PRIVS`."""
    program = _Program(len(instructions) // 8, instructions)
    number = _SYS_SECCOMP[kernel.MACHINE]
    kernel.syscall(number, _SET_MODE_FILTER, _SPEC_ALLOW, ctypes.byref(program))
