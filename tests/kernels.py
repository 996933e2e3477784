"""Kernels of notebooks that are forked from one process that has imported what all of them need.

A kernel that starts loads IPython, NumPy, pandas and Matplotlib, which takes longer than most
notebooks of the tests. It imports `evo` and `replay` itself, as any kernel does.
"""

from __future__ import annotations

import contextlib
import importlib
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from typing import Any

IMPORTED = (
    *("IPython", "anywidget", "ipykernel.ipkernel", "ipykernel.kernelapp", "ipywidgets"),
    *("matplotlib.axes", "matplotlib.backends.backend_agg", "matplotlib.figure", "pandas"),
    *("matplotlib_inline.backend_inline", "scipy.optimize", "scipy.stats"),
)

_server: list[subprocess.Popen[str]] = []


class Kernel:
    """What `jupyter_client` asks of the process of a kernel."""

    stdin = stdout = stderr = None

    def __init__(self, pid: int) -> None:
        self.pid = pid

    def poll(self) -> int | None:
        try:
            os.kill(self.pid, 0)
        except ProcessLookupError:
            return 0
        return None

    def wait(self) -> int:
        while self.poll() is None:
            time.sleep(0.01)
        return 0

    def send_signal(self, number: int) -> None:
        with contextlib.suppress(ProcessLookupError):
            os.kill(self.pid, number)

    def terminate(self) -> None:
        self.send_signal(signal.SIGTERM)

    def kill(self) -> None:
        self.send_signal(signal.SIGKILL)


def launch(
    command: list[str], *, env: dict[str, str], cwd: str | None = None, **_: object
) -> Kernel:
    """Stands in for `jupyter_client.launcher.launch_kernel`."""
    if not _server:
        _server.append(
            subprocess.Popen(
                [sys.executable, __file__],
                env=os.environ | {"MPLBACKEND": "module://matplotlib_inline.backend_inline"},
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                start_new_session=True,  # Ctrl-C ends it with its parent, not with a traceback
                text=True,
            )
        )
    [server] = _server
    assert server.stdin is not None
    assert server.stdout is not None
    asked = {"argv": command[command.index("-f") :], "env": env, "cwd": cwd or os.getcwd()}
    print(json.dumps(asked), file=server.stdin, flush=True)
    return Kernel(int(server.stdout.readline()))


def stop() -> None:
    """Ends the process that kernels are forked from."""
    while _server:
        server = _server.pop()
        server.communicate()


def _become_kernel(argv: list[str], env: dict[str, str], cwd: str, parent: int) -> None:
    """Goes on as the process of a kernel, which ends if the one it was forked from does."""
    from ipykernel.kernelapp import IPKernelApp

    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    os.dup2(2, 1)
    os.chdir(cwd)
    os.environ.clear()
    os.environ.update(env)
    tempfile.tempdir = None
    IPKernelApp.launch_instance(argv=[*argv, f"--IPKernelApp.parent_handle={parent}"])


def _serve() -> None:
    """Forks a kernel for each line that is read, and writes its process id."""
    sys.path.pop(0)  # the folder of this file
    for name in IMPORTED:
        importlib.import_module(name)
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # kernels that end leave nothing behind
    own = os.getpid()
    for line in sys.stdin:
        asked: dict[str, Any] = json.loads(line)
        pid = os.fork()
        if not pid:
            _become_kernel(**asked, parent=own)
            return
        os.setpgid(pid, pid)  # signals go to its group
        print(pid, flush=True)


if __name__ == "__main__":
    sys.modules["rfc3987_syntax"] = None  # type: ignore[assignment]  # as in conftest.py
    _serve()
