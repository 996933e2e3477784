"""The journal of a live allocation, allocation.jsonl: each round when asked and when told."""

from __future__ import annotations

import contextlib
import math
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from evo.allocation import Outcome, state_digest
from evo.log import LogError, LogWriter, check_line, read_bytes
from evo.policies import Policy
from evo.records import AllocationHeader, AllocationLine, Asked, Told

if TYPE_CHECKING:
    from evo.policies.base import Floats, Ints

ALLOCATION = "allocation.jsonl"

_decoder: msgspec.json.Decoder[AllocationLine] = msgspec.json.Decoder(AllocationLine)


@dataclass(frozen=True)
class Journal:
    """What allocation.jsonl holds."""

    header: AllocationHeader
    asked: dict[int, int]
    told: dict[int, Told]
    length: int


def read_journal(path: Path) -> Journal:
    """Reads allocation.jsonl; a torn last line is forgiven.

    Raises:
        LogError: It is damaged, or no journal of an allocation; names file and line.
    """
    data = read_bytes(path)
    header: AllocationHeader | None = None
    asked: dict[int, int] = {}
    told: dict[int, Told] = {}
    length = 0
    for number, line in enumerate(data.split(b"\n")[:-1], start=1):
        fault = check_line(line)
        try:
            record = None if fault else _decoder.decode(line)
        except (msgspec.DecodeError, ValueError) as error:
            fault, record = f"not a line of an allocation: {error}", None
        if fault or (number == 1) != isinstance(record, AllocationHeader):
            raise LogError(f"{path}:{number}: {fault or 'expected one header, on line 1'}")
        match record:
            case AllocationHeader():
                header = record
            case Asked():
                asked[record.round] = record.arm
            case Told():
                told[record.round] = record
        length += len(line) + 1
    if header is None:
        raise LogError(f"{path}:1: no allocation: expected a header line, got {data[:40]!r}")
    return Journal(header, asked, told, length)


def open_journal(
    folder: Path, header: AllocationHeader, stack: contextlib.ExitStack
) -> tuple[LogWriter, Journal]:
    """Begins allocation.jsonl, or goes on with one of the same allocation."""
    path = folder / ALLOCATION
    if not path.exists():
        writer = LogWriter.create(path, header)
        stack.callback(writer.close)
        return writer, Journal(header, {}, {}, 0)
    writer = LogWriter.claim(path)
    stack.callback(writer.close)
    journal = read_journal(path)
    writer.cut(journal.length)
    for field in header.__struct_fields__:
        was, now = getattr(journal.header, field), getattr(header, field)
        if field == "arms":  # what a log held when the allocation began stays as it was
            was = [(arm.log, arm.seed) for arm in was]
            now = [(arm.log, arm.seed) for arm in now]
        if was != now:
            raise ValueError(
                f"{path}: holds an allocation with {field} {was!r}, not {now!r}; "
                "give its own arguments to go on with it, or another folder"
            )
    return writer, journal


class JournalWatcher:
    """Writes each round to the journal, or checks it against what stands there."""

    def __init__(
        self,
        writer: LogWriter,
        journal: Journal,
        policy: Policy,
        rounds: int,
        *,
        best_fitness: float | None,
        shown: bool,
    ) -> None:
        from tqdm.auto import tqdm

        self._writer, self._journal, self._policy = writer, journal, policy
        self._best = best_fitness
        self._bar = tqdm(total=rounds, unit="round", desc="allocate", disable=not shown)

    def asked(self, round_index: int, arm: Ints) -> None:
        """The policy picked an arm."""
        picked = int(arm[0])
        logged = self._journal.asked.get(round_index)
        if logged is None:
            self._writer.append(Asked(round=round_index, arm=picked))
        elif logged != picked:
            raise ValueError(
                f"{self._writer.path}: round {round_index} went to arm {logged}, but the policy "
                f"now picks arm {picked}: it, or the arms' logs, have changed since"
            )

    def told(self, round_index: int, reward: Floats, outcome: Outcome) -> None:
        """The policy knows the reward."""
        after = float(outcome.after[0])
        if not math.isnan(after):
            self._best = after if self._best is None else max(self._best, after)
        if round_index not in self._journal.told:
            self._writer.append(
                Told(
                    round=round_index,
                    arm=int(outcome.arm[0]),
                    reward=float(reward[0]),
                    best_fitness=self._best,
                    costs={
                        unit: float(cost[0])
                        for unit, cost in outcome.costs.items()
                        if not math.isnan(cost[0])
                    },
                    digest=state_digest(self._policy),
                )
            )
            self._writer.sync()
        self._bar.update(1)
        best = "none" if self._best is None else f"{self._best:.4f}"
        self._bar.set_postfix_str(f"arm {int(outcome.arm[0])}, best {best}")

    def close(self) -> None:
        """Ends the progress bar."""
        self._bar.close()
