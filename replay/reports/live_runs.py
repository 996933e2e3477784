"""A run of the page that lives: what is known of it, and the process that continues it."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import threading
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO

from evo.logs.journal import LogError
from evo.logs.locks import is_written
from evo.logs.log import Log, read_log
from evo.logs.stopping import Wish, stop_file
from evo.studies.folders import kind_of
from replay.explorers.run_data import done_words, end_words, own_goal
from replay.importers.following import Followed

GOES_ON = ("paused", "stopped", "interrupted")
"""States of a run that can be continued."""


@dataclass
class Run:
    """A run of the folder.

    Attributes:
        path: Its log.
        number: Its place in the page's links.
        log: What is known of it; None: it could not be read.
        problem: Why it could not.
        said: Why a process that this page began to continue it failed; empty once the log grows.
    """

    path: Path
    number: int
    log: Log | None = None
    problem: str = ""
    said: str = ""
    _size: int = 0  # of the log when that was said

    def refresh(self) -> None:
        """Reads what is new in the log."""
        try:
            if self.log is None:
                self.log = read_log(self.path)
            else:
                self.log.refresh()
            self.problem = ""
            if self.said and self.path.stat().st_size != self._size:
                self.said = ""
        except (LogError, ValueError, OSError) as error:
            self.problem = str(error)

    def go_on(self) -> None:
        """Continues it in a process that outlives the page."""
        self.said = ""
        words = tempfile.TemporaryFile()  # noqa: SIM115 - no pipe, which would end with the page
        process = subprocess.Popen(
            [sys.executable, "-m", "evo", "resume", os.fspath(self.path)],
            stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=words,
            start_new_session=True,
        )  # fmt: skip
        threading.Thread(target=self._await_end, args=(process, words), daemon=True).start()

    def _await_end(self, process: subprocess.Popen[bytes], words: IO[bytes]) -> None:
        """Keeps the last line of what a failed process wrote."""
        with words:
            status = process.wait()
            words.seek(0)
            lines = words.read().decode(errors="replace").strip().splitlines()
        if status != 0:
            self._size = self.path.stat().st_size if self.path.exists() else 0
            self.said = lines[-1][:300] if lines else f"`evo resume` ended with status {status}"

    @property
    def stamp(self) -> int:
        """Grows with the log."""
        return 0 if self.log is None else self.log.reader.lines

    @property
    def state(self) -> str:
        """Whether it is running, completed, paused, stopped, interrupted or unreadable."""
        if self.log is None:
            return "unreadable"
        if is_written(self.path):
            return "running"
        log, ended = self.log, self.log.ended
        if own_goal(log) is None:
            done = ended and log.ends[-1].reason != "interrupted"
        else:
            done = log.finished
        if done or not ended:
            return "completed" if done else "interrupted"
        return "paused" if end_words(log.ends[-1]) == "paused" else "stopped"

    @property
    def study(self) -> str:
        """The kind of study that alone can continue it; empty: it can be continued by itself."""
        if self.log is None or own_goal(self.log) is not None:
            return ""
        return kind_of(self.path.parent) or ""

    def words(self, state: str) -> str:
        """Its state in a few words."""
        log = self.log
        if log is None:
            return self.problem[:200]
        done = done_words(log)
        if state == "running":
            wishes: tuple[Wish, Wish] = ("stop", "pause")
            asked = [wish for wish in wishes if stop_file(self.path, wish).exists()]
            return f"{done}; asked to {asked[0]}" if asked else done
        if self.said:
            return f"{done}; {self.said}"
        if state in GOES_ON and self.study:
            return f"{done}; goes on with its {self.study}"
        if state in ("paused", "stopped"):
            how = end_words(log.ends[-1])
            return done if how == state else f"{done}: {how}"[:300]
        return done


@dataclass
class ToolRun(Run):
    """A run of another tool, as the log that is made of what the tool has written so far.

    Attributes:
        followed: The tool's files.
        running: Whether the gate that the tool was started behind is open.
        version: Of the files' state that was read.
    """

    followed: Followed = field(kw_only=True)
    running: bool = False
    version: int = 0

    def refresh(self) -> None:
        """Reads the log again if the tool has written more."""
        if self.version != self.followed.version:
            self.version, self.log = self.followed.version, None
            super().refresh()

    @property
    def stamp(self) -> int:
        """Changes whenever the log does."""
        return self.version

    @property
    def state(self) -> str:
        """Whether it is running, or read as it was found."""
        return "running" if self.running else "read"

    def words(self, state: str) -> str:
        """Which tool wrote it, and when it did last."""
        if self.log is None:
            return self.problem[:200]
        when = time.strftime("%H:%M:%S", time.localtime(self.followed.changed))
        problem = self.followed.problem
        told = f"; what it wrote since cannot be read: {problem[:200]}" if problem else ""
        return f"{self.log.header.source}, files of {when}{told}"
