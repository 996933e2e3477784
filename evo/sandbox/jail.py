"""The layers that confine a program, each used if the platform supports it.

The fork server builds a `Jail` once: it tries in forked probes which layers work, and moves into
namespaces of its own. A program is forked by `Jail.fork` and locks itself in with `Jail.enter`.
"""

from __future__ import annotations

import itertools
import math
import os
import re
import resource
import signal
import sys
import tempfile
from collections.abc import Callable
from contextlib import suppress
from functools import partial

from evo.logs.records import Limits
from evo.sandbox import kernel, landlock, root, seccomp
from evo.sandbox.messages import Setup

LAYERS: dict[str, str] = {
    "limits": "time is limited, but not the memory, processes and files of a program",
    "processes": "the number of a program's processes is watched at most, and not limited",
    "memory": "memory is limited for each process, not for all processes of a program together",
    "user": "programs run with your own user's rights",
    "mount": "programs see your file tree, and their working folder has no size cap as a whole",
    "pid": "programs see other processes; what they leave behind is killed by descent",
    "network": "programs may see this machine's network interfaces",
    "landlock": "only the rights of its user keep a program from reading and writing files",
    "signals": "programs may send signals to other processes of the user they run as",
    "seccomp": "programs may use every system call",
}
"""Layers of protection by name, and what it means where one is missing."""

SWITCHED_OFF = "switched off"

_MIB = 2**20
_MAX_FILES = 10_000
_MAX_DESCRIPTORS = 256
_NOBODY = 65534
_STATUS = re.compile(rb"^(PPid|Threads|RssAnon|RssShmem):\s*(\d+)", re.MULTILINE)
_LIMITS = ("RLIMIT_AS", "RLIMIT_FSIZE", "RLIMIT_NOFILE", "RLIMIT_CORE", "RLIMIT_CPU")
_NAMESPACES = {
    "mount": kernel.CLONE_NEWNS,
    "pid": kernel.CLONE_NEWPID,
    "network": kernel.CLONE_NEWNET | kernel.CLONE_NEWIPC | kernel.CLONE_NEWUTS,
}


