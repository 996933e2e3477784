"""Redis servers that tests start, each at a socket in a folder of its own."""

import contextlib
import shutil
import socket
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

SERVER = shutil.which("redis-server")
needs_redis = pytest.mark.skipif(SERVER is None, reason="apt-get install redis-server")


@contextlib.contextmanager
def serving(folder: Path, *options: str) -> Iterator[str]:
    """A server at a socket in a folder; yields its address."""
    place = folder / "redis.sock"
    command = [str(SERVER), "--port", "0", "--unixsocket", str(place), "--save", "", *options]
    process = subprocess.Popen(command, cwd=folder, stdout=subprocess.DEVNULL)
    try:
        deadline = time.monotonic() + 30
        while not _listens(place) and time.monotonic() < deadline:
            time.sleep(0.02)
        yield f"unix://{place}"
    finally:
        process.kill()
        process.wait()
        place.unlink(missing_ok=True)


def _listens(place: Path) -> bool:
    """Whether a server listens at a socket, which is there before it does."""
    with socket.socket(socket.AF_UNIX) as client:
        return client.connect_ex(str(place)) == 0
