"""Runs a program in a process group of its own, which never outlives whoever started it.

The arguments are a file for the program's output and its command line. Each byte on standard input
asks the group to end; once standard input is closed, as it is when the parent dies, the group is
killed. It first waits until the keeper of an earlier session has ended. This file is run by its
path and imports nothing of the package, so that it starts at once.
"""

import contextlib
import fcntl
import os
import signal
import subprocess
import sys
import threading
from typing import IO

MOST_OUTPUT = 64 << 20
"""Bytes of output that are kept; the rest is dropped."""


def signal_group(group: int, which: signal.Signals) -> None:
    """Sends a signal to what is left of a process group."""
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(group, which)


def obey(group: int) -> None:
    """Passes on what arrives at standard input, until it is closed."""
    while os.read(0, 1):
        signal_group(group, signal.SIGTERM)
    signal_group(group, signal.SIGKILL)


def keep(output: IO[bytes], path: str) -> None:
    """Writes output to a file as long as there is room for it, and reads it to its end.

    A program whose output nobody reads would wait for that, so a full disk costs its output alone.
    """
    left = MOST_OUTPUT
    with open(path, "ab", buffering=0) as file:
        while data := os.read(output.fileno(), 1 << 16):
            with contextlib.suppress(OSError):
                file.write(data[:left])
            left -= len(data[:left])


def wait_for_earlier(path: str) -> None:
    """Waits until the keeper that writes to the same file, if there is one, has ended.

    After a kill an earlier program may live on for a moment, and two would share their files. The
    lock is held until this process ends.
    """
    fcntl.flock(os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644), fcntl.LOCK_EX)


def main(path: str, command: list[str]) -> int:
    """Runs the program; returns its exit code, 128 and more after a signal."""
    wait_for_earlier(path)
    try:
        process = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
    except OSError as error:
        with open(path, "a") as file:
            file.write(f"{command[0]}: {error.strerror}\n")
        return 127
    assert process.stdout is not None
    writing = threading.Thread(target=keep, args=(process.stdout, path), daemon=True)
    writing.start()
    threading.Thread(target=obey, args=(process.pid,), daemon=True).start()
    code = process.wait()
    signal_group(process.pid, signal.SIGKILL)
    writing.join(5)
    return code if code >= 0 else 128 - code


if __name__ == "__main__":
    done = main(sys.argv[1], sys.argv[2:])
    sys.stdout.flush()
    os._exit(done)  # a thread may still wait for standard input