class Jail:
    """Which layers are active, and how a forked process enters them."""

    def __init__(self, setup: Setup) -> None:
        self.active: set[str] = set()
        self.base = ""  # folder of the processes' folders, empty where each mounts its own
        self.missing = dict.fromkeys(setup.without, SWITCHED_OFF)  # and why
        self._readable = root.readable_paths(setup.packages)
        self._memory_mb = setup.memory_mb
        self._user_namespace = self._own_proc = False
        self._pid_namespace, self._landlock, self._filter = -1, 0, b""
        self._leftover: list[str] = []
        self._limits: tuple[str, ...] = ()
        self._users: tuple[int, int] | None = None

    @property
    def protections(self) -> tuple[str, ...]:
        """Names of the active layers, in the order of `LAYERS`, after those that are always on."""
        found = tuple(name for name in LAYERS if name in self.active)
        return ("fresh_process", "empty_environment", *found, *sorted(self.active - set(LAYERS)))

    # Set-up, once per server

    def separate(self) -> None:
        """Choose namespaces and enter those that must be entered before the server is forked."""
        plain = self._working_namespaces(user=False)
        reasons = plain
        if any(plain.values()) and "user" not in self.missing:
            with_user = self._working_namespaces(user=True)
            failures = [sum(map(bool, found.values())) for found in (with_user, plain)]
            self._user_namespace = failures[0] < failures[1]
            reasons = with_user if self._user_namespace else plain
        self.missing |= {name: reason for name, reason in reasons.items() if reason}
        self.active |= reasons.keys() - self.missing.keys()
        if self._user_namespace:
            _enter_user_namespace()
        if "pid" in self.active:
            kernel.unshare(kernel.CLONE_NEWPID)

    def establish(self) -> None:
        """Enter the other namespaces, in the forked server, and find the layers of programs."""
        if "network" in self.active:
            kernel.unshare(_NAMESPACES["network"])
        if "mount" in self.active:
            kernel.unshare(kernel.CLONE_NEWNS)
            root.enter(self._readable)
        if "pid" in self.active:
            self._pid_namespace = os.open("/proc/self/ns/pid", os.O_RDONLY | os.O_CLOEXEC)
            self._own_proc = "mount" in self.active and not _probe(_mount_proc, fork=self.fork)
            if self._own_proc:
                root.mount_proc()  # where what programs start can be counted
        elif kernel.LINUX:
            kernel.prctl(kernel.PR_SET_CHILD_SUBREAPER)
            self.active.add("subreaper")
        if "mount" not in self.active:
            self.base = tempfile.mkdtemp(prefix="evo-sandbox-")
            os.chmod(self.base, 0o711)
        finders = {
            "limits": self._find_limits,
            "user": self._find_users,
            "processes": self._find_processes,
            "memory": self._find_memory,
            "landlock": self._find_landlock,
            "signals": self._find_signals,
            "seccomp": self._find_filter,
        }
        for name in [name for name in finders if name not in self.missing]:
            try:
                reason = finders[name]()
            except (OSError, ValueError) as error:
                reason = str(error)
            if reason:
                self.missing[name] = reason
            else:
                self.active.add(name)

    def _working_namespaces(self, *, user: bool) -> dict[str, str]:
        """Whether each kind of namespace works, as the reason why not or an empty text."""

        def enter(name: str) -> None:
            if user:
                _enter_user_namespace()
            kernel.unshare(_NAMESPACES[name])
            if name == "mount":
                root.enter(self._readable)

        wanted = [name for name in _NAMESPACES if name not in self.missing]
        return {name: _probe(partial(enter, name)) for name in wanted}

    def _find_limits(self) -> str:
        reasons = {name: _probe(partial(_limit, name, 1), forks=False) for name in _LIMITS}
        self._limits = tuple(name for name, reason in reasons.items() if not reason)
        return "" if self._limits else "; ".join(reasons.values())

    def _find_processes(self) -> str:
        """Find out whether a limit on processes holds: root, for one, is free of it."""

        def forks() -> None:
            if self._users:
                _become(self._users[0])
            _limit("RLIMIT_NPROC", 1)
            with suppress(OSError):
                if os.fork() == 0:
                    os._exit(0)
                os.wait()
                raise ValueError("this user may start any number of processes")

        return _probe(forks, forks=False)

    def _find_memory(self) -> str:
        if not kernel.LINUX or ("pid" in self.active and not self._own_proc):
            return "what a program starts cannot be seen in /proc"
        _read_status("self")
        return ""

    def _find_users(self) -> str:
        if self._user_namespace:
            return ""
        if os.geteuid() != 0:
            return "neither root nor in a user namespace"
        # Users of their own for this server's programs and scorer, so that processes count apart.
        unique = os.fstat(self._pid_namespace).st_ino if "pid" in self.active else os.getpid()
        own = 0x40000000 + 2 * (unique % 2**24)
        reason = ""
        for users in ((own, own + 1), (_NOBODY, _NOBODY)):
            if not (reason := _probe(partial(_become_reader, users[0]))):
                self._users = users
                break
        return reason

    def _find_landlock(self) -> str:
        self._landlock = landlock.version()
        folder = root.working_folder(self._readable) if "mount" in self.active else self.base
        return _probe(partial(self._enter_landlock, folder))

    def _find_signals(self) -> str:
        """Find out whether anything keeps signals from processes that are not a program's own."""
        scoped = "landlock" in self.active and self._landlock >= landlock.SIGNALS
        own_user = self._users is not None and self._users[0] != _NOBODY
        if scoped or own_user or "pid" in self.active:
            return ""
        return (
            f"needs a process tree or user of its own, or Landlock's interface {landlock.SIGNALS}"
        )

    def _find_filter(self) -> str:
        # Without a network and a root folder of its own, a program could reach local services.
        self._filter = seccomp.build(unix_sockets={"mount", "network"} <= self.active)

        def install() -> None:
            kernel.prctl(kernel.PR_SET_NO_NEW_PRIVS)
            seccomp.install(self._filter)

        return _probe(install)

    # Once per process

    def fork(self) -> int:
        """Fork, the child in a new process tree where that works: at its end all of it ends."""
        if "pid" not in self.active:
            return os.fork()
        kernel.unshare(kernel.CLONE_NEWPID)
        pid = -1
        try:
            pid = os.fork()
        finally:
            if pid:
                kernel.setns(self._pid_namespace, kernel.CLONE_NEWPID)
        return pid

    def make_folder(self, *, scorer: bool) -> str:
        """Path of a new process's own folder, made here unless the process mounts it itself."""
        if "mount" in self.active:
            return root.working_folder(self._readable)
        folder = tempfile.mkdtemp(dir=self.base)
        if self._users:
            os.chown(folder, self._users[scorer], self._users[scorer])
        return folder

    def remove_folder(self, folder: str) -> None:
        """Remove what `make_folder` made, whatever a program did to it, at the next `tidy`."""
        if "mount" not in self.active:
            self._leftover.append(folder)

    def tidy(self) -> None:
        """Do the work that may take long and that nobody waits for."""
        while self._leftover:
            folder = self._leftover.pop()
            os.chmod(folder, 0o700)
            remove_tree(folder)

    def enter(self, limits: Limits, folder: str, *, extra_bytes: int, scorer: bool) -> None:
        """Lock the calling, freshly forked process in, for good; it may write to `folder` only.

        The scorer lives on, so it has no limit on processor time.
        """
        user = self._users[scorer] if self._users else os.geteuid()
        if "mount" in self.active:
            kernel.unshare(kernel.CLONE_NEWNS)
            root.mount_folder(folder, limits.files_mb * _MIB + extra_bytes, _MAX_FILES, user)
            os.environ.update({name: folder for name in ("HOME", "TMPDIR") if name in os.environ})
            if self._own_proc:
                root.mount_proc()
            else:
                root.hide_proc()
        self._enter_limits(limits, extra_bytes, cpu=not scorer)
        if kernel.LINUX:
            kernel.prctl(kernel.PR_SET_NO_NEW_PRIVS)
        if "landlock" in self.active:
            self._enter_landlock(folder)
        if self._users:
            _become(user)
        elif self._user_namespace or (kernel.LINUX and user == 0):
            kernel.drop_capabilities()
        if kernel.LINUX:
            kernel.prctl(kernel.PR_SET_DUMPABLE)
            if scorer:
                self.close_memory()
            kernel.prctl(kernel.PR_SET_PDEATHSIG, signal.SIGKILL)
        if "seccomp" in self.active:
            seccomp.install(self._filter)

    def close_memory(self) -> None:
        """Close the calling process's memory to others of its user, where they can see it."""
        if kernel.LINUX and not self._own_proc:
            kernel.prctl(kernel.PR_SET_DUMPABLE, 0)

    def _enter_landlock(self, folder: str) -> None:
        kernel.prctl(kernel.PR_SET_NO_NEW_PRIVS)
        landlock.restrict(
            self._landlock,
            readable=[*self._readable, *(("/proc",) if self._own_proc else ())],
            writable=[folder, *root.DEVICES],
        )

    def _enter_limits(self, limits: Limits, extra_bytes: int, *, cpu: bool) -> None:
        values = {
            "RLIMIT_AS": limits.memory_mb * _MIB,
            "RLIMIT_FSIZE": limits.files_mb * _MIB + extra_bytes,
            "RLIMIT_NOFILE": _MAX_DESCRIPTORS,
            "RLIMIT_CORE": 0,
            "RLIMIT_CPU": math.ceil(limits.seconds) + 1,
        }
        for name in self._limits:
            if cpu or name != "RLIMIT_CPU":
                _limit(name, values[name])
        if "processes" in self.active:
            _limit("RLIMIT_NPROC", self._processes(limits))

    def excess(self, limits: Limits) -> str:
        """The resource that the processes of a program use too much of together."""
        if "memory" in self.missing:
            return ""
        found = descendants()
        count = sum(threads for threads, _ in found.values())
        if count > limits.processes and self.missing.get("processes", SWITCHED_OFF) != SWITCHED_OFF:
            return f"the program started more than {limits.processes} processes and threads"
        most = max(self._memory_mb, limits.memory_mb)
        shared = _memory_of(_read_status("self"))  # with what was forked from here
        held = sum(max(memory - shared, 0) for _, memory in found.values())
        if held > most * 1024:
            return f"the program ran out of memory: its processes hold over {most} MiB together"
        return ""

    def _processes(self, limits: Limits) -> int:
        """Returns the limit, to which other processes of the same user are added."""
        if self._users and self._users[0] != _NOBODY:
            return limits.processes
        if self._user_namespace:
            return limits.processes + 4  # server, scorer and the like
        user = self._users[0] if self._users else os.geteuid()
        return limits.processes + _count_threads(user)


