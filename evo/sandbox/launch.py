"""How a freshly executed process becomes a warm fork server: namespaces, preloading, layers.

Imports nothing heavy itself, because the process that stays behind as the parent of the server
only waits for it.
"""

from __future__ import annotations

import gc
import importlib
import os
import signal
import socket
import sys
from contextlib import suppress

import msgspec

from evo.sandbox import kernel
from evo.sandbox.jail import Jail
from evo.sandbox.messages import Ready, Setup, receive, send

PRELOADED = (
    "numpy.fft",
    "numpy.linalg",
    "numpy.random",
    "scipy.linalg",
    "scipy.optimize",
    "scipy.spatial.distance",
    "scipy.special",
)
"""What programs use most, so that a forked process has it at once."""


def main(parent: str) -> None:
    """Serve the driver at the other end of standard input until it goes.

    Args:
        parent: The folder that the package `evo` was imported from; programs must not find it.
    """
    driver = socket.socket(fileno=os.dup(0))
    setup = msgspec.msgpack.decode(receive(driver), type=Setup)
    sys.path.remove(parent)
    sys.path += [path for path in setup.packages if path not in sys.path]
    jail = Jail(readable=setup.packages, without=setup.without)
    jail.separate()
    pid = os.fork()  # the first process of a new process tree, where there is one
    if pid:
        driver.close()
        _follow(pid)
    if kernel.LINUX:
        kernel.die_with_parent(signal.SIGKILL)
        _offer_to_the_oom_killer()
    sys.path.insert(0, parent)
    for name in PRELOADED:
        importlib.import_module(name)
    from evo.sandbox.server import Server

    sys.path.remove(parent)
    jail.establish()
    gc.collect()
    gc.freeze()
    send(driver, Ready(protections=jail.protections, missing=jail.missing))
    Server(driver, jail).serve()
    os._exit(0)


def _follow(pid: int) -> None:
    """End as the server ends."""
    os.close(0)
    _, status = os.waitpid(pid, 0)
    os._exit(os.waitstatus_to_exitcode(status) & 0xFF)


def _offer_to_the_oom_killer() -> None:
    """A program that eats the memory ends rather than the driver."""
    with suppress(OSError), open("/proc/self/oom_score_adj", "w") as file:
        file.write("500")
