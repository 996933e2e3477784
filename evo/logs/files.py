"""Files of logs: writes at a place, where an open file is by now, what is said of folders."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path
from shlex import quote


def write_at(descriptor: int, data: bytes, offset: int) -> None:
    """Writes all of the data at a place of a file; OSError: some of it may have been written."""
    left = memoryview(data)
    while left:
        count = os.pwrite(descriptor, left, offset)
        left, offset = left[count:], offset + count


def path_of(descriptor: int, folder: Path) -> Path | None:
    """Returns where an open file is by now, if that is known or in a folder; None: nowhere."""
    own = os.fstat(descriptor)
    with suppress(OSError):  # a file that was made here has had another name before
        named = Path(os.readlink(f"/proc/self/fd/{descriptor}"))
        for path in (named, *folder.iterdir()):
            with suppress(OSError):
                if os.path.samestat(own, path.stat()):
                    return path
    return None


def why_not_made(folder: Path, error: OSError) -> str:
    """Returns what a message says of a folder that cannot be made or written."""
    for path in (folder, *folder.parents):
        if path.exists() and not path.is_dir():
            return f"{path}: expected a folder, got a file; name another"
    return f"{folder}: cannot write there: {error.strerror or error}"


def in_folder(path: Path) -> str:
    """What to do about a folder that was given in the place of a log."""
    if any(path.glob("*.jsonl*")):
        return f"name the logs in it, {path}/*.jsonl"
    theirs = f"`replay import auto {quote(str(path))} --full -o FOLDER`"
    return f"give the path of a log; of another tool's runs {theirs} makes logs"
