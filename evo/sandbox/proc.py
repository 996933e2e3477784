"""What /proc says of processes: their descent, threads and memory."""

from __future__ import annotations

import os
import re
from contextlib import suppress

from evo.sandbox import kernel

_OWN_MEMORY = (b"RssAnon", b"RssShmem")
_STATUS = re.compile(rb"^(PPid|Threads|RssAnon|RssShmem):\s*(\d+)", re.MULTILINE)


def read_status(name: str) -> dict[bytes, int]:
    """The numbers of a process that are used here; `OSError` where it is gone."""
    with open(f"/proc/{name}/status", "rb") as file:
        return {key: int(number) for key, number in _STATUS.findall(file.read())}


def memory_of(status: dict[bytes, int]) -> int:
    """Memory of a process that is no file's, KiB."""
    return sum(status.get(kind, 0) for kind in _OWN_MEMORY)


def descendants(spared: set[int]) -> dict[int, tuple[int, int]]:
    """Threads and memory (KiB, no file's) of each process that this one started, orphans too."""
    seen: dict[int, dict[bytes, int]] = {}
    for name in os.listdir("/proc") if kernel.LINUX else ():
        if name.isdigit():
            with suppress(OSError):
                seen[int(name)] = read_status(name)
    found = {os.getpid()}
    while more := {pid for pid in seen.keys() - found - spared if seen[pid][b"PPid"] in found}:
        found |= more
    found.remove(os.getpid())
    return {pid: (seen[pid][b"Threads"], memory_of(seen[pid])) for pid in found}


def count_threads(user: int) -> int:
    """Processes and threads of a user; a guess where /proc does not say."""
    count = 0
    for name in os.listdir("/proc") if kernel.LINUX else ():
        with suppress(OSError):
            if name.isdigit() and os.stat(f"/proc/{name}").st_uid == user:
                count += len(os.listdir(f"/proc/{name}/task"))
    return count or 256
