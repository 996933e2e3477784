"""The process of an engine, which ends with this one however that ends."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path

GRACE = 5.0
"""Seconds that an engine has to end by itself once it is asked to."""

_KEEPER = Path(__file__).with_name("keeper.py")


class EngineProcess:
    """A program behind its keeper.

    Args:
        command: The program and its arguments.
        folder: Where it runs; its output is appended to `output.txt` there.
        environment: All environment variables that it gets.
    """

    def __init__(
        self, command: Sequence[str], folder: Path, environment: Mapping[str, str]
    ) -> None:
        self.output = folder / "output.txt"
        self._keeper = subprocess.Popen(
            [sys.executable, "-I", str(_KEEPER), str(self.output), *command],
            cwd=folder,
            env=dict(environment),
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )

    @property
    def ended(self) -> str | None:
        """Describes how the program ended; None while it runs."""
        code = self._keeper.poll()
        if code is None:
            return None
        how = f"by signal {code - 128}" if code > 128 else f"with exit code {code}"
        last = self._last_line()
        return f"the engine ended {how}" + (f": {last}" if code and last else "")

    def end(self, grace: float = GRACE) -> None:
        """Asks the program and all that it started to end, and kills them if they do not."""
        assert self._keeper.stdin is not None
        with suppress(OSError):
            self._keeper.stdin.write(b"t")
            self._keeper.stdin.flush()
        with suppress(subprocess.TimeoutExpired):
            self._keeper.wait(grace)
        with suppress(OSError):
            self._keeper.stdin.close()
        self._keeper.wait()

    def _last_line(self) -> str:
        try:
            with self.output.open("rb") as file:
                file.seek(max(0, file.seek(0, 2) - 4096))
                lines = file.read().decode("utf-8", "replace").strip().splitlines()
        except OSError:
            return ""
        return lines[-1][:500] if lines else ""