def remove_tree(folder: str) -> None:
    """Remove a folder that may hold unreadable or very deeply nested folders.

    Each nested folder is moved beside the first one before it is removed.
    """
    pending = [folder]
    numbers = itertools.count()
    while pending:
        current = pending.pop()
        with os.scandir(current) as entries:
            found = list(entries)
        for entry in found:
            if entry.is_dir(follow_symlinks=False):
                os.chmod(entry.path, 0o700)
                pending.append(f"{folder}.{next(numbers)}")
                os.rename(entry.path, pending[-1])
            else:
                os.unlink(entry.path)
        os.rmdir(current)


def _probe(
    action: Callable[[], object], *, fork: Callable[[], int] = os.fork, forks: bool = True
) -> str:
    """Run `action` in a forked child, which then forks once: the error's text, or an empty one."""
    reader, writer = os.pipe()
    with open(reader, "rb") as stream, open(writer, "wb", buffering=0) as report:
        try:
            pid = fork()
        except OSError as error:
            return str(error)
        if pid == 0:
            code = 1
            try:
                action()
                if forks:  # a new process tree accepts its first child only if it works
                    if os.fork() == 0:
                        os._exit(0)
                    os.wait()
                code = 0
            except (OSError, ValueError) as error:
                report.write(str(error).encode())
            finally:
                os._exit(code)
        report.close()
        text = stream.read().decode()
    _, status = os.waitpid(pid, 0)
    return text or (f"probe ended with status {status}" if status else "")


