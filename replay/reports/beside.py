"""What a live page shows beside our own runs: gates and their calls, and runs of other tools."""

from __future__ import annotations

import contextlib
import math
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from shlex import quote

import pandas as pd

from evo.gate.log import GateLog, is_gate_log, read_gate_log, without_engines
from evo.logs.journal import LogError
from evo.logs.locks import is_written
from evo.warning import and_more
from replay import importers
from replay.importers.anything import others_in
from replay.importers.following import SHARE, Followed, last_change, places, stamp_of
from replay.logs.decode import find_own
from replay.logs.gates import calls_of
from replay.markup import clean
from replay.reports.forms import html_table

DEPTH = 4
"""Folders within one another, from where a watched program was started, that are searched."""

_HEADS = ("gate", "state", "client", "calls", "ok", "failed", "cached", "tokens", "dollars")


def require_followed(path: Path) -> None:
    """Raises LogError for a file that is no log of evo and none of a gate: a page shows nothing."""
    if not path.is_file() or find_own(path) or is_gate_log(path):
        return
    name = " and ".join(importers.recognised(path))
    if words := "" if name else importers.table_words(path):
        raise LogError(f"{path}: {words}")
    how = f"; `replay site {quote(str(path))} -o FOLDER` shows its runs of {name}" if name else ""
    raise LogError(f"{path}: expected a folder, or the log of a run or of a gate{how}")


def not_followed(path: Path) -> str:
    """Names tables and other whole files of other tools in a folder, which no page follows."""
    found = others_in(path)[0] if path.is_dir() else []
    left = [(name, place) for name, place in found if place.is_file()]
    if not left:
        return ""
    (name, place), places = left[0], and_more([each for _, each in left])
    return (
        f"{places}: runs of {name}, which are whole and not followed; "
        f"`replay site {quote(str(place))} -o FOLDER` shows them"
    )


@dataclass
class _Gate:
    """A gate's log as it was read last."""

    log: GateLog
    size: int
    rows: list[tuple[str, ...]]


@dataclass
class Beside:
    """The gates at a path, and the runs of other tools there and where gates say.

    Attributes:
        path: A folder, or the log of a gate.
        tools: What other tools write, in order of appearance.
    """

    path: Path
    _gates: dict[Path, _Gate] = field(default_factory=dict)
    _tools: dict[tuple[Path, str], Followed] = field(default_factory=dict)
    _behind: dict[Path, Path] = field(default_factory=dict)  # place of a tool -> its gate's log
    _again: float = 0.0

    @property
    def tools(self) -> list[Followed]:
        """The runs of other tools that could be read."""
        return list(self._tools.values())

    def look(self) -> None:
        """Finds what is new, and reads what has grown; searching takes a share of the time."""
        if time.monotonic() >= self._again:
            began = time.thread_time()
            self._find()
            self._again = time.monotonic() + (time.thread_time() - began) / SHARE
        for gate in list(self._gates):
            self._read(gate)
        for followed in self.tools:
            followed.refresh()

    def is_running(self, followed: Followed) -> bool:
        """Whether the gate behind which a tool was started is open."""
        gate = self._behind.get(followed.place.resolve())
        return gate is not None and is_written(gate)

    def html(self) -> str:
        """The gates and what passed them, by client; empty without any."""
        rows = []
        for path, gate in self._gates.items():
            state = "open" if is_written(path) else "closed"
            for row in gate.rows:
                name, words = f'<td class="word">{clean(path.stem)}</td>', f"<td>{state}</td>"
                rows.append("".join([name, words, *(f"<td>{clean(cell)}</td>" for cell in row)]))
        if not rows:
            return ""
        heads = [(head, "word" if head == "gate" else "") for head in _HEADS]
        return f"<h2>Gates</h2>{html_table(heads, rows)}"

    def _find(self) -> None:
        for path in self._logs():
            with contextlib.suppress(LogError):
                if path not in self._gates and is_gate_log(path):
                    self._read(path)
        if self.path.is_dir():
            for tool, place in places(self.path):
                self._tools.setdefault((place.resolve(), tool), Followed(place, tool))
        for path, gate in self._gates.items():
            for began in gate.log.watched:
                for folder in began.folders:
                    for tool, place in places(Path(folder), depth=DEPTH):
                        self._add(place, tool, path, began.at)

    def _add(self, place: Path, tool: str, gate: Path, since: float) -> None:
        """Follows what has changed since a program was started behind a gate."""
        key = place.resolve(), tool
        if key in self._tools and self._behind.get(key[0]) == gate:
            return
        if last_change(stamp_of(place)) < since - 1:
            return
        if key not in self._tools:
            self._tools[key] = Followed(place, tool)
        self._behind[key[0]] = gate

    def _logs(self) -> Iterator[Path]:
        """The files that may be logs of gates."""
        if self.path.is_file():
            yield self.path
        else:
            found = [each for each in sorted(self.path.rglob("*.jsonl")) if each.is_file()]
            yield from without_engines(found)

    def _read(self, path: Path) -> None:
        """Reads the log of a gate if it has grown; what is damaged stays as it was."""
        with contextlib.suppress(LogError, OSError):
            known, size = self._gates.get(path), path.stat().st_size
            if known is None or known.size != size:
                log = read_gate_log(path)
                self._gates[path] = _Gate(log, size, list(_rows(log)))


def _rows(log: GateLog) -> Iterator[tuple[str, ...]]:
    """Calls, tokens and dollars of each client."""
    frame = calls_of([log])
    if frame.empty:
        yield ("none yet", *["0"] * 4, "0", "")
    for client, calls in frame.groupby("client", sort=True):
        counts = calls["status"].value_counts()
        cached, ok = int(counts.get("cached", 0)), int(counts.get("ok", 0))
        sent = len(calls) - cached
        failed = sent - ok - int(counts.get("not settled", 0))
        tokens = _sum(calls["prompt_tokens"]) + _sum(calls["completion_tokens"])
        dollars = _sum(calls["dollars"])
        paid = "unknown" if math.isnan(dollars) else f"{dollars:.4f}"
        cost = paid if log.model.is_llm else "no LLM"
        name = str(client) or "no key"
        yield (name, str(sent), str(ok), str(failed), str(cached), f"{tokens:,.0f}", cost)


def _sum(column: pd.Series[float]) -> float:
    """The sum of what is known; NaN where nothing is."""
    return float(pd.to_numeric(column).sum(min_count=1))
