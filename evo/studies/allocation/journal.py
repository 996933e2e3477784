"""The journal of a live allocation, allocation.jsonl: each round asked, and each completed."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

import msgspec

from evo.logs.journal import Reader, Writer
from evo.logs.records import Record
from evo.policies import POLICIES, Policy
from evo.studies.allocation.goal import AllocationGoal
from evo.studies.allocation.loop import PullOutcome, state_digest
from evo.studies.folders import refuse_other
from evo.warning import warn

if TYPE_CHECKING:
    from tqdm import tqdm

    from evo.policies.base import Floats, Ints
    from evo.studies.study import Study


class ArmRecord(Record, frozen=True, kw_only=True):
    """An arm: its log's path, relative to the allocation's folder where it lies in it.

    The generations `logged` before the allocation began cost nothing.
    """

    log: str
    seed: int
    logged: int = 0


class AllocationHeader(Record, frozen=True, kw_only=True, tag_field="kind", tag="allocation"):
    """First line of allocation.jsonl: what identifies a live allocation.

    Attributes:
        parameters: Of the policy, where they differ from the defaults.
        source: SHA-256 (hex) of the code of a user's own policy; empty for a built-in one, and
            where it is unknown, as in older journals.
        rounds: Rounds planned; policies may depend on it.
        seed: Seed of the policy.
        cap: Generations of an arm at most; None: no cap.
        in_flight: Rounds asked and not yet completed at most.
        learned: What a policy learned from earlier runs, so that going on needs none of them.
        learned_from: Hashes of these runs.
        initial: Whether generation 0 is charged, at an arm's first pull; it once was not.
    """

    schema: int = 1
    policy: str
    parameters: dict[str, object] = msgspec.field(default_factory=dict)
    source: str = ""
    reward: str
    rounds: int
    seed: int
    budget: dict[str, float] = msgspec.field(default_factory=dict)
    cap: int | None = None
    in_flight: int = 1
    learned: dict[str, Any] = msgspec.field(default_factory=dict)
    learned_from: tuple[str, ...] = ()
    initial: bool = False
    arms: tuple[ArmRecord, ...]


class ArmAsked(Record, frozen=True, kw_only=True, tag_field="kind", tag="asked"):
    """The policy picked an arm; its calls have not begun."""

    round: int
    arm: int


class ArmAdvanced(Record, frozen=True, kw_only=True, tag_field="kind", tag="told"):
    """The pull of a round is complete and the policy knows its reward.

    `best_fitness` is that of all arms so far, `costs` leave out unknown units, `digest` is the
    SHA-256 (hex) of the policy's state.
    """

    round: int
    arm: int
    reward: float
    best_fitness: float | None
    costs: dict[str, float]
    digest: str


class Closed(Record, frozen=True, kw_only=True, tag_field="kind", tag="closed"):
    """An arm whose engine ended with a session and cannot go on is closed from a round on."""

    round: int
    arm: int


AllocationLine = AllocationHeader | ArmAsked | ArmAdvanced | Closed | AllocationGoal
_decoder: msgspec.json.Decoder[AllocationLine] = msgspec.json.Decoder(AllocationLine)
_WHAT = "journal of an allocation"


class Journal:
    """What allocation.jsonl holds: its header, the arm asked and the completed pull, by round.

    `closed` has the round from which on an arm is closed, by arm, and `goals` those of its sessions
    that differ from the one before, where the first had none.
    """

    def __init__(self, records: Sequence[AllocationLine]) -> None:
        header = records[0]
        assert isinstance(header, AllocationHeader)
        self.header = header
        self.asked = {each.round: each.arm for each in records if isinstance(each, ArmAsked)}
        self.told = {each.round: each for each in records if isinstance(each, ArmAdvanced)}
        self.closed = {each.arm: each.round for each in records if isinstance(each, Closed)}
        self.goals = [each for each in records if isinstance(each, AllocationGoal)]

    def given(self, goal: AllocationGoal) -> list[AllocationGoal]:
        """Returns what to write of the goal of a session that begins: nothing if it is the last."""
        last = self.goals[-1] if self.goals else AllocationGoal()
        if goal.pair == last.pair:
            return []
        now = {"asked": len(self.asked), "told": len(self.told)}
        return [msgspec.structs.replace(goal, **now)]


def read_journal(path: Path) -> Journal:
    """Reads allocation.jsonl; a torn last line is forgiven, all other damage a `LogError`."""
    return Journal(list(Reader(path, _decoder, first=AllocationHeader, what=_WHAT).follow()))


def open_journal(
    study: Study, header: AllocationHeader, goal: AllocationGoal
) -> tuple[Writer, Journal]:
    """Opens a new allocation.jsonl, or continues that of the same allocation, with a goal."""
    writer, records = study.open_journal(_decoder, what=_WHAT, first=header)
    journal = Journal(records)
    refuse_other_allocation(writer.path, journal.header, header)
    if not same_code(journal.header, header):
        warn(
            f"{writer.path}: the code of policy {header.policy!r} is not that which began the "
            "allocation: rounds from here on may go to other arms",
        )
    for new in journal.given(goal):
        writer.append(new)
        journal.goals.append(new)
    return writer, journal


def refuse_other_allocation(path: Path, was: AllocationHeader, now: AllocationHeader) -> None:
    """Raises ValueError where a journal is of another allocation than the one given now."""
    before, here = (
        msgspec.structs.asdict(each)
        | {"arms": [(arm.log, arm.seed) for arm in each.arms], "source": None}
        for each in (was, now)  # what a log held when it began stays as it was
    )
    refuse_other(path, "an allocation", before, here)


def same_code(was: AllocationHeader, now: AllocationHeader) -> bool:
    """Whether the policy of a journal has the code of the one given now, as far as is known."""
    unknown = now.policy not in POLICIES.built_in and not (was.source and now.source)
    return unknown or was.source == now.source


class JournalWatcher:
    """Writes each round to the journal, or checks it against what stands there."""

    def __init__(
        self,
        writer: Writer,
        journal: Journal,
        policy: Policy,
        *,
        best_fitness: float | None,
        bar: tqdm[NoReturn],
    ) -> None:
        self._writer, self._journal, self._policy = writer, journal, policy
        self._best, self._bar, self._warned = best_fitness, bar, False

    def asked(self, round_index: int, arm: Ints) -> None:
        """The policy picked an arm."""
        self._writer.check_in_place()
        picked = int(arm[0])
        logged = self._journal.asked.get(round_index)
        if logged is None:
            self._writer.append(ArmAsked(round=round_index, arm=picked))
        elif logged != picked:
            raise ValueError(
                f"{self._writer.path}: round {round_index} went to arm {logged}, but the policy "
                f"now picks arm {picked}: it, or the arms' logs, have changed since"
            )

    def completed(self, round_index: int, reward: Floats, outcome: PullOutcome) -> None:
        """The policy knows the reward."""
        after = float(outcome.after[0])
        if not math.isnan(after):
            self._best = after if self._best is None else max(self._best, after)
        line = ArmAdvanced(
            round=round_index,
            arm=int(outcome.arm[0]),
            reward=float(reward[0]),
            best_fitness=self._best,
            costs={u: float(c[0]) for u, c in outcome.costs.items() if not math.isnan(c[0])},
            digest=state_digest(self._policy),
        )
        logged = self._journal.told.get(round_index)
        if logged is None:
            self._writer.append(line)
            self._writer.sync()
        else:
            self._compare(logged, line)
        self._bar.update(1)
        best = "none" if self._best is None else f"{self._best:.4f}"
        self._bar.set_postfix_str(f"arm {int(outcome.arm[0])}, best {best}")

    def _compare(self, logged: ArmAdvanced, now: ArmAdvanced) -> None:
        """Checks a round against the arm, reward and costs that the arms' logs give now."""
        log = self._journal.header.arms[now.arm].log
        where = f"{self._writer.path}: round {now.round} (arm {now.arm}, {log})"
        pairs = {"arm": (logged.arm, now.arm), "reward": (logged.reward, now.reward)}
        units = sorted(logged.costs.keys() & now.costs.keys() - {"seconds"})
        pairs |= {unit: (logged.costs[unit], now.costs[unit]) for unit in units}
        for name, (was, is_now) in pairs.items():
            if not math.isclose(was, is_now, rel_tol=1e-9, abs_tol=1e-9):
                raise ValueError(
                    f"{where}: states {name} {was!r}, but the arm's log gives {is_now!r}: a log or "
                    "the journal was changed since; give another folder to begin anew"
                )
        if logged.digest != now.digest and not self._warned:
            self._warned = True
            warn(
                f"{where}: the policy's state is not the one logged, as where its last digits "
                "differ between processors; its rounds are the same",
            )