def _enter_user_namespace() -> None:
    """Become privileged over namespaces of one's own, under the same user number."""
    user, group = os.geteuid(), os.getegid()
    kernel.unshare(kernel.CLONE_NEWUSER)
    for name, text in (
        ("setgroups", "deny"),
        ("uid_map", f"{user} {user} 1"),
        ("gid_map", f"{group} {group} 1"),
    ):
        with open(f"/proc/self/{name}", "w") as file:
            file.write(text)


def _become(user: int) -> None:
    os.setgroups([])
    os.setresgid(user, user, user)
    os.setresuid(user, user, user)


def _become_reader(user: int) -> None:
    """Switch to a user who can still read Python's library."""
    _become(user)
    with open(os.__file__, "rb"), open(sys.executable, "rb"):
        pass


def _limit(name: str, value: int) -> None:
    number = getattr(resource, name)
    _, hard = resource.getrlimit(number)
    most = value if hard == resource.RLIM_INFINITY else min(value, hard)
    resource.setrlimit(number, (most, most))


def _mount_proc() -> None:
    kernel.unshare(kernel.CLONE_NEWNS)
    root.mount_proc()


def _read_status(name: str) -> dict[bytes, int]:
    """The numbers of a process that are used here; `OSError` where it is gone."""
    with open(f"/proc/{name}/status", "rb") as file:
        return {key: int(number) for key, number in _STATUS.findall(file.read())}


def _memory_of(status: dict[bytes, int]) -> int:
    """Memory of a process that is no file's, KiB."""
    return sum(status.get(kind, 0) for kind in (b"RssAnon", b"RssShmem"))


def descendants() -> dict[int, tuple[int, int]]:
    """Threads and memory (KiB, no file's) of each process that this one started, orphans too."""
    seen: dict[int, dict[bytes, int]] = {}
    for name in os.listdir("/proc") if kernel.LINUX else ():
        if name.isdigit():
            with suppress(OSError):
                seen[int(name)] = _read_status(name)
    found = {os.getpid()}
    while more := {pid for pid in seen.keys() - found if seen[pid][b"PPid"] in found}:
        found |= more
    found.remove(os.getpid())
    return {pid: (seen[pid][b"Threads"], _memory_of(seen[pid])) for pid in found}


def _count_threads(user: int) -> int:
    """Processes and threads of a user; a guess where /proc does not say."""
    count = 0
    for name in os.listdir("/proc") if kernel.LINUX else ():
        with suppress(OSError):
            if name.isdigit() and os.stat(f"/proc/{name}").st_uid == user:
                count += len(os.listdir(f"/proc/{name}/task"))
    return count or 256
