"""The log of a gate: one line for a request that is sent, and one for what became of it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import msgspec

from evo.logs.journal import LogError, Reader, open_regular
from evo.logs.lines import PREFIX
from evo.logs.records import Attempt, Int, Model, Record

ENGINE_LOG = "gate.jsonl"
"""The log of an engine's gate, in the engine's folder."""

_FIRST = b',"kind":"gate"'


class Opened(Record, frozen=True, kw_only=True, tag_field="kind", tag="gate"):
    """First line of a gate's log: the model that it forwards to, and its start time."""

    schema: Int = 1
    model: Model
    began: float


class Sent(Record, frozen=True, kw_only=True, tag_field="kind", tag="sent"):
    """A request is about to be forwarded; `worst` leaves out the units that have no bound."""

    number: Int
    at: float
    client: str
    body: str
    worst: dict[str, float]


class Settled(Record, frozen=True, kw_only=True, tag_field="kind", tag="settled"):
    """Outcome of a request."""

    number: Int
    at: float
    attempt: Attempt


class Kept(Record, frozen=True, kw_only=True, tag_field="kind", tag="cached"):
    """A request was answered from the cache, at no cost."""

    at: float
    client: str
    body: str


class Watched(Record, frozen=True, kw_only=True, tag_field="kind", tag="watched"):
    """A program starts behind the gate; its files are looked for in these folders."""

    at: float
    folders: tuple[str, ...]


class GateClosed(Record, frozen=True, kw_only=True, tag_field="kind", tag="closed"):
    """The end of a session that had a `budget`: how many requests were `refused` for it."""

    at: float
    budget: dict[str, float]
    refused: Int


GateLine = Opened | Sent | Settled | Kept | Watched | GateClosed
"""Every kind of line in the log of a gate."""

line_decoder: msgspec.json.Decoder[GateLine] = msgspec.json.Decoder(GateLine)


class Passed(NamedTuple):
    """A request that was sent, and its outcome; the attempt is None if that is unknown."""

    sent: Sent
    attempt: Attempt | None
    at: float | None  # when it ended


@dataclass(frozen=True)
class GateLog:
    """The content of a gate's log.

    Attributes:
        path: The file.
        model: The model before which the gate stands.
        passed: The requests that were sent, in order.
        kept: The requests that the cache answered.
        watched: The programs that `evo watch` started behind the gate, in order.
        closed: The ends of its sessions that had a budget, in order.
    """

    path: Path
    model: Model
    passed: list[Passed]
    kept: list[Kept]
    watched: list[Watched]
    closed: list[GateClosed]

    @property
    def of_budget(self) -> str:
        """The budget of the last session, and how many requests were refused; empty without."""
        if not self.closed:
            return ""
        limits = ", ".join(f"{unit}={most:.10g}" for unit, most in self.closed[-1].budget.items())
        last, every = self.closed[-1].refused, sum(each.refused for each in self.closed)
        were = "1 request was" if last == 1 else f"{last or 'no'} requests were"
        in_all = f", {every} in all sessions" if every > last else ""
        return f"budget: {limits}; {were} refused for it{in_all}"


def is_gate_log(path: Path) -> bool:
    """Whether a file begins as the log of a gate; LogError where it cannot be read."""
    try:
        with open_regular(path) as file:
            first = file.read(len(PREFIX) + 64)
    except OSError as error:
        raise LogError(f"{path}: cannot read the log: {error.strerror or error}") from None
    return first.startswith(PREFIX) and _FIRST in first


def without_engines(files: Sequence[Path]) -> list[Path]:
    """Leaves out the files of engines, whose folders lie beside the logs of their runs."""
    known = set(files)
    folders = [path.parent for path in files if path.name == ENGINE_LOG and path.parent.name]
    engines = {folder for folder in folders if folder.with_name(f"{folder.name}.jsonl") in known}
    return [path for path in files if engines.isdisjoint(path.parents)] if engines else [*files]


def read_gate_log(path: Path) -> GateLog:
    """Reads the log of a gate; LogError names the file and the line that is damaged."""
    records = list(Reader(path, line_decoder, first=Opened, what="log of a gate").follow())
    opened = records[0]
    assert isinstance(opened, Opened)
    kept = [record for record in records if isinstance(record, Kept)]
    watched = [record for record in records if isinstance(record, Watched)]
    closed = [record for record in records if isinstance(record, GateClosed)]
    return GateLog(path, opened.model, passed_of(records), kept, watched, closed)


def passed_of(records: Iterable[GateLine]) -> list[Passed]:
    """Returns the requests of a log, in the order in which they were sent."""
    found: dict[int, Passed] = {}
    for record in records:
        if isinstance(record, Sent):
            found[record.number] = Passed(record, None, None)
        elif isinstance(record, Settled) and record.number in found:
            found[record.number] = Passed(found[record.number].sent, record.attempt, record.at)
    return list(found.values())
