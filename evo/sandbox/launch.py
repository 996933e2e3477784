"""How a freshly executed process becomes two warm fork servers: namespaces, preloading, layers.

Forking takes time in proportion to memory, and SciPy's optimisers triple that memory. So one
server, for programs that do not mention SciPy, has NumPy only, and the other loads SciPy before
its first program.
"""

from __future__ import annotations

import gc
import importlib
import os
import signal
import socket
import sys
from collections.abc import Iterable
from contextlib import suppress
from typing import NoReturn

import msgspec

from evo.sandbox import kernel
from evo.sandbox.jail import Jail
from evo.sandbox.messages import Ready, Setup, receive, send
from evo.sandbox.server import Server

NUMPY = ("numpy.fft", "numpy.linalg", "numpy.random", "scipy")
SCIPY = ("scipy.linalg", "scipy.optimize", "scipy.spatial.distance", "scipy.special")
"""What programs use most, so that a forked process has it at once."""


def main() -> None:
    """Serve the driver until it goes.

    The command line holds the folder that the package `evo` was imported from, which programs
    must not find, and the descriptors of two sockets: for programs without SciPy, and with it.
    """
    parent, *descriptors = sys.argv[1:]
    del sys.argv[1:]
    channels = [socket.socket(fileno=int(descriptor)) for descriptor in descriptors]
    setup = msgspec.msgpack.decode(receive(channels[0]), type=Setup)
    sys.path += [path for path in setup.packages if path not in sys.path]
    for name in NUMPY:
        importlib.import_module(name)
    sys.path.remove(parent)
    gc.collect()
    gc.freeze()
    jail = Jail(setup)
    jail.separate()
    servers = []
    for channel, modules in zip(channels, ((), SCIPY), strict=True):
        pid = os.fork()  # the first one is also the first process of the new process tree
        if pid == 0:
            for other in set(channels) - {channel}:
                other.close()
            _serve(channel, jail, modules)
        servers.append(pid)
    for channel in channels:
        channel.close()
    ended, status = os.wait()  # they end together: when the driver goes, or as a broken pair
    for pid in set(servers) - {ended}:
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)
    os._exit(os.waitstatus_to_exitcode(status) & 0xFF)


def _serve(channel: socket.socket, jail: Jail, modules: Iterable[str]) -> NoReturn:
    if kernel.LINUX:
        kernel.die_with_parent(signal.SIGKILL)
        _offer_to_the_oom_killer()
    jail.establish()
    send(channel, Ready(protections=jail.protections, missing=jail.missing, folder=jail.base))
    Server(channel, jail, modules).serve()
    os._exit(0)


def _offer_to_the_oom_killer() -> None:
    """A program that eats the memory ends rather than the driver."""
    with suppress(OSError), open("/proc/self/oom_score_adj", "w") as file:
        file.write("500")
