"""The journal of an allocation: each round is written once, and checked when it comes again."""

from __future__ import annotations

import math
import warnings
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest

from evo.logs.journal import LogError, Writer
from evo.policies import UCB1, Draws
from evo.runs.progress import progress_bar
from evo.studies.allocation.journal import (
    AllocationHeader,
    ArmAdvanced,
    ArmAsked,
    ArmRecord,
    Closed,
    Journal,
    JournalWatcher,
    read_journal,
    same_code,
)
from evo.studies.allocation.loop import PullOutcome

HEADER = AllocationHeader(
    policy="ucb1", reward="best_fitness", rounds=4, seed=0,
    arms=tuple(ArmRecord(log=f"arm-0{k}.jsonl", seed=40 + k) for k in range(2)),
)  # fmt: skip


def outcome(arm: int, after: float, **costs: float) -> PullOutcome:
    fields: dict[str, Any] = {
        name: np.array([math.nan]) for name in PullOutcome.__dataclass_fields__
    }
    fields |= {"arm": np.array([arm]), "after": np.array([after])}
    fields["costs"] = {unit: np.array([cost]) for unit, cost in costs.items()}
    return PullOutcome(**fields)


class Allocation:
    """An allocation of one's own, whose journal is written and read again."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def play(self, *rounds: tuple[int, float, dict[str, float]], best: float | None = None) -> None:
        """Goes through rounds, each an arm, what it reached and what that cost."""
        exists = self.path.exists()
        journal = read_journal(self.path) if exists else Journal([HEADER])
        policy = UCB1((1, 2), rounds=4, rng=Draws(0, 1))
        writer = Writer.claim(self.path) if exists else Writer.create(self.path, HEADER)
        bar = progress_bar(total=4, unit="pull", label="", shown=False)
        with writer:
            watcher = JournalWatcher(writer, journal, policy, best_fitness=best, bar=bar)
            for number, (arm, after, costs) in enumerate(rounds):
                watcher.asked(number, np.array([arm]))
                reward = np.nan_to_num(np.array([after]))
                policy.tell(np.array([arm]), reward)
                watcher.completed(number, reward, outcome(arm, after, **costs))

    @property
    def journal(self) -> Journal:
        return read_journal(self.path)


@pytest.fixture
def allocation(tmp_path: Path) -> Allocation:
    return Allocation(tmp_path / "allocation.jsonl")


CALLS = {"calls": 3.0, "seconds": 1.5, "dollars": math.nan}


def test_a_round_is_written_as_it_was_asked_and_told(allocation: Allocation) -> None:
    allocation.play((1, 0.25, CALLS), (0, 0.75, CALLS), (0, 0.5, CALLS))
    found = allocation.journal
    assert found.header == HEADER
    assert found.asked == {0: 1, 1: 0, 2: 0}
    assert [each.best_fitness for each in found.told.values()] == [0.25, 0.75, 0.75]
    assert found.told[0].costs == {"calls": 3.0, "seconds": 1.5}  # what is unknown is left out
    assert len({each.digest for each in found.told.values()}) == 3


@pytest.mark.parametrize(
    ("best", "after", "kept"),
    [
        (None, math.nan, None),
        (0.5, math.nan, 0.5),
        (0.5, 0.25, 0.5),
        (0.5, 0.75, 0.75),
        (None, -1.0, -1.0),
    ],
)
def test_the_best_fitness_is_that_of_all_arms_so_far(
    best: float | None, after: float, kept: float | None, allocation: Allocation
) -> None:
    allocation.play((0, after, {}), best=best)
    assert allocation.journal.told[0].best_fitness == kept


def test_what_comes_again_the_same_is_not_written_twice(allocation: Allocation) -> None:
    rounds = [(1, 0.25, CALLS), (0, 0.75, CALLS)]
    allocation.play(*rounds)
    before = allocation.path.read_bytes()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        allocation.play(*rounds)
        assert allocation.path.read_bytes() == before
        allocation.play(*rounds, (1, 0.5, CALLS))
    assert allocation.path.read_bytes().startswith(before)
    assert [*allocation.journal.told] == [0, 1, 2]


@pytest.mark.parametrize(
    ("again", "message"),
    [
        ((0, 0.25, CALLS), "round 0 went to arm 1, but the policy now picks arm 0"),
        (
            (1, 0.26, CALLS),
            r"round 0 \(arm 1, arm-01.jsonl\): states reward 0.25, but .* gives 0.26",
        ),
        ((1, 0.25, {**CALLS, "calls": 4.0}), "states calls 3.0, but the arm's log gives 4.0"),
    ],
)
def test_a_round_that_comes_out_otherwise_is_an_error(
    again: tuple[int, float, dict[str, float]], message: str, allocation: Allocation
) -> None:
    allocation.play((1, 0.25, CALLS))
    before = allocation.path.read_bytes()
    with pytest.raises(ValueError, match=message):
        allocation.play(again)
    assert allocation.path.read_bytes() == before


def test_last_digits_times_and_units_that_only_one_states_may_differ(
    allocation: Allocation,
) -> None:
    allocation.play((1, 0.25, CALLS))
    with pytest.warns(UserWarning, match="the policy's state is not the one logged") as warned:
        allocation.play(
            (1, 0.25 + 1e-12, {"calls": 3.0, "seconds": 99.0, "tokens": 7.0}), (0, 0.5, CALLS)
        )
    assert len(warned) == 1


@pytest.mark.parametrize(
    ("policy", "was", "now", "same"),
    [
        ("ucb1", "", "", True),
        ("ucb1", "", "abc", False),  # another one has taken the name of a built-in one
        ("mine", "abc", "abc", True),
        ("mine", "abc", "def", False),
        ("mine", "", "abc", True),  # unknown in an older journal
        ("mine", "abc", "", True),
    ],
)
def test_code_that_is_known_to_differ_is_another_policy(
    policy: str, was: str, now: str, same: bool
) -> None:
    headers = [msgspec.structs.replace(HEADER, policy=policy, source=each) for each in (was, now)]
    assert same_code(*headers) == same


def test_a_torn_last_line_is_forgiven_and_other_damage_is_not(allocation: Allocation) -> None:
    allocation.play((1, 0.25, CALLS))
    whole = allocation.path.read_bytes()
    allocation.path.write_bytes(whole[:-5])
    assert allocation.journal.asked == {0: 1}
    assert allocation.journal.told == {}
    lines = whole.splitlines(keepends=True)
    allocation.path.write_bytes(b"".join([*lines[:1], b"{}\n", *lines[1:]]))
    with pytest.raises(LogError, match=r"allocation\.jsonl:2: expected a line that begins with"):
        _ = allocation.journal


def test_an_arm_is_closed_from_a_round_on() -> None:
    told = ArmAdvanced(round=0, arm=1, reward=0.5, best_fitness=0.5, costs={}, digest="")
    journal = Journal([HEADER, ArmAsked(round=0, arm=1), told, Closed(round=1, arm=1)])
    assert journal.closed == {1: 1}
    assert journal.told == {0: told}
